//! Tangents of forms on a GPU, held to those of the processor.

use femtile::device::{Buffer, Cpu, Cuda, Scalar};
use femtile::expression::Expression;
use femtile::form::{Argument, Coefficient, Equation, Form};
use femtile::linalg::LinearOperator;
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::precondition::Diagonal;
use femtile::matrix_free::{CudaMatrixFreeConfig, LaunchShape};
use femtile::mesh::check::boundary_facets;
use femtile::mesh::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
use femtile::mesh::{CellKind, Mesh};
use femtile::operator::{
    CpuOperator, CudaForm, CudaState, CudaTangent, CudaTangentData, DiscreteForm, State,
};
use femtile::space::{LinearConstraints, LinearRelation, Space};

use super::Scope;
use super::matrix_free::{bend, cubes, deformed, ring, side, skew};
use super::problems::Random;

/// Two substances that react with each other, diffuse at rates that depend on the state, and are carried by a flow. What stands
/// behind `|` is for space alone.
const NONLINEAR: &str = r#"
unknown = { a = {}, b = {} }
define = """
da = grad(a)
db = grad(b)
"""

[coefficients]
rate = { default = 1 }

[cells.flux]
a = "[(1 + a^2)*da[0] + 0.3*db[1], (1 + b^2)*da[1]| da[2]]"
b = "[if(x > 0.4, 2, 1)*db[0], rate*exp(-b)*db[1]| db[2] + da[0]]"

[cells.source]
a = "-a_t - rate*a*b + sin(x*y)*da[0]"
b = "-2*b_t - b^2 + t*a - db[1]"

[boundary.exchange]
coefficients = { value = {} }
flux = { a = "-value*(a - 2*b)", b = "-a*b" }
"#;

/// Quadrilaterals in a plane, of a bent rectangle.
fn rectangle(cells: [usize; 2]) -> Mesh {
    let split = BoxSplit::Hexahedron;
    let [nx, ny] = cells;
    let layer = box_mesh(&BoxConfig { cells: [nx, ny, 1], split, ..BoxConfig::default() }).unwrap();
    let n_nodes = (nx + 1) * (ny + 1);
    let points = layer.points[..n_nodes].to_vec();
    let cells = layer.cells.chunks_exact(8).flat_map(|cell| cell[..4].to_vec()).collect();
    Mesh::new(points, CellKind::Quadrilateral, cells).unwrap()
}

fn expression(text: &str) -> Argument {
    Argument::from(Coefficient::from(Expression::parse(text).unwrap()))
}

fn number(value: f64) -> Argument {
    Argument::from(Coefficient::Constant(value))
}

/// Linear elasticity with a stiffness that differs from point to point, or one number.
fn elasticity(dimension: usize, varies: bool, facets: &[u32]) -> Form {
    let young = if varies { expression("2 + x*y") } else { number(3.0) };
    let equation = Equation::named("elasticity").unwrap();
    let form = equation.form(dimension).with("young", young).unwrap().with("poisson", number(0.3)).unwrap();
    let value = (0..dimension).map(|_| Coefficient::Constant(0.0)).collect::<Vec<_>>();
    let values = [("coefficient", number(0.7)), ("value", Argument::from(value))];
    form.on_boundary("spring", facets, &values).unwrap().build().unwrap()
}

fn convection(dimension: usize) -> Form {
    let velocity: Vec<Coefficient> =
        (0..dimension).map(|axis| Coefficient::Constant(1.0 - axis as f64)).collect();
    let equation = Equation::named("convection-diffusion").unwrap();
    let form = equation.form(dimension).with("velocity", Argument::from(velocity)).unwrap();
    form.with("sigma", number(0.2)).unwrap().with("lambda", expression("1 + x")).unwrap().build().unwrap()
}

/// Diffusion and reaction, whose tangent has kernels of its class.
fn diffusion(dimension: usize, varies: bool) -> Form {
    let equation = Equation::named("reaction-diffusion").unwrap();
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]);
    let sigma = if varies { expression("1 + 0.5*x*y") } else { Argument::from(tensor) };
    let lambda = if varies { number(0.0) } else { number(0.7) };
    equation.form(dimension).with("sigma", sigma).unwrap().with("lambda", lambda).unwrap().build().unwrap()
}

/// The mass matrix, without diffusion.
fn mass(dimension: usize) -> Form {
    let equation = Equation::named("reaction-diffusion").unwrap();
    let form = equation.form(dimension).with("sigma", number(0.0)).unwrap();
    form.with("lambda", number(0.7)).unwrap().build().unwrap()
}

fn nonlinear(dimension: usize, facets: &[u32]) -> Form {
    let text: String = match dimension {
        2 => NONLINEAR
            .lines()
            .map(|line| line.split_once('|').map_or(line.to_owned(), |(line, _)| format!("{line}]\"")) + "\n")
            .collect(),
        _ => NONLINEAR.replace('|', ","),
    };
    let equation = Equation::from_toml("two-substances", &text).unwrap();
    let form = equation.form(dimension).with("rate", expression("1 + x")).unwrap();
    form.on_boundary("exchange", facets, &[("value", expression("1 + y"))]).unwrap().build().unwrap()
}

/// Cells of a block and cells of a group, and whether a class has its own kernels.
type Cut = (Option<(usize, usize)>, bool);

/// Blocks of one batch and of several.
const CUTS: [Cut; 4] = [(None, true), (Some((2, 9)), false), (None, false), (Some((2, 2)), true)];

/// Checks the product, and that a second one has the bits of the first.
fn check<T: Scalar>(
    device: &Cuda,
    (mesh, degree, cuts): (&Mesh, usize, &[Cut]),
    form: &dyn Fn(usize, &[u32]) -> Form,
    is_constrained: bool,
    tolerance: f64,
) {
    let boundary = boundary_facets(mesh);
    let facets: Vec<u32> = (0..boundary.len() as u32).step_by(2).collect();
    let (space, form) = (Space::new(mesh, degree).unwrap(), form(mesh.dimension(), &facets));
    let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
    let operator = CpuOperator::new(discrete, &Cpu::new(2).unwrap()).unwrap();
    let (n, components) = (discrete.n_unknowns(), form.n_components());
    let mut random = Random::new(degree as u64);
    let (u, rate, x) = (random.vector(n), random.vector(n), random.vector(n));
    let state = State { u: &u, rate: &rate, time: 0.4, shift: 1.5 };
    let constrained = match is_constrained {
        false => Vec::new(),
        true if mesh.kind.is_simplex() => (0..space.n_dofs() as u32).step_by(5).collect(),
        true => side(mesh, degree, 0),
    };
    let rows =
        || constrained.iter().flat_map(|&dof| (0..components).map(move |c| dof as usize * components + c));
    let (mut free, mut wanted) = (x.clone(), vec![f64::NAN; n]);
    rows().for_each(|row| free[row] = 0.0);
    operator.apply(&state, &free, &mut wanted).unwrap();
    rows().for_each(|row| wanted[row] = x[row]);
    let size = wanted.iter().fold(0.0f64, |size, value| size.max(value.abs()));
    let from = Buffer::from_host(device, &x.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>()).unwrap();
    for &(cut, by_class) in cuts {
        let config = CudaMatrixFreeConfig {
            shape: cut.map(|(cells, _)| LaunchShape { cells, blocks: 1 }),
            cells_per_group: cut.map(|(_, per_group)| per_group),
            ..CudaMatrixFreeConfig::default()
        };
        let make = if by_class { CudaTangentData::<T>::new } else { CudaTangentData::<T>::general };
        let data = make(&operator, &state, &constrained, config).unwrap();
        let tangent = CudaTangent::new(device, data).unwrap();
        let mut first: Option<Vec<T>> = None;
        for _ in 0..2 {
            let mut y = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); n]).unwrap();
            tangent.apply(&mut y, &from).unwrap();
            let found = y.to_host().unwrap();
            for (row, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                let error = (found.to_f64() - wanted).abs() / size;
                let what = format!("degree {degree}, {components} components, {cut:?}");
                assert!(error <= tolerance, "{what}: row {row} is off by {error:e}");
            }
            assert!(*first.get_or_insert_with(|| found.clone()) == found, "bits differ from run to run");
        }
    }
}

/// Elasticity, convection–diffusion and a nonlinear pair, on cells with one Jacobian and on bent ones, with numbers of cells and of
/// points, springs on facets, and with some unknowns constrained.
pub fn tangents_agree_with_the_processor(device: &Cuda, scope: &Scope) {
    // Each degree, form and cut is a program of its own.
    let degrees = if scope.has_every_kind { 1..=8 } else { 2..=2 };
    for degree in degrees {
        let cells = if degree == 2 { [5, 2, 3] } else { [2, 2, 3] };
        let cuts = match degree {
            2 if scope.has_every_kind => &CUTS[..],
            2 => &CUTS[..2],
            _ => &CUTS[..1],
        };
        let (straight, bent) = (deformed(cubes(cells), skew), deformed(cubes(cells), bend));
        let flat = deformed(rectangle([cells[0], cells[1]]), bend);
        for mesh in [&straight, &bent, &flat] {
            let at = (mesh, degree, cuts);
            check::<f64>(device, at, &|d, facets| elasticity(d, false, facets), true, 1e-12);
            if [2, 3].contains(&degree) {
                let at = (mesh, degree, &cuts[..cuts.len().min(2)]);
                check::<f64>(device, at, &|d, _| convection(d), false, 1e-12);
                check::<f64>(device, at, &|d, facets| elasticity(d, true, facets), false, 1e-12);
                check::<f64>(device, at, &nonlinear, true, 1e-12);
                check::<f64>(device, at, &|d, _| diffusion(d, false), true, 1e-12);
                check::<f64>(device, at, &|d, _| diffusion(d, true), false, 1e-12);
            }
        }
    }
    let single = cubes([1, 1, 1]);
    check::<f64>(device, (&single, 1, &CUTS[..1]), &nonlinear, false, 1e-12);
    let bent = deformed(cubes([3, 2, 3]), bend);
    check::<f32>(device, (&bent, 2, &CUTS[..1]), &|d, facets| elasticity(d, false, facets), true, 3e-6);
    check::<f32>(device, (&bent, 1, &CUTS[..1]), &nonlinear, false, 3e-6);
}

/// All degrees on triangles and tetrahedra: forms with values of a component in registers and in shared memory, tangents that are
/// constant in cells and that differ from point to point, patches of many cells and of two.
pub fn tangents_on_simplices_agree_with_the_processor(device: &Cuda, scope: &Scope) {
    let kuhn = |cells| box_mesh(&BoxConfig { cells, split: BoxSplit::Kuhn, ..BoxConfig::default() }).unwrap();
    let tetrahedra = deformed(kuhn([2, 1, 2]), bend);
    let triangles = square(&SquareConfig { cells: [4, 3], ..SquareConfig::default() }).unwrap();
    let triangles = deformed(triangles, bend);
    // Each degree, form and cut is a program of its own.
    let every = scope.has_every_kind;
    for mesh in [&triangles, &tetrahedra] {
        for degree in if every { 1..=6 } else { 2..=3 } {
            let at = (mesh, degree, &CUTS[..if degree == 2 { 2 } else { 1 }]);
            check::<f64>(device, at, &|d, _| diffusion(d, false), true, 1e-12);
            check::<f64>(device, at, &|d, facets| elasticity(d, false, facets), true, 1e-12);
            let at = (mesh, degree, &CUTS[..1]);
            if every {
                check::<f64>(device, at, &|d, _| diffusion(d, true), false, 1e-12);
                check::<f64>(device, at, &|d, facets| elasticity(d, true, facets), false, 1e-12);
                check::<f64>(device, at, &|d, _| convection(d), false, 1e-12);
            }
            if every || degree == 3 && mesh.dimension() == 3 {
                check::<f64>(device, at, &nonlinear, true, 1e-12);
            }
        }
    }
    let at = (&tetrahedra, 2, &CUTS[..1]);
    check::<f64>(device, at, &|d, _| mass(d), true, 1e-12);
    check::<f64>(device, (&triangles, 1, &CUTS[..1]), &|d, _| diffusion(d, false), true, 1e-12);
    check::<f32>(device, at, &|d, facets| elasticity(d, true, facets), true, 3e-6);
    check::<f32>(device, at, &|d, _| diffusion(d, false), true, 3e-6);
}

/// Cells that see a face otherwise than the first that has it.
pub fn tangents_on_turned_cells_agree_with_the_processor(device: &Cuda, _: &Scope) {
    let mesh = ring(5);
    check::<f64>(device, (&mesh, 3, &CUTS[..2]), &|d, facets| elasticity(d, false, facets), true, 1e-12);
    check::<f64>(device, (&mesh, 2, &CUTS[1..2]), &nonlinear, false, 1e-12);
}

/// Conjugate gradients take the product that the kernel sums at the points.
pub fn iterations_on_tangents_are_those_of_the_processor(device: &Cuda, _: &Scope) {
    let mesh = deformed(cubes([3, 2, 2]), bend);
    let boundary = boundary_facets(&mesh);
    let all: Vec<u32> = (0..boundary.len() as u32).collect();
    let (space, form) = (Space::new(&mesh, 2).unwrap(), elasticity(3, true, &all));
    let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
    let operator = CpuOperator::new(discrete, &Cpu::new(1).unwrap()).unwrap();
    let state = State::default();
    let data = CudaTangentData::<f64>::new(&operator, &state, &[], CudaMatrixFreeConfig::default()).unwrap();
    let tangent = CudaTangent::new(device, data).unwrap();
    let b: Vec<f64> = Random::new(3).vector(discrete.n_unknowns());
    let (from, mut x) = (Buffer::from_host(device, &b).unwrap(), Buffer::zeros(device, b.len()).unwrap());
    let config = KrylovConfig { tolerance: 1e-10, max_iterations: 2000, ..KrylovConfig::default() };
    let mut diagonal = vec![f64::NAN; b.len()];
    operator.diagonal(&state, &mut diagonal).unwrap();
    let inverse: Vec<f64> = diagonal.iter().map(|entry| 1.0 / entry).collect();
    let m = Diagonal::from_inverse(Buffer::from_host(device, &inverse).unwrap());
    let cg = ConjugateGradient::new(config);
    let outcome = cg.solve(&mut x, &tangent, &m, &from, &SingleRank, &mut ()).unwrap();
    assert!(matches!(outcome.stop, Stop::Converged), "{outcome:?}");
    let mut residual = vec![f64::NAN; b.len()];
    operator.apply(&state, &x.to_host().unwrap(), &mut residual).unwrap();
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    let error = norm(&mut residual.iter().zip(&b).map(|(ax, b)| ax - b)) / norm(&mut b.iter().copied());
    assert!(error < 1e-9, "the residual is {error:e}");
}

/// Returns a mesh of the plane bent to a surface in space.
fn in_space(mesh: Mesh) -> Mesh {
    let mesh = deformed(mesh, |[x, y, _]| [x, y + 0.2 * x * x, 0.5 * x * y - 0.3 * y]);
    Mesh { is_surface: true, ..mesh }
}

/// Calls a function with forms on all elements, with facets, at random states.
fn for_forms(scope: &Scope, check: &mut dyn FnMut(&CpuOperator<'_>, &State<'_>, &str)) {
    let kuhn = |cells| box_mesh(&BoxConfig { cells, split: BoxSplit::Kuhn, ..BoxConfig::default() }).unwrap();
    let five = |cells| box_mesh(&BoxConfig { cells, split: BoxSplit::Five, ..BoxConfig::default() }).unwrap();
    let square = square(&SquareConfig { cells: [3, 2], ..SquareConfig::default() }).unwrap();
    let meshes = [
        (deformed(cubes([2, 1, 3]), bend), 4),
        (deformed(rectangle([3, 2]), bend), 5),
        (deformed(kuhn([2, 2, 1]), bend), 3),
        (deformed(five([2, 2, 2]), bend), 1),
        (deformed(square.clone(), bend), 4),
        (in_space(rectangle([3, 2])), 3),
        (in_space(square), 3),
    ];
    for (mesh, most) in &meshes {
        for degree in 1..=if scope.has_every_kind { *most } else { (*most).min(2) } {
            let boundary = boundary_facets(mesh);
            let facets: Vec<u32> = (0..boundary.len() as u32).step_by(2).collect();
            let space = Space::new(mesh, degree).unwrap();
            let d = mesh.space_dimension();
            let forms = [
                ("elasticity", elasticity(d, false, &facets)),
                ("elasticity by points", elasticity(d, true, &facets)),
                ("convection", convection(d)),
                ("two substances", nonlinear(d, &facets)),
            ];
            for (name, form) in forms {
                let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
                let operator = CpuOperator::new(discrete, &Cpu::new(2).unwrap()).unwrap();
                let n = discrete.n_unknowns();
                let mut random = Random::new(degree as u64);
                let (u, rate) = (random.vector(n), random.vector(n));
                let state = State { u: &u, rate: &rate, time: 0.4, shift: 1.5 };
                check(&operator, &state, &format!("{name} on {:?} of degree {degree}", mesh.kind));
            }
        }
    }
}

/// Panics unless two arrays agree to rounding of the largest number.
fn assert_close(found: &[f64], wanted: &[f64], what: &str) {
    let size = wanted.iter().fold(0.0f64, |size, value| size.max(value.abs()));
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (entry, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let is_close = (found - wanted).abs() <= 1e-12 * size;
        assert!(is_close, "{what}: entry {entry} is {found}, not {wanted}");
    }
}

/// Matrices of all elements, with facets and Dirichlet values, have the entries of the processor, and the same bits in every run.
pub fn matrices_of_forms_agree_with_the_processor(device: &Cuda, scope: &Scope) {
    for_forms(scope, &mut |operator, state, what| {
        let n = operator.discrete().n_unknowns();
        let given =
            (0..n as u32).step_by(3).map(|dof| LinearRelation { dof, terms: Vec::new(), constant: 0.5 });
        let constraints = LinearConstraints::new(n, &given.collect::<Vec<_>>()).unwrap();
        let pattern = operator.pattern(&constraints).unwrap();
        let mut wanted = vec![f64::NAN; pattern.n_nonzeros()];
        operator.refill(state, &pattern, &mut wanted).unwrap();
        let mut found = vec![f64::NAN; pattern.n_nonzeros()];
        operator.refill_on(device, state, &pattern, &mut found).unwrap();
        assert_close(&found, &wanted, what);
        let form = CudaForm::new(device, operator).unwrap();
        let mut matrix = form.matrix(&pattern).unwrap();
        let mut first: Option<Vec<f64>> = None;
        // The second time in place of what the first has left, after another state.
        for time in [0.4, 0.9, 0.4] {
            let [u, rate] = [state.u, state.rate].map(|v| Buffer::from_host(device, v).unwrap());
            let of_gpu = CudaState { u: &u, rate: Some(&rate), time, shift: state.shift };
            form.refill(&of_gpu, &mut matrix).unwrap();
            let found = matrix.matrix().values().to_host().unwrap();
            if time == 0.4 {
                assert_close(&found, &wanted, what);
                assert!(*first.get_or_insert_with(|| found.clone()) == found, "bits differ from run to run");
            }
        }
    });
}

/// Residuals and products with the tangent, with facets, are those of the processor, and have the same bits in every run.
pub fn residuals_of_forms_agree_with_the_processor(device: &Cuda, scope: &Scope) {
    for_forms(scope, &mut |operator, state, what| {
        let n = operator.discrete().n_unknowns();
        let direction: Vec<f64> = Random::new(7).vector(n);
        let (mut r, mut y) = (vec![f64::NAN; n], vec![f64::NAN; n]);
        operator.residual(state, &mut r).unwrap();
        operator.apply(state, &direction, &mut y).unwrap();
        let form = CudaForm::new(device, operator).unwrap();
        let [u, rate, direction] =
            [state.u, state.rate, &direction].map(|v| Buffer::from_host(device, v).unwrap());
        let mut first: Option<[Vec<f64>; 2]> = None;
        for time in [0.4, 0.9, 0.4] {
            let of_gpu = CudaState { u: &u, rate: Some(&rate), time, shift: state.shift };
            let [mut of_r, mut of_y] = [0; 2].map(|_| Buffer::from_host(device, &vec![f64::NAN; n]).unwrap());
            assert!(form.products(&of_gpu, &direction, [&mut of_r, &mut of_y]).unwrap());
            let found = [of_r, of_y].map(|v| v.to_host().unwrap());
            if time == 0.4 {
                assert_close(&found[0], &r, what);
                assert_close(&found[1], &y, what);
                assert!(*first.get_or_insert_with(|| found.clone()) == found, "bits differ from run to run");
            }
        }
        let poisoned = vec![f64::NAN; n];
        let u = Buffer::from_host(device, &poisoned).unwrap();
        let [mut of_r, mut of_y] = [0; 2].map(|_| Buffer::zeros(device, n).unwrap());
        let of_gpu = CudaState { u: &u, rate: None, time: 0.4, shift: 0.0 };
        let short = Buffer::zeros(device, n - 1).unwrap();
        assert!(form.products(&of_gpu, &short, [&mut of_r, &mut of_y]).is_err(), "a short direction");
        // Facets say where a value is not finite, the cells that there is one.
        let outcome = form.products(&of_gpu, &direction, [&mut of_r, &mut of_y]);
        assert!(!matches!(outcome, Ok(true)), "{what}: NaN passes for a value");
    });
}

/// Refuses surfaces and names the remedy.
pub fn forms_without_a_tangent_on_gpus_are_refused(_: &Cuda, _: &Scope) {
    let mesh = in_space(rectangle([2, 2]));
    let boundary = boundary_facets(&mesh);
    let (space, form) = (Space::new(&mesh, 1).unwrap(), diffusion(3, false));
    let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
    let operator = CpuOperator::new(discrete, &Cpu::new(1).unwrap()).unwrap();
    let config = CudaMatrixFreeConfig::default();
    let refused = CudaTangentData::<f64>::new(&operator, &State::default(), &[], config);
    let message = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("assemble the matrix"), "{message}");
}

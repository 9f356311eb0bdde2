//! Operators without a matrix, held to plain loops over dense shape functions.

use femtile::device::{Buffer, Cpu, Cuda, Scalar};
use femtile::expression::Expression;
use femtile::fem::Coefficient;
use femtile::fem::tensor::CellMatrices;
use femtile::fem::tensor::FacetMatrix;
use femtile::linalg::LinearOperator;
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::{CgOutcome, ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::merged_cg::MergedCg;
use femtile::linalg::precondition::Diagonal;
use femtile::matrix_free::{
    CellRule, CudaMatrixFree, CudaMatrixFreeConfig, CudaMatrixFreeData, LaunchShape, MatrixFree,
    MatrixFreeConfig, MetricEvaluation, Terms,
};
use femtile::mesh::generate::{BoxConfig, BoxSplit, DeformConfig, box_mesh, deform};
use femtile::mesh::{CellKind, Mesh};
use femtile::space::TensorSpace;

use super::Scope;
use super::problems::Random;

const GAUSS: CellRule = CellRule::Gauss { extra: 0 };
const MORE_GAUSS: CellRule = CellRule::Gauss { extra: 1 };
const LOBATTO: CellRule = CellRule::GaussLobatto;

pub(super) fn cubes(cells: [usize; 3]) -> Mesh {
    let split = BoxSplit::Hexahedron;
    box_mesh(&BoxConfig { cells, upper: [1.0, 2.0, 1.5], split, ..BoxConfig::default() }).unwrap()
}

pub(super) fn deformed(mut mesh: Mesh, shift: impl Fn([f64; 3]) -> [f64; 3]) -> Mesh {
    mesh.points.iter_mut().for_each(|point| *point = shift(*point));
    mesh
}

pub(super) fn skew([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x + 0.3 * y + 0.1 * z, y - 0.2 * x, z + 0.4 * y]
}

pub(super) fn bend([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x + 0.1 * (3.0 * y).sin() * (1.0 + z), y + 0.07 * (4.0 * x).cos(), z * (1.0 + 0.2 * x * y)]
}

/// Hexahedra around a ring; the last meets the first after a quarter of a turn, so that some see faces otherwise.
pub(super) fn ring(n_cells: usize) -> Mesh {
    let corner = |i: usize, k: usize| {
        let part = i as f64 / n_cells as f64;
        let own = (k as f64 + part) * std::f64::consts::FRAC_PI_2;
        let (angle, radius) = (part * std::f64::consts::TAU, 3.0 + own.cos());
        [radius * angle.cos(), -radius * angle.sin(), own.sin()]
    };
    let points = (0..n_cells).flat_map(|i| (0..4).map(move |k| corner(i, k))).collect();
    let cell = |i: usize| {
        let (next, shift) = ((i + 1) % n_cells, usize::from(i + 1 == n_cells));
        (0..8).map(move |k| if k < 4 { 4 * i + k } else { 4 * next + (k - 4 + shift) % 4 } as u32)
    };
    Mesh::new(points, CellKind::Hexahedron, (0..n_cells).flat_map(cell).collect()).unwrap()
}

/// An operator and how it is cut.
pub(super) struct Case<'a> {
    pub degree: usize,
    pub rule: CellRule,
    pub terms: Terms<'a>,
    pub metric: Option<MetricEvaluation>,
    /// Cells of a block, cells of a group.
    pub cut: Option<(usize, usize)>,
}

impl Case<'_> {
    fn config(&self) -> CudaMatrixFreeConfig {
        let shape = self.cut.map(|(cells, _)| LaunchShape { cells, blocks: 1 });
        let cells_per_group = self.cut.map(|(_, per_group)| per_group);
        CudaMatrixFreeConfig {
            metric: self.metric,
            shape,
            cells_per_group,
            ..CudaMatrixFreeConfig::default()
        }
    }
}

/// The product by dense quadrature.
fn expected(space: &TensorSpace<'_>, terms: Terms<'_>, rule: CellRule, x: &[f64]) -> Vec<f64> {
    // A conductivity that vanishes beside any mass leaves the mass alone.
    let (vanishing, zero) = (Coefficient::Constant(1e-100), Coefficient::Constant(0.0));
    let (sigma, lambda) = (terms.sigma.unwrap_or(&vanishing), terms.lambda.unwrap_or(&zero));
    let mut y = vec![f64::NAN; x.len()];
    CellMatrices::new(space, sigma, lambda, rule).unwrap().apply(&mut y, x).unwrap();
    y
}

/// Every entry is held to the reference, with some unknowns constrained and with none, and a second product to the bits
/// of the first.
pub(super) fn check<T: Scalar>(
    device: &Cuda,
    mesh: &Mesh,
    case: &Case<'_>,
    constrained: &[u32],
    tolerance: f64,
) {
    let space = TensorSpace::new(mesh, case.degree).unwrap();
    let x: Vec<f64> = Random::new(7).vector(space.n_dofs());
    let mut free = x.clone();
    constrained.iter().for_each(|&dof| free[dof as usize] = 0.0);
    let mut wanted = expected(&space, case.terms, case.rule, &free);
    constrained.iter().for_each(|&dof| wanted[dof as usize] = x[dof as usize]);
    let size = wanted.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    let a =
        CudaMatrixFree::<T>::new(device, &space, case.terms, case.rule, constrained, case.config()).unwrap();
    let rounded: Vec<T> = x.iter().map(|&x| T::from_f64(x)).collect();
    let from = Buffer::from_host(device, &rounded).unwrap();
    let mut first: Option<Vec<T>> = None;
    for _ in 0..2 {
        let mut y = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); x.len()]).unwrap();
        a.apply(&mut y, &from).unwrap();
        let found = y.to_host().unwrap();
        for (i, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            let error = (found.to_f64() - wanted).abs() / size;
            let (degree, rule) = (case.degree, case.rule);
            let what = format!("degree {degree}, {rule:?}, {:?}, {} cells", a.metric(), mesh.n_cells());
            assert!(error <= tolerance, "{what}: entry {i} is off by {error:e}");
        }
        assert!(*first.get_or_insert_with(|| found.clone()) == found, "bits differ from run to run");
    }
    check_diagonal(&a, (&space, case), (constrained, &[]), tolerance);
}

/// The diagonal is that of the operator on a processor.
fn check_diagonal<T: Scalar>(
    a: &CudaMatrixFree<T>,
    (space, case): (&TensorSpace<'_>, &Case<'_>),
    (constrained, facets): (&[u32], &[FacetMatrix]),
    tolerance: f64,
) {
    let config = MatrixFreeConfig { rule: case.rule, constrained, facets, ..MatrixFreeConfig::default() };
    let wanted = MatrixFree::<f64>::new(&Cpu::new(1).unwrap(), space, case.terms, config).unwrap().diagonal();
    let size = wanted.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    for (i, (found, wanted)) in a.diagonal().unwrap().iter().zip(&wanted).enumerate() {
        let error = (found.to_f64() - wanted).abs() / size;
        assert!(
            error <= tolerance,
            "degree {}, {:?}: diagonal {i} is off by {error:e}",
            case.degree,
            a.metric()
        );
    }
}

/// All unknowns on the side x = 0 of the reference cell at a position.
pub(super) fn side(mesh: &Mesh, degree: usize, position: usize) -> Vec<u32> {
    let space = TensorSpace::new(mesh, degree).unwrap();
    let mut dofs = vec![0; space.dofs_per_cell()];
    space.cell_dofs(position, &mut dofs);
    let mut side: Vec<u32> = dofs.into_iter().step_by(degree + 1).collect();
    side.sort_unstable();
    side
}

/// Every term, rule and metric, in blocks of one batch and of several, with and without constrained unknowns.
pub fn products_agree_with_the_definition(device: &Cuda, scope: &Scope) {
    let (one, two) = (Coefficient::Constant(1.0), Coefficient::Constant(2.0));
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]);
    let varying = Coefficient::from(Expression::parse("1 + 0.3*x*y").unwrap());
    let laplace = Terms { sigma: Some(&one), lambda: None };
    let helmholtz = Terms { sigma: Some(&varying), lambda: Some(&two) };
    let anisotropic = Terms { sigma: Some(&tensor), lambda: Some(&two) };
    let mass = Terms { sigma: None, lambda: Some(&varying) };
    let (stored, computed) = (Some(MetricEvaluation::Stored), Some(MetricEvaluation::Computed));
    let case = |degree, rule, terms, metric, cut| Case { degree, rule, terms, metric, cut };
    let cases = [
        case(3, LOBATTO, laplace, stored, Some((2, 2))),
        case(3, LOBATTO, laplace, stored, Some((2, 11))),
        case(2, MORE_GAUSS, helmholtz, None, Some((2, 9))),
        case(2, MORE_GAUSS, helmholtz, computed, Some((2, 9))),
        case(2, MORE_GAUSS, mass, None, Some((3, 7))),
        case(2, GAUSS, anisotropic, computed, Some((1, 5))),
        case(2, LOBATTO, mass, computed, Some((2, 9))),
        case(1, GAUSS, laplace, computed, Some((5, 5))),
    ];
    for case in &cases {
        let mut sizes = vec![[1, 1, 1], [1, 1, 2], [3, 2, 3]];
        if scope.has_every_kind {
            sizes.extend([[5, 3, 1], [7, 5, 3]]);
        }
        for cells in sizes {
            let mesh = deformed(cubes(cells), bend);
            check::<f64>(device, &mesh, case, &[], 1e-13);
            check::<f64>(device, &mesh, case, &side(&mesh, case.degree, 0), 1e-13);
        }
    }
    let affine = deformed(cubes([2, 3, 1]), skew);
    let constant = Case { cut: None, ..case(2, GAUSS, anisotropic, None, None) };
    check::<f64>(device, &affine, &constant, &side(&affine, 2, 1), 1e-13);
    check::<f64>(device, &cubes([3, 1, 2]), &constant, &[], 1e-13);
    // Coefficients at points beside one map a cell: all of a column at once, and one after the other.
    let diffusion = Terms { sigma: Some(&varying), lambda: None };
    for (degree, terms) in [(2, diffusion), (2, mass), (2, helmholtz), (4, helmholtz)] {
        let at_points = case(degree, MORE_GAUSS, terms, Some(MetricEvaluation::Constant), None);
        check::<f64>(device, &affine, &at_points, &side(&affine, degree, 1), 1e-13);
    }
    check::<f32>(device, &affine, &case(3, LOBATTO, helmholtz, None, None), &[], 2e-6);
    let bent = deformed(cubes([3, 2, 3]), bend);
    let single = case(3, GAUSS, laplace, stored, None);
    check::<f32>(device, &bent, &single, &[], 2e-6);
}

/// Cells that see a face otherwise than the first that has it.
pub fn cells_with_lists_agree_with_the_definition(device: &Cuda, _: &Scope) {
    let two = Coefficient::Constant(2.0);
    let mesh = ring(5);
    assert!(TensorSpace::new(&mesh, 3).unwrap().n_irregular() > 0);
    for cut in [(2, 2), (2, 5)] {
        let terms = Terms { sigma: Some(&two), lambda: None };
        let case =
            Case { degree: 3, rule: GAUSS, terms, metric: Some(MetricEvaluation::Stored), cut: Some(cut) };
        check::<f64>(device, &mesh, &case, &[], 1e-12);
        check::<f64>(device, &mesh, &case, &side(&mesh, 3, 4), 1e-12);
    }
}

/// Matrices on facets that have rows in common, in part constrained, are added to what the cells make.
pub fn facets_are_added_to_products(device: &Cuda, scope: &Scope) {
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: None };
    let degrees: &[usize] = if scope.has_every_kind { &[1, 2, 3, 6] } else { &[2, 6] };
    for &degree in degrees {
        let mesh = deformed(cubes([1, 2, 2]), bend);
        let space = TensorSpace::new(&mesh, degree).unwrap();
        let facet = |position: usize| {
            let dofs = side(&mesh, degree, position);
            let factor: Vec<f64> = Random::new(position as u64).vector(dofs.len() * dofs.len());
            let n = dofs.len();
            let entries = (0..n * n).map(|at| factor[at] + factor[at % n * n + at / n]).collect();
            FacetMatrix { dofs, entries }
        };
        let facets: Vec<FacetMatrix> = (0..4).map(facet).collect();
        let x: Vec<f64> = Random::new(13).vector(space.n_dofs());
        let from = Buffer::from_host(device, &x).unwrap();
        for constrained in [Vec::new(), facets[1].dofs.clone()] {
            let is_free = |dof: &u32| constrained.binary_search(dof).is_err();
            let mut free = x.clone();
            constrained.iter().for_each(|&dof| free[dof as usize] = 0.0);
            let mut wanted = expected(&space, terms, GAUSS, &free);
            for FacetMatrix { dofs, entries } in &facets {
                for (&row, line) in dofs.iter().zip(entries.chunks_exact(dofs.len())) {
                    let products = line.iter().zip(dofs).map(|(entry, &dof)| entry * free[dof as usize]);
                    wanted[row as usize] += if is_free(&row) { products.sum() } else { 0.0 };
                }
            }
            constrained.iter().for_each(|&dof| wanted[dof as usize] = x[dof as usize]);
            let config = CudaMatrixFreeConfig::default();
            let a = CudaMatrixFree::<f64>::new(device, &space, terms, GAUSS, &constrained, config).unwrap();
            let bytes = a.bytes();
            let a = a.with_facets(&facets).unwrap();
            assert!(a.bytes() > bytes);
            let mut y = Buffer::from_host(device, &vec![f64::NAN; x.len()]).unwrap();
            a.apply(&mut y, &from).unwrap();
            let size = wanted.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
            for (i, (found, wanted)) in y.to_host().unwrap().iter().zip(&wanted).enumerate() {
                assert!((found - wanted).abs() <= 1e-13 * size, "degree {degree}, row {i}: {found} {wanted}");
            }
            let case = Case { degree, rule: GAUSS, terms, metric: None, cut: None };
            check_diagonal(&a, (&space, &case), (&constrained, &facets), 1e-13);
            let without = a.with_facets(&[]).unwrap();
            assert_eq!(without.bytes(), bytes);
        }
    }
}

/// All degrees with all rules, as they are cut by default.
pub fn all_degrees_agree_with_the_definition(device: &Cuda, scope: &Scope) {
    let one = Coefficient::Constant(1.0);
    let both = Terms { sigma: Some(&one), lambda: Some(&one) };
    let metrics = [Some(MetricEvaluation::Stored), Some(MetricEvaluation::Computed), None];
    let rules = [LOBATTO, GAUSS, MORE_GAUSS];
    let degrees: &[usize] = if scope.has_every_kind { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } else { &[5] };
    for &degree in degrees {
        let mesh = deformed(cubes([2, 1, 1]), bend);
        for (k, rule) in rules.into_iter().enumerate() {
            for terms in [both, Terms { lambda: None, ..both }, Terms { sigma: None, ..both }] {
                let metric = metrics[(degree + k) % 3];
                let case = Case { degree, rule, terms, metric, cut: None };
                check::<f64>(device, &mesh, &case, &side(&mesh, degree, 0), 1e-12);
                if !scope.has_every_kind {
                    return;
                }
                check::<f32>(device, &mesh, &case, &[], 1e-5);
            }
        }
    }
}

/// Products of an operator that takes over the batches of another are those of one with its own, also where it has to make
/// others.
pub fn data_beside_those_of_another_operator_give_its_products(device: &Cuda, _: &Scope) {
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: Some(&one) };
    let mesh = deformed(cubes([3, 2, 2]), bend);
    let space = TensorSpace::new(&mesh, 2).unwrap();
    let constrained = side(&mesh, 2, 0);
    let x = Buffer::from_host(device, &Random::new(7).vector::<f32>(space.n_dofs())).unwrap();
    let product = |a: CudaMatrixFree<f32>| {
        let mut y = Buffer::from_vec(device, vec![f32::NAN; space.n_dofs()]).unwrap();
        a.apply(&mut y, &x).unwrap();
        y.to_host().unwrap()
    };
    let config = CudaMatrixFreeConfig::default();
    let own = CudaMatrixFree::new(device, &space, terms, GAUSS, &constrained, config).unwrap();
    let wanted = product(own);
    for cells_per_group in [None, Some(5)] {
        let of_other = CudaMatrixFreeConfig { cells_per_group, ..config };
        let other = CudaMatrixFreeData::<f64>::new(&space, terms, GAUSS, &constrained, of_other).unwrap();
        let data = CudaMatrixFreeData::<f32>::beside(&other, &space, terms, GAUSS, config).unwrap();
        assert_eq!(product(CudaMatrixFree::of_data(device, data).unwrap()), wanted);
    }
}

/// A solve with conjugate gradients, whose products also sum p·q, has the residual that it reports.
pub fn cg_solves_without_a_matrix(device: &Cuda, _: &Scope) {
    let two = Coefficient::Constant(2.0);
    let terms = Terms { sigma: Some(&two), lambda: Some(&two) };
    let mesh = deformed(cubes([3, 2, 3]), bend);
    let space = TensorSpace::new(&mesh, 3).unwrap();
    let constrained = side(&mesh, 3, 0);
    let config = CudaMatrixFreeConfig {
        metric: Some(MetricEvaluation::Stored),
        shape: Some(LaunchShape { cells: 2, blocks: 1 }),
        cells_per_group: Some(11),
        ..CudaMatrixFreeConfig::default()
    };
    let a = CudaMatrixFree::<f64>::new(device, &space, terms, LOBATTO, &constrained, config).unwrap();
    let b = Random::new(11).vector::<f64>(space.n_dofs());
    let right = Buffer::from_host(device, &b).unwrap();
    let mut x = Buffer::zeros(device, b.len()).unwrap();
    let cg = ConjugateGradient::new(KrylovConfig { tolerance: 1e-8, ..KrylovConfig::default() });
    let none = Diagonal::identity(device, b.len()).unwrap();
    let outcome = cg.solve(&mut x, &a, &none, &right, &SingleRank, &mut ()).unwrap();
    assert!(outcome.stop == femtile::linalg::krylov::Stop::Converged, "{:?}", outcome.stop);
    let x = x.to_host().unwrap();
    let mut free = x.clone();
    constrained.iter().for_each(|&dof| free[dof as usize] = 0.0);
    let mut product = expected(&space, terms, LOBATTO, &free);
    constrained.iter().for_each(|&dof| product[dof as usize] = x[dof as usize]);
    let residual: f64 = product.iter().zip(&b).map(|(p, b)| (p - b).powi(2)).sum();
    let size: f64 = b.iter().map(|b| b * b).sum();
    assert!((residual / size).sqrt() < 2e-8, "{:e}", (residual / size).sqrt());
}

/// The iterate and residuals of plain and of merged conjugate gradients, eight iterations of them: later ones of so few
/// unknowns show how rounding grows.
fn both_ways(device: &Cuda, mesh: &Mesh, case: &Case<'_>, constrained: &[u32]) -> [(Vec<f64>, CgOutcome); 2] {
    let space = TensorSpace::new(mesh, case.degree).unwrap();
    let n = space.n_dofs();
    let a = CudaMatrixFree::<f64>::new(device, &space, case.terms, case.rule, constrained, case.config())
        .unwrap();
    let mut random = Random::new(23);
    let right = Buffer::from_host(device, &random.vector::<f64>(n)).unwrap();
    let start = random.vector::<f64>(n);
    let inverse: Vec<f64> = random.vector::<f64>(n).iter().map(|x| 1.5 + x).collect();
    let m = Diagonal::from_inverse(Buffer::from_host(device, &inverse).unwrap());
    let config = KrylovConfig { tolerance: 1e-10, max_iterations: 8, ..KrylovConfig::default() };
    [false, true].map(|is_merged| {
        let mut x = Buffer::from_host(device, &start).unwrap();
        let outcome = match is_merged {
            true => MergedCg::new(config.clone()).solve(&mut x, &a, &m, &right, &SingleRank, &mut ()),
            false => {
                ConjugateGradient::new(config.clone()).solve(&mut x, &a, &m, &right, &SingleRank, &mut ())
            }
        };
        (x.to_host().unwrap(), outcome.unwrap())
    })
}

/// Conjugate gradients merged with the product go the way of plain ones, whatever blocks have: their residuals, their
/// iterate and, when done again, all bits.
pub fn merged_cg_goes_the_way_of_plain_cg(device: &Cuda, scope: &Scope) {
    let two = Coefficient::Constant(2.0);
    let terms = Terms { sigma: Some(&two), lambda: Some(&two) };
    let case = |degree, rule, metric, cut| Case { degree, rule, terms, metric, cut };
    let (stored, computed) = (Some(MetricEvaluation::Stored), Some(MetricEvaluation::Computed));
    let mut cases = vec![
        (deformed(cubes([3, 2, 3]), bend), case(3, LOBATTO, stored, Some((2, 7)))),
        (deformed(cubes([1, 1, 1]), bend), case(2, MORE_GAUSS, stored, Some((2, 2)))),
        (ring(5), case(3, GAUSS, computed, Some((2, 5)))),
    ];
    if scope.has_every_kind {
        cases.push((deformed(cubes([4, 3, 5]), bend), case(5, GAUSS, computed, None)));
        cases.push((deformed(cubes([9, 8, 7]), bend), case(4, MORE_GAUSS, stored, Some((5, 64)))));
        cases.push((deformed(cubes([6, 5, 5]), bend), case(1, GAUSS, stored, Some((8, 8)))));
    }
    for (mesh, case) in &cases {
        for constrained in [vec![], side(mesh, case.degree, 0)] {
            let [(expected, plain), (x, merged)] = both_ways(device, mesh, case, &constrained);
            assert_eq!(merged.residuals.len(), plain.residuals.len());
            // Rounding is that of the largest residual, which the first step may shrink a lot.
            let mut largest = 0.0_f64;
            for (found, wanted) in merged.residuals.iter().zip(&plain.residuals) {
                largest = largest.max(*wanted);
                assert!((found - wanted).abs() <= 1e-10 * largest, "{found:e} {wanted:e}");
            }
            let size = expected.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
            for (row, (x, expected)) in x.iter().zip(&expected).enumerate() {
                assert!((x - expected).abs() <= 1e-9 * size, "row {row}: {x} {expected}");
            }
            let [_, (again, _)] = both_ways(device, mesh, case, &constrained);
            assert!(again == x, "bits differ from run to run");
        }
    }
}

/// Operators that a GPU does not support are refused.
pub fn what_has_no_operator_is_refused(device: &Cuda, _: &Scope) {
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: None };
    let refused = |mesh: &Mesh, metric| {
        let space = TensorSpace::new(mesh, 2).unwrap();
        let config = CudaMatrixFreeConfig { metric, ..CudaMatrixFreeConfig::default() };
        CudaMatrixFree::<f64>::new(device, &space, terms, GAUSS, &[], config).unwrap_err()
    };
    let bent = deformed(cubes([1, 1, 2]), bend);
    let said = refused(&bent, Some(MetricEvaluation::Constant)).to_string();
    assert!(said.contains("take computed"), "{said}");
    let mut curved = bent;
    deform(&mut curved, &DeformConfig { amplitude: 0.1, order: 2 }).unwrap();
    let said = refused(&curved, Some(MetricEvaluation::Computed)).to_string();
    assert!(said.contains("take stored"), "{said}");
}

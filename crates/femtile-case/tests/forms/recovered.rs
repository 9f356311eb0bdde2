//! Recovered gradients and estimates of the error of forms.

use std::f64::consts::PI;
use std::sync::{Arc, Mutex};

use femtile_case::{Case, Embedding, Receiver, Report, Silent, run};
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_mesh::{CellKind, Mesh};
use femtile_solve::SolutionData;

use crate::inside::{KINDS, halves};
use crate::{refusal, solve};

/// Keeps the solution.
#[derive(Default)]
struct End(Mutex<Option<SolutionData>>);

impl Receiver for End {
    fn solution(&self, data: SolutionData) {
        *self.0.lock().unwrap() = Some(data);
    }
}

/// Solves a case, on a mesh of its own or on one of the program; returns also the fields.
fn fields(mesh: Option<&Mesh>, text: &str) -> (Report, SolutionData) {
    let folder = tempfile::tempdir().unwrap();
    let end = Arc::new(End::default());
    let embedding = Embedding {
        mesh: mesh.map(|mesh| Arc::new(mesh.clone())),
        receiver: Some(end.clone()),
        writes_files: false,
        ..Embedding::default()
    };
    let path = folder.path().join("case.toml");
    let case = Case::parse_embedded(&path, text.into(), Vec::new(), embedding).unwrap();
    let report = run(&case, &mut Silent).unwrap();
    assert_eq!(report.solve.stop.name(), "converged", "{text}");
    let data = end.0.lock().unwrap().take().unwrap();
    (report, data)
}

fn case(generate: &str, degree: usize, equation: &str, names: &str, functionals: &str) -> String {
    let mesh = if generate.is_empty() { String::new() } else { format!("generate = {{ {generate} }}\n") };
    format!(
        "[mesh]\n{mesh}[space]\ndegree = {degree}\n{equation}\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n\
         [output]\nplot = false\nfields = {names}\nfunctionals = [{functionals}]\n"
    )
}

/// −Δu = f of a smooth function in two or three dimensions.
fn smooth(d: usize) -> (String, &'static str) {
    let (u, factor) = match d {
        2 => ("sin(2*x + 1)*exp(y/2)", "3.75"),
        _ => ("sin(2*x + 1)*exp(y/2)*cos(z)", "4.75"),
    };
    let velocity = vec![0; d];
    let equation = format!(
        "[equation]\nkind = \"convection-diffusion\"\nvelocity = {velocity:?}\nsource = \"{factor}*{u}\"\n\
         [[boundary]]\nwhere = \"all\"\ndirichlet = \"{u}\"\n"
    );
    (equation, u)
}

fn gradient_of_smooth(d: usize, [x, y, z]: [f64; 3]) -> [f64; 3] {
    let (sin, cos) = (2.0 * x + 1.0).sin_cos();
    let (e, c, s) = if d == 2 { ((y / 2.0).exp(), 1.0, 0.0) } else { ((y / 2.0).exp(), z.cos(), z.sin()) };
    [2.0 * cos * e * c, sin * e / 2.0 * c, -sin * e * s]
}

fn unit(kind: CellKind, n: usize) -> Mesh {
    let mesh = match kind {
        CellKind::Triangle | CellKind::Quadrilateral => {
            let split =
                if kind == CellKind::Triangle { SquareSplit::Triangles } else { SquareSplit::Quadrilateral };
            square(&SquareConfig { cells: [n, n], split, ..SquareConfig::default() })
        }
        _ => {
            let split = if kind == CellKind::Tetrahedron { BoxSplit::Kuhn } else { BoxSplit::Hexahedron };
            box_mesh(&BoxConfig { cells: [n, n, n], split, ..BoxConfig::default() })
        }
    };
    mesh.unwrap()
}

/// Moves the inner nodes by up to a tenth of a cell, without a pattern.
fn disturb(mesh: &mut Mesh, n: usize) {
    let d = mesh.dimension();
    for (i, point) in mesh.points.iter_mut().enumerate() {
        if point[..d].iter().all(|&x| x > 1e-9 && x < 1.0 - 1e-9) {
            for (axis, x) in point[..d].iter_mut().enumerate() {
                *x += 0.2 / n as f64 * (((i * 7919 + axis * 104_729) % 1009) as f64 / 1009.0 - 0.5);
            }
        }
    }
}

/// The root mean square of the error of vectors at points.
fn error(points: &[[f64; 3]], found: &[f64], wanted: impl Fn([f64; 3]) -> Option<[f64; 3]>) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for (&point, found) in points.iter().zip(found.as_chunks::<3>().0) {
        if let Some(expected) = wanted(point) {
            sum += found.iter().zip(expected).map(|(f, e)| (f - e) * (f - e)).sum::<f64>();
            n += 1.0;
        }
    }
    f64::sqrt(sum / n)
}

#[test]
fn estimates_are_near_the_error_on_all_cells() {
    for kind in KINDS {
        let d = if matches!(kind, CellKind::Triangle | CellKind::Quadrilateral) { 2 } else { 3 };
        let (equation, u) = smooth(d);
        for (degree, n) in (1..).zip(if d == 2 { [24, 16, 12] } else { [10, 9, 7] }) {
            let functionals = format!("{{ name = \"h1\", kind = \"error_h1\", exact = \"{u}\" }}");
            let text = case("", degree, &equation, "[\"error\"]", &functionals);
            let (report, data) = fields(Some(&unit(kind, n)), &text);
            let estimate = report.solve.discretization_error_estimate.unwrap();
            let ratio = estimate / report.functionals["h1"];
            // Fits at the boundary, where most vertices of coarse meshes in space are, are one-sided.
            let most = match (kind, degree) {
                (CellKind::Tetrahedron, 3) => 1.6,
                (CellKind::Hexahedron, 3) => 3.0,
                _ => 1.3,
            };
            assert!((0.8..most).contains(&ratio), "{kind:?}, {degree}: {ratio}");
            let sum = data.cell_fields["error"].values.iter().map(|cell| cell * cell).sum::<f64>().sqrt();
            assert!((sum / estimate - 1.0).abs() < 1e-12);
            assert!(report.citations.iter().any(|key| key == "zienkiewicz1987"));
        }
    }
}

#[test]
fn gradients_have_one_order_more_than_those_of_the_elements() {
    for kind in KINDS {
        let d = if matches!(kind, CellKind::Triangle | CellKind::Quadrilateral) { 2 } else { 3 };
        let (equation, _) = smooth(d);
        for degree in 1..=if d == 2 { 3 } else { 2 } {
            let n = if d == 2 { 8 } else { 5 };
            for is_disturbed in [false, true] {
                let [coarse, fine] = [n, 2 * n].map(|n| {
                    let mut mesh = unit(kind, n);
                    if is_disturbed {
                        disturb(&mut mesh, n);
                    }
                    let text = case("", degree, &equation, "[\"gradient\"]", "");
                    let (_, data) = fields(Some(&mesh), &text);
                    let is_inside = |p: &[f64; 3]| p[..d].iter().all(|x| (0.2..=0.8).contains(x));
                    error(&data.points, &data.point_fields["gradient"].values, |point| {
                        is_inside(&point).then(|| gradient_of_smooth(d, point))
                    })
                });
                let order = (coarse / fine).log2();
                let expected = degree as f64 + if is_disturbed || degree == 3 { 0.5 } else { 0.8 };
                assert!(order > expected, "{kind:?}, {degree}, {is_disturbed}: {order} of {coarse:e}");
            }
        }
    }
}

#[test]
fn reaction_and_diffusion_has_its_fields_as_a_form_too() {
    let (_, u) = smooth(2);
    let equation = format!(
        "[equation]\nsigma = [[2, 0.5], [0.5, 1]]\nlambda = 1\nsource = \"x\"\n[[boundary]]\nwhere = \"all\"\ndirichlet = \"{u}\"\n"
    );
    let text =
        case("kind = \"square\", cells = [9, 7]", 1, &equation, "[\"gradient\", \"flux\", \"error\"]", "");
    let (tuned, own) = fields(None, &text);
    // A source of nothing makes it a form.
    let (routed, other) =
        fields(None, &text.replace("[solver]", "[[source]]\npoint = [0.5, 0.5]\ntotal = 0\n[solver]"));
    let [tuned, routed] = [tuned, routed].map(|report| report.solve);
    let is_close = |a: Option<f64>, b: Option<f64>| (a.unwrap() / b.unwrap() - 1.0).abs() < 1e-8;
    assert!(is_close(tuned.discretization_error_estimate, routed.discretization_error_estimate));
    assert!(is_close(tuned.discretization_error_relative, routed.discretization_error_relative));
    for name in ["gradient", "flux"] {
        for (a, b) in own.point_fields[name].values.iter().zip(&other.point_fields[name].values) {
            assert!((a - b).abs() < 1e-8, "{name}: {a} and {b}");
        }
    }
}

/// Conduction in two materials, u = 0 and 1 at the ends.
const SLABS: &str = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nconstants = { k = { by_tag = { left = 1, right = 7 } } }\nflux = \"k*grad(u)\"\n\
    [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n";

#[test]
fn jumps_of_a_material_and_of_an_interface_are_not_smoothed() {
    for kind in KINDS {
        let mesh = halves(kind);
        for degree in 1..=2 {
            for (interface, resistance) in
                [("", 0.0), ("[[interface]]\nwhere = \"wall\"\nconductance = 2\n", 0.5)]
            {
                let equation = format!("{SLABS}{interface}");
                let text = case("", degree, &equation, "[\"gradient\", \"flux\", \"error\"]", "");
                let (report, data) = fields(Some(&mesh), &text);
                let q = 1.0 / (1.0 + 1.0 / 7.0 + resistance);
                let what = format!("{kind:?}, {degree}, {interface}");
                assert!(report.solve.discretization_error_estimate.unwrap() < 1e-8, "{what}");
                for vector in data.point_fields["flux"].values.as_chunks::<3>().0 {
                    assert!((vector[0] + q).abs() < 1e-8 && vector[1].abs() < 1e-8, "{what}: {vector:?}");
                }
                let mut n_sides = [0, 0];
                for (point, g) in
                    data.points.iter().zip(data.point_fields["gradient"].values.as_chunks::<3>().0)
                {
                    let sides = [q, q / 7.0].map(|slope| (g[0] - slope).abs() < 1e-8);
                    if (point[0] - 1.0).abs() > 1e-9 {
                        assert!(sides[usize::from(point[0] > 1.0)], "{what}: {g:?}");
                    } else if interface.is_empty() {
                        assert!(!sides[0] && !sides[1], "{what}: {g:?} is not the mean");
                    } else {
                        sides.iter().zip(&mut n_sides).for_each(|(is_own, n)| *n += usize::from(*is_own));
                    }
                }
                assert!(interface.is_empty() || n_sides[0] > 0 && n_sides[0] == n_sides[1], "{n_sides:?}");
            }
        }
    }
}

#[test]
fn the_gradient_along_a_sphere_is_recovered() {
    // u = xy, an eigenfunction of −Δ on the unit sphere with 6.
    let equation = "[equation]\nkind = \"convection-diffusion\"\nvelocity = [0, 0, 0]\nsigma = 2\nlambda = 1\nsource = \"13*x*y\"\n";
    // The same along normals, off the sphere as well.
    let functionals = "{ name = \"h1\", kind = \"error_h1\", exact = \"x*y/(x^2 + y^2 + z^2)\" }";
    for (cell, degree, order) in [("triangle", 1, 1), ("quadrilateral", 1, 1), ("quadrilateral", 2, 2)] {
        let [coarse, fine] = [6.0, 12.0].map(|n| {
            let generate =
                format!("kind = \"sphere\", h = {}, cell = \"{cell}\", order = {order}", PI / 2.0 / n);
            let text = case(&generate, degree, equation, "[\"gradient\", \"flux\", \"error\"]", functionals);
            let (report, data) = fields(None, &text);
            let estimate = report.solve.discretization_error_estimate.unwrap();
            let of = |name: &str, factor: f64| {
                error(&data.points, &data.point_fields[name].values, |[x, y, z]| {
                    let u = x * y;
                    Some([y - 2.0 * u * x, x - 2.0 * u * y, -2.0 * u * z].map(|g| factor * g))
                })
            };
            (of("gradient", 1.0), of("flux", -2.0), estimate / 2.0_f64.sqrt() / report.functionals["h1"])
        });
        for (coarse, fine) in [(coarse.0, fine.0), (coarse.1, fine.1)] {
            let order = (coarse / fine).log2();
            assert!(order > degree as f64 + 0.5, "{cell}, {degree}: {order} of {coarse}");
        }
        assert!((0.8..1.3).contains(&fine.2), "{cell}, {degree}: {}", fine.2);
    }
}

#[test]
fn gradients_end_at_the_folds_of_a_sheet() {
    // A strip that is folded twice by a right angle; u is linear along it.
    let mut mesh = unit(CellKind::Quadrilateral, 9);
    mesh.is_surface = true;
    for point in &mut mesh.points {
        let s = 3.0 * point[0];
        let [x, z] = match s {
            s if s <= 1.0 => [s, 0.0],
            s if s <= 2.0 => [1.0, s - 1.0],
            s => [3.0 - s, 1.0],
        };
        *point = [x, point[1], z];
    }
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\n[[boundary]]\nwhere = \"z < 1e-6 && x < 1e-6\"\ndirichlet = 0\n\
        [[boundary]]\nwhere = \"z > 0.99 && x < 1e-6\"\ndirichlet = 3\n";
    let (report, data) = fields(Some(&mesh), &case("", 1, equation, "[\"gradient\", \"error\"]", ""));
    assert!(report.solve.discretization_error_estimate.unwrap() < 1e-8);
    for ([x, _, z], g) in data.points.iter().zip(data.point_fields["gradient"].values.as_chunks::<3>().0) {
        let is_fold = *x > 1.0 - 1e-9 && (*z < 1e-9 || *z > 1.0 - 1e-9);
        let expected = if *z < 1e-9 {
            [1.0, 0.0, 0.0]
        } else if *z > 1.0 - 1e-9 {
            [-1.0, 0.0, 0.0]
        } else {
            [0.0, 0.0, 1.0]
        };
        let is_close = g.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-8);
        assert!(is_fold || is_close, "{x}, {z}: {g:?}");
    }
}

#[test]
fn bodies_of_revolution_and_sheets_have_fluxes_per_area_and_estimates_of_the_whole_body() {
    let volts = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"log(2)\"\n";
    let form = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nenergy = \"3*grad(u).grad(u)/2\"\n";
    let functionals = "{ name = \"h1\", kind = \"error_h1\", exact = \"log(x)\" }";
    let names = "[\"gradient\", \"flux\", \"error\"]";
    for (cell, degree) in [("triangle", 1), ("triangle", 2), ("quadrilateral", 1), ("quadrilateral", 2)] {
        let generate =
            format!("kind = \"square\", cells = [16, 16], lower = [1, 0], upper = [2, 1], cell = \"{cell}\"");
        let text = case(&generate, degree, &format!("{form}{volts}"), names, functionals);
        let (report, data) = fields(None, &text.replace("[space]", "[space]\naxisymmetric = true"));
        let estimate = report.solve.discretization_error_estimate.unwrap();
        let ratio = estimate / 3.0_f64.sqrt() / report.functionals["h1"];
        assert!((0.8..1.3).contains(&ratio), "{cell}, {degree}: {ratio}");
        for ([x, ..], q) in data.points.iter().zip(data.point_fields["flux"].values.as_chunks::<3>().0) {
            assert!((q[0] + 3.0 / x).abs() < 0.02 && q[1].abs() < 0.02, "{x}: {q:?}");
        }
    }
    // A cylinder heated inside, u = 1 − r²: the flux on its axis is zero, and no number is missing.
    let heated = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = 4\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n";
    let text = case("kind = \"square\", cells = [4, 3]", 2, heated, names, "");
    let (_, data) = fields(None, &text.replace("[space]", "[space]\naxisymmetric = true"));
    for ([x, ..], q) in data.points.iter().zip(data.point_fields["flux"].values.as_chunks::<3>().0) {
        assert!((q[0] - 2.0 * x).abs() < 1e-6 && q[1].abs() < 1e-6, "{x}: {q:?}");
    }
    // A sheet of thickness 4 has the fluxes of one without, and twice the error.
    let (equation, _) = smooth(2);
    let text = case("kind = \"square\", cells = [6, 6]", 1, &equation, names, "");
    let ((one, thin), (four, thick)) =
        (fields(None, &text), fields(None, &text.replace("[space]", "[space]\nthickness = 4")));
    let of = |report: &Report| report.solve.discretization_error_estimate.unwrap();
    assert!((of(&four) / of(&one) - 2.0).abs() < 1e-8);
    for (a, b) in thin.point_fields["flux"].values.iter().zip(&thick.point_fields["flux"].values) {
        assert!((a - b).abs() < 1e-8);
    }
}

#[test]
fn elasticity_has_stresses_strains_and_the_error_of_its_energy() {
    // A linear displacement is exact: the strains are (2, −3, 4, 3/2, 0, 1)·10⁻³, μ = λ = 80.
    let exact = ["1e-3*(2*x + y - z)", "1e-3*(x - 3*y + 2*z)", "1e-3*(x + y + 4*z)"];
    for (cell, degree) in [("tetrahedron", 1), ("tetrahedron", 2), ("hexahedron", 1), ("hexahedron", 2)] {
        let equation = format!(
            "[equation]\nkind = \"elasticity\"\nyoung = 200\npoisson = 0.25\n[[boundary]]\nwhere = \"all\"\ndirichlet = {exact:?}\n"
        );
        let generate = format!("kind = \"box\", cell = \"{cell}\", cells = [3, 3, 2]");
        let text =
            case(&generate, degree, &equation, "[\"gradient\", \"stress\", \"strain\", \"error\"]", "");
        let (report, data) = fields(None, &text);
        assert!(report.solve.discretization_error_estimate.unwrap() < 1e-8);
        for (name, expected) in [
            ("recovered_stress", [0.56, -0.24, 0.88, 0.24, 0.0, 0.16]),
            ("recovered_strain", [2e-3, -3e-3, 4e-3, 1.5e-3, 0.0, 1e-3]),
        ] {
            for own in data.point_fields[name].values.as_chunks::<6>().0 {
                let is_close = own.iter().zip(expected).all(|(own, expected)| (own - expected).abs() < 1e-8);
                assert!(is_close, "{cell}, {degree}, {name}: {own:?}");
            }
        }
        let [mises, own] = ["recovered_von_mises", "von_mises"].map(|name| &data.point_fields[name].values);
        assert!(mises.iter().zip(own).all(|(a, b)| (a - b).abs() < 1e-8));
        let second = &data.point_fields["gradient[1]"].values;
        assert!((second[0] - 1e-3).abs() < 1e-9 && (second[1] + 3e-3).abs() < 1e-9);
    }
    // u = (sin πx sin πy, 0) with ν = 0: a(u, u) = 3π²E/8, of which that of the elements is short by the square of the error.
    let source = "source = [\"1.5*pi^2*sin(pi*x)*sin(pi*y)\", \"-0.5*pi^2*cos(pi*x)*cos(pi*y)\"]";
    let equation = format!(
        "[equation]\nkind = \"elasticity\"\nyoung = 1\npoisson = 0\n{source}\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n"
    );
    for (cell, degree, n) in
        [("triangle", 1, 24), ("triangle", 2, 12), ("quadrilateral", 1, 24), ("quadrilateral", 2, 12)]
    {
        let generate = format!("kind = \"square\", cell = \"{cell}\", cells = [{n}, {n}]");
        let text =
            case(&generate, degree, &equation, "[\"error\"]", "{ name = \"energy\", kind = \"energy\" }");
        let (report, _) = fields(None, &text);
        let error = (3.0 * PI * PI / 8.0 - 2.0 * report.functionals["energy"]).sqrt();
        let ratio = report.solve.discretization_error_estimate.unwrap() / error;
        assert!((0.8..1.3).contains(&ratio), "{cell}, {degree}: {ratio}");
    }
}

#[test]
fn several_unknowns_and_nonlinear_fluxes_have_fields_by_name() {
    // u + u³/3 is linear in x, T is x².
    let equation = "[unknown]\nu = {}\nT = {}\n[equation]\nkind = \"form\"\nflux = { u = \"(1 + u^2)*grad(u)\", T = \"2*grad(T)\" }\nsource = { T = -4 }\n\
        [[boundary]]\nwhere = \"xmin\"\ndirichlet = { u = 0, T = 0 }\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = { u = 1, T = 1 }\n";
    let text =
        case("kind = \"square\", cells = [16, 4]", 2, equation, "[\"flux\", \"gradient\", \"error\"]", "");
    let (report, data) = fields(None, &text);
    for (point, q) in data.points.iter().zip(data.point_fields["flux_u"].values.as_chunks::<3>().0) {
        assert!((q[0] + 4.0 / 3.0).abs() < 2e-3 && q[1].abs() < 2e-3, "{point:?}: {q:?}");
    }
    for (point, q) in data.points.iter().zip(data.point_fields["flux_T"].values.as_chunks::<3>().0) {
        assert!((q[0] + 4.0 * point[0]).abs() < 1e-8 && q[1].abs() < 1e-8, "{point:?}: {q:?}");
    }
    assert!(data.point_fields.contains_key("gradient_T"));
    assert!(report.solve.discretization_error_relative.unwrap() < 1e-3);
}

#[test]
fn fields_do_not_depend_on_the_numbers_of_threads_and_ranks() {
    let (equation, _) = smooth(2);
    let text =
        case("kind = \"square\", cells = [23, 17]", 2, &equation, "[\"gradient\", \"flux\", \"error\"]", "");
    let of = |more: &str| fields(None, &text.replace("[solver]", &format!("[solver]\n{more}")));
    let (_, one) = of("threads = 1");
    for threads in [2, 3] {
        let (_, other) = of(&format!("threads = {threads}"));
        for (name, field) in &one.point_fields {
            let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert!(bits(&field.values) == bits(&other.point_fields[name].values), "{threads}, {name}");
        }
        assert!(one.cell_fields["error"] == other.cell_fields["error"]);
    }
    let (_, two) = of("threads = 2\nranks = 2");
    for (a, b) in one.point_fields["gradient"].values.iter().zip(&two.point_fields["gradient"].values) {
        assert!((a - b).abs() < 1e-8, "{a} and {b}");
    }
}

#[test]
fn fields_that_an_equation_does_not_have_are_refused() {
    let (equation, _) = smooth(2);
    let text =
        |equation: &str, names: &str| case("kind = \"square\", cells = [3, 3]", 1, equation, names, "");
    let with_modes = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\ncapacity = 1\n[modes]\ncount = 2\n";
    let in_time = with_modes.replace("[modes]\ncount = 2", "[time]\nend = 1\nsteps = 2");
    let of_degrees = "[unknown]\nu = {}\nT = { degree = 2 }\n[equation]\nkind = \"form\"\nflux = { u = \"grad(u)\", T = \"grad(T)\" }\n\
        [[boundary]]\nwhere = \"all\"\ndirichlet = { u = 0, T = 0 }\n";
    for (equation, names, key, expected) in [
        (
            equation.as_str(),
            "[\"gradient\", \"stress\"]",
            "output.fields[1]",
            "belongs to `kind = \"elasticity\"`",
        ),
        (with_modes, "[\"gradient\"]", "output.fields[0]", "steady"),
        (&in_time, "[\"error\"]", "output.fields[0]", "steady"),
        (of_degrees, "[\"error\"]", "output.fields", "one degree"),
        (
            "[equation]\nlambda = 1\n",
            "[\"strain\"]",
            "output.fields[0]",
            "belongs to `kind = \"elasticity\"`",
        ),
    ] {
        let (found, message) = refusal(&text(equation, names));
        assert!(found == key && message.contains(expected), "{found}: {message}");
    }
    // A mean of two degrees of freedom, without cells around that determine more, cannot be trusted.
    let report = solve(
        &text(&equation, "[\"error\"]")
            .replace("[3, 3]", "[1, 1]")
            .replace("plot = false", "plot = false\nvtu = false"),
    );
    assert!(
        report.warnings.iter().any(|warning| warning.contains("cannot be trusted")),
        "{:?}",
        report.warnings
    );
}

#[test]
fn the_energy_norm_of_a_tube_has_the_strain_around_the_axis() {
    // Lamé: the pressure 1 in a tube with the radii 1 and 2, which cannot grow longer, does the work π u(1).
    let (young, poisson) = (10.0, 0.3);
    let at_inside = (1.0 + poisson) / young * ((1.0 - 2.0 * poisson) + 4.0) / 3.0;
    let equation = format!(
        "[equation]\nkind = \"elasticity\"\nyoung = {young}\npoisson = {poisson}\n\
         [[boundary]]\nwhere = \"ymin\"\ndirichlet = [\"free\", 0]\n[[boundary]]\nwhere = \"ymax\"\ndirichlet = [\"free\", 0]\n\
         [[boundary]]\nwhere = \"xmin\"\ntraction = [1, 0]\n"
    );
    for cell in ["triangle", "quadrilateral"] {
        let generate =
            format!("kind = \"square\", cells = [12, 6], lower = [1, 0], upper = [2, 1], cell = \"{cell}\"");
        let functionals = "{ name = \"energy\", kind = \"energy\" }";
        let text = case(&generate, 2, &equation, "[\"error\"]", functionals);
        let report = solve(&text.replace("[space]", "[space]\naxisymmetric = true"));
        let [estimate, relative] =
            [report.solve.discretization_error_estimate, report.solve.discretization_error_relative];
        let square = (estimate.unwrap() / relative.unwrap()).powi(2);
        assert!((square / (2.0 * PI * at_inside) - 1.0).abs() < 1e-4, "{cell}: {square}");
        assert!((square / (2.0 * report.functionals["energy"]) - 1.0).abs() < 1e-4, "{cell}: {square}");
    }
}

#[test]
fn an_equation_without_gradients_has_no_estimate() {
    let projection = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nsource = \"x*y - u\"\n";
    let text = case("kind = \"square\", cells = [3, 3]", 1, projection, "[\"error\", \"gradient\"]", "");
    let report = solve(&text.replace("plot = false", "plot = false\nvtu = false"));
    assert_eq!(report.solve.discretization_error_estimate, None);
    let is_named = |warning: &String| warning.contains("`error` is left out") && warning.contains("no flux");
    assert!(report.warnings.iter().any(is_named), "{:?}", report.warnings);
}

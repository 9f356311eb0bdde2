//! Periodic sides, ties of meshes that do not match, floating conductors and matrices of several sides.

use std::collections::BTreeMap;
use std::f64::consts::{PI, SQRT_2};
use std::sync::{Arc, Mutex};

use femtile_case::{
    Array, ByConstant, Case, CaseError, Embedding, FormState, Progress, Receiver, Report, Silent,
    SolvedSystem, run,
};
use femtile_mesh::Mesh;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_solve::Functional;

use crate::inside::{FLUXES, KINDS, case, halves, is_close, solve_on};
use crate::{refusal, solve, try_solve};

const QUIET: &str = "plot = false\nvtu = false\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n";

fn on(generate: &str, degree: u32, equation: &str, functionals: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {generate} }}\n[space]\ndegree = {degree}\n{equation}\n\
         [output]\nfunctionals = [{functionals}]\n{QUIET}"
    )
}

/// Runs a case on a mesh that is given beside it.
fn try_on(mesh: &Mesh, text: &str) -> Result<Report, CaseError> {
    let folder = tempfile::tempdir().unwrap();
    let output = if text.contains("[output]") { "" } else { "[output]\n" };
    let text = format!("[mesh]\n{text}{output}{QUIET}");
    let embedding = Embedding { mesh: Some(Arc::new(mesh.clone())), ..Embedding::default() };
    let mut case = Case::parse_embedded(&folder.path().join("case.toml"), text, Vec::new(), embedding)?;
    case.file.output.directory = folder.path().join("out");
    run(&case, &mut Silent)
}

fn on_mesh(mesh: &Mesh, text: &str) -> BTreeMap<String, f64> {
    let report = try_on(mesh, text).unwrap();
    assert_eq!(report.solve.stop.name(), "converged", "{text}");
    report.functionals
}

fn refusal_on(mesh: &Mesh, text: &str) -> (String, String) {
    match try_on(mesh, text) {
        Err(CaseError::Input { key, message, .. }) => (key.unwrap_or_default(), message),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("taken: {text}"),
    }
}

const LAPLACE: &str = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\n";

fn periodic(axes: &str) -> String {
    axes.chars().map(|a| format!("[[periodic]]\nfrom = \"{a}min\"\nto = \"{a}max\"\n")).collect()
}

/// Checks that errors of two meshes fall at the orders of theory.
fn assert_orders(errors: [[f64; 2]; 2], ratio: f64, degree: u32, what: &str) {
    for (i, expected) in [f64::from(degree) + 1.0, f64::from(degree)].into_iter().enumerate() {
        let order = (errors[0][i] / errors[1][i]).ln() / ratio.ln();
        assert!(order > expected - 0.25, "{what}: order {order} of {i}, {errors:?}");
    }
}

const NORMS: [&str; 2] = ["l2", "h1"];

fn norms(exact: &str) -> String {
    let of = |name: &str| format!("{{ name = \"{name}\", kind = \"error_{name}\", exact = \"{exact}\" }}");
    NORMS.map(of).join(", ")
}

#[test]
fn functions_of_periodic_boxes_have_the_orders_of_theory_on_all_elements() {
    let plane = "sin(2*pi*x)*cos(2*pi*y) + cos(2*pi*y)";
    let of_plane = "(1 + 8*pi^2)*sin(2*pi*x)*cos(2*pi*y) + (1 + 4*pi^2)*cos(2*pi*y)";
    let space = "sin(2*pi*x)*cos(2*pi*(y - z))";
    let of_space = "(1 + 12*pi^2)*sin(2*pi*x)*cos(2*pi*(y - z))";
    for (cell, axes, exact, source) in [
        ("triangle", "xy", plane, of_plane),
        ("quadrilateral", "xy", plane, of_plane),
        ("tetrahedron", "xyz", space, of_space),
        ("hexahedron", "xyz", space, of_space),
    ] {
        let is_plane = axes == "xy";
        for degree in 1..=3 {
            let equation = format!(
                "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = \"{source} - u\"\n{}",
                periodic(axes)
            );
            let errors = |n: u32| {
                let mesh = match is_plane {
                    true => format!("kind = \"square\", cells = [{n}, {}], cell = \"{cell}\"", n + 1),
                    false => format!("kind = \"box\", cells = [{n}, {n}, {n}], cell = \"{cell}\""),
                };
                let found = solve(&on(&mesh, degree, &equation, &norms(exact))).functionals;
                NORMS.map(|norm| found[norm])
            };
            let n = if is_plane { [9, 18] } else { [[6, 12], [4, 8], [3, 6]][degree as usize - 1] };
            assert_orders(n.map(errors), 2.0, degree, &format!("{cell}, degree {degree}"));
        }
    }
}

#[test]
fn a_laminate_has_the_harmonic_mean_across_its_layers_and_the_arithmetic_one_along_them() {
    for (cell, degree) in [("triangle", 1), ("quadrilateral", 1), ("triangle", 2), ("quadrilateral", 3)] {
        let sigma = |jumps: [f64; 2], side: &str| {
            let equation = format!(
                "[[region]]\nname = \"a\"\nwhere = \"x < 0.5\"\n[[region]]\nname = \"b\"\nwhere = \"x > 0.5\"\n\
                 [unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"k*grad(u)\"\n\
                 constants = {{ k = {{ by_tag = {{ a = 1, b = 4 }} }} }}\n\
                 [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = 0\n\
                 [[periodic]]\nfrom = \"xmin\"\nto = \"xmax\"\njump = {}\n\
                 [[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\njump = \"{}\"\n",
                jumps[0], jumps[1]
            );
            let functionals = format!(
                "{{ name = \"flux\", kind = \"flux\", where = \"{side}max\" }}, {{ name = \"back\", kind = \"flux\", where = \"{side}min\" }}"
            );
            let mesh = format!("kind = \"square\", cells = [6, 5], cell = \"{cell}\"");
            let found = solve(&on(&mesh, degree, &equation, &functionals)).functionals;
            assert!((found["flux"] + found["back"]).abs() < 1e-10, "{found:?}");
            found["flux"]
        };
        let (across, along) = (sigma([1.0, 0.0], "x"), sigma([0.0, 1.0], "y"));
        assert!((across - 1.6).abs() < 1e-10 && (along - 2.5).abs() < 1e-10, "{cell}: {across} {along}");
        assert!(sigma([1.0, 0.0], "y").abs() < 1e-10 && sigma([0.0, 1.0], "x").abs() < 1e-10);
        assert!((sigma([1.0, -2.0], "y") + 5.0).abs() < 1e-9);
    }
}

/// A square cell of side 1 with a circle of a share of its area in the middle, by quadrilaterals; without those of the circle if it is a
/// hole, whose edge is tagged.
fn cell_with_circle(share: f64, is_hole: bool) -> Mesh {
    let (n, inner) = (48, 18);
    let config =
        SquareConfig { lower: [-0.5; 2], upper: [0.5; 2], cells: [n, n], split: SquareSplit::Quadrilateral };
    let mut mesh = square(&config).unwrap();
    let at_circle = f64::from(inner) / n as f64;
    // The polygon has the area of the circle.
    let n_edges = 8.0 * f64::from(inner);
    let radius = (share / (0.5 * n_edges * (2.0 * PI / n_edges).sin())).sqrt();
    for [x, y, _] in &mut mesh.points {
        let shell = x.abs().max(y.abs());
        if shell == 0.0 {
            continue;
        }
        // A square shell with nodes at equal angles, as a circle and as a square.
        let along = if x.abs() >= y.abs() { (*y / x.abs(), true) } else { (*x / y.abs(), false) };
        let angle = 0.25 * PI * along.0;
        let (c, s) = (angle.cos(), angle.sin());
        let circle = if along.1 { [x.signum() * c, s] } else { [s, y.signum() * c] };
        let square = [*x / shell, *y / shell];
        let is_inside = shell <= at_circle + 1e-12;
        let (weight, size) = match is_inside {
            true => (shell / at_circle, radius * shell / at_circle),
            false => {
                let t = (shell - at_circle) / (0.5 - at_circle);
                (1.0 - t, radius + t * (0.5 - radius))
            }
        };
        [*x, *y] = [0, 1].map(|i| size * (weight * circle[i] + (1.0 - weight) * square[i]));
    }
    let inside = |cell: &[u32]| {
        let middle = |i: usize| cell.iter().map(|&node| mesh.points[node as usize][i]).sum::<f64>() / 4.0;
        middle(0).hypot(middle(1)) < radius * (PI / n_edges).cos()
    };
    let is_inside: Vec<bool> = mesh.cells.chunks_exact(4).map(inside).collect();
    mesh.cell_tags = is_inside.iter().map(|&inside| 1 + i32::from(inside)).collect();
    if is_hole {
        let cells = mesh.cells.chunks_exact(4).zip(&is_inside).filter(|(_, inside)| !**inside);
        mesh.cells = cells.flat_map(|(cell, _)| cell.to_vec()).collect();
        mesh.cell_tags.clear();
        let mut is_used = vec![u32::MAX; mesh.points.len()];
        let mut points = Vec::new();
        for node in &mut mesh.cells {
            let number = &mut is_used[*node as usize];
            if *number == u32::MAX {
                *number = points.len() as u32;
                points.push(mesh.points[*node as usize]);
            }
            *node = *number;
        }
        mesh.points = points;
        mesh.facets.nodes.iter_mut().for_each(|node| *node = is_used[*node as usize]);
    }
    mesh
}

/// The arithmetic–geometric mean: K(m) = π/(2 agm(1, √(1 − m))) is the complete elliptic integral of the first kind.
fn agm(a: f64, b: f64) -> f64 {
    (0..8).fold((a, b), |(a, b), _| (0.5 * (a + b), (a * b).sqrt())).0
}

/// Sums of z⁻ⁿ over the points z ≠ 0 of the square lattice of the complex integers: `[n_sums]`. The second one is that of a body that
/// is long along the field, π. The fourth one is ϖ⁴/15 with the lemniscate constant ϖ, and those of higher order follow from the
/// differential equation of Weierstrass' function.
fn lattice_sums(n_sums: usize) -> Vec<f64> {
    let lemniscate = PI / agm(1.0, SQRT_2);
    // (2k − 1) times the sum of the order 2k.
    let mut c = vec![0.0, 0.0, 3.0 * lemniscate.powi(4) / 15.0, 0.0];
    for k in 4..n_sums.div_ceil(2) {
        let sum: f64 = (2..k - 1).map(|m| c[m] * c[k - m]).sum();
        c.push(3.0 * sum / ((2 * k + 1) * (k - 3)) as f64);
    }
    let mut sums = vec![0.0; n_sums];
    sums[2] = PI;
    for (k, c) in c.iter().enumerate().skip(2) {
        sums[2 * k] = c / (2 * k - 1) as f64;
    }
    sums
}

/// The conductivity of a square array of cylinders of the conductivity `k` and the share `f` in a matrix of conductivity 1, by the
/// method of Rayleigh \[perrins1979\]: multipoles B_n of odd order in a cell, which the cylinder ties to the field around it, and that
/// field is the sum of the fields of all other cylinders and the mean one.
fn of_cylinders(k: f64, f: f64) -> f64 {
    const N: usize = 12;
    let t = if k.is_infinite() { -1.0 } else { (1.0 + k) / (1.0 - k) };
    let (sums, radius) = (lattice_sums(4 * N), (f / PI).sqrt());
    let order = |i: usize| 2 * i + 1;
    // (n + m − 1)! / (n! (m − 1)!)
    let binomial = |n: usize, m: usize| (1..=n).map(|i| (m - 1 + i) as f64 / i as f64).product::<f64>();
    let entry = |i: usize, j: usize| {
        let (n, m) = (order(i), order(j));
        let own = if i == j { t } else { 0.0 };
        own + binomial(n, m) * sums[n + m] * radius.powi((n + m) as i32)
    };
    // The last column is the right side.
    let right = |i: usize| if i == 0 { radius } else { 0.0 };
    let row = |i: usize| (0..N).map(|j| entry(i, j)).chain([right(i)]).collect();
    let mut rows: Vec<Vec<f64>> = (0..N).map(row).collect();
    // From the highest order to the first one, whose multipole alone is asked for.
    for pivot in (1..N).rev() {
        let (lower, of_pivot) = rows.split_at_mut(pivot);
        for row in lower {
            let factor = row[pivot] / of_pivot[0][pivot];
            row.iter_mut().zip(&of_pivot[0]).for_each(|(entry, other)| *entry -= factor * other);
        }
    }
    1.0 - 2.0 * PI * radius * rows[0][N] / rows[0][0]
}

const CELL: &str = "[[periodic]]\nfrom = \"xmin\"\nto = \"xmax\"\njump = 1\n[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\n\
                    [output]\nfunctionals = [{ name = \"sigma\", kind = \"flux\", where = \"xmax\" }]\n";

#[test]
fn arrays_of_cylinders_have_the_published_conductivity() {
    // The first terms of the series, as published.
    let series = |k: f64, f: f64| {
        let t = (1.0 + k) / (1.0 - k);
        let higher = 0.305_827 * f.powi(4) * t / (t * t - 1.402_958 * f.powi(8)) + 0.013_362 * f.powi(8) / t;
        1.0 - 2.0 * f / (t + f - higher)
    };
    for (k, f) in [(10.0, 0.3), (0.1, 0.5), (1e9, 0.5)] {
        assert!((of_cylinders(k, f) / series(k, f) - 1.0).abs() < 1e-5, "{k}, {f}");
    }
    assert!((of_cylinders(f64::INFINITY, 0.5) / of_cylinders(1e9, 0.5) - 1.0).abs() < 1e-8);
    for (k, f) in [(10.0, 0.3), (50.0, 0.5), (0.1, 0.5)] {
        let text = format!(
            "[space]\ndegree = 2\n[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"k*grad(u)\"\n\
             constants = {{ k = {{ by_tag = {{ 1 = 1, 2 = {k} }} }} }}\n\
             [[boundary]]\nnodes = \"x < -0.4999 && y < -0.4999\"\ndirichlet = 0\n{CELL}"
        );
        let found = on_mesh(&cell_with_circle(f, false), &text)["sigma"];
        let expected = of_cylinders(k, f);
        assert!((found / expected - 1.0).abs() < 1e-5, "{k}, {f}: {found}, published {expected}");
        // The bounds of Hashin and Shtrikman in the plane.
        let bound = |one: f64, other: f64, f: f64| one + f / (1.0 / (other - one) + (1.0 - f) / (2.0 * one));
        let bounds = [bound(1.0, k, f), bound(k, 1.0, 1.0 - f)];
        let [lower, upper] = [bounds[0].min(bounds[1]), bounds[0].max(bounds[1])];
        assert!(lower < found && found < upper, "{k}, {f}: {lower} {found} {upper}");
    }
}

#[test]
fn cylinders_that_conduct_perfectly_float() {
    let text = format!(
        "[space]\ndegree = 2\n{LAPLACE}[[boundary]]\nwhere = \"x^2 + y^2 < 0.2\"\nfloating = true\n\
         [[boundary]]\nnodes = \"x < -0.4999 && y < -0.4999\"\ndirichlet = 0\n{CELL}"
    );
    let found = on_mesh(&cell_with_circle(0.5, true), &text)["sigma"];
    assert!((found / of_cylinders(f64::INFINITY, 0.5) - 1.0).abs() < 1e-5, "{found}");
}

#[test]
fn squares_of_a_quarter_of_the_area_have_the_conductivity_of_the_checkerboard_of_four_phases() {
    // Of four squares with the conductivities 1, 1, 1 and k it is √((1 + 3k)/(3 + k)) [craster2001]. At the corners of the squares u has
    // the power of the distance that solves tan(πa/4)² = (1 + 3k)/(3 + k), or its reciprocal; the energy converges with twice of it.
    for k in [10.0, 0.1] {
        let exact = f64::sqrt((1.0 + 3.0 * k) / (3.0 + k));
        let equation = format!(
            "[[region]]\nname = \"other\"\nwhere = \"x < 0.5 && y < 0.5\"\n[[region]]\nname = \"rest\"\nwhere = \"x > 0.5 || y > 0.5\"\n\
             [equation]\nsigma = {{ by_tag = {{ other = {k}, rest = 1 }} }}\n\
             [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = 0\n\
             [[periodic]]\nfrom = \"xmin\"\nto = \"xmax\"\njump = 1\n[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\n"
        );
        let flux = "{ name = \"sigma\", kind = \"flux\", where = \"xmax\" }";
        let error = |n: u32| {
            let mesh = format!("kind = \"square\", cells = [{n}, {n}], cell = \"quadrilateral\"");
            solve(&on(&mesh, 2, &equation, flux)).functionals["sigma"] / exact - 1.0
        };
        let [coarse, fine] = [16, 32].map(error);
        // The energy is an upper bound.
        assert!(0.0 < fine && fine < 5e-4 && fine < 0.45 * coarse, "{k}: {coarse} {fine}");
    }
}

/// Two blocks that lie on each other at the height 1. Where the lower one has two cells the upper one has three or four. Sides of the
/// upper one begin with `upper-`.
pub(crate) fn blocks(cell: &str, n: usize, upper: usize) -> Mesh {
    let (below, above, shift): (Mesh, Mesh, i32) = match cell {
        "triangle" | "quadrilateral" => {
            let split = match cell {
                "triangle" => SquareSplit::Triangles,
                _ => SquareSplit::Quadrilateral,
            };
            let of = |lower: [f64; 2], cells: [usize; 2]| {
                square(&SquareConfig { lower, upper: [1.0, lower[1] + 1.0], cells, split }).unwrap()
            };
            (of([0.0; 2], [2 * n, 2 * n]), of([0.0, 1.0], [upper * n, 2 * n]), 4)
        }
        _ => {
            let split = if cell == "hexahedron" { BoxSplit::Hexahedron } else { BoxSplit::Kuhn };
            let of = |lower: [f64; 3], cells: [usize; 3]| {
                let upper = [1.0, 1.0, lower[2] + 1.0];
                box_mesh(&BoxConfig { lower, upper, cells, split }).unwrap()
            };
            (of([0.0; 3], [2 * n, 2 * n, n]), of([0.0, 0.0, 1.0], [upper * n, 4 * n, n]), 6)
        }
    };
    let mut all = below;
    let n_nodes = all.points.len() as u32;
    all.points.extend(&above.points);
    all.cells.extend(above.cells.iter().map(|node| node + n_nodes));
    all.facets.nodes.extend(above.facets.nodes.iter().map(|node| node + n_nodes));
    all.facets.tags.extend(above.facets.tags.iter().map(|tag| tag + shift));
    let names = above.tag_names.iter().map(|(&(d, tag), name)| ((d, tag + shift), format!("upper-{name}")));
    all.tag_names.extend(names);
    all.cell_tags.clear();
    all
}

#[test]
fn ties_keep_the_order_of_the_degree_whichever_side_follows() {
    for cell in ["triangle", "quadrilateral", "tetrahedron", "hexahedron"] {
        let is_plane = matches!(cell, "triangle" | "quadrilateral");
        let (exact, source, up, sides): (_, _, _, &[&str]) = match is_plane {
            true => {
                ("sin(2*x + y)*exp(y/2)", "sin(2*x + y)*exp(y/2)*4.75 - cos(2*x + y)*exp(y/2)", "y", &["x"])
            }
            false => ("sin(2*x + y + z)", "6*sin(2*x + y + z)", "z", &["x", "y"]),
        };
        for (degree, upper, is_swapped) in
            (1..=3).flat_map(|p| [(p, 4, false), (p, 4, true), (p, 3, false), (p, 3, true)])
        {
            // A refinement is interpolated, which is exact in space as in the plane.
            if !is_plane && upper == 4 && (degree == 3 || is_swapped) {
                continue;
            }
            let mut text = format!(
                "[space]\ndegree = {degree}\n[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = \"{source}\"\n{}",
                tie(up, is_swapped)
            );
            let mut given = vec![format!("{up}min"), format!("upper-{up}max")];
            for side in sides.iter().flat_map(|side| [format!("{side}min"), format!("{side}max")]) {
                given.extend([side.clone(), format!("upper-{side}")]);
            }
            for side in &given {
                text += &format!("[[boundary]]\nwhere = \"{side}\"\ndirichlet = \"{exact}\"\n");
            }
            text += &format!("[output]\nfunctionals = [{}]\n", norms(exact));
            let errors = |n: usize| {
                let found = on_mesh(&blocks(cell, n, upper), &text);
                NORMS.map(|norm| found[norm])
            };
            let n = if is_plane { [3, 6] } else { [[3, 6], [2, 4], [1, 2]][degree as usize - 1] };
            let what = format!("{cell}, degree {degree}, {upper}, {is_swapped}");
            assert_orders(n.map(errors), 2.0, degree, &what);
        }
    }
}

/// Ties the upper block of [`blocks`] to the lower one, or the lower one to the upper one.
fn tie(up: &str, is_swapped: bool) -> String {
    let (lower, upper) = (format!("{up}max"), format!("upper-{up}min"));
    let (from, to) = if is_swapped { (upper, lower) } else { (lower, upper) };
    format!("[[tie]]\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

#[test]
fn periodic_sides_that_do_not_match_keep_the_order_of_the_degree() {
    for cell in ["triangle", "quadrilateral"] {
        for degree in 1..=3 {
            let exact = "sin(pi*y + 1)*cos(x)";
            let mut text = format!(
                "[space]\ndegree = {degree}\n[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = \"(pi^2 + 1)*{exact}\"\n{}\
                 [[periodic]]\nfrom = \"ymin\"\nto = \"upper-ymax\"\njump = 0.5\n",
                tie("y", degree == 2)
            );
            let exact = format!("{exact} + 0.25*y");
            for side in ["xmin", "xmax", "upper-xmin", "upper-xmax"] {
                text += &format!("[[boundary]]\nwhere = \"{side}\"\ndirichlet = \"{exact}\"\n");
            }
            text += &format!("[output]\nfunctionals = [{}]\n", norms(&exact));
            let errors = |n: usize| {
                let found = on_mesh(&blocks(cell, n, 3), &text);
                NORMS.map(|norm| found[norm])
            };
            assert_orders([3, 6].map(errors), 2.0, degree, &format!("{cell}, degree {degree}"));
        }
    }
}

#[test]
fn unknowns_of_each_degree_keep_their_order_across_a_tie() {
    let (exact, source) = ("sin(2*x + y)", "5*sin(2*x + y)");
    for cell in ["triangle", "quadrilateral"] {
        for is_swapped in [false, true] {
            let mut text = format!(
                "[unknown]\nu = {{ degree = 2 }}\nv = {{ degree = 1 }}\n[equation]\nkind = \"form\"\n\
                 flux = {{ u = \"grad(u)\", v = \"grad(v)\" }}\nsource = {{ u = \"{source}\", v = \"{source}\" }}\n{}",
                tie("y", is_swapped)
            );
            for side in ["ymin", "upper-ymax", "xmin", "xmax", "upper-xmin", "upper-xmax"] {
                text += &format!(
                    "[[boundary]]\nwhere = \"{side}\"\ndirichlet = {{ u = \"{exact}\", v = \"{exact}\" }}\n"
                );
            }
            text += &format!(
                "[output]\nfunctionals = [{{ name = \"e\", kind = \"error_l2\", exact = [\"{exact}\", \"{exact}\"] }}]\n"
            );
            let errors = |n: usize| {
                let found = on_mesh(&blocks(cell, n, 3), &text);
                ["e[u]", "e[v]"].map(|name| found[name])
            };
            let [coarse, fine] = [3, 6].map(errors);
            for (i, expected) in [3.0, 2.0].into_iter().enumerate() {
                let order = (coarse[i] / fine[i]).log2();
                assert!(order > expected - 0.25, "{cell}: order {order} of {i}, {coarse:?} {fine:?}");
            }
        }
    }
}

#[test]
fn curved_ties_converge_with_the_order_of_their_facets() {
    // A quarter of a tube, whose halves have polygons of other corners on the arc between them.
    let exact = "0.5*log(x^2 + y^2)";
    for degree in 1..=2 {
        for is_swapped in [false, true] {
            let text = format!(
                "[space]\ndegree = {degree}\n{LAPLACE}{}tolerance = 0.1\n[[boundary]]\nwhere = \"ymin\"\ndirichlet = 0\n\
                 [[boundary]]\nwhere = \"upper-ymax\"\ndirichlet = {}\n[output]\nfunctionals = [{}]\n",
                tie("y", is_swapped),
                3.0_f64.ln(),
                norms(exact)
            );
            let errors = |n: usize| {
                let mut mesh = blocks("quadrilateral", n, 3);
                for [x, y, _] in &mut mesh.points {
                    let (r, angle) = (1.0 + *y, 0.5 * PI * (1.0 - *x));
                    [*x, *y] = [r * angle.cos(), r * angle.sin()];
                }
                let found = on_mesh(&mesh, &text);
                NORMS.map(|norm| found[norm])
            };
            assert_orders([4, 8].map(errors), 2.0, 1, &format!("degree {degree}, {is_swapped}"));
        }
    }
}

#[test]
fn ties_pass_the_patch_test_and_balance() {
    for cell in ["triangle", "quadrilateral", "tetrahedron", "hexahedron"] {
        let up = if matches!(cell, "triangle" | "quadrilateral") { "y" } else { "z" };
        for (degree, upper, is_swapped) in (1..=3).flat_map(|p| [(p, 4, false), (p, 3, false), (p, 3, true)])
        {
            let text = format!(
                "[space]\ndegree = {degree}\n{LAPLACE}source = \"sin(3*x)\"\n{}\
                 [[boundary]]\nwhere = \"{up}min\"\ndirichlet = 1\n[[boundary]]\nwhere = \"upper-{up}max\"\ndirichlet = 5\n\
                 [output]\nfunctionals = [{{ name = \"in\", kind = \"flux\", where = \"upper-{up}max\" }}, \
                 {{ name = \"out\", kind = \"flux\", where = \"{up}min\" }}, {{ name = \"tied\", kind = \"flux\", where = \"{up}max\" }}, \
                 {{ name = \"other\", kind = \"flux\", where = \"upper-{up}min\" }}, {norms}]\n",
                tie(up, is_swapped),
                norms = norms(&format!("1 + 2*{up}"))
            );
            let mesh = blocks(cell, 1, upper);
            let what = format!("{cell}, degree {degree}, {upper}, {is_swapped}");
            let found = on_mesh(&mesh, &text);
            let source = 2.0 * (1.0 - 3.0_f64.cos()) / 3.0;
            // The quadrature of the source is not exact.
            assert!((found["in"] + found["out"] + source).abs() < 2e-2, "{what}: {found:?}");
            assert!((found["tied"] + found["other"]).abs() < 1e-10, "{what}: {found:?}");
            let found = on_mesh(&mesh, &text.replace("source = \"sin(3*x)\"\n", ""));
            assert!(found["l2"] < 1e-11 && found["h1"] < 1e-10, "{what}: {found:?}");
            assert!((found["in"] - 2.0).abs() < 1e-10 && (found["out"] + 2.0).abs() < 1e-10, "{found:?}");
            assert!((found["tied"] - 2.0).abs() < 1e-10, "{what}: {found:?}");
        }
    }
}

#[test]
fn constant_fluxes_pass_ties_of_bodies_of_revolution_and_sheets() {
    for space in ["axisymmetric = true", "thickness = \"1 + x^2\""] {
        for (cell, degree) in [("triangle", 1), ("quadrilateral", 1), ("triangle", 2), ("quadrilateral", 3)] {
            for is_swapped in [false, true] {
                let text = format!(
                    "[space]\ndegree = {degree}\n{space}\n{LAPLACE}{}[[boundary]]\nwhere = \"ymin\"\ndirichlet = 1\n\
                     [[boundary]]\nwhere = \"upper-ymax\"\ndirichlet = 5\n[output]\nfunctionals = [{}]\n",
                    tie("y", is_swapped),
                    norms("1 + 2*y")
                );
                let found = on_mesh(&blocks(cell, 2, 3), &text);
                let what = format!("{space}, {cell}, degree {degree}, {is_swapped}");
                assert!(found["l2"] < 1e-11 && found["h1"] < 1e-10, "{what}: {found:?}");
            }
        }
    }
}

#[test]
fn sides_that_are_missed_in_part_have_a_warning_with_the_place() {
    let text = format!(
        "[space]\ndegree = 2\n{LAPLACE}{}tolerance = 1\n[[boundary]]\nwhere = \"ymin\"\ndirichlet = 0\n\
         [[boundary]]\nwhere = \"upper-ymax\"\ndirichlet = 1\n",
        tie("y", false)
    );
    let warnings = |shift: f64| -> Vec<String> {
        let mut mesh = blocks("quadrilateral", 1, 3);
        let first = mesh.points.len() - 12;
        mesh.points[first..].iter_mut().for_each(|[x, _, _]| *x += shift);
        let all = try_on(&mesh, &text).unwrap().warnings;
        all.into_iter().filter(|warning| warning.starts_with("tie")).collect()
    };
    assert_eq!(warnings(0.0), [""; 0]);
    // The last facet of three, from 2/3 + 0.2 on.
    let told = warnings(0.2);
    assert!(
        told.len() == 1
            && told[0].starts_with("tie[0]: `from` misses 1 of 3 facets")
            && told[0].contains("(1.03"),
        "{told:?}"
    );
}

/// A sector of a ring with the radii 1 and 2, from the angle 0 on, by squares that are bent.
pub(crate) fn sector(degrees: f64, cells: [usize; 2], split: SquareSplit) -> Mesh {
    let mut mesh = square(&SquareConfig { cells, split, lower: [1.0, 0.0], upper: [2.0, 1.0] }).unwrap();
    for [x, y, _] in &mut mesh.points {
        let angle = *y * degrees.to_radians();
        [*x, *y] = [*x * angle.cos(), *x * angle.sin()];
    }
    mesh
}

/// Moves the nodes of a sector along the radius, the more the larger the angle, so that its sides do not match.
fn skewed(mut mesh: Mesh, by: f64) -> Mesh {
    for [x, y, _] in &mut mesh.points {
        let (r, angle) = (x.hypot(*y), y.atan2(*x));
        let moved = r + by * angle * (PI * (r - 1.0)).sin();
        [*x, *y] = [moved * angle.cos(), moved * angle.sin()];
    }
    mesh
}

#[test]
fn a_sector_with_a_rotation_is_the_ring() {
    // r³ cos 3φ turns into itself by 120 degrees.
    let exact = "x^3 - 3*x*y^2";
    let text = format!(
        "[space]\ndegree = 2\n{LAPLACE}[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\nrotation = {{ degrees = 120 }}\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"{exact}\"\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"{exact}\"\n\
         [output]\nfunctionals = [{}]\n",
        norms(exact)
    );
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        for by in [0.0, 0.06] {
            let errors = |n: usize| {
                let found = on_mesh(&skewed(sector(120.0, [n, 3 * n], split), by), &text);
                NORMS.map(|norm| found[norm])
            };
            assert_orders([4, 8].map(errors), 2.0, 2, &format!("{split:?}, {by}"));
        }
    }
}

#[test]
fn displacements_turn_with_a_rotation() {
    // A tube under inner pressure: Lamé's solution, u_r = A r + B/r in plane strain.
    let (young, poisson, pressure) = (100.0, 0.3, 2.0);
    let a = (1.0 + poisson) / young * pressure / 3.0;
    let u = |r: f64| a * ((1.0 - 2.0 * poisson) * r + 4.0 / r);
    let text = |hold: &str| {
        format!(
            "[space]\ndegree = 2\n[equation]\nkind = \"elasticity\"\nyoung = {young}\npoisson = {poisson}\n\
             [[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\nrotation = {{ degrees = 90, centre = [0, 0] }}\n\
             [[boundary]]\nwhere = \"xmin\"\npressure = {pressure}\n{hold}\
             [output]\nfunctionals = [{{ name = \"at\", kind = \"value_at\", points = [[1.0, 0], [0, 1.5], [1, 1]] }}]\n"
        )
    };
    let mesh = sector(90.0, [8, 16], SquareSplit::Quadrilateral);
    for mesh in [mesh.clone(), skewed(mesh.clone(), 0.08)] {
        let hold = "[[boundary]]\nnodes = \"x > 1.999\"\ndirichlet = [\"free\", 0]\n";
        let found = on_mesh(&mesh, &text(hold));
        for (name, expected) in [
            ("at[0][0]", u(1.0)),
            ("at[0][1]", 0.0),
            ("at[1][0]", 0.0),
            ("at[1][1]", u(1.5)),
            ("at[2][0]", u(2.0_f64.sqrt()) / 2.0_f64.sqrt()),
            ("at[2][1]", u(2.0_f64.sqrt()) / 2.0_f64.sqrt()),
        ] {
            assert!((found[name] - expected).abs() < 2e-3 * u(1.0), "{name}: {} and {expected}", found[name]);
        }
        // Held outside: the forces on both sides turn into each other, and all of them balance.
        let forces = ["ymin", "ymax", "all"]
            .map(|side| format!("{{ name = \"{side}\", kind = \"flux\", where = \"{side}\" }}"));
        let held = text("[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n");
        let found = on_mesh(
            &mesh,
            &held.replace("functionals = [", &format!("functionals = [{}, ", forces.join(", "))),
        );
        let [from, to, all] =
            ["ymin", "ymax", "all"].map(|side| [0, 1].map(|axis| found[&format!("{side}[{axis}]")]));
        assert!(all.iter().all(|force| force.abs() < 1e-9) && from[1].abs() > 0.1, "{found:?}");
        assert!((from[0] + to[1]).abs() < 1e-9 && (from[1] - to[0]).abs() < 1e-9, "{found:?}");
    }
    let (key, message) = refusal_on(&mesh, &text(""));
    assert!(key == "boundary" && message.contains("rotation in the plane"), "{key}: {message}");
    assert!(!message.contains("translation"), "{message}");
}

/// The fluxes through each side, their sum, and the total of the sources.
const BALANCE: &str = "{ name = \"xmin\", kind = \"flux\", where = \"xmin\" }, { name = \"xmax\", kind = \"flux\", where = \"xmax\" }, \
    { name = \"ymax\", kind = \"flux\", where = \"ymax\" }, { name = \"all\", kind = \"flux\", where = \"all\" }";

#[test]
fn fluxes_through_periodic_sides_are_exact_beside_values() {
    for cell in ["triangle", "quadrilateral"] {
        let of = |n: u32, degree: u32, equation: &str| {
            let mesh = format!("kind = \"square\", cells = [{n}, {n}], cell = \"{cell}\"");
            solve(&on(&mesh, degree, &format!("{LAPLACE}{equation}"), BALANCE)).functionals
        };
        let values = |value: &str| {
            let side = |side: &str| format!("[[boundary]]\nwhere = \"{side}\"\ndirichlet = \"{value}\"\n");
            side("ymin") + &side("ymax") + &periodic("x") + "jump = 1\n"
        };
        for (n, degree) in [(1, 1), (4, 1), (3, 2)] {
            let found = of(n, degree, &values("x"));
            for (name, expected) in [("xmin", -1.0), ("xmax", 1.0), ("ymax", 0.0), ("all", 0.0)] {
                assert!((found[name] - expected).abs() < 1e-10, "{cell}, {n}, {degree}: {found:?}");
            }
        }
        let expected = 1.0 + ((2.0 * PI).cosh() - 1.0) / (2.0 * PI).sinh();
        let error = |n: u32| {
            let found = of(n, 1, &values("x + sin(2*pi*x)*sinh(2*pi*y)/sinh(2*pi)"));
            assert!((found["xmin"] + found["xmax"]).abs() < 1e-10 && found["all"].abs() < 1e-10, "{found:?}");
            (found["xmax"] - expected).abs()
        };
        let order = (error(12) / error(24)).log2();
        assert!(order > 1.7, "{cell}: {order}");
        // A floating side keeps its total, and values on all of a side the balance.
        let given = "source = \"y + sin(3*x)\"\n[[boundary]]\nwhere = \"ymin\"\ndirichlet = 2\n\
                     [[boundary]]\nwhere = \"ymax\"\nfloating = true\ntotal = 3\n";
        let source = 0.5 + (1.0 - 3.0_f64.cos()) / 3.0;
        for degree in [1, 2] {
            let found = of(5, degree, &(given.to_owned() + &periodic("x")));
            assert!((found["ymax"] - 3.0).abs() < 1e-9, "{cell}: {found:?}");
            assert!((found["xmin"] + found["xmax"]).abs() < 1e-9, "{cell}: {found:?}");
            assert!((found["all"] + source).abs() < 1e-3, "{cell}: {found:?}");
            let given = "source = \"y\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 2\n";
            let found = of(5, degree, &(given.to_owned() + &periodic("x") + "jump = 1\n"));
            assert!((found["all"] + 0.5).abs() < 1e-10, "{cell}: {found:?}");
            // u = 2 + x: the mean over y of −u″ is 1/2.
            assert!((found["xmax"] - 0.75).abs() < 1e-9, "{cell}: {found:?}");
        }
    }
}

#[test]
fn parts_inside_the_body_float_on_both_sides() {
    let ends =
        "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n";
    for kind in KINDS {
        let mesh = halves(kind);
        for interface in ["", "[[interface]]\nwhere = \"wall\"\nconductance = 0.5\n"] {
            for degree in [1, 2] {
                let what = format!("{kind:?}, {degree}, {interface}");
                // The flux into the body is 3 = v + (v − 1).
                let floating = "[[boundary]]\nwhere = \"wall\"\nfloating = true\ntotal = 3\n";
                let equation = format!("{LAPLACE}{interface}{ends}{floating}");
                let found = solve_on(&mesh, &case(degree, &equation, FLUXES)).functionals;
                for (name, expected) in [("max", 2.0), ("wall", 3.0), ("xmin", -2.0), ("xmax", -1.0)] {
                    is_close(found[name], expected, &format!("{what}, {name}"));
                }
                let text = case(degree, &format!("{LAPLACE}{interface}{ends}"), "")
                    .replace("functionals = []", "matrix = [\"xmin\", \"wall\"]");
                let found = solve_on(&mesh, &text).matrix.unwrap().fluxes;
                for (i, j, expected) in [(0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 2.0)] {
                    is_close(found[i][j], expected, &format!("{what}, {i} {j}"));
                }
            }
        }
    }
}

#[derive(Default)]
struct End(Mutex<Option<FormState>>);

impl Receiver for End {
    fn form(&self, state: FormState) {
        *self.0.lock().unwrap() = Some(state);
    }
}

#[test]
fn functionals_of_bodies_with_an_interface_have_gradients() {
    let (h, end) = (0.5, Arc::new(End::default()));
    let text = case(
        1,
        &format!(
            "{LAPLACE}constants = {{ h = {h} }}\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\n\
             dirichlet = 1\n[[interface]]\nwhere = \"wall\"\nconductance = \"h\"\n"
        ),
        "",
    );
    let embedding = Embedding {
        mesh: Some(Arc::new(halves(KINDS[0]))),
        receiver: Some(Arc::clone(&end) as Arc<dyn Receiver>),
        writes_files: false,
        ..Embedding::default()
    };
    let case = Case::parse_embedded("case.toml".as_ref(), text, Vec::new(), embedding).unwrap();
    run(&case, &mut Silent).unwrap();
    let state = end.0.lock().unwrap().take().unwrap();
    let functional = Functional::new("grad(u).grad(u)");
    let (value, slopes) = case.functional(&state, &functional, &["h"], &mut Silent).unwrap();
    let q = 1.0 / (2.0 + 1.0 / h);
    is_close(value, 2.0 * q * q, "value");
    let ByConstant::Whole(Array { values, .. }) = &slopes[0] else { panic!("{slopes:?}") };
    is_close(values[0], 4.0 * q.powi(3) / (h * h), "slope");
}

#[test]
fn an_elastic_cell_has_the_moduli_of_its_material() {
    let (young, poisson) = (7.0, 0.25);
    let (lambda, mu) =
        (young * poisson / (1.0 + poisson) / (1.0 - 2.0 * poisson), young / 2.0 / (1.0 + poisson));
    for (cell, degree) in [("tetrahedron", 1), ("hexahedron", 2)] {
        for (jumps, expected) in [
            ([[0.1, 0.0, 0.0], [0.0; 3], [0.0; 3]], 0.01 * (lambda / 2.0 + mu)),
            ([[0.0, 0.1, 0.0], [0.1, 0.0, 0.0], [0.0; 3]], 0.01 * 2.0 * mu),
        ] {
            let mut equation = format!(
                "[equation]\nkind = \"elasticity\"\nyoung = {young}\npoisson = {poisson}\n\
                 [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9 && z < 1e-9\"\ndirichlet = 0\n"
            );
            for (axis, jump) in ["x", "y", "z"].into_iter().zip(jumps) {
                equation +=
                    &format!("[[periodic]]\nfrom = \"{axis}min\"\nto = \"{axis}max\"\njump = {jump:?}\n");
            }
            let mesh = format!("kind = \"box\", cells = [2, 3, 2], cell = \"{cell}\"");
            let found = solve(&on(&mesh, degree, &equation, "{ name = \"energy\", kind = \"energy\" }"));
            let found = found.functionals["energy"];
            assert!((found / expected - 1.0).abs() < 1e-9, "{cell}: {found} and {expected}");
        }
    }
}

#[test]
fn modes_and_runs_in_time_are_those_of_periodic_boxes() {
    let equation =
        format!("[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\n{}", periodic("xy"));
    let mesh = "kind = \"square\", cells = [8, 8], cell = \"quadrilateral\"";
    let modes = on(mesh, 3, &format!("{equation}[modes]\ncount = 6\n"), "").replace("1e-13", "1e-9");
    let modes = try_solve(&modes).unwrap().modes;
    let exact = [0.0, 1.0, 1.0, 1.0, 1.0, 2.0].map(|n| n * 4.0 * PI * PI);
    for (mode, exact) in modes.iter().zip(exact) {
        assert!((mode.eigenvalue - exact).abs() < 1e-3 * exact + 1e-6, "{} and {exact}", mode.eigenvalue);
    }
    let equation = equation
        .replace("flux = \"grad(u)\"\n", "flux = \"grad(u)\"\ncapacity = 1\ninitial = \"sin(2*pi*x)\"\n");
    let in_time = format!("{equation}[time]\nend = 0.02\nsteps = 40\n");
    let found = solve(&on(mesh, 3, &in_time, "{ name = \"norm\", kind = \"l2_norm\" }")).functionals["norm"];
    let exact = 0.5_f64.sqrt() * (-4.0 * PI * PI * 0.02).exp();
    assert!((found / exact - 1.0).abs() < 1e-3, "{found} and {exact}");
}

#[test]
fn nonlinear_forms_have_jumps_too() {
    // u − x is a constant, that of the node.
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"(1 + w^2)*grad(u)\"\ndefine = \"w = u - x\"\n\
                    source = \"0\"\n[[periodic]]\nfrom = \"xmin\"\nto = \"xmax\"\njump = \"1\"\n[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\n\
                    [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = 0.5\n";
    let text = on(
        "kind = \"square\", cells = [5, 4]",
        2,
        equation,
        "{ name = \"flux\", kind = \"flux\", where = \"xmax\" }, { name = \"at\", kind = \"value_at\", point = [0.75, 0.5] }",
    );
    let found = solve(&(text + "nonlinear_tolerance = 1e-13\n")).functionals;
    // u = x + 1/2.
    assert!((found["flux"] - 1.25).abs() < 1e-9 && (found["at"] - 1.25).abs() < 1e-9, "{found:?}");
}

#[test]
fn a_floating_side_has_one_value_and_its_total() {
    let meshes = [
        ("kind = \"square\", cells = [4, 3], upper = [2, 3]", "[2, 1]", 3.0),
        ("kind = \"square\", cells = [4, 3], upper = [2, 3], cell = \"quadrilateral\"", "[2, 2]", 3.0),
        ("kind = \"box\", cells = [2, 3, 2], upper = [2, 3, 1]", "[2, 1, 0.5]", 3.0),
        ("kind = \"box\", cells = [2, 3, 2], upper = [2, 3, 1], cell = \"hexahedron\"", "[2, 1, 1]", 3.0),
    ];
    for (mesh, point, area) in meshes {
        for (degree, total) in [(1, "total = 6\n"), (2, "total = -1.5\n"), (1, "")] {
            let equation = format!(
                "{LAPLACE}source = \"y\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n[[boundary]]\nwhere = \"xmax\"\nfloating = true\n{total}"
            );
            let functionals = format!(
                "{{ name = \"in\", kind = \"flux\", where = \"xmax\" }}, {{ name = \"all\", kind = \"flux\", where = \"all\" }}, \
                 {{ name = \"source\", kind = \"integral\" }}, {{ name = \"at\", kind = \"value_at\", points = [{point}, {other}] }}",
                other = point.replace("[2, 1", "[2, 2.5").replace("[2, 2]", "[2, 0.1]")
            );
            let found = solve(&on(mesh, degree, &equation, &functionals)).functionals;
            let given: f64 = total.trim().strip_prefix("total = ").map_or(0.0, |t| t.parse().unwrap());
            assert!((found["in"] - given).abs() < 1e-10, "{mesh}: {found:?}");
            assert!((found["at[0]"] - found["at[1]"]).abs() < 1e-10, "{mesh}: {found:?}");
            // ∫ y over the body.
            let source = 2.0 * 1.5 * area;
            assert!((found["all"] + source).abs() < 1e-9, "{mesh}: {found:?}");
            // Of the mean over y, u″ = −3/2.
            let expected = 1.0 + 2.0 * given / area + 1.5 * 2.0;
            assert!((found["at[0]"] - expected).abs() < 1e-9, "{mesh}: {found:?}, {expected}");
        }
    }
}

#[test]
fn a_floating_block_moves_as_one() {
    let equation = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n\
                    [[boundary]]\nwhere = \"xmax\"\nfloating = true\ntotal = [3, 0]\n";
    let functionals = "{ name = \"at\", kind = \"value_at\", points = [[2, 0.1], [2, 0.9]] }, { name = \"force\", kind = \"flux\", where = \"xmax\" }";
    let found =
        solve(&on("kind = \"square\", cells = [4, 2], upper = [2, 1]", 2, equation, functionals)).functionals;
    for name in ["at[0][0]", "at[1][0]"] {
        assert!((found[name] - 0.6).abs() < 1e-9, "{found:?}");
    }
    assert!((found["force[0]"] - 3.0).abs() < 1e-9 && found["force[1]"].abs() < 1e-9, "{found:?}");
}

#[test]
fn what_cannot_be_is_refused_with_its_key() {
    let mesh = "kind = \"square\", cells = [4, 4]";
    let plane = |equation: &str| refusal(&on(mesh, 1, equation, ""));
    let xy = periodic("xy");
    let fixed = "[[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = 0\n";
    let x_only = periodic("x");
    let cases = [
        (format!("{LAPLACE}source = 1\n{xy}"), "boundary", "up to a constant"),
        (
            format!("{LAPLACE}{fixed}{}", x_only.replace("xmax\"\n", "xmax\"\ntranslation = [1.1, 0]\n")),
            "periodic[0]",
            "at a distance of 1",
        ),
        (format!("{LAPLACE}{fixed}{}", x_only.replace("xmax", "y > 0.9")), "periodic[0]", "do not map"),
        (
            format!(
                "{LAPLACE}{fixed}{}",
                x_only
                    .replace("xmax", "x > 0.9 && y < 0.6")
                    .replace("xmax\"\n", "xmax\"\ntranslation = [1, 0]\n")
            ),
            "periodic[0]",
            "do not map",
        ),
        (
            format!(
                "{LAPLACE}{fixed}[[periodic]]\nfrom = \"xmin\"\nto = \"x > 0.9 && y < 0.6\"\ntranslation = [1, 0]\n"
            ),
            "periodic[0]",
            "the node of `from`",
        ),
        (format!("{LAPLACE}{fixed}{}", x_only.replace("xmax", "all")), "periodic[0].to", "a facet of `from`"),
        (format!("{LAPLACE}{fixed}{}", x_only.replace("xmax", "xmox")), "periodic[0].to", "xmox"),
        (
            format!(
                "{LAPLACE}{}[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n",
                x_only
            ),
            "periodic[0]",
            "contradicts",
        ),
        (
            format!(
                "{LAPLACE}{fixed}[[periodic]]\nfrom = \"xmin\"\nto = \"xmax\"\njump = 1\n[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\njump = \"x\"\n"
            ),
            "periodic[1]",
            "jump",
        ),
        (
            format!("{LAPLACE}{fixed}[[periodic]]\nfrom = \"xmin\"\nto = \"xmax\"\njump = [1, 2]\n"),
            "periodic[0].jump",
            "2",
        ),
        (
            format!("{LAPLACE}{fixed}{}", x_only.replace("xmax\"\n", "xmax\"\njump = \"1/y\"\n")),
            "periodic[0].jump",
            "finite",
        ),
        (
            format!(
                "{LAPLACE}{fixed}{}",
                x_only
                    .replace("xmax\"\n", "xmax\"\nrotation = {{ degrees = 90 }}\ntranslation = [1, 0]\n")
                    .replace("{{", "{")
                    .replace("}}", "}")
            ),
            "periodic[0]",
            "not both",
        ),
        (
            format!(
                "{LAPLACE}[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"ymin\"\nfloating = true\n"
            ),
            "boundary[1].floating",
            "meets Dirichlet values",
        ),
        (
            format!(
                "{LAPLACE}{fixed}[[boundary]]\nwhere = \"xmax\"\nfloating = true\n[[boundary]]\nwhere = \"ymax\"\nfloating = true\n"
            ),
            "boundary[2].floating",
            "two floating parts meet",
        ),
        (
            format!("{LAPLACE}{fixed}[[boundary]]\nwhere = \"xmax\"\nfloating = true\ndirichlet = 1\n"),
            "boundary[1]",
            "exactly one",
        ),
        (
            format!("{LAPLACE}{fixed}[[boundary]]\nwhere = \"xmax\"\ntotal = 1\ndirichlet = 1\n"),
            "boundary[1]",
            "exactly one",
        ),
        (
            format!("{LAPLACE}{fixed}[[boundary]]\nwhere = \"xmax\"\nfloating = false\n"),
            "boundary[1]",
            "exactly one",
        ),
    ];
    for (equation, key, words) in cases {
        let (found, message) = plane(&equation);
        assert!(found.starts_with(key) && message.contains(words), "{equation}: {found}: {message}");
    }
    let jump = periodic("x").replace("xmax\"\n", "xmax\"\njump = 1\n");
    let (key, message) = refusal(&on(mesh, 1, &format!("{LAPLACE}{jump}[modes]\ncount = 2\n"), ""));
    assert!(key == "periodic[0].jump" && message.contains("no jump"), "{key}: {message}");
}

#[test]
fn blocks_are_refused_where_they_do_not_meet_or_nothing_holds_them() {
    let mesh = blocks("quadrilateral", 1, 3);
    let fixed = "[[boundary]]\nwhere = \"ymin\"\ndirichlet = 0\n";
    let tie = "[[tie]]\nfrom = \"ymax\"\nto = \"upper-ymin\"\n";
    let tied = |from: &str, to: &str| format!("{LAPLACE}{fixed}[[tie]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
    let (key, message) = refusal_on(&mesh, &tied("ymax", "upper-ymax"));
    assert!(key == "tie[0]" && message.contains("distance of 1e0"), "{key}: {message}");
    let (key, message) = refusal_on(&mesh, &format!("accept = [\"overlapping-facets\"]\n{LAPLACE}{fixed}"));
    assert!(key == "boundary" && message.contains("up to a constant"), "{key}: {message}");
    let circle = format!("{LAPLACE}{fixed}{tie}[[tie]]\nfrom = \"upper-ymin\"\nto = \"ymax\"\n");
    let (key, message) = refusal_on(&mesh, &circle);
    assert!(key.starts_with("tie") && message.contains("follow itself"), "{key}: {message}");
    // Values on the side that follows, where the meshes do not match.
    let given = format!("{LAPLACE}{tie}[[boundary]]\nwhere = \"upper-ymin\"\ndirichlet = 1\n");
    let (key, message) = refusal_on(&mesh, &given);
    assert!(key == "tie[0]" && message.contains("give them on `from`"), "{key}: {message}");
    let held = format!(
        "{LAPLACE}{tie}[[boundary]]\nwhere = \"ymax\"\ndirichlet = 1\n[output]\nfunctionals = [{}]\n",
        norms("1")
    );
    assert!(on_mesh(&mesh, &held)["l2"] < 1e-11);
}

/// The matrix of a case, which is symmetric.
fn matrix(text: &str) -> Vec<Vec<f64>> {
    let found = solve(text).matrix.unwrap();
    let n = found.sides.len();
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let [one, other] = [found.fluxes[i][j], found.fluxes[j][i]];
        assert!((one - other).abs() < 1e-10 * found.fluxes[i][i], "{:?}", found.fluxes);
    }
    found.fluxes
}

#[test]
fn matrices_of_capacitors_and_cables_are_those_of_formulas() {
    let of = |sides: &str, equation: &str, mesh: &str, degree: u32| {
        let text = on(mesh, degree, equation, "");
        matrix(&text.replace("functionals = []", &format!("matrix = [{sides}]")))
    };
    // Plates with the area 6, 2 apart; the values of the case have no part in it.
    let plates = "[unknown]\nphi = {}\n[equation]\nkind = \"form\"\nflux = \"3*grad(phi)\"\nsource = \"x\"\n\
                  [[boundary]]\nwhere = \"xmin\"\ndirichlet = 7\n[[boundary]]\nwhere = \"ymin\"\nflux = \"1\"\n";
    for cell in ["tetrahedron", "hexahedron"] {
        let mesh = format!("kind = \"box\", cells = [3, 2, 2], upper = [2, 3, 2], cell = \"{cell}\"");
        let found = of("\"xmin\", \"xmax\"", plates, &mesh, 1);
        for (i, j) in [(0, 0), (0, 1), (1, 1)] {
            let expected = if i == j { 9.0 } else { -9.0 };
            assert!((found[i][j] - expected).abs() < 1e-9, "{cell}: {found:?}");
        }
    }
    // A cable of the length 10.
    let cable = "axisymmetric = true\n[unknown]\nphi = {}\n[equation]\nkind = \"form\"\nflux = \"2*grad(phi)\"\n\
                 [[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n";
    let mesh = "kind = \"square\", cells = [16, 2], lower = [1, 0], upper = [3, 10]";
    let found = of("\"xmin\", \"xmax\"", cable, mesh, 2);
    let expected = 2.0 * 2.0 * PI * 10.0 / 3.0_f64.ln();
    assert!((found[0][0] / expected - 1.0).abs() < 1e-5, "{} and {expected}", found[0][0]);
    // A bar with a floating plate at its end in parallel: nothing flows there.
    let floating = format!(
        "{LAPLACE}[[boundary]]\nwhere = \"ymax\"\nfloating = true\ntotal = 4\n\
                            [[boundary]]\nwhere = \"y < 1e-9 && x < 0.31\"\ndirichlet = 1\n"
    );
    let sides = "\"y < 1e-9 && x < 0.31\", \"y < 1e-9 && x > 0.69\"";
    let mesh = "kind = \"square\", cells = [10, 10], cell = \"quadrilateral\"";
    let found = of(sides, &floating, mesh, 2);
    assert!(
        (found[0][0] + found[0][1]).abs() < 1e-9 && (found[0][0] - found[1][1]).abs() < 1e-9,
        "{found:?}"
    );
    // With the plate as a third side the two-port follows by elimination.
    let three = of(&format!("{sides}, \"ymax\""), &floating, mesh, 2);
    for row in &three {
        assert!(row.iter().sum::<f64>().abs() < 1e-9, "{three:?}");
    }
    let expected = three[0][0] - three[0][2] * three[2][0] / three[2][2];
    assert!((found[0][0] - expected).abs() < 1e-9, "{found:?} {three:?}");
}

#[test]
fn electrodes_on_a_square_have_the_matrix_of_their_conformal_map() {
    // Four electrodes on the middle halves of the sides. sn² with the modulus 1/√2 maps a quarter of the square to the half-plane, and the
    // ends of the electrodes to −√2, 2 − √2 and 1, the corner between to 0 and the middle to 2. The capacitance of two segments of
    // the edge of a half-plane is K(m)/K(1 − m) with their cross-ratio m [bowman1961]: m = √2 − 1 if the electrode at 1 faces the others
    // at 0, m² if two that face each other are at 1 and the others at −1.
    let capacitance = |m: f64| agm(1.0, m.sqrt()) / agm(1.0, (1.0 - m).sqrt());
    let m = SQRT_2 - 1.0;
    let (against_all, in_turn) = (2.0 * capacitance(m), 4.0 * capacitance(m * m));
    assert!((in_turn - 2.0 * SQRT_2).abs() < 1e-14);
    let (own, next, facing) =
        (0.5 * against_all + 0.25 * in_turn, -0.25 * in_turn, 0.25 * in_turn - 0.5 * against_all);
    let sides = [
        "x < 1e-9 && y > 0.24 && y < 0.76",
        "x > 1 - 1e-9 && y > 0.24 && y < 0.76",
        "y < 1e-9 && x > 0.24 && x < 0.76",
    ];
    let top = "y > 1 - 1e-9 && x > 0.24 && x < 0.76";
    let fixed: String = sides
        .iter()
        .enumerate()
        .map(|(i, side)| format!("[[boundary]]\nwhere = \"{side}\"\ndirichlet = {}\n", u8::from(i == 0)))
        .collect();
    let equation = format!("{fixed}[[boundary]]\nwhere = \"{top}\"\nfloating = true\n");
    let listed: Vec<String> = sides.iter().map(|side| format!("\"{side}\"")).collect();
    let at = |n: u32| {
        let mesh = format!("kind = \"square\", cells = [{n}, {n}], cell = \"quadrilateral\"");
        let shield = "{ name = \"shield\", kind = \"value_at\", point = [0.5, 1] }";
        let text = on(&mesh, 2, &equation, shield)
            .replace("functionals = ", &format!("matrix = [{}]\nfunctionals = ", listed.join(", ")));
        let report = solve(&text);
        let rows = report.matrix.unwrap().fluxes;
        [report.functionals["shield"], rows[0][0], rows[0][1], rows[2][1]]
    };
    // With the floating one eliminated.
    let exact =
        [-next / own, own - next * next / own, facing - next * next / own, next - facing * next / own];
    let [coarse, fine] = [12, 24].map(at);
    for ((coarse, fine), exact) in coarse.into_iter().zip(fine).zip(exact) {
        // At the ends of electrodes the flux is infinite: the order is 1.
        let order = ((coarse - exact) / (fine - exact)).log2();
        assert!((order - 1.0).abs() < 0.1, "{order}: {coarse} {fine} {exact}");
        assert!((2.0 * fine - coarse - exact).abs() < 3e-4 * exact.abs(), "{coarse} {fine} {exact}");
    }
}

#[test]
fn a_chain_of_resistances_has_the_matrix_of_the_network() {
    // Three conductances 2, 6 and 3 of a bar between four electrodes: the inner ones are thin sides of slots.
    let equation = "[[region]]\nname = \"a\"\nwhere = \"x < 1\"\n[[region]]\nname = \"b\"\nwhere = \"x > 1\"\n\
                    [unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"k*grad(u)\"\n\
                    constants = { k = { by_tag = { a = 2, b = 6 } } }\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n";
    let mesh = "kind = \"square\", cells = [4, 3], upper = [2, 1]";
    let text = on(mesh, 1, equation, "").replace("functionals = []", "matrix = [\"xmin\", \"xmax\"]");
    let found = matrix(&text);
    // In series 1/(1/2 + 1/6).
    assert!((found[0][0] - 1.5).abs() < 1e-10 && (found[0][1] + 1.5).abs() < 1e-10, "{found:?}");
}

#[test]
fn matrices_are_refused_where_there_are_none() {
    let mesh = "kind = \"square\", cells = [4, 4]";
    let with = |sides: &str, equation: &str| {
        on(mesh, 1, equation, "").replace("functionals = []", &format!("matrix = [{sides}]"))
    };
    let fixed = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n";
    let elastic = format!("[equation]\nkind = \"elasticity\"\nyoung = 1\npoisson = 0\n{fixed}");
    let cases = [
        (with("\"xmin\", \"ymin\"", &format!("{LAPLACE}{fixed}")), "output.matrix[1]", "meets `xmin`"),
        (with("\"xmin\", \"xmox\"", &format!("{LAPLACE}{fixed}")), "output.matrix[1]", "xmox"),
        (with("\"xmin\", \"xmax\"", &elastic), "output.matrix", "one number"),
        (
            with("\"xmin\", \"xmax\"", &format!("{LAPLACE}{fixed}").replace("grad(u)", "(1 + u^2)*grad(u)")),
            "output.matrix",
            "linear",
        ),
        (
            with(
                "\"xmin\", \"xmax\"",
                &format!("{LAPLACE}capacity = 1\n{fixed}[time]\nend = 1\nsteps = 2\n"),
            ),
            "output.matrix",
            "steady",
        ),
        (
            with("\"xmin\", \"xmax\"", &format!("{LAPLACE}{fixed}")) + "ranks = 2\n",
            "output.matrix",
            "ranks = 1",
        ),
    ];
    for (text, key, words) in cases {
        let (found, message) = refusal(&text);
        assert!(found == key && message.contains(words), "{text}: {found}: {message}");
    }
}

#[test]
fn a_part_that_does_not_float_has_its_total_spread() {
    let own = "[equation]\nsigma = 1\n";
    for equation in [LAPLACE, own] {
        for floating in ["", "floating = false\n", "floating = { u = false }\n"] {
            if equation == own && floating.contains('{') {
                continue;
            }
            let conditions = format!(
                "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\n{floating}total = 1\n"
            );
            let functionals =
                "{ name = \"max\", kind = \"max\" }, { name = \"flux\", kind = \"flux\", where = \"xmax\" }";
            let text =
                on("kind = \"square\", cells = [3, 4]", 1, &format!("{equation}{conditions}"), functionals);
            let found = solve(&text).functionals;
            for name in ["max", "flux"] {
                assert!((found[name] - 1.0).abs() < 1e-10, "{floating}{name}: {}", found[name]);
            }
        }
    }
}

/// Asks for a stop in the solve, or once it is done.
struct Stop {
    once_solved: bool,
    is_now: bool,
}

impl Progress for Stop {
    fn iteration(&mut self, _: usize, _: f64, _: f64) {
        self.is_now |= !self.once_solved;
    }

    fn solved(&mut self, _: &dyn SolvedSystem) {
        self.is_now |= self.once_solved;
    }

    fn is_interrupted(&self) -> bool {
        self.is_now
    }
}

#[test]
fn a_matrix_that_is_interrupted_or_does_not_converge_leaves_the_solution() {
    let fixed = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n";
    let text = on("kind = \"square\", cells = [6, 5]", 1, &format!("{LAPLACE}source = \"x\"\n{fixed}"), "")
        .replace(
            "functionals = []",
            "matrix = [\"xmin\", \"xmax\"]\nfunctionals = [{ name = \"max\", kind = \"max\" }]",
        );
    let folder = tempfile::tempdir().unwrap();
    let slow = format!("{text}preconditioner = \"jacobi\"\n");
    let mut case = Case::parse(&folder.path().join("case.toml"), slow).unwrap();
    for once_solved in [false, true] {
        case.file.output.directory = folder.path().join(once_solved.to_string());
        let report = run(&case, &mut Stop { once_solved, is_now: false }).unwrap();
        assert_eq!((report.solve.stop.name(), report.matrix), ("interrupted", None), "{once_solved}");
        let told = report
            .warnings
            .iter()
            .any(|warning| warning.contains("no matrix: the solve for the side `xmin`"));
        assert_eq!(told, once_solved, "{:?}", report.warnings);
        assert!(report.functionals.contains_key("max"));
        let written = |name: &str| case.file.output.directory.join(name).exists();
        assert!(written("report.json") && !written("matrix.csv"), "{once_solved}");
    }
    // Without a source u is 0 at once.
    let text = text.replace("source = \"x\"\n", "") + "max_iterations = 1\npreconditioner = \"jacobi\"\n";
    let report = solve(&text);
    let told = report.warnings.last().unwrap();
    assert!(
        report.matrix.is_none() && told.contains("no matrix") && told.contains("limit of iterations"),
        "{told}"
    );
}

#[test]
fn tags_of_sides_may_be_numbers() {
    let text = "[mesh]\ngenerate = { kind = \"square\", cells = [2, 2] }\n[[periodic]]\nfrom = 1\nto = 2\n\
                [[tie]]\nfrom = 3\nto = \"4\"\n[[interface]]\nbetween = [5, \"six\"]\nconductance = 1\n[output]\nmatrix = [7, \"x < 1\"]\n";
    let file = Case::parse(std::path::Path::new("case.toml"), text.into()).map(|case| case.file).unwrap();
    assert_eq!(
        [&file.periodic[0].from, &file.periodic[0].to, &file.tie[0].from, &file.tie[0].to],
        ["1", "2", "3", "4"]
    );
    assert_eq!(file.interface[0].between, Some(["5".into(), "six".into()]));
    assert_eq!(file.output.matrix, ["7", "x < 1"]);
}

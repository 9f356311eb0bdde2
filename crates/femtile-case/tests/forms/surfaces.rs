//! Surfaces in space, and sheets with a thickness.

use std::f64::consts::{LN_2, PI};
use std::path::Path;

use femtile_case::Report;
use femtile_mesh::Mesh;

use crate::exact::try_verify;
use crate::{refusal, run_in, solve};

const SOLVER: &str = "[solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n";

fn sphere(generate: &str, degree: u32, rest: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"sphere\", {generate} }}\n[space]\ndegree = {degree}\n{rest}\n{SOLVER}"
    )
}

fn output(functionals: &str) -> String {
    format!("[output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n")
}

/// −∇·(σ∇u) + u = f with u = xy, an eigenfunction of −Δ on the unit sphere with 6.
const HARMONIC: &str = "[equation]\nkind = \"convection-diffusion\"\nvelocity = [0, 0, 0]\nsigma = 2\nlambda = 1\nsource = \"13*x*y\"\n";

const ERRORS: &str = "{ name = \"l2\", kind = \"error_l2\", exact = \"x*y\" }, { name = \"h1\", kind = \"error_h1\", exact = \"x*y\" }, \
     { name = \"at\", kind = \"value_at\", point = [0.70710678, 0.70710678, 0] }, { name = \"whole\", kind = \"integral\" }";

#[test]
fn a_harmonic_of_the_sphere_has_the_orders_of_theory() {
    for (cell, degree, order) in [("triangle", 1, 1), ("quadrilateral", 2, 2), ("quadrilateral", 3, 3)] {
        let of = |n: f64| {
            let generate = format!("h = {}, cell = \"{cell}\", order = {order}", PI / 2.0 / n);
            solve(&sphere(&generate, degree, &format!("{HARMONIC}{}", output(ERRORS))))
        };
        let [coarse, fine] = [of(4.0), of(8.0)];
        for (name, expected) in [("l2", degree + 1), ("h1", degree)] {
            let order = (coarse.functionals[name] / fine.functionals[name]).log2();
            assert!(order > f64::from(expected) - 0.2, "{cell}, {degree}, {name}: {order}");
        }
        // The area has the order of the cells at least.
        let [of_coarse, of_fine] =
            [&coarse, &fine].map(|report| (report.mesh.volume / (4.0 * PI) - 1.0).abs());
        assert!((of_coarse / of_fine).log2() > f64::from(degree) + 0.8, "{of_coarse} {of_fine}");
        assert!((fine.functionals["at"] - 0.5).abs() < 0.02);
        // Quadrilaterals are symmetric, diagonals are not.
        let rounding = if cell == "triangle" { 1e-2 } else { 1e-9 };
        assert!(fine.functionals["whole"].abs() < rounding, "{}", fine.functionals["whole"]);
    }
}

#[test]
fn ranks_divide_a_surface() {
    let text =
        sphere("h = 0.3, cell = \"quadrilateral\", order = 2", 2, &format!("{HARMONIC}{}", output(ERRORS)));
    let (one, two) = (solve(&text), solve(&text.replace("tolerance", "ranks = 2\ntolerance")));
    for (name, value) in &one.functionals {
        assert!((value - two.functionals[name]).abs() < 1e-9, "{name}: {value}");
    }
}

#[test]
fn the_laplace_beltrami_operator_of_a_sphere_has_the_eigenvalues_l_times_l_plus_one() {
    let modes = |n: f64, equation: &str| {
        let generate = format!("h = {}, cell = \"quadrilateral\", order = 2", PI / 2.0 / n);
        let text = sphere(&generate, 2, &format!("{equation}[modes]\ncount = 9\n{}", output("")));
        let report = solve(&text);
        report.modes.iter().map(|mode| mode.eigenvalue).collect::<Vec<f64>>()
    };
    let of_diffusion = "[equation]\ncapacity = 1\n";
    let of_form = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\ncapacity = 1\n";
    let [coarse, fine] = [3.0, 6.0].map(|n| modes(n, of_diffusion));
    let exact = [0.0, 2.0, 2.0, 2.0, 6.0, 6.0, 6.0, 6.0, 6.0];
    for (k, exact) in exact.into_iter().enumerate() {
        let [coarse, fine] = [coarse[k], fine[k]].map(|value| (value - exact).abs());
        assert!(fine < 1e-3 * (1.0 + exact), "{k}: {fine}");
        // The order is 2p, that of the cells one more than theirs.
        assert!(exact == 0.0 || (coarse / fine).log2() > 3.0, "{k}: {coarse} {fine}");
    }
    for (a, b) in fine.iter().zip(modes(6.0, of_form)) {
        assert!((a - b).abs() < 1e-8 * (1.0 + b), "{a} {b}");
    }
}

#[test]
fn heat_on_a_sphere_decays_with_its_eigenvalue() {
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\ncapacity = 1\ninitial = \"1 + x*y\"\n\
                    [time]\nend = 0.1\ntolerance = 1e-6\n";
    let functionals = output(
        "{ name = \"error\", kind = \"error_l2\", exact = \"1 + exp(-6*t)*x*y\" }, { name = \"mean\", kind = \"mean\" }",
    );
    let text = sphere("h = 0.4, cell = \"quadrilateral\", order = 3", 3, &format!("{equation}{functionals}"));
    let report = solve(&text);
    assert!(report.functionals["error"] < 1e-3, "{}", report.functionals["error"]);
    assert!((report.functionals["mean"] - 1.0).abs() < 1e-6, "{}", report.functionals["mean"]);
}

/// Writes the unit square with some cells as a file of quadrilaterals or triangles; `rise` is that of y against z.
fn sheet(folder: &Path, kind: &str, [along, rise]: [f64; 2]) {
    let n = 4;
    let mut text = format!(
        "# vtk DataFile Version 3.0\nsheet\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS {} double\n",
        (n + 1) * (n + 1)
    );
    for (j, i) in (0..=n).flat_map(|j| (0..=n).map(move |i| (j, i))) {
        let [x, y] = [i, j].map(|k| k as f64 / n as f64);
        text += &format!("{} {} {}\n", x, along * y, rise * y);
    }
    let squares = (0..n).flat_map(|j| (0..n).map(move |i| j * (n + 1) + i));
    let corners = |at: usize| [at, at + 1, at + n + 2, at + n + 1];
    // Some cells have the other side up, which does not matter on a surface.
    let cells: Vec<Vec<usize>> = squares
        .enumerate()
        .flat_map(|(number, at)| {
            let [a, b, c, d] = corners(at);
            let mut cells =
                if kind == "9" { vec![vec![a, b, c, d]] } else { vec![vec![a, b, c], vec![a, c, d]] };
            if number % 3 == 1 && rise != 0.0 {
                cells.iter_mut().for_each(|cell| cell.reverse());
            }
            cells
        })
        .collect();
    text += &format!("CELLS {} {}\n", cells.len(), cells.iter().map(|cell| cell.len() + 1).sum::<usize>());
    for cell in &cells {
        let nodes: Vec<String> = cell.iter().map(ToString::to_string).collect();
        text += &format!("{} {}\n", cell.len(), nodes.join(" "));
    }
    text += &format!("CELL_TYPES {}\n{}", cells.len(), format!("{kind}\n").repeat(cells.len()));
    std::fs::write(folder.join("sheet.vtk"), text).unwrap();
}

#[test]
fn a_tilted_sheet_has_the_results_of_the_plane() {
    for (kind, degree) in [("5", 1), ("5", 3), ("9", 1), ("9", 2)] {
        let of = |[along, rise]: [f64; 2]| -> Report {
            let folder = tempfile::tempdir().unwrap();
            sheet(folder.path(), kind, [along, rise]);
            let [top, y, z] = [along - 1e-9, 0.6 * along, 0.6 * rise];
            let text = format!(
                "[mesh]\nfile = \"sheet.vtk\"\n[space]\ndegree = {degree}\nthickness = \"0.5 + x\"\n[equation]\nkind = \"convection-diffusion\"\n\
                 sigma = \"1 + x^2\"\nvelocity = [{}, {along}, {rise}]\nlambda = 0.5\nsource = \"sin(x)\"\n\
                 [[boundary]]\nwhere = \"x < 1e-9\"\ndirichlet = \"x\"\n[[boundary]]\nwhere = \"x > 1 - 1e-9\"\nneumann = 2\n\
                 [[boundary]]\nwhere = \"y > {top}\"\nrobin = {{ coefficient = 3, value = \"x\" }}\n\
                 [[source]]\npoint = [0.3, {y}, {z}]\ntotal = 0.7\n[output]\nplot = false\nfunctionals = [\
                 {{ name = \"integral\", kind = \"integral\" }}, {{ name = \"mean\", kind = \"mean\" }}, {{ name = \"norm\", kind = \"l2_norm\" }}, \
                 {{ name = \"in\", kind = \"flux\", where = \"x < 1e-9\" }}, {{ name = \"top\", kind = \"flux\", where = \"y > {top}\" }}, \
                 {{ name = \"at\", kind = \"value_at\", points = [[0.3, {y}, {z}], [1, {along}, {rise}], [0.77, 0, 0]] }}, \
                 {{ name = \"max\", kind = \"max\" }}]\n{SOLVER}",
                0.25
            );
            // In the plane a velocity has two entries.
            let text = if rise == 0.0 {
                text.replace("velocity = [0.25, 1, 0]", "velocity = [0.25, 1]")
            } else {
                text
            };
            let report = run_in(folder.path(), &text).unwrap();
            let written = Mesh::read(folder.path().join("out/solution.vtu")).unwrap();
            assert_eq!(written.is_surface, rise != 0.0);
            report
        };
        let [plane, tilted] = [[1.0, 0.0], [0.6, 0.8]].map(of);
        assert_eq!(plane.functionals.len(), 9);
        for (name, expected) in &plane.functionals {
            let found = tilted.functionals[name];
            assert!(
                (found - expected).abs() < 1e-9 * (1.0 + expected.abs()),
                "{kind}, {degree}, {name}: {found} {expected}"
            );
        }
        assert!((tilted.mesh.volume - 1.0).abs() < 1e-13);
    }
}

#[test]
fn a_bar_of_varying_thickness_has_its_exact_solution() {
    // The thickness 1 + x and the width 0.5: (t u')' = 0 has ln(1 + x) from 0 to ln 2, with t u' = 1.
    let case = |thickness: &str, conditions: &str, functionals: &str| {
        format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cells = [8, 1], upper = [1, 0.5], cell = \"quadrilateral\" }}\n[space]\ndegree = 4\n\
             thickness = {thickness}\n[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nenergy = \"grad(u).grad(u)/2\"\n{conditions}{}\n{SOLVER}",
            output(functionals)
        )
    };
    let held = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n";
    let values = format!("{held}[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"log(2)\"\n");
    let functionals = "{ name = \"in\", kind = \"flux\", where = \"xmax\" }, { name = \"error\", kind = \"error_l2\", exact = \"log(1 + x)\" }, \
         { name = \"integral\", kind = \"integral\" }, { name = \"mean\", kind = \"mean\" }, { name = \"energy\", kind = \"energy\" }";
    let found = solve(&case("\"1 + x\"", &values, functionals)).functionals;
    // ∫ (1 + x) ln(1 + x) = 2 ln 2 − 3/4.
    let integral = 0.5 * (2.0 * LN_2 - 0.75);
    for (name, expected) in [
        ("in", 0.5),
        ("error", 0.0),
        ("integral", integral),
        ("mean", integral / 0.75),
        ("energy", 0.25 * LN_2),
    ] {
        assert!((found[name] - expected).abs() < 1e-7, "{name}: {}", found[name]);
    }
    // The same by a total, and by a flux per area; a number is a factor of it.
    for flux in ["total = 0.5", "flux = \"0.5\""] {
        let conditions = format!("{held}[[boundary]]\nwhere = \"xmax\"\n{flux}\n");
        let error = solve(&case("\"1 + x\"", &conditions, functionals)).functionals["error"];
        assert!(error < 1e-7, "{flux}: {error}");
    }
    let text = case("3", &values, functionals);
    let [three, one] =
        [text.clone(), text.replace("thickness = 3\n", "")].map(|text| solve(&text).functionals);
    for name in ["in", "integral"] {
        assert!((three[name] - 3.0 * one[name]).abs() < 1e-10, "{name}");
    }
    assert!((three["mean"] - one["mean"]).abs() < 1e-10);
}

#[test]
fn cases_without_a_meaning_on_surfaces_are_refused() {
    let form = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = \"-u\"\n";
    let of = |rest: &str| sphere("h = 0.8", 1, rest);
    let refused = |text: &str, expected_key: &str, words: &str| {
        let (key, message) = refusal(text);
        assert!(key == expected_key && message.contains(words), "{text}\n{key}: {message}");
    };
    let elastic = "[equation]\nkind = \"elasticity\"\nyoung = 1\npoisson = 0.3\n";
    refused(&of(elastic), "equation.kind", "unknowns are numbers");
    let vector = form
        .replace("u = {}", "u = { components = \"dimension\" }")
        .replace("source = \"-u\"", "source = \"-1*u\"");
    refused(&of(&vector), "unknown.u.components", "unknowns are numbers");
    refused(
        &of("[equation]\nkind = \"convection-diffusion\"\nvelocity = [1, 0]\nlambda = 1\n"),
        "equation.velocity",
        "3 dimensions",
    );
    refused(
        &of(
            "[equation]\nkind = \"convection-diffusion\"\nvelocity = [0, 0, 0]\nsigma = [[1, 0], [0, 1]]\nlambda = 1\n",
        ),
        "equation.sigma",
        "3×3",
    );
    // Without a boundary the constant is free.
    refused(
        &of("[equation]\nkind = \"convection-diffusion\"\nvelocity = [0, 0, 0]\n"),
        "boundary",
        "up to a constant",
    );
    let with = |key: &str| of(form).replace("degree = 1", &format!("degree = 1\n{key}"));
    refused(&with("axisymmetric = true"), "space.axisymmetric", "in the plane");
    refused(&with("thickness = 0"), "space.thickness", "must be positive");
    refused(&with("thickness = \"z\""), "space.thickness", "must be positive");
    refused(&with("thickness = \"1 + u\""), "space.thickness", "u");
    refused(&with("thickness = 2\naxisymmetric = true"), "space.thickness", "leave one of them out");
    let plane =
        with("thickness = 2").replace("kind = \"sphere\", h = 0.8", "kind = \"box\", cells = [1, 1, 1]");
    refused(&plane, "space.thickness", "in the plane and surfaces");
    let of_kind = "[equation]\nkind = \"monodomain\"\n[membrane]\nmodel = \"aliev-panfilov\"\n[time]\nend = 1\nstep = 0.1\n";
    let refusal_of = |rest: &str| refusal(&of(rest).replace("degree = 1", "degree = 1\nthickness = 2"));
    assert_eq!(refusal_of(of_kind).0, "space.thickness");
    assert_eq!(refusal(&of(of_kind)).0, "equation.kind");
    let far = format!("{form}{}", output("{ name = \"far\", kind = \"value_at\", point = [0, 0, 0] }"));
    refused(&of(&far), "output.functionals[0].point", "outside");
    let error = try_verify(&of(form), &["u = x"], 2).unwrap_err();
    assert!(error.to_string().contains("on a surface"), "{error}");
}

//! Elasticity against beam theory, linear displacements and pressures with known stresses.

use femtile_mesh::io::vtu::read;

use crate::{run_in, solve};

/// A beam of length 10 and a square section of side 1, clamped at x = 0 and pulled down at its end by a force of 1.
fn cantilever(cell: &str, cells: [usize; 3], degree: usize, poisson: f64, solver: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"box\", cell = \"{cell}\", cells = {cells:?}, upper = [10, 1, 1] }}\n\
         [space]\ndegree = {degree}\n\
         [equation]\nkind = \"elasticity\"\nyoung = 1000\npoisson = {poisson}\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0, 0]\n\
         [[boundary]]\nwhere = \"xmax\"\ntraction = [0, 0, -1]\n\
         [solver]\ndevice = \"cpu\"\n{solver}\n\
         [output]\nplot = false\n\
         functionals = [{{ name = \"tip\", kind = \"value_at\", point = [10, 0.5, 0.5] }}, {{ name = \"work\", kind = \"energy\" }}]\n"
    )
}

/// The deflection of Timoshenko's beam: F L³/(3 E I) + F L/(κ G A), κ = 10 (1 + ν)/(12 + 11 ν).
fn deflection(poisson: f64) -> f64 {
    let (shear, kappa) = (1000.0 / (2.0 * (1.0 + poisson)), 10.0 * (1.0 + poisson) / (12.0 + 11.0 * poisson));
    1000.0 / (3.0 * 1000.0 / 12.0) + 10.0 / (kappa * shear)
}

#[test]
fn a_cantilever_bends_as_a_beam() {
    // With ν > 0 the clamp keeps the section from widening, which beam theory does not.
    for (cell, cells, degree, poisson, within) in [
        ("hexahedron", [10, 2, 2], 2, 0.0, 0.003),
        ("hexahedron", [10, 2, 2], 2, 0.3, 0.015),
        ("hexahedron", [8, 1, 1], 3, 0.3, 0.015),
        ("tetrahedron", [12, 2, 2], 2, 0.0, 0.01),
    ] {
        let report = solve(&cantilever(cell, cells, degree, poisson, ""));
        let (tip, expected) = (report.functionals["tip[2]"], -deflection(poisson));
        assert!((tip / expected - 1.0).abs() < within, "{cell} {degree} {poisson}: {tip}, {expected}");
        assert!(report.functionals["tip[1]"].abs() < 1e-2 * tip.abs());
        // The work of a force is twice the strain energy; the mean deflection of the end is that of its middle almost.
        let work = report.functionals["work"];
        assert!((2.0 * work / -tip - 1.0).abs() < 1e-2, "{work} {tip}");
        assert_eq!(report.solve.preconditioner, Some("amg"));
        assert!(report.solve.iterations < 60, "{cell} {degree}: {}", report.solve.iterations);
    }
}

#[test]
fn reactions_of_the_clamp_balance_the_force_at_the_end() {
    for (cell, degree) in [("tetrahedron", 1), ("tetrahedron", 2), ("hexahedron", 1), ("hexahedron", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let further = "functionals = [{ name = \"clamp\", kind = \"flux\", where = \"xmin\" }, \
             { name = \"end\", kind = \"flux\", where = \"xmax\" }, \
             { name = \"axis\", kind = \"along\", from = [0, 0.5, 0.5], to = [10, 0.5, 0.5], points = 11 }, ";
        let text = cantilever(cell, [6, 2, 2], degree, 0.3, "tolerance = 1e-12");
        let report = run_in(folder.path(), &text.replace("functionals = [", further)).unwrap();
        for (component, force) in [0.0, 0.0, 1.0].into_iter().enumerate() {
            let of = |name: &str| report.functionals[&format!("{name}[{component}]")];
            assert!((of("clamp") - force).abs() < 1e-7, "{cell} {degree}: {}", of("clamp"));
            assert!((of("end") + force).abs() < 1e-12, "{cell} {degree}: {}", of("end"));
        }
        assert!(report.citations.iter().any(|key| key == "carey1985"));
        let table = std::fs::read_to_string(folder.path().join("out/axis.csv")).unwrap();
        assert!(table.starts_with("s,x,y,z,u[0],u[1],u[2]\n"), "{table}");
        let last: f64 = table.trim().rsplit(',').next().unwrap().parse().unwrap();
        assert!((last - report.functionals["tip[2]"]).abs() < 1e-12);
    }
}

#[test]
fn preconditioners_and_methods_agree() {
    let tip =
        |solver: &str| solve(&cantilever("hexahedron", [8, 2, 2], 1, 0.3, solver)).functionals["tip[2]"];
    let expected = tip("");
    for solver in
        ["preconditioner = \"jacobi\"", "method = \"merged-cg\"", "method = \"gmres\"\nrestart = 100"]
    {
        assert!((tip(solver) / expected - 1.0).abs() < 1e-6, "{solver}");
    }
}

#[test]
fn a_linear_displacement_is_reproduced_with_its_stress() {
    let exact = ["1e-3*(2*x + y - z)", "1e-3*(x - 3*y + 2*z)", "1e-3*(x + y + 4*z)"];
    for (cell, degree) in [("tetrahedron", 1), ("tetrahedron", 2), ("hexahedron", 1), ("hexahedron", 2)] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[mesh]\ngenerate = {{ kind = \"box\", cell = \"{cell}\", cells = [4, 4, 4] }}\n\
             [space]\ndegree = {degree}\n\
             [equation]\nkind = \"elasticity\"\nyoung = 200\npoisson = 0.25\n\
             [[boundary]]\nwhere = \"all\"\ndirichlet = {exact:?}\n\
             [solver]\ndevice = \"cpu\"\npreconditioner = \"amg\"\ntolerance = 1e-12\n\
             [output]\nplot = false\nfunctionals = [\
             {{ name = \"error\", kind = \"error_l2\", exact = {exact:?} }}, \
             {{ name = \"slope\", kind = \"error_h1\", exact = {exact:?} }}, \
             {{ name = \"force\", kind = \"flux\", where = \"ymax\" }}]\n"
        );
        let report = run_in(folder.path(), &text).unwrap();
        for component in 0..3 {
            let error = report.functionals[&format!("error[{component}]")];
            assert!(error < 1e-12, "{cell} {degree}: {error}");
        }
        // The stress on the upper side, of area 1: xy, yy, yz.
        for (component, expected) in [0.16, -0.24, 0.24].into_iter().enumerate() {
            let of = |name: &str| report.functionals[&format!("{name}[{component}]")];
            assert!(of("slope") < 1e-10, "{cell} {degree}: {}", of("slope"));
            assert!((of("force") - expected).abs() < 1e-9, "{cell} {degree}: {}", of("force"));
        }
        // μ = λ = 80, the strains are (2, −3, 4, 3/2, 0, 1)·10⁻³, their trace 3·10⁻³.
        let expected = [0.56, -0.24, 0.88, 0.24, 0.0, 0.16];
        let mesh = read(&folder.path().join("out/solution.vtu")).unwrap();
        let stress = &mesh.node_fields["stress"];
        assert_eq!(stress.n_components, 6);
        for own in stress.values.chunks_exact(6) {
            for (own, expected) in own.iter().zip(expected) {
                assert!((own - expected).abs() < 1e-9, "{cell} {degree}: {own} {expected}");
            }
        }
        let equivalent = (0.5 * (0.8_f64.powi(2) + 1.12_f64.powi(2) + 0.32_f64.powi(2))
            + 3.0 * (0.24_f64.powi(2) + 0.16_f64.powi(2)))
        .sqrt();
        let found = &mesh.node_fields["von_mises"].values;
        assert!(found.iter().all(|own| (own - equivalent).abs() < 1e-9), "{equivalent}");
        assert_eq!((mesh.node_fields["u"].n_components, found.len()), (3, mesh.n_nodes()));
    }
}

#[test]
fn plates_have_plane_stress_and_long_bodies_plane_strain() {
    let text = |plane: &str, cell: &str| {
        format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cell = \"{cell}\", cells = [4, 4] }}\n\
             [equation]\nkind = \"elasticity\"\nyoung = {{ by_tag = {{ 0 = 100 }} }}\npoisson = \"0.2 + 0*x\"\n{plane}\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, \"free\"]\n\
             [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = [\"free\", 0]\n\
             [[boundary]]\nwhere = \"xmax\"\npressure = -2\n\
             [output]\nplot = false\nfunctionals = [{{ name = \"u\", kind = \"max\" }}, {{ name = \"v\", kind = \"min\" }}]\n"
        )
    };
    for cell in ["triangle", "quadrilateral"] {
        // Strain: E/(1 − ν²) and ν/(1 − ν).
        for (plane, along, across) in [
            ("plane = \"stress\"", 0.02, -0.004),
            ("plane = \"strain\"", 0.0192, -0.0048),
            ("", 0.0192, -0.0048),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let report = run_in(folder.path(), &text(plane, cell)).unwrap();
            assert!((report.functionals["u[0]"] - along).abs() < 1e-9, "{:?}", report.functionals);
            assert!((report.functionals["v[1]"] - across).abs() < 1e-9, "{:?}", report.functionals);
            let mesh = read(&folder.path().join("out/solution.vtu")).unwrap();
            let zz = if plane.contains("stress") { 0.0 } else { 0.4 };
            for own in mesh.node_fields["stress"].values.chunks_exact(6) {
                assert!((own[0] - 2.0).abs() < 1e-8 && (own[2] - zz).abs() < 1e-8, "{own:?}");
            }
            assert!(mesh.node_fields["u"].values.chunks_exact(3).all(|u| u[2] == 0.0));
        }
    }
}

#[test]
fn later_conditions_hold_in_place_of_earlier_ones() {
    let text = "[mesh]\ngenerate = { kind = \"square\", cells = [2, 2] }\n\
         [equation]\nkind = \"elasticity\"\nyoung = 1\npoisson = 0\n\
         [[boundary]]\nwhere = \"all\"\ndirichlet = 0\n\
         [[boundary]]\nwhere = \"all\"\ndirichlet = [\"free\", 1]\n\
         [[boundary]]\nnodes = \"x > 0.4 && x < 0.6 && y > 0.4 && y < 0.6\"\ndirichlet = [5, \"free\"]\n\
         [output]\nplot = false\nfunctionals = [{ name = \"at\", kind = \"value_at\", points = [[0, 0.5], [0.5, 0.5]] }]\n";
    let at = solve(text).functionals;
    assert_eq!((at["at[0][0]"], at["at[0][1]"], at["at[1][0]"]), (0.0, 1.0, 5.0));
}

#[test]
fn a_page_and_a_picture_show_a_body() {
    let folder = tempfile::tempdir().unwrap();
    let text = cantilever("hexahedron", [4, 1, 1], 1, 0.3, "")
        .replace("plot = false", "report = true\npicture = \"von_mises\"");
    let report = run_in(folder.path(), &text).unwrap();
    for file in ["report.html", "picture.png", "residuals.svg", "solution.vtu"] {
        assert!(report.files.contains_key(file), "{file}");
    }
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("traction") && page.contains("von_mises"));
}

/// A box that is held without stresses: it slides on three planes; `further` conditions clamp more.
fn heated(cell: &str, degree: usize, equation: &str, further: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"box\", cell = \"{cell}\", cells = [3, 2, 2], upper = [2, 1, 1] }}\n\
         [space]\ndegree = {degree}\n\
         [equation]\nkind = \"elasticity\"\nyoung = 200\npoisson = 0.25\n{equation}\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, \"free\", \"free\"]\n\
         [[boundary]]\nwhere = \"ymin\"\ndirichlet = [\"free\", 0, \"free\"]\n\
         [[boundary]]\nwhere = \"zmin\"\ndirichlet = [\"free\", \"free\", 0]\n{further}\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n\
         [output]\nplot = false\nfields = [\"stress\", \"strain\"]\nfunctionals = [\
         {{ name = \"u\", kind = \"value_at\", point = [2, 1, 1] }}, {{ name = \"energy\", kind = \"energy\" }}, \
         {{ name = \"force\", kind = \"flux\", where = \"xmin\" }}]\n"
    )
}

#[test]
fn a_body_that_expands_freely_has_no_stress() {
    let uniform = "expansion = 1e-3\ntemperature = 30\nreference_temperature = \"20 + 0*x\"";
    // 0.001 · 10 along each axis.
    for (cell, degree) in [("tetrahedron", 1), ("hexahedron", 2)] {
        let folder = tempfile::tempdir().unwrap();
        let report = run_in(folder.path(), &heated(cell, degree, uniform, "")).unwrap();
        for (component, expected) in [0.02, 0.01, 0.01].into_iter().enumerate() {
            let found = report.functionals[&format!("u[{component}]")];
            assert!((found - expected).abs() < 1e-10, "{cell}: {found}");
        }
        assert!(report.functionals["energy"].abs() < 1e-12, "{}", report.functionals["energy"]);
        let mesh = read(&folder.path().join("out/solution.vtu")).unwrap();
        for name in ["stress", "principal", "recovered_stress", "recovered_principal"] {
            let values = &mesh.node_fields[name].values;
            assert!(values.iter().all(|own| own.abs() < 1e-8), "{cell} {name}");
        }
        for own in mesh.node_fields["recovered_strain"].values.chunks_exact(6) {
            assert!(own[..3].iter().all(|own| (own - 0.01).abs() < 1e-9), "{own:?}");
        }
    }
}

#[test]
fn a_bar_between_walls_is_pressed_by_heat() {
    let heat = "expansion = { by_tag = { 0 = 1e-3 } }\ntemperature = 10";
    let walls = "[[boundary]]\nwhere = \"xmax\"\ndirichlet = [0, \"free\", \"free\"]\n";
    let folder = tempfile::tempdir().unwrap();
    let report = run_in(folder.path(), &heated("hexahedron", 1, heat, walls)).unwrap();
    // −E α ΔT; ½ σ²/E in a volume of 2; across it widens by (1 + ν) α ΔT.
    let found = report.functionals;
    assert!((found["energy"] - 0.02).abs() < 1e-10, "{found:?}");
    assert!((found["u[1]"] - 0.0125).abs() < 1e-10, "{found:?}");
    assert!((found["force[0]"].abs() - 2.0).abs() < 1e-8, "{found:?}");
    let mesh = read(&folder.path().join("out/solution.vtu")).unwrap();
    for own in mesh.node_fields["stress"].values.chunks_exact(6) {
        assert!((own[0] + 2.0).abs() < 1e-8 && own[1].abs() < 1e-8 && own[2].abs() < 1e-8, "{own:?}");
    }
    for own in mesh.node_fields["principal"].values.chunks_exact(3) {
        assert!(own[0].abs() < 1e-8 && own[1].abs() < 1e-8 && (own[2] + 2.0).abs() < 1e-8, "{own:?}");
    }
}

#[test]
fn heat_in_the_plane_presses_across_it_only_in_plane_strain() {
    // Free along x and y; in plane strain (1 + ν) α ΔT along them and −E α ΔT across.
    for (plane, along, across) in [("stress", 0.01, 0.0), ("strain", 0.0125, -2.0)] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cell = \"triangle\", cells = [3, 3] }}\n\
             [equation]\nkind = \"elasticity\"\nyoung = 200\npoisson = 0.25\nplane = \"{plane}\"\n\
             expansion = 1e-3\ntemperature = 10\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, \"free\"]\n\
             [[boundary]]\nwhere = \"ymin\"\ndirichlet = [\"free\", 0]\n\
             [solver]\ntolerance = 1e-12\n[output]\nplot = false\nfields = [\"strain\"]\n\
             functionals = [{{ name = \"u\", kind = \"max\" }}, {{ name = \"energy\", kind = \"energy\" }}]\n"
        );
        let found = run_in(folder.path(), &text).unwrap().functionals;
        assert!((found["u[0]"] - along).abs() < 1e-10 && (found["u[1]"] - along).abs() < 1e-10, "{found:?}");
        assert!((found["energy"] - across * across / 400.0).abs() < 1e-10, "{found:?}");
        let mesh = read(&folder.path().join("out/solution.vtu")).unwrap();
        for own in mesh.node_fields["stress"].values.chunks_exact(6) {
            assert!(own[0].abs() < 1e-8 && own[1].abs() < 1e-8 && (own[2] - across).abs() < 1e-8, "{own:?}");
        }
        let zz = if plane == "stress" { 0.01 } else { 0.0 };
        let strain = &mesh.node_fields["recovered_strain"].values;
        assert!(strain.chunks_exact(6).all(|own| (own[2] - zz).abs() < 1e-9), "{plane}");
    }
}

#[test]
fn principal_stresses_are_eigenvalues() {
    // σ = (2, −1, 2, 0, 0, 2): 2 across the plane, and ½ ± 5/2 in it. μ = 1 and ν = 0.
    let exact = ["x + 2*y", "-y/2", "z"];
    let text = format!(
        "[mesh]\ngenerate = {{ kind = \"box\", cell = \"tetrahedron\", cells = [2, 2, 2] }}\n\
         [equation]\nkind = \"elasticity\"\nyoung = 2\npoisson = 0\n\
         [[boundary]]\nwhere = \"all\"\ndirichlet = {exact:?}\n\
         [solver]\ntolerance = 1e-12\n[output]\nplot = false\n"
    );
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), &text).unwrap();
    let mesh = read(&folder.path().join("out/solution.vtu")).unwrap();
    for own in mesh.node_fields["principal"].values.chunks_exact(3) {
        for (own, expected) in own.iter().zip([3.0, 2.0, -2.0]) {
            assert!((own - expected).abs() < 1e-8, "{own} {expected}");
        }
    }
}

#[test]
fn thermal_strain_needs_a_temperature_and_an_expansion() {
    let folder = tempfile::tempdir().unwrap();
    for (equation, key, part) in [
        ("expansion = 1e-3", "expansion", "give it"),
        ("temperature = 3", "temperature", "`expansion`"),
        ("reference_temperature = 3", "reference_temperature", "`temperature`"),
    ] {
        let error = run_in(folder.path(), &heated("hexahedron", 1, equation, "")).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains(part), "{error}");
    }
}

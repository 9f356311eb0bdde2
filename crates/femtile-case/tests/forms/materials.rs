//! Equations of materials as text: axes that turn, a conductivity that depends on the gradient, magnets.

use std::f64::consts::TAU;

use femtile_mesh::generate::{SquareConfig, square};
use femtile_mesh::{Field, Mesh, io};

use crate::{run_in, solve};

fn on(mesh: &str, degree: u32, equation: &str, functionals: &str) -> String {
    format!(
        "[mesh]\n{mesh}\n[space]\ndegree = {degree}\n{equation}\n[output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n"
    )
}

/// The norms of the error.
fn errors(exact: &str) -> String {
    format!(
        "{{ name = \"l2\", kind = \"error_l2\", exact = \"{exact}\" }}, {{ name = \"h1\", kind = \"error_h1\", exact = \"{exact}\" }}"
    )
}

#[test]
fn axes_that_turn_around_a_point_have_their_exact_solution() {
    // Conductivities 9 along the radius and 4 around: r^m sin(φ) with m = sqrt(4/9).
    let exact = "hypot(x, y)^(2/3)*sin(atan2(y, x))";
    let values = format!("[[boundary]]\nwhere = \"all\"\ndirichlet = \"{exact}\"\n");
    let turned = format!(
        "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ theta = \"atan2(y, x)\", along = 9, across = 4 }}\n\
         define = \"R = [[cos(theta), -sin(theta)], [sin(theta), cos(theta)]]; K = R*[[along, 0], [0, across]]*R'\"\n\
         flux = \"K*grad(u)\"\n{values}"
    );
    // The same as entries of a tensor, and by a direction.
    let entries = format!(
        "[equation]\nsigma = [[\"4 + 5*x^2/(x^2 + y^2)\", \"5*x*y/(x^2 + y^2)\"], [\"5*x*y/(x^2 + y^2)\", \"4 + 5*y^2/(x^2 + y^2)\"]]\n{values}\
         [[source]]\npoint = [1.5, 1]\ntotal = 0\n"
    );
    let direction = format!(
        "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ f = [\"x/hypot(x, y)\", \"y/hypot(x, y)\"] }}\n\
         flux = \"(4*identity + 5*f*f')*grad(u)\"\n{values}"
    );
    for (cell, degree) in [("triangle", 1), ("triangle", 2), ("quadrilateral", 2), ("triangle", 3)] {
        let mesh = |n: usize| {
            format!(
                "generate = {{ kind = \"square\", cells = [{n}, {n}], lower = [1, 0.3], upper = [2, 1.7], cell = \"{cell}\" }}"
            )
        };
        let [coarse, fine] =
            [4, 8].map(|n| solve(&on(&mesh(n), degree, &turned, &errors(exact))).functionals);
        for (name, expected) in [("l2", degree + 1), ("h1", degree)] {
            let order = (coarse[name] / fine[name]).log2();
            assert!((order - f64::from(expected)).abs() < 0.2, "{cell}, {degree}, {name}: {order}");
        }
        for other in [&entries, &direction] {
            let found = solve(&on(&mesh(8), degree, other, &errors(exact))).functionals["l2"];
            assert!((found / fine["l2"] - 1.0).abs() < 1e-6, "{cell}, {degree}: {found} and {}", fine["l2"]);
        }
    }
}

#[test]
fn cell_fields_of_directions_are_fibres() {
    let folder = tempfile::tempdir().unwrap();
    let mesh = square(&SquareConfig { cells: [6, 5], ..SquareConfig::default() }).unwrap();
    let angle = |cell: usize| 0.3 * cell as f64;
    let fibre = (0..mesh.n_cells()).flat_map(|cell| [angle(cell).cos(), angle(cell).sin(), 0.0]).collect();
    let theta = (0..mesh.n_cells()).map(angle).collect();
    let (fibre, theta) = (Field { n_components: 3, values: fibre }, Field { n_components: 1, values: theta });
    let fields = [("fibre", &fibre), ("theta", &theta)];
    io::vtu::write(&folder.path().join("sheet.vtu"), &mesh, &[], &fields).unwrap();
    let values = "source = 1\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n";
    let form = |flux: &str| {
        format!(
            "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ along = 9, across = 4, {} }}\nflux = \"{flux}\"\n{values}",
            if flux.contains("theta") {
                "theta = { field = \"theta\" }"
            } else {
                "f = { field = \"fibre\" }"
            }
        )
    };
    let equations = [
        format!("[equation]\nsigma = {{ fibre = \"fibre\", along = 9, across = 4 }}\n{values}"),
        form("(across*identity + (along - across)*f*f')*grad(u)"),
        form(
            "(across*identity + (along - across)*[cos(theta), sin(theta)]*[cos(theta), sin(theta)]')*grad(u)",
        ),
    ];
    let functionals = "{ name = \"mean\", kind = \"mean\" }, { name = \"max\", kind = \"max\" }";
    let found = equations.map(|equation| {
        run_in(folder.path(), &on("file = \"sheet.vtu\"", 1, &equation, functionals)).unwrap().functionals
    });
    for other in &found[1..] {
        for name in ["mean", "max"] {
            assert!(
                (other[name] / found[0][name] - 1.0).abs() < 1e-9,
                "{name}: {} and {}",
                other[name],
                found[0][name]
            );
        }
    }
}

#[test]
fn iron_that_saturates_has_the_field_of_its_curve() {
    // A wire along the axis, iron between the radii 1 and 2 with H = B + B³, and 2π r H = I. With K = I/2π the potential falls by
    // ∫ B dr = [r B] - K [log(B/sqrt(1 + B²))].
    let (current, k) = (40.0, 40.0 / TAU);
    let field = |r: f64| {
        let mut b: f64 = 1.0;
        for _ in 0..60 {
            b -= (b + b.powi(3) - k / r) / (1.0 + 3.0 * b * b);
        }
        b
    };
    let primitive = |r: f64| {
        let b: f64 = field(r);
        r * b - k * (b / (1.0 + b * b).sqrt()).ln()
    };
    let fall = primitive(2.0) - primitive(1.0);
    let energy = |r: f64| (field(r).powi(2) / 2.0 + field(r).powi(4) / 4.0) * TAU * r;
    let simpson: f64 = (0..=200)
        .map(|i| {
            energy(1.0 + f64::from(i) / 200.0) * if i % 200 == 0 { 1.0 } else { f64::from(2 + 2 * (i % 2)) }
        })
        .sum::<f64>()
        / 600.0;
    let of = |text: &str| {
        format!(
            "[unknown]\nA = {{}}\n[equation]\nkind = \"form\"\n{text}\n[[boundary]]\nwhere = \"xmin\"\ntotal = {current}\n\
             [[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n"
        )
    };
    let by_flux = of("define = \"b2 = grad(A).grad(A)\"\nflux = \"(1 + b2)*grad(A)\"");
    let by_energy = of("define = \"b2 = grad(A).grad(A)\"\nenergy = \"b2/2 + b2^2/4\"");
    for (cell, degree) in [("triangle", 2), ("quadrilateral", 2)] {
        let mesh = format!(
            "generate = {{ kind = \"square\", cells = [16, 1], lower = [1, 0], upper = [2, 1], cell = \"{cell}\" }}"
        );
        let at = "{ name = \"fall\", kind = \"value_at\", point = [1, 0.5] }, { name = \"out\", kind = \"flux\", where = \"xmax\" }";
        for (equation, functionals) in [
            (&by_flux, at.to_owned()),
            (&by_energy, format!("{at}, {{ name = \"energy\", kind = \"energy\" }}")),
        ] {
            let text =
                on(&mesh, degree, equation, &functionals).replace("[space]", "[space]\naxisymmetric = true");
            let found = solve(&(text + "nonlinear_tolerance = 1e-11\n")).functionals;
            assert!((found["fall"] / fall - 1.0).abs() < 1e-5, "{cell}: {} and {fall}", found["fall"]);
            assert!((found["out"] + current).abs() < 1e-8, "{cell}: {}", found["out"]);
            if let Some(own) = found.get("energy") {
                assert!((own / simpson - 1.0).abs() < 1e-4, "{cell}: {own} and {simpson}");
            }
        }
    }
}

/// A quarter of a disc of radius 4 whose cells end at the radius 1.
fn quarter_of_a_disc(n: usize) -> Mesh {
    let config = SquareConfig { cells: [4 * n, 4 * n], upper: [4.0, 4.0], ..SquareConfig::default() };
    let mut mesh = square(&config).unwrap();
    for [x, y, _] in &mut mesh.points {
        let length = x.hypot(*y);
        if length > 0.0 {
            let factor = x.max(*y) / length;
            (*x, *y) = (*x * factor, *y * factor);
        }
    }
    mesh
}

#[test]
fn a_magnetised_cylinder_has_half_of_its_magnetisation_inside() {
    // A long cylinder of radius 1 that is magnetised across its axis by M = 1.2/μ0: B = μ0 M/2 inside, the field of a dipole outside,
    // A = μ0 M/2 y and μ0 M/2 y/r².
    let equation = "[[region]]\nname = \"magnet\"\nwhere = \"x^2 + y^2 < 1\"\n[unknown]\nA = {}\n[equation]\nkind = \"form\"\n\
         constants = { Br = { by_tag = { magnet = 1.2 }, default = 0 } }\n\
         define = \"remanence = Br*[1, 0]\"\nflux = \"grad(A) + [remanence[1], -remanence[0]]\"\n\
         [[boundary]]\nwhere = \"y < 1e-9\"\ndirichlet = 0\n[[boundary]]\nwhere = \"x^2 + y^2 > 15.9\"\ndirichlet = \"0.6*y/(x^2 + y^2)\"\n";
    let exact = "0.6*y*if(x^2 + y^2 < 1, 1, 1/(x^2 + y^2))";
    let folder = tempfile::tempdir().unwrap();
    let functionals = format!(
        "{}, {{ name = \"A\", kind = \"value_at\", points = [[0.1, 0.5], [1.5, 2]] }}",
        errors(exact)
    );
    let [coarse, fine] = [8, 16].map(|n| {
        let name = format!("disc-{n}.vtu");
        io::vtu::write(&folder.path().join(&name), &quarter_of_a_disc(n), &[], &[]).unwrap();
        run_in(folder.path(), &on(&format!("file = \"{name}\""), 1, equation, &functionals))
            .unwrap()
            .functionals
    });
    assert!((fine["A[0]"] - 0.3).abs() < 1e-3, "{}", fine["A[0]"]);
    assert!((fine["A[1]"] - 0.6 * 2.0 / 6.25).abs() < 1e-3, "{}", fine["A[1]"]);
    let order = (coarse["l2"] / fine["l2"]).log2();
    assert!(order > 1.7, "{order}: {} {}", coarse["l2"], fine["l2"]);
}

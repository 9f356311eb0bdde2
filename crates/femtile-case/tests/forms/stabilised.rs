//! Stabilised convection, and the size of cells in formulas.

use crate::{refusal, solve};

fn case(mesh: &str, d: f64, equation: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {mesh} }}\n[unknown]\nc = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ D = {d:?}, b = [1, 0] }}\n\
         flux = \"D*grad(c)\"\nsource = \"1 - b.grad(c)\"\n{equation}\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n\
         [[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n[output]\nplot = false\nvtu = false\n\
         functionals = [{{ name = \"max\", kind = \"max\" }}, {{ name = \"min\", kind = \"min\" }}, \
         {{ name = \"v\", kind = \"value_at\", point = [0.75, 0.5] }}]\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-11\n"
    )
}

const QUADS: &str = "kind = \"square\", cells = [16, 3], cell = \"quadrilateral\"";

#[test]
fn a_boundary_layer_within_a_cell_does_not_make_the_solution_oscillate() {
    // c = x up to a layer at x = 1; the cell Péclet number is 31.
    let plain = solve(&case(QUADS, 1e-3, ""));
    assert!(plain.functionals["max"] > 1.5 || plain.functionals["min"] < -0.5, "{:?}", plain.functionals);
    let supg = solve(&case(QUADS, 1e-3, "stabilise = \"supg\""));
    let [max, min, v] = ["max", "min", "v"].map(|name| supg.functionals[name]);
    assert!(max < 0.9376 && min > -1e-9 && (v - 0.75).abs() < 1e-5, "{max}, {min}, {v}");
    // The same as `kind = "convection-diffusion"`.
    let built_in = case(QUADS, 1e-3, "stabilise = \"supg\"")
        .replace("[unknown]\nc = {}\n", "")
        .replace(
            "kind = \"form\"\nconstants = { D = 0.001, b = [1, 0] }",
            "kind = \"convection-diffusion\"\nvelocity = [1, 0]\nsigma = 0.001",
        )
        .replace("flux = \"D*grad(c)\"\nsource = \"1 - b.grad(c)\"", "source = 1");
    let v = solve(&built_in).functionals["v"];
    assert!((v - supg.functionals["v"]).abs() < 1e-9);
}

/// The stabilised solution of a smooth problem has the order of the elements, as the residual vanishes at it.
#[test]
fn stabilisation_keeps_the_order() {
    let error = |n: usize, d: f64| {
        let text = format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cells = [{n}, {n}] }}\n[unknown]\nc = {{}}\n[equation]\nkind = \"form\"\n\
             constants = {{ D = {d:?}, b = [\"1 + y\", \"x - 0.5\"] }}\nflux = \"D*grad(c) - b*c\"\n\
             source = \"2*D*sin(x)*cos(y) + (1 + y)*cos(x)*cos(y) - (x - 0.5)*sin(x)*sin(y)\"\nstabilise = \"supg\"\n\
             [[boundary]]\nwhere = \"all\"\ndirichlet = \"sin(x)*cos(y)\"\n[output]\nplot = false\nvtu = false\n\
             functionals = [{{ name = \"e\", kind = \"error_l2\", exact = \"sin(x)*cos(y)\" }}]\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-11\n"
        );
        solve(&text).functionals["e"]
    };
    for d in [1.0, 1e-2, 1e-5] {
        let order = (error(8, d) / error(16, d)).log2();
        assert!(order > 1.75, "D = {d}: {order}");
    }
}

#[test]
fn formulas_know_the_size_of_the_cell() {
    // Cells of 1/4 × 1/4 and, on triangles, with these legs: c = h everywhere.
    for cell in ["quadrilateral", "triangle"] {
        let mesh = format!("kind = \"square\", cells = [4, 4], cell = \"{cell}\"");
        let text = case(&mesh, 1.0, "").replace("source = \"1 - b.grad(c)\"", "source = \"0*b.b - c\"");
        let text = text
            .replace("xmin\"\ndirichlet = 0", "xmin\"\nflux = \"h*(1 - c)/h\"")
            .replace("0*b.b - c", "0*b.b + h - c");
        let text = text.replace("dirichlet = 0", "flux = \"h - c\"").replace("h*(1 - c)/h", "2*(h - c)");
        let found = solve(&text);
        assert!((found.functionals["v"] - 0.25).abs() < 1e-9, "{cell}: {:?}", found.functionals);
    }
    // A constant of that name is the constant.
    let text =
        case(QUADS, 1.0, "").replace("D = 1.0,", "D = 1.0, h = 3,").replace("1 - b.grad(c)", "h - b.grad(c)");
    let [own, one] = [text, case(QUADS, 1.0, "")].map(|text| solve(&text).functionals["max"]);
    assert!((own / one - 3.0).abs() < 1e-9);
}

#[test]
fn what_cannot_be_stabilised_is_refused() {
    let (key, message) = refusal(&(case(QUADS, 1.0, "stabilise = \"supg\"") + "[space]\ndegree = 2\n"));
    assert!(key == "equation.stabilise" && message.contains("degree 1"), "{key}: {message}");
    let text = case(QUADS, 1.0, "stabilise = \"supg\"").replace(" - b.grad(c)", " - b.b");
    let (key, message) = refusal(&text);
    assert!(message.contains("no formula has convection"), "{key}: {message}");
    let square = "[mesh]\ngenerate = { kind = \"square\", cells = [3, 3] }\n[equation]\nstabilise = \"supg\"\n\
        [[boundary]]\nwhere = \"all\"\ndirichlet = 0\n";
    assert_eq!(refusal(square).0, "equation.stabilise");
}

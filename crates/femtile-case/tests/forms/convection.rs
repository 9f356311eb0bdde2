//! Convection and diffusion against exact solutions.

use crate::solve;

/// b u′ − σ u″ = 0 with u(0) = 0, u(1) = 1: a boundary layer of width σ/b at x = 1.
fn layer(cell: &str, cells: [usize; 2], degree: usize, peclet: f64) -> femtile_case::Report {
    solve(&format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cell = \"{cell}\", cells = {cells:?} }}\n\
         [space]\ndegree = {degree}\n\
         [equation]\nkind = \"convection-diffusion\"\nsigma = 0.5\nvelocity = [{}, 0]\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n\
         [[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n\
         [solver]\ndevice = \"cpu\"\n\
         [output]\nplot = false\n\
         functionals = [{{ name = \"error\", kind = \"error_l2\", exact = \"(exp({peclet}*x) - 1)/(exp({peclet}) - 1)\" }}]\n",
        0.5 * peclet
    ))
}

#[test]
fn a_boundary_layer_converges_with_the_order_of_the_elements() {
    for (cell, degree, bound) in
        [("triangle", 1, 4e-3), ("quadrilateral", 1, 4e-3), ("triangle", 2, 2e-4), ("quadrilateral", 3, 2e-5)]
    {
        let error = |n: usize| layer(cell, [n, n / 4], degree, 10.0).functionals["error"];
        let [coarse, fine] = [20, 40].map(error);
        let order = (coarse / fine).log2();
        assert!(fine < bound, "{cell} {degree}: {fine}");
        assert!((order - degree as f64 - 1.0).abs() < 0.2, "{cell} {degree}: order {order}");
    }
}

#[test]
fn a_large_peclet_number_is_told() {
    let told = |cells: usize, degree: usize| {
        let report = layer("quadrilateral", [cells, 1], degree, 40.0);
        report.warnings.iter().find(|warning| warning.contains("Péclet")).cloned()
    };
    let warning = told(10, 1).unwrap();
    assert!(warning.contains("(2σ) is 2.000") && warning.contains("refine the mesh"), "{warning}");
    assert_eq!(told(21, 1), None);
    assert_eq!(told(11, 2), None);
}

#[test]
fn fluxes_and_reaction_balance() {
    // −u″ + 2u′ + 3u = 3(x + 1) + 2 has the solution x + 1; its outer derivative at x = 1 is 1, and 1 = 4(2.25 − 2).
    for (condition, order) in [("neumann = 1", 0), ("robin = { coefficient = 4, value = 2.25 }", 1)] {
        let report = solve(&format!(
            "[mesh]\ngenerate = {{ kind = \"box\", cells = [3, 2, 2] }}\n\
             [equation]\nkind = \"convection-diffusion\"\nvelocity = [\"2 + 0*y\", 0, 0]\nlambda = 3\nsource = \"3*(x + 1) + 2\"\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n[[boundary]]\nwhere = \"xmax\"\n{condition}\n\
             [solver]\ntolerance = 1e-12\n\
             [output]\nplot = false\nfunctionals = [{{ name = \"e\", kind = \"error_l2\", exact = \"x + 1\" }},\n\
             {{ name = \"mean\", kind = \"mean\" }}, {{ name = \"slope\", kind = \"error_h1\", exact = \"x + 1\" }},\n\
             {{ name = \"left\", kind = \"flux\", where = \"xmin\" }}, {{ name = \"right\", kind = \"flux\", where = \"xmax\" }}]\n"
        ));
        assert!(report.functionals["e"] < 1e-9, "{order}: {:?}", report.functionals);
        assert!((report.functionals["mean"] - 1.5).abs() < 1e-9);
        assert!(report.functionals["slope"] < 1e-8, "{order}: {:?}", report.functionals);
        let fluxes = ["left", "right"].map(|name| report.functionals[name]);
        assert!((fluxes[0] + 1.0).abs() < 1e-8 && (fluxes[1] - 1.0).abs() < 1e-8, "{order}: {fluxes:?}");
    }
}

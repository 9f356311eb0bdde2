//! The equation of a case on the page of its run.

use std::path::{Path, PathBuf};

use femtile_case::{Case, Silent, run};

/// The section with the equation on the page of a case.
fn section(path: &Path, text: &str) -> String {
    let page = page(path, text);
    let (_, section) = page.split_once("<section id=\"equation\"").expect("a section with the equation");
    section.split_once("</section>").unwrap().0.to_owned()
}

/// The page of a case.
fn page(path: &Path, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::parse(path, text.into()).unwrap();
    case.file.output.directory = folder.path().join("out");
    case.file.output.report = true;
    run(&case, &mut Silent).unwrap();
    std::fs::read_to_string(folder.path().join("out/report.html")).unwrap()
}

/// The section of an example, with something else in place of a part of its text.
fn of_example(name: &str, [from, to]: [&str; 2]) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}/case.toml"));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{name}: {from}");
    section(&path, &text.replace(from, to))
}

fn check(section: &str, parts: &[&str]) {
    for part in parts {
        assert!(section.contains(part), "{part}: {section}");
    }
}

#[test]
fn pages_of_examples_show_their_equation_its_tangent_and_its_class() {
    let cantilever = of_example("31-cantilever", ["[20, 2, 2]", "[4, 1, 1]"]);
    check(
        &cantilever,
        &[
            "energy = &quot;mu*strain:strain + lambda/2*div(u)^2 - thermal_stress*(div(u) - ",
            "mu = young/(2*(1 + poisson))",
            "flux[0, 1] = 2*(mu*strain[0, 1])",
            "source[2] = source[2]",
            "dflux[0, 0] = ",
            "grad(du)[0, 0]",
            "flux[2] = value[2]",
            "Flux through the boundary: traction",
            "the equation is linear",
            "conjugate gradients are the default",
            "It couples the components.",
        ],
    );
    assert!(!cantilever.contains("not shown"), "{cantilever}");
    let film = of_example("33-minimal-surface", ["[32, 32]", "[4, 4]"]);
    check(
        &film,
        &[
            "<code>energy</code></dt><dd><pre tabindex=\"0\">sqrt(1 + grad(u).grad(u))</pre>",
            "<mi>∂</mi><mi>u</mi>",
            "<msqrt>",
            "dflux[1] = ",
            "Newton's method",
            "diffusion, ∂flux/∂∇u, depends on u.",
            "scalar diffusion and reaction; the diffusivity is a tensor",
        ],
    );
    let mixture = of_example("36-cahn-hilliard", ["end = 0.5\nsteps = 50", "end = 0.01\nsteps = 1"]);
    check(
        &mixture,
        &[
            "c = u[0]\nm = u[1]",
            "<code>capacity</code>",
            "flux[0, 0] = eps^2*grad(u)[0, 0]",
            "source[1] = -u_t[0]",
            "dsource[1] = -(alpha*du[0])",
            "α is the derivative of the rate",
            "not symmetric",
            "preconditioner of this run is",
        ],
    );
}

#[test]
fn a_solid_in_space_has_a_tangent_that_can_be_read_and_texts_of_the_user_are_escaped() {
    let text = "[mesh]\ngenerate = { kind = \"box\", cells = [1, 1, 1], cell = \"hexahedron\" }\n[unknown]\nu = { components = \"dimension\" }\n\
         [equation]\nkind = \"form\"\nconstants = { mu = 3, lambda = { by_tag = { 0 = 5 } } }\n\
         define = \"F = identity + grad(u); J = det(F); w = if(x < 2, 1, 3)\"\n\
         energy = \"w*(mu/2*(tr(F'*F) - 3) - mu*log(J) + lambda/2*log(J)^2)\"\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0, 0]\n[[boundary]]\nwhere = \"xmax\"\nflux = \"-0.2*det(F)*inv(F)'*normal\"\n\
         [solver]\ndevice = \"cpu\"\n";
    let found = section(Path::new("case.toml"), text);
    check(
        &found,
        &[
            "w = if(x &lt; 2, 1, 3)",
            "<code>boundary[1].flux</code>",
            "Flux through the boundary: boundary[1]",
            "<code>constants.mu</code></dt><dd><pre tabindex=\"0\">3.0</pre>",
            "flux[2, 2] = ",
            "<mi>λ</mi>",
            "It is not symmetric, as a flux through the boundary is not: GMRES",
        ],
    );
    assert!(!found.contains("(x < 2"), "{found}");
}

#[test]
fn pages_of_bodies_of_revolution_have_the_circumference_in_their_integrals_alone() {
    let cable = of_example("41-coaxial", ["[16, 2]", "[4, 1]"]);
    check(&cable, &["<mn>2</mn><mi>π</mi><mi>x</mi>"]);
    assert!(!cable.contains("6.28") && !cable.contains("e-200"), "{cable}");
    let pipe = section(
        Path::new("pipe.toml"),
        "[mesh]\ngenerate = { kind = \"square\", cells = [2, 2], lower = [1, 0], upper = [2, 1] }\n[space]\naxisymmetric = true\n\
         [unknown]\nu = { components = \"dimension\" }\n[equation]\nkind = \"form\"\nflux = \"div(u)*identity + sym(grad(u))\"\n\
         source = [0, \"alpha\"]\nconstants = { alpha = 3 }\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n\
         [[source]]\npoint = [1.5, 0.5]\ntotal = [0, 2]\n[solver]\ndevice = \"cpu\"\n",
    );
    check(
        &pipe,
        &[
            "1/x",
            "<code>source[0]</code></dt><dd><pre tabindex=\"0\">point = [1.5,0.5], total = [0.0,2.0]</pre>",
            "<mo>∑</mo>",
        ],
    );
    assert!(!pipe.contains("6.28") && !pipe.contains("200"), "{pipe}");
}

#[test]
fn pages_of_modes_show_the_eigenvalue_problem() {
    let drum = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 4] }\n[equation]\nsigma = 3\ncapacity = 4\n\
                [[boundary]]\nwhere = \"all\"\ndirichlet = 0\n[modes]\ncount = 1\n[solver]\ndevice = \"cpu\"\n";
    let with = "kind = \"form\"\nflux = \"3*grad(u)\"\ncapacity = \"4\"\n[unknown]\nu = {}";
    let form = drum.replace("sigma = 3\ncapacity = 4", with);
    for (text, written) in [(drum, "<code>diffusion</code>"), (&form, "<code>capacity</code>")] {
        let page = section(Path::new("drum.toml"), text);
        check(&page, &[written, "<mo>=</mo><mi>λ</mi><mo>∫</mo><mi>capacity</mi>", "LOBPCG", "dflux[0] = "]);
        for word in ["u_t", "alpha", "α is", "linear solve", "onjugate gradients", "convection-diffusion"] {
            assert!(!page.contains(word), "{word}: {page}");
        }
    }
}

#[test]
fn interfaces_and_sources_are_among_the_conditions() {
    let text = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 4] }\n[[region]]\nname = \"a\"\nwhere = \"x < 0.5\"\n\
                [[region]]\nname = \"b\"\nwhere = \"x > 0.5\"\n[equation]\nlambda = 1\n[[interface]]\nbetween = [\"a\", \"b\"]\nconductance = \"1 + u^2\"\n\
                [[source]]\npoint = [0.3, 0.6]\ntotal = 2\n[solver]\ndevice = \"cpu\"\n";
    let page = page(Path::new("case.toml"), text);
    check(&page, &["between a and b", "interface", "conductance 1 + u^2", "point [0.3,0.6]", "total 2.0"]);
}

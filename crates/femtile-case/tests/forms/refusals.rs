//! Refusals of cases of elasticity and of convection–diffusion, and their messages.

use std::sync::Arc;

use femtile_case::Silent;
use femtile_device::Cpu;
use femtile_form::Equation;
use femtile_mesh::check::boundary_facets;
use femtile_mesh::{CellKind, Mesh};
use femtile_solve::{DeviceChoice, FormProblem, SolverConfig, Stages, Value};

use crate::{refusal, solve};

const BODY: &str = "[mesh]\ngenerate = { kind = \"box\", cells = [2, 2, 2] }\n\
     [equation]\nkind = \"elasticity\"\nyoung = 1\npoisson = 0.3\n\
     [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0, 0]\n\
     [solver]\ndevice = \"cpu\"\n[output]\nplot = false\n";

const FLOW: &str = "[mesh]\ngenerate = { kind = \"square\", cells = [2, 2] }\n\
     [equation]\nkind = \"convection-diffusion\"\nvelocity = [1, 0]\n\
     [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n\
     [solver]\ndevice = \"cpu\"\n[output]\nplot = false\n";

/// A text of the sound case, what stands in its place, the key of the refusal, and words of its message.
type Bad = (&'static str, &'static str, &'static str, &'static str);

const BODIES: &[Bad] = &[
    ("young = 1\n", "", "equation", "`young` is missing"),
    ("poisson = 0.3\n", "", "equation", "`poisson` is missing"),
    ("young = 1", "young = -1", "equation.young", "is -1 in cell 0 at (0, 0, 0); it must be positive"),
    ("poisson = 0.3", "poisson = 0.5", "equation.poisson", "is 0.5 in cell 0"),
    ("poisson = 0.3", "poisson = \"x - 1\"", "equation.poisson", "above -1 and below 0.5"),
    (
        "poisson = 0.3",
        "poisson = { by_tag = { bone = 0.3 } }",
        "equation.poisson.by_tag.bone",
        "no cell has the tag",
    ),
    ("poisson = 0.3", "poisson = { field = \"nu\" }", "equation.poisson.field", "no cell field `nu`"),
    (
        "poisson = 0.3",
        "poisson = 0.3\nsigma = 2",
        "equation.sigma",
        "elasticity has `young`, `poisson`, `expansion`, `temperature`, `reference_temperature`, `density`, `plane`, `source`",
    ),
    ("poisson = 0.3", "poisson = 0.3\nlambda = 2", "equation.lambda", "belongs to other equations"),
    (
        "poisson = 0.3",
        "poisson = 0.3\nvelocity = [1, 0, 0]",
        "equation.velocity",
        "belongs to other equations",
    ),
    ("poisson = 0.3", "poisson = 0.3\ncapacity = 1", "equation.capacity", "belongs to other equations"),
    ("poisson = 0.3", "poisson = 0.3\ninitial = 1", "equation.initial", "belongs to other equations"),
    ("poisson = 0.3", "poisson = 0.3\nplane = \"stress\"", "equation.plane", "is for meshes in the plane"),
    (
        "poisson = 0.3\n",
        "poisson = 0.3\n[space]\ndegree = 7\n",
        "space.degree",
        "degree 7 is not supported on tetrahedron cells: take 1 to 6",
    ),
    ("poisson = 0.3", "poisson = 0.3\nsource = 2", "equation.source", "an entry for each axis"),
    ("poisson = 0.3", "poisson = 0.3\nsource = [0, 1]", "equation.source", "2 entries in 3 dimensions"),
    (
        "poisson = 0.3",
        "poisson = 0.3\nsource = \"x\"",
        "equation.source",
        "an array with 3 entries, or a cell field",
    ),
    (
        "dirichlet = [0, 0, 0]",
        "dirichlet = [0, 0]",
        "boundary[0].dirichlet",
        "2 entries, where u has 3 components",
    ),
    (
        "dirichlet = [0, 0, 0]",
        "dirichlet = [\"free\", \"free\", \"free\"]",
        "boundary[0].dirichlet",
        "all components are free",
    ),
    ("dirichlet = [0, 0, 0]", "dirichlet = [0, 0, \"1/x\"]", "boundary[0].dirichlet", "it must be finite"),
    ("dirichlet = [0, 0, 0]", "traction = [0, 1]", "boundary[0].traction", "2 entries in 3 dimensions"),
    ("dirichlet = [0, 0, 0]", "pressure = [0, 1]", "boundary[0].pressure", "one value is needed"),
    (
        "dirichlet = [0, 0, 0]",
        "neumann = 1",
        "boundary[0].neumann",
        "`dirichlet`, `traction`, `pressure`, `flux`, `total` and `floating`",
    ),
    (
        "dirichlet = [0, 0, 0]",
        "dirichlet = 0\npressure = 1",
        "boundary[0]",
        "exactly one of `dirichlet`, `traction`",
    ),
    (
        "where = \"xmin\"\ndirichlet = [0, 0, 0]",
        "nodes = \"x < 1\"\npressure = 1",
        "boundary[0].nodes",
        "only `dirichlet`",
    ),
    ("[solver]", "[time]\nend = 1\nsteps = 2\n[solver]", "time", "stationary"),
    ("[solver]", "[space]\ncomponents = 3\n[solver]", "space.components", "leave this out"),
    ("[solver]", "[space]\nquadrature = \"gauss-fine\"\n[solver]", "space.quadrature", "Gauss points"),
    (
        "[solver]",
        "[membrane]\nmodel = \"aliev-panfilov\"\n[solver]",
        "membrane",
        "is for kind = \"monodomain\"",
    ),
    ("[output]", "operator = \"matrix-free\"\n[output]", "solver.operator", "\"assembled\" or \"auto\""),
    ("[output]", "preconditioner = \"gmg\"\n[output]", "solver.preconditioner", "take \"amg\", \"jacobi\""),
    ("[output]", "preconditioner = \"pmg\"\n[output]", "solver.preconditioner", "take \"amg\", \"jacobi\""),
    ("[output]", "precision = \"f32\"\n[output]", "solver.precision", "use \"f64\""),
    ("[output]", "metric = \"stored\"\n[output]", "solver.metric", "without a matrix"),
    ("[output]", "nonlinear_iterations = 3\n[output]", "solver.nonlinear_iterations", "is linear"),
    ("plot = false", "plot = false\nfields = [\"flux\"]", "output.fields[0]", "take \"stress\""),
    ("plot = false", "plot = false\nvtu = \"pieces\"", "output.vtu", "one file"),
    (
        "plot = false",
        "plot = false\nfunctionals = [{ name = \"f\", kind = \"flux\", where = \"x > 9\" }]",
        "output.functionals[0].where",
        "",
    ),
    (
        "plot = false",
        "plot = false\nfunctionals = [{ name = \"f\", kind = \"along\", from = [2, 0, 0], to = [3, 0, 0] }]",
        "output.functionals[0]",
        "none of the",
    ),
    (
        "plot = false",
        "plot = false\nfunctionals = [{ name = \"f\", kind = \"value_at\", point = [2, 0, 0] }]",
        "output.functionals[0].point",
        "lies outside the mesh",
    ),
    (
        "plot = false",
        "plot = false\nfunctionals = [{ name = \"f\", kind = \"error_l2\", exact = [\"x\"] }]",
        "output.functionals[0].exact",
        "1 entries, where u has 3 components",
    ),
    (
        "kind = \"box\", cells = [2, 2, 2]",
        "kind = \"grid\", nodes = [3, 3, 3]",
        "mesh.generate",
        "a grid has no elements",
    ),
    ("kind = \"elasticity\"\n", "", "equation.young", "belongs to `kind = \"elasticity\"`"),
    (
        "dirichlet = [0, 0, 0]",
        "total = { u = [1, 0, 0] }",
        "boundary[0].total",
        "a table of values by unknown",
    ),
    (
        "[output]",
        "[[source]]\npoint = [0.5, 0.5, 0.5]\ntotal = { u = [1, 0, 0] }\n[output]",
        "source[0].total",
        "a table of values by unknown",
    ),
];

const FLOWS: &[Bad] = &[
    ("velocity = [1, 0]\n", "", "equation", "`velocity` is missing"),
    ("velocity = [1, 0]", "velocity = [1, 0, 0]", "equation.velocity", "3 entries in 2 dimensions"),
    ("velocity = [1, 0]", "velocity = 1", "equation.velocity", "an array with 2 entries, or a cell field"),
    (
        "velocity = [1, 0]",
        "velocity = [1, 0]\nsigma = -1",
        "equation.sigma",
        "not symmetric positive definite",
    ),
    (
        "velocity = [1, 0]",
        "velocity = [1, 0]\nyoung = 1",
        "equation.young",
        "`sigma`, `velocity`, `lambda`, `source`, `stabilise`, `initial` and `constants`",
    ),
    (
        "dirichlet = 0",
        "traction = [1, 0]",
        "boundary[0].traction",
        "`dirichlet`, `neumann`, `robin`, `flux`, `total` and `floating`",
    ),
    (
        "velocity = [1, 0]",
        "velocity = [1, 0]\ninitial = 1",
        "equation.initial",
        "where a flux through the boundary",
    ),
    (
        "velocity = [1, 0]",
        "velocity = [1, 0]\nconstants = { k = 1 }",
        "equation.constants.k",
        "no formula uses it",
    ),
    (
        "velocity = [1, 0]",
        "velocity = [1, 0]\nconstants = { sigma = 1 }",
        "equation.constants.sigma",
        "has a meaning of its own",
    ),
    ("dirichlet = 0", "neumann = 0", "boundary", "nothing determines u but up to a constant"),
    ("dirichlet = 0", "dirichlet = [0, 1]", "boundary[0].dirichlet", "2 entries, where u has 1 components"),
    ("[output]", "method = \"cg\"\n[output]", "solver.method", "take \"gmres\""),
    ("[output]", "method = \"pipelined-cg\"\n[output]", "solver.method", "take \"gmres\""),
    (
        "plot = false",
        "plot = false\nfunctionals = [{ name = \"e\", kind = \"energy\" }]",
        "output.functionals[0].kind",
        "is not available",
    ),
    ("plot = false", "plot = false\nfields = [\"error\", \"strain\"]", "output.fields[1]", "elasticity"),
    (
        "kind = \"convection-diffusion\"\n",
        "",
        "equation.velocity",
        "belongs to `kind = \"convection-diffusion\"`",
    ),
];

#[test]
fn bad_cases_are_refused_with_their_key_and_advice() {
    for (sound, changes) in [(BODY, BODIES), (FLOW, FLOWS)] {
        solve(sound);
        for (old, new, key, words) in changes {
            assert!(sound.contains(old), "{old}");
            let (found, message) = refusal(&sound.replacen(old, new, 1));
            assert!(found == *key && message.contains(words), "{new}: {found}: {message}");
        }
    }
    let poisson = BODY.replace("kind = \"elasticity\"\nyoung = 1\npoisson = 0.3", "source = 1");
    let (key, message) = refusal(&poisson.replace("dirichlet = [0, 0, 0]", "pressure = 1"));
    assert!(key == "boundary[0].pressure" && message.contains("elasticity"), "{key}: {message}");
}

#[test]
fn motions_that_nothing_holds_are_named() {
    let all = ["translation along x", "translation along y", "translation along z"];
    let turns = ["rotation about x", "rotation about y", "rotation about z"];
    let with =
        |conditions: &str| BODY.replace("[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0, 0]", conditions);
    let of = |place: &str, value: &str| format!("[[boundary]]\n{place}\ndirichlet = {value}\n");
    let corner = "nodes = \"x + y + z < 1e-9\"";
    for (conditions, free) in [
        ("[[boundary]]\nwhere = \"xmax\"\npressure = 1\n".to_owned(), [&all[..], &turns].concat()),
        (of("where = \"xmin\"", "[0, \"free\", \"free\"]"), vec![all[1], all[2], turns[0]]),
        (of(corner, "0"), turns.to_vec()),
        (of("where = \"zmin\"", "[\"free\", \"free\", 0]") + &of(corner, "0"), vec![turns[2]]),
    ] {
        let (key, message) = refusal(&with(&conditions));
        assert_eq!(key, "boundary");
        assert!(message.contains("the body is free to move"), "{message}");
        for motion in all.iter().chain(&turns) {
            assert_eq!(message.contains(motion), free.contains(motion), "{conditions}: {message}");
        }
    }
    // Three planes hold a body.
    let sides = ["xmin", "ymin", "zmin"].iter().enumerate().map(|(axis, side)| {
        let value: Vec<&str> = (0..3).map(|i| if i == axis { "0" } else { "\"free\"" }).collect();
        of(&format!("where = \"{side}\""), &format!("[{}]", value.join(", ")))
    });
    solve(&with(&sides.collect::<String>()));
    let plane = BODY.replace("\"box\", cells = [2, 2, 2]", "\"square\", cells = [2, 2]");
    let plane = plane.replace("dirichlet = [0, 0, 0]", "dirichlet = [\"free\", 0]");
    let (_, message) = refusal(&plane.replace("xmin", "ymin"));
    assert!(message.contains("translation along x") && !message.contains("rotation"), "{message}");
    let (_, message) = refusal(&plane);
    assert!(message.contains("translation along x, rotation in the plane"), "{message}");
}

#[test]
fn each_part_of_a_mesh_is_held() {
    let square = |x: f64| [[x, 0.0, 0.0], [x + 1.0, 0.0, 0.0], [x + 1.0, 1.0, 0.0], [x, 1.0, 0.0]];
    let points = [square(0.0), square(2.0)].concat();
    let mesh = Mesh::new(points, CellKind::Quadrilateral, (0..8).collect()).unwrap();
    let boundary = Arc::new(boundary_facets(&mesh));
    let solved = |held: &[&str]| {
        let equation = Equation::named("elasticity").unwrap();
        let mut problem = FormProblem::new(&mesh, Arc::clone(&boundary), equation);
        problem.scalar("young", &Value::from(1)).unwrap();
        problem.scalar("poisson", &Value::from(0)).unwrap();
        let zero = [Some(Value::from(0)), Some(Value::from(0))];
        held.iter().for_each(|place| problem.dirichlet(*place, &zero).unwrap());
        let (cpu, mut silent) = (Cpu::new(1).unwrap(), Silent);
        let config = SolverConfig { device: DeviceChoice::Cpu, ..SolverConfig::default() };
        problem.solve(&cpu, &config, None, &mut Stages::new(&mut silent)).map(drop)
    };
    let message = solved(&["x < 0.1"]).unwrap_err().to_string();
    assert!(message.contains("in the part of the mesh with (2, 0, 0)"), "{message}");
    assert!(message.contains("translation along x, translation along y, rotation in the plane"), "{message}");
    solved(&["x < 0.1", "x > 2.9"]).unwrap();
}

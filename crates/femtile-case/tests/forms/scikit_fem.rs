//! Agreement with scikit-fem on a sample mesh: `scikit_fem.json` has its numbers, which `bench/python/scikit_fem.py` records.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::solve;

const CONVECTION: &str = "sigma = \"2 + z\"\nvelocity = [\"10*y\", \"3 - 10*x\", 5]\nlambda = 0.5\nsource = \"1 + 4*x\"\n\
     [[boundary]]\nwhere = \"all\"\nneumann = \"y\"\n\
     [[boundary]]\nwhere = \"z > -1e-9\"\ndirichlet = \"x\"\n";

const ELASTICITY: &str = "young = \"500 - 300*z\"\npoisson = 0.3\nsource = [0, \"x\", -1]\n\
     [[boundary]]\nwhere = \"all\"\npressure = \"-z\"\n\
     [[boundary]]\nwhere = \"z > -1e-9\"\ndirichlet = [0, 0, \"1e-3*x\"]\n";

#[test]
fn functionals_agree_with_those_of_scikit_fem() {
    let record: Value = serde_json::from_str(include_str!("scikit_fem.json")).unwrap();
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let samples = std::env::var_os("FEMTILE_SAMPLES").map_or_else(beside, PathBuf::from);
    let mesh = samples.join("meshes/tet").join(record["mesh"].as_str().unwrap());
    if !mesh.exists() {
        eprintln!("SKIPPED: agreement with scikit-fem: no samples (set FEMTILE_SAMPLES)");
        return;
    }
    let problems = record["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 4);
    for problem in problems {
        let (kind, degree) = (problem["kind"].as_str().unwrap(), problem["degree"].as_u64().unwrap());
        let is_elastic = kind == "elasticity";
        let points = record["points"].as_array().unwrap().iter().enumerate();
        let mut functionals: Vec<String> = points
            .map(|(i, point)| format!("{{ name = \"u{i}\", kind = \"value_at\", point = {point} }}"))
            .collect();
        for (name, kind) in [("integral", "integral"), ("norm", "l2_norm"), ("energy", "energy")] {
            if name != "energy" || is_elastic {
                functionals.push(format!("{{ name = \"{name}\", kind = \"{kind}\" }}"));
            }
        }
        let report = solve(&format!(
            "[mesh]\nfile = {mesh:?}\n[space]\ndegree = {degree}\n[equation]\nkind = \"{kind}\"\n{}\
             [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n\
             [output]\nplot = false\nvtu = false\nfunctionals = [{}]\n",
            if is_elastic { ELASTICITY } else { CONVECTION },
            functionals.join(", ")
        ));
        let expected = problem["functionals"].as_object().unwrap();
        assert_eq!(report.functionals.len(), expected.len());
        for (name, value) in expected {
            // A component may vanish almost: relative to the largest number of its kind.
            let alike = expected.iter().filter(|(other, _)| other.as_bytes()[0] == name.as_bytes()[0]);
            let scale = alike.map(|(_, value)| value.as_f64().unwrap().abs()).fold(0.0, f64::max);
            let difference = (report.functionals[name] - value.as_f64().unwrap()).abs() / scale;
            assert!(difference < 1e-8, "{kind} {degree}: {name} differs by {difference:e}");
        }
    }
}

//! Cases that say how the metric of cells is obtained.

use super::{HEXAHEDRA, refused, solve};

fn with(geometry: &str, mesh: &str) -> String {
    HEXAHEDRA
        .replace("cells = [3, 3, 3]", mesh)
        .replace("[output]", &format!("[solver]\ntolerance = 1e-13\nmetric = \"{geometry}\"\n[output]"))
}

#[test]
fn all_ways_to_a_metric_give_one_solution_and_are_told_of() {
    let straight = "deform = 0.1, cells = [3, 3, 3]";
    for (mesh, ways) in
        [("cells = [3, 3, 3]", &["constant", "computed", "stored"][..]), (straight, &["computed", "stored"])]
    {
        let expected = solve(&with("auto", mesh)).unwrap();
        assert_eq!(expected.solve.geometry.values().sum::<usize>(), 27);
        for &way in ways {
            let report = solve(&with(way, mesh)).unwrap();
            assert_eq!(report.solve.geometry.iter().collect::<Vec<_>>(), [(&way, &27)], "{mesh}");
            for (name, value) in &report.functionals {
                let close = (value - expected.functionals[name]).abs() <= 1e-10;
                assert!(close, "{way}, {mesh}, {name}: {value} {}", expected.functionals[name]);
            }
        }
    }
}

#[test]
fn ways_that_do_not_serve_are_refused_by_the_setting() {
    let bent = with("constant", "deform = 0.1, cells = [3, 3, 3]");
    let (key, place, said) = refused(&bent);
    assert!(
        key == "solver.metric" && place.contains("constant") && said.contains("computed"),
        "{key}: {said}"
    );
    let varying =
        with("computed", "cells = [3, 3, 3]").replace("[equation]", "[equation]\nsigma = \"1 + x\"");
    assert_eq!(refused(&varying).0, "solver.metric");
    let assembled =
        with("stored", "cells = [3, 3, 3]").replace("[solver]", "[solver]\noperator = \"assembled\"");
    let (key, _, said) = refused(&assembled);
    assert!(key == "solver.metric" && said.contains("without a matrix"), "{key}: {said}");
    let simplices = with("stored", "cells = [3, 3, 3]")
        .replace("hexahedron", "tetrahedron")
        .replace("degree = 3", "degree = 1");
    assert_eq!(refused(&simplices).0, "solver.metric");
}

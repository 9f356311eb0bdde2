//! Refusals point at the line and column of the case file that is to blame, and what looks wrong is warned of.

use crate::common;

use common::Workplace;

/// Line 2 has the mesh, line 4 the source, line 6 and 7 the condition, line 9 the solver, line 11 the output.
const SQUARE: &str = r#"[mesh]
generate = { kind = "square", cells = [4, 4] }
[equation]
source = 1
[[boundary]]
where = "xmin"
dirichlet = 0
[solver]
device = "cpu"
[output]
directory = "out"
"#;

fn square(from: &str, to: &str) -> Workplace {
    assert!(SQUARE.contains(from), "{from}");
    Workplace::new(&SQUARE.replace(from, to))
}

fn refuses(place: &Workplace, code: i32, words: &[&str]) {
    let said = place.refusal(&[], code);
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

#[test]
fn coefficients_that_are_not_allowed_are_pointed_at() {
    for (from, to, words) in [
        ("source = 1", "sigma = -1", ["case.toml:4:9", "equation.sigma", "positive definite"]),
        ("source = 1", "sigma = 0", ["case.toml:4:9", "equation.sigma", "lambda is 0 too"]),
        ("source = 1", "sigma = [[1, 2], [0, 3]]", ["case.toml:4:9", "equation.sigma", "symmetric"]),
        ("source = 1", "lambda = -0.5", ["case.toml:4:10", "equation.lambda", "must not be negative"]),
        ("source = 1", "source = inf", ["case.toml:4:10", "equation.source", "finite"]),
        ("dirichlet = 0", "dirichlet = \"1/x\"", ["case.toml:7:13", "boundary[0].dirichlet", "finite"]),
        (
            "dirichlet = 0",
            "neumann = 3",
            ["case.toml:7:11", "boundary[0].neumann", "flows in and nothing out"],
        ),
        (
            "dirichlet = 0",
            "robin = { coefficient = -1, value = 0 }",
            ["case.toml:7:25", "boundary[0].robin.coefficient", "must not be negative"],
        ),
        (
            "[[boundary]]",
            "[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n[[boundary]]",
            ["case.toml:7:13", "boundary[0].dirichlet", "x"],
        ),
    ] {
        if to.starts_with("[[boundary]]") {
            // Of two conditions the one that has the value is pointed at.
            let case = SQUARE.replace(from, to).replace("dirichlet = 1", "dirichlet = \"1/(1 - x)\"");
            refuses(&Workplace::new(&case), 2, &words[..2]);
        } else {
            refuses(&square(from, to), 2, &words);
        }
    }
}

#[test]
fn mesh_files_that_are_not_there_are_pointed_at() {
    let generated = "generate = { kind = \"square\", cells = [4, 4] }";
    let missing = square(generated, "file = \"no/such.msh\"");
    refuses(&missing, 2, &["case.toml:2:8", "mesh.file", "no/such.msh", "folder of the case file"]);
    let folder = square(generated, "file = \"heart.msh\"");
    std::fs::create_dir(folder.path("heart.msh")).unwrap();
    refuses(&folder, 2, &["case.toml:2:8", "mesh.file", "heart.msh is a folder", "a mesh file is needed"]);
}

#[test]
fn devices_and_folders_are_pointed_at_unless_an_option_named_them() {
    let absent = square("device = \"cpu\"", "device = \"cuda:99\"");
    refuses(&absent, 3, &["case.toml:9:10", "solver.device", "cuda:99", "not available"]);
    let of_option = Workplace::new(SQUARE).refusal(&["--device", "cuda:99"], 3);
    assert!(of_option.contains("cuda:99") && !of_option.contains("case.toml"), "{of_option}");
    let taken = square("directory = \"out\"", "directory = \"file/out\"");
    std::fs::write(taken.path("file"), "").unwrap();
    refuses(&taken, 2, &["case.toml:11:13", "output.directory", "cannot write results"]);
}

#[test]
fn fluxes_through_parts_without_a_facet_and_unknown_fields_are_pointed_at() {
    for (line, words) in [
        (
            "functionals = [{ name = \"q\", kind = \"flux\", where = \"lid\" }]",
            ["case.toml:12:53", "output.functionals[0].where", "there is no tag `lid`"],
        ),
        (
            "functionals = [{ name = \"q\", kind = \"along\", from = [0, 9], to = [1, 9] }]",
            ["case.toml:12:16", "output.functionals[0]", "none of the 101 points"],
        ),
        ("fields = [\"gradiant\"]", ["case.toml:12:11", "output.fields[0]", "did you mean `gradient`?"]),
    ] {
        refuses(&square("directory = \"out\"", &format!("directory = \"out\"\n{line}")), 2, &words);
    }
}

#[test]
fn conditions_that_hold_nowhere_are_refused_with_the_extent_of_the_mesh() {
    let cube = "generate = { kind = \"box\", cells = [2, 2, 2], upper = [1, 2, 3] }";
    let case = SQUARE.replace("generate = { kind = \"square\", cells = [4, 4] }", cube);
    let far = Workplace::new(&case.replace("\"xmin\"", "\"z > 5\""));
    refuses(
        &far,
        2,
        &["case.toml:6:9", "boundary[0].where", "no facet", "z from 0 to 3", "y from 0 to 2", "mm against m"],
    );
    let edge = Workplace::new(&case.replace("\"xmin\"", "\"x < 1e-9 and y < 1e-9\""));
    refuses(&edge, 2, &["case.toml:6:9", "3 nodes satisfy it, but no facet"]);
}

#[test]
fn cases_that_determine_nothing_are_refused() {
    let nothing = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 4] }\n[equation]\n";
    let message = ["case.toml:3:1", "nothing determines u", "source"];
    refuses(&Workplace::new(nothing), 2, &message);
    refuses(&Workplace::new(&format!("{nothing}sigma = 2\n")), 2, &message);
    let grid = nothing.replace("\"square\", cells", "\"grid\", nodes") + "kind = \"diffusion\"\n";
    refuses(
        &Workplace::new(&format!("{grid}[time]\nend = 1\nsteps = 1\n")),
        2,
        &["nothing determines u", "initial"],
    );
    let zero = Workplace::new(&format!("{nothing}lambda = 1\n")).report(&[], 0);
    assert!(zero["warnings"][0].as_str().unwrap().contains("are zero, and so is u"), "{zero}");
}

#[test]
fn tolerances_outside_of_nought_and_one_are_refused() {
    for (tolerance, word) in [
        ("1", "below 1"),
        ("1.5", "below 1"),
        ("inf", "below 1"),
        ("0", "not positive"),
        ("-1e-3", "not positive"),
        ("nan", "not positive"),
    ] {
        let place = square("device = \"cpu\"", &format!("tolerance = {tolerance}"));
        refuses(&place, 2, &["case.toml:9:13", "solver.tolerance", word]);
    }
    let said = Workplace::new(SQUARE).refusal(&["--tolerance", "1"], 2);
    assert!(said.contains("--tolerance 1") && said.contains("below 1"), "{said}");
}

fn warnings(case: &str) -> Vec<String> {
    let report = Workplace::new(case).report(&[], 0);
    report["warnings"].as_array().unwrap().iter().map(|warning| warning.as_str().unwrap().into()).collect()
}

#[test]
fn a_condition_that_takes_the_facets_of_another_is_warned_of_with_both_lines() {
    let robin = "\n[[boundary]]\nwhere = \"all\"\nrobin = { coefficient = 1, value = 300 }\n[solver]";
    let case = SQUARE
        .replace("source = 1", "source = 0")
        .replace("\"xmin\"\ndirichlet = 0", "\"x < 1e-9\"\ndirichlet = 25")
        .replace("\n[solver]", robin)
        + "functionals = [{ name = \"least\", kind = \"min\" }]\n";
    let report = Workplace::new(&case).report(&[], 0);
    // The rule stays: the last condition holds.
    assert!((report["functionals"]["least"].as_f64().unwrap() - 300.0).abs() < 1e-6, "{report}");
    let said = report["warnings"][0].as_str().unwrap();
    assert!(said.starts_with("boundary[1] (line 9, robin on \"all\") takes 4 of the 4 facets of boundary[0] (line 6, dirichlet on \"x < 1e-9\"), which then holds nowhere"), "{said}");
    // A default for all that comes first is what `all` is for.
    let first = SQUARE.replace(
        "[[boundary]]",
        "[[boundary]]\nwhere = \"all\"\nrobin = { coefficient = 1, value = 300 }\n[[boundary]]",
    );
    assert_eq!(warnings(&first), [""; 0]);
    let part = SQUARE.replace("\n[solver]", "\n[[boundary]]\nwhere = \"y < 0.6\"\nneumann = 1\n[solver]");
    assert!(warnings(&part)[0].contains("takes 2 of the 4 facets of boundary[0]"), "{:?}", warnings(&part));
}

const GRID: &str = r#"[mesh]
generate = { kind = "grid", nodes = [11, 11] }
[equation]
kind = "diffusion"
initial = "if(x < 0.5, 1, 0)"
diffusion = 0.01
convection = [4, 0]
[time]
end = 0.01
steps = 2
"#;

#[test]
fn convection_that_outweighs_diffusion_is_warned_of_with_the_number() {
    let said = warnings(GRID);
    let words = ["cell Péclet number", "along x is 40.000", "100.0 % of the nodes", "use 201 nodes along x"];
    assert!(words.iter().all(|word| said[0].contains(word)), "{said:?}");
    assert_eq!(warnings(&GRID.replace("[4, 0]", "[0.1, -0.1]")), [""; 0]);
}

#[test]
fn initial_values_that_are_no_numbers_are_pointed_at() {
    let place = Workplace::new(&GRID.replace("\"if(x < 0.5, 1, 0)\"", "\"sqrt(x - 0.25)\""));
    refuses(&place, 2, &["case.toml:5:11", "equation.initial", "at (0, 0, 0)", "finite number"]);
}

#[test]
fn generators_on_the_command_line_are_refused_in_the_same_words() {
    let output =
        common::femtile().args(["mesh", "generate", "kind = \"box\", cells = 3", "a.vtu"]).output().unwrap();
    let said = common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("an array of 3 entries is needed here, not 3"), "{said}");
}

#[test]
fn a_case_file_is_refused_in_its_own_words() {
    for (from, to, words) in [
        (
            "cells = [4, 4]",
            "cells = [4, 4, 4]",
            ["case.toml:2:39", "mesh.generate.cells: an array of 2 entries is needed"],
        ),
        (
            "cells = [4, 4]",
            "cells = \"4\"",
            ["case.toml:2:39", "an array of 2 entries is needed here, not \"4\""],
        ),
        ("\"square\"", "\"squares\"", ["case.toml:2:21", "`squares` is not offered here"]),
        ("source = 1", "sauce = 1", ["case.toml:4:1", "unknown key `sauce`"]),
        ("where = \"xmin\"", "", ["case.toml:5:1", "the key `where` is missing"]),
        (
            "dirichlet = 0",
            "robin = 3",
            ["case.toml:7:9", "a table `{ coefficient = …, value = … }` is needed here, not 3"],
        ),
        ("device = \"cpu\"", "threads = -1", ["case.toml:9:11", "a whole number ≥ 0 is needed here, not -1"]),
    ] {
        let said = square(from, to).refusal(&[], 2);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        for word in [
            "unknown variant",
            "unknown field",
            "invalid type",
            "invalid value",
            "invalid length",
            "usize",
            "struct",
        ] {
            assert!(!said.contains(word), "{said}");
        }
    }
}

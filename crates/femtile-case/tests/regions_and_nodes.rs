//! Regions of cells and values at nodes in case files: what the library makes of them, and what is refused.

use std::path::Path;

use femtile_case::{Case, CaseError, Report, Silent, run};
use femtile_mesh::generate::{SquareConfig, square};
use femtile_solve::{Poisson, SolverConfig, Value, tag_regions};

const MESH: &str = "[mesh]\ngenerate = { kind = \"square\", cells = [8, 8] }\n";
const OUTPUT: &str =
    "[output]\nvtu = false\nfunctionals = [{ name = \"u\", kind = \"value_at\", point = [0.3, 0.6, 0] }]\n";

fn try_solve(text: &str) -> Result<Report, CaseError> {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::parse(&folder.path().join("case.toml"), text.into())?;
    case.file.output.directory = folder.path().join("out");
    run(&case, &mut Silent)
}

/// The key and the message of a refusal.
fn refusal(text: &str) -> (String, String) {
    match try_solve(text).unwrap_err() {
        CaseError::Input { key, message, .. } => (key.unwrap_or_default(), message),
        other => panic!("{other}"),
    }
}

#[test]
fn a_case_with_regions_and_nodes_is_the_problem_of_the_library() {
    let text = format!(
        "{MESH}[[region]]\nname = \"core\"\nwhere = \"hypot(x - 0.5, y - 0.5) < 0.3\"\n\
         [equation]\nsigma = {{ by_tag = {{ core = 10 }}, default = 2 }}\n\
         lambda = {{ default = 0, by_tag = {{ core = \"x\" }} }}\nsource = {{ by_tag = {{ core = 1, 0 = 3 }} }}\n\
         [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = \"1 + x\"\n{OUTPUT}"
    );
    let found = try_solve(&text).unwrap();
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    let mut mesh = square(&SquareConfig { cells: [8, 8], ..SquareConfig::default() }).unwrap();
    tag_regions(&mut mesh, &[("core", "hypot(x - 0.5, y - 0.5) < 0.3")]).unwrap();
    let problem = Poisson::new(&mesh)
        .sigma(Value::by_tag([("core", 10.0)]).otherwise(2.0))
        .lambda(Value::by_tag([("core", "x")]).otherwise(0.0))
        .source(Value::by_tag([("core", 1.0), ("0", 3.0)]))
        .dirichlet_at_nodes("x < 1e-9 && y < 1e-9", "1 + x")
        .unwrap();
    let solution = problem.solve(&SolverConfig::default()).unwrap();
    assert_eq!(found.functionals["u"], solution.value_at([0.3, 0.6, 0.0]).unwrap());
}

#[test]
fn regions_are_those_of_the_refined_mesh() {
    let text = |refine: u32| {
        format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cells = [1, 1] }}\nrefine = {refine}\n\
             [[region]]\nname = \"part\"\nwhere = \"x + y < 0.5\"\n[equation]\nlambda = 1\n\
             source = {{ by_tag = {{ part = 1 }}, default = 0 }}\n\
             [output]\nvtu = false\nfunctionals = [{{ name = \"u\", kind = \"integral\" }}]\n"
        )
    };
    // No middle of the two triangles of the square lies there.
    assert_eq!(refusal(&text(0)).0, "region[0].where");
    // ∫u = ∫f, the area of the cells of the region.
    let area = try_solve(&text(6)).unwrap().functionals["u"];
    assert!((area - 0.125).abs() < 1e-2, "{area}");
}

#[test]
fn overlaps_of_regions_and_nodes_are_told_with_their_lines() {
    let text = format!(
        "{MESH}[[region]]\nname = \"left\"\nwhere = \"x < 0.5\"\n[[region]]\nname = \"all\"\nwhere = \"x < 2\"\n\
         [[boundary]]\nnodes = \"x + y < 1e-9\"\ndirichlet = 1\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n{OUTPUT}"
    );
    let warnings = try_solve(&text).unwrap().warnings.join("\n");
    for words in [
        "region[1] (line 8, \"all\") takes 64 of the 64 cells of region[0] (line 5, \"left\"), which then holds nowhere",
        "boundary[1] (line 13, dirichlet on \"xmin\") takes 1 of the 1 nodes of boundary[0] (line 10, dirichlet at",
    ] {
        assert!(warnings.contains(words), "{warnings}");
    }
}

/// Two squares side by side; the line between them is a `rod`, and with the right side a `frame`. No cell is in `void`.
const SQUARES: &str = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n4\n1 4 \"rod\"\n1 3 \"frame\"\n2 1 \"body\"\n\
                       2 2 \"void\"\n$EndPhysicalNames\n$Nodes\n6\n1 0 0 0\n2 2 0 0\n3 4 0 0\n4 0 3 0\n5 2 3 0\n6 4 3 0\n\
                       $EndNodes\n$Elements\n5\n1 1 2 4 1 2 5\n2 1 2 3 1 2 5\n3 1 2 3 2 3 6\n4 3 2 1 1 1 2 5 4\n\
                       5 3 2 1 1 2 3 6 5\n$EndElements\n";

#[test]
fn conditions_and_fluxes_hold_inside_and_tags_of_no_cell_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mesh = folder.path().join("squares.msh");
    std::fs::write(&mesh, SQUARES).unwrap();
    let text = |sigma: &str, on: &str, flux: &str| {
        format!(
            "[mesh]\nfile = {mesh:?}\n[equation]\nsigma = {sigma}\n[[boundary]]\nwhere = \"x < 1e-9\"\ndirichlet = 0\n\
             [[boundary]]\nwhere = \"{on}\"\ndirichlet = 1\n[output]\nvtu = false\n\
             functionals = [{{ name = \"q\", kind = \"flux\", where = \"{flux}\" }}]\n"
        )
    };
    let (found, message) = refusal(&text("{ by_tag = { void = 2 }, default = 1 }", "x > 3", "all"));
    assert_eq!(found, "equation.sigma.by_tag.void", "{message}");
    assert!(message.contains("no cell has the tag `void`; tags of cells: body (1)"), "{message}");
    // Two cells of 2 × 3 with the rod between them; the frame is the rod and the right end.
    for (on, flux, expected) in
        [("rod", "all", -1.5), ("rod", "rod", 1.5), ("x > 3", "rod", 0.0), ("frame", "frame", 1.5)]
    {
        let q = try_solve(&text("1", on, flux)).unwrap().functionals["q"];
        assert!((q - expected).abs() < 1e-6, "{on}, {flux}: {q}");
    }
}

#[test]
fn keys_that_contradict_each_other_are_refused_at_their_place() {
    for (entry, key, words) in [
        ("[[boundary]]\ndirichlet = 1", "boundary[0]", "the key `where` is missing"),
        ("[[boundary]]\nwhere = \"all\"\nnodes = \"x < 1\"\ndirichlet = 1", "boundary[0]", "not both"),
        (
            "[[boundary]]\nnodes = \"x < 1\"\nneumann = 1",
            "boundary[0].nodes",
            "only `dirichlet` holds at nodes",
        ),
        ("[[boundary]]\nnodes = \"x > 3\"\ndirichlet = 1", "boundary[0].nodes", "x from 0 to 1"),
        ("[[region]]\nname = \"far\"\nwhere = \"x > 3\"", "region[0].where", "x from 0 to 1"),
        (
            "[equation]\nsource = { by_tag = { core = 1 }, default = 0 }",
            "equation.source.by_tag.core",
            "no cell has",
        ),
    ] {
        let (found, message) = refusal(&format!("{MESH}{entry}\n"));
        assert_eq!(found, key, "{message}");
        assert!(message.contains(words), "{message}");
    }
    for (value, words) in [
        ("{ default = 1 }", "the key `by_tag` is missing"),
        ("{ field = \"a\", default = 1 }", "unknown key `default`; the keys here are `field`"),
        ("{ by_tag = { a = 1 }, else = 1 }", "else"),
    ] {
        let text = format!("{MESH}[equation]\nsigma = {value}\n");
        let message = Case::parse(Path::new("case.toml"), text).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn grids_have_neither_regions_nor_nodes() {
    let grid = "[mesh]\ngenerate = { kind = \"grid\", nodes = [9, 9] }\n[equation]\nkind = \"diffusion\"\nsource = 1\n\
                [time]\nend = 1\nsteps = 2\n";
    for (entry, key) in [
        ("[[region]]\nname = \"a\"\nwhere = \"x < 1\"", "region"),
        ("[[boundary]]\nnodes = \"x < 1\"\ndirichlet = 1", "boundary[0].nodes"),
    ] {
        assert_eq!(refusal(&format!("{grid}{entry}\n")).0, key);
    }
}

#[test]
fn generated_meshes_have_the_same_solution_with_both_checks() {
    for (mesh, refine) in
        [("kind = \"ball\", h = 0.6", 0), ("kind = \"square\", cells = [3, 5], deform = 0.1", 1)]
    {
        let solve = |check: &str| {
            let text = format!(
                "[mesh]\ngenerate = {{ {mesh} }}\nrefine = {refine}\n{check}\n[equation]\nsource = \"x + y\"\n\
                 [[boundary]]\nwhere = \"all\"\ndirichlet = \"y\"\n{OUTPUT}"
            );
            let report = try_solve(&text).unwrap();
            (report.functionals["u"], serde_json::to_string(&report.mesh).unwrap(), report.warnings)
        };
        let full = solve("check = \"full\"");
        assert_eq!(solve("check = \"generated\""), full);
        assert_eq!(solve(""), full);
    }
}

#[test]
fn a_file_cannot_be_checked_as_a_generated_mesh() {
    let (key, message) =
        refusal("[mesh]\nfile = \"mesh.vtu\"\ncheck = \"generated\"\n[equation]\nsource = 1\n");
    assert_eq!(key, "mesh.check");
    assert!(message.contains("a file needs check = \"full\""), "{message}");
}

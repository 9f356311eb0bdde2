//! Programs of whole runs, announced before the mesh is checked.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use femtile::device::Cuda;
use femtile::device::cuda::{CudaTrace, TracedKind};
use femtile::mesh::generate::{BoxConfig, box_mesh};
use femtile::mesh::io;
use femtile_bench::problems::whole::{WholeCase, cases};
use femtile_case::{Case, Progress, Stage};

use crate::emulated_cases::{PLENTY, gpu};

/// Unknowns with which multigrid has several levels.
const MOST: usize = 6_000;

/// Notes when the mesh is checked.
#[derive(Default)]
struct Checked(Option<Instant>);

impl Progress for Checked {
    fn begin(&mut self, stage: Stage) {
        if stage == Stage::Check {
            self.0 = Some(Instant::now());
        }
    }
}

/// Writes a case into a folder, and its mesh where it is read.
fn written(case: &WholeCase, folder: &Path) -> Case {
    let mesh = match &case.mesh {
        Ok(mesh) => mesh.clone(),
        Err(ending) => {
            let file = format!("box.{ending}");
            let config = BoxConfig { cells: [5, 4, 3], ..BoxConfig::default() };
            io::write(&folder.join(&file), &box_mesh(&config).unwrap()).unwrap();
            format!("file = \"{file}\"")
        }
    };
    let path = folder.join("case.toml");
    std::fs::write(&path, format!("[mesh]\n{mesh}\n{}", case.rest)).unwrap();
    let mut case = Case::load(&path).unwrap();
    case.file.output.directory = folder.join("out");
    case
}

/// Checks that a run loads no program of these that was not announced before its mesh was checked.
fn announces_what_it_loads(test: &str, case: &WholeCase, is_meant: fn(&str) -> bool) {
    let Some(device) = gpu(test, PLENTY) else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = Arc::new(CudaTrace::default());
    let device = Cuda::with_driver(trace.driver(device.driver().clone()));
    let mut checked = Checked::default();
    femtile_case::run_on(&written(case, folder.path()), &device, &mut checked).unwrap();
    let checked = checked.0.unwrap();
    let (works, _) = trace.take();
    let loads = || works.iter().filter(|work| work.kind == TracedKind::Load && is_meant(&work.name));
    let late = loads().filter(|load| load.announced.is_none_or(|at| at > checked));
    let late: BTreeSet<&str> = late.map(|load| load.name.as_str()).collect();
    assert!(late.is_empty(), "{}: {late:#?}", case.name);
    assert!(loads().count() > 4, "{}", case.name);
}

#[test]
fn every_program_of_a_whole_run_is_announced_before_the_mesh_is_checked() {
    for case in cases(MOST).iter().filter(|case| !case.name.starts_with("large")) {
        announces_what_it_loads("every_program_of_a_whole_run_is_announced", case, |_| true);
    }
}

#[test]
fn programs_of_a_coefficient_by_cell_are_announced() {
    for (degree, smoother) in [(1, "auto"), (2, "vertex-patch")] {
        let rest = format!(
            "[equation]\nsigma = \"1 + 7*x\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y\"\n\
             [space]\ndegree = {degree}\n\
             [solver]\npreconditioner = \"gmg\"\ngmg = {{ smoother = \"{smoother}\" }}\n"
        );
        for mesh in [
            "generate = { kind = \"box\", cells = [4, 4, 4], cell = \"hexahedron\" }",
            "generate = { kind = \"square\", cells = [4, 8], cell = \"quadrilateral\" }",
        ] {
            let case = WholeCase { name: smoother, mesh: Ok(mesh.into()), rest: rest.clone() };
            announces_what_it_loads("programs_of_a_coefficient_by_cell", &case, |name| {
                ["box_", "vertex_patch_", "plane_"].iter().any(|start| name.contains(&format!(" of {start}")))
            });
        }
    }
}

#[test]
fn programs_of_several_components_are_announced() {
    let (cubes, squares) = (
        "\"box\", cells = [4, 4, 4], cell = \"hexahedron\"",
        "\"square\", cells = [6, 6], cell = \"quadrilateral\"",
    );
    for (cells, preconditioner) in
        [(cubes, "jacobi"), (cubes, "gmg"), (cubes, "pmg"), (squares, "jacobi"), (squares, "pmg")]
    {
        let rest = format!(
            "[equation]\nsource = [\"x\", 1]\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = [\"y\", 0]\n\
             [space]\ndegree = 2\ncomponents = 2\n\
             [solver]\npreconditioner = \"{preconditioner}\"\n"
        );
        let mesh = format!("generate = {{ kind = {cells} }}");
        let case = WholeCase { name: preconditioner, mesh: Ok(mesh), rest };
        announces_what_it_loads("programs_of_several_components", &case, |_| true);
    }
}

#[test]
fn programs_of_quadrilaterals_are_announced() {
    for (shape, preconditioner) in
        [("", "jacobi"), ("", "pmg"), (", deform = 0.1", "pmg"), (", deform = 0.1, order = 2", "jacobi")]
    {
        let rest = format!(
            "[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y\"\n[space]\ndegree = 3\n\
             [solver]\npreconditioner = \"{preconditioner}\"\n"
        );
        let mesh =
            format!("generate = {{ kind = \"square\", cells = [6, 6], cell = \"quadrilateral\"{shape} }}");
        let case = WholeCase { name: preconditioner, mesh: Ok(mesh), rest };
        announces_what_it_loads("programs_of_quadrilaterals", &case, |_| true);
    }
}

#[test]
fn programs_of_iterative_methods_are_announced() {
    let mesh = "generate = { kind = \"box\", cells = [5, 4, 3] }";
    for (method, preconditioner) in [
        ("merged-cg", "jacobi"),
        ("pipelined-cg", "none"),
        ("pipelined-cg", "jacobi"),
        ("pipelined-cg", "amg"),
        ("s-step-cg", "jacobi"),
        ("gmres", "jacobi"),
    ] {
        let rest = format!(
            "[equation]\nsource = \"x\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y\"\n\
             [solver]\nmethod = \"{method}\"\npreconditioner = \"{preconditioner}\"\n"
        );
        let case = WholeCase { name: method, mesh: Ok(mesh.into()), rest };
        announces_what_it_loads("programs_of_iterative_methods", &case, |_| true);
    }
}

#[test]
fn programs_of_algebraic_multigrid_in_double_precision_are_announced() {
    let rest = "[equation]\nsource = \"x\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y\"\n\
                [solver]\npreconditioner = \"amg\"\namg = { precision = \"f64\" }\n";
    let mesh = "generate = { kind = \"box\", cells = [10, 10, 10] }";
    let case = WholeCase { name: "amg in f64", mesh: Ok(mesh.into()), rest: rest.into() };
    announces_what_it_loads("programs_of_algebraic_multigrid_in_double", &case, |_| true);
}

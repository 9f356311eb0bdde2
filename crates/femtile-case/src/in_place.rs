//! Boxes that ranks make in place: each its part, so that none has the whole mesh.

use femtile_comm::Comm;
use femtile_mesh::check::{CheckReport, check_part};
use femtile_mesh::generate::{BoxConfig, BoxParts, BoxSplit, DeformConfig, part_of_box};
use femtile_mesh::partition::DividedMesh;
use femtile_solve::{
    FEWEST_LAYERS, FieldConfig, Method, OperatorKind, Partitioner, PreconditionerConfig, SolveError,
    SolverConfig, Stage, Stages,
};

use crate::file::{CheckName, EquationKind, MeshSection, Value};
use crate::mesh_source::{
    box_of, check_config, of_deform, of_generator, place_in_generator, placed, scaled_by,
};
use crate::{Case, CaseError, memory};

/// A box whose parts ranks make, on one of these.
pub(crate) struct InPlace {
    pub comm: Comm,
    of: Parts,
}

/// A box and how it is divided.
struct Parts {
    config: BoxConfig,
    deform: Option<DeformConfig>,
    parts: BoxParts,
}

impl InPlace {
    /// Returns the box of a case whose ranks need no more than their parts of it; none where one of them does, or a result is of
    /// the whole mesh. All ranks call it.
    ///
    /// # Errors
    /// Those of the generator; another rank ended.
    pub fn of(case: &Case, config: &SolverConfig) -> Result<Option<Self>, CaseError> {
        let Some(comm) = case.embedding.comm.as_ref().filter(|comm| comm.n_ranks() > 1) else {
            return Ok(None);
        };
        let here = Parts::of(case, config, comm.n_ranks());
        // The first rank alone may draw.
        let [is_missing] = comm.any([here.is_none()]).map_err(SolveError::from)?;
        Ok(here.filter(|_| !is_missing).map(|of| Self { comm: comm.clone(), of }))
    }

    /// Returns whether ranks that are threads make the parts of the box of a case: of hexahedra. Taking the own cells out of parts of
    /// tetrahedra for functionals costs as much time as parts save where threads share one mesh.
    pub fn is_for_threads(case: &Case, config: &SolverConfig) -> bool {
        let n = config.ranks.n();
        let is_made = || Parts::of(case, config, n).is_some_and(|of| of.config.split == BoxSplit::Hexahedron);
        n > 1 && case.embedding.comm.is_none() && is_made()
    }

    /// Makes the part of this rank and checks it. All ranks call it.
    ///
    /// # Errors
    /// Those of the generator and of the check; too little memory.
    pub fn mesh(
        &self,
        case: &Case,
        stages: &mut Stages<'_>,
    ) -> Result<(DividedMesh, CheckReport), CaseError> {
        stages.begin(Stage::Read)?;
        let order = self.of.deform.map_or(1, |deform| deform.order);
        let counts = self.of.config.counts().map_err(|error| of_generator(case, error))?.with_order(order);
        memory::check_on(case, (counts, true), false, &place_in_generator("cells"))?;
        let Parts { config, deform, parts } = &self.of;
        let rank = (parts, self.comm.rank());
        let made = stages.interruptible(|stop| part_of_box(config, deform.as_ref(), rank, Some(stop)));
        stages.go_on()?;
        let mut mesh = made.map_err(|error| of_generator(case, of_deform(error)))?;
        scaled_by(case, |factor| mesh.scale(factor))?;
        stages.begin(Stage::Check)?;
        let mut report = check_part(&mut mesh, &check_config(case)).map_err(|error| placed(case, error))?;
        report.warnings = self.of_worst(&report)?;
        Ok((mesh, report))
    }

    /// The warnings of the rank with the worst cell. All ranks call it.
    fn of_worst(&self, report: &CheckReport) -> Result<Vec<String>, SolveError> {
        let qualities = self.comm.all_gather(&[report.worst_quality])?.concat();
        let texts = self.comm.all_gather(report.warnings.join("\n").as_bytes())?;
        let worst =
            (0..texts.len()).reduce(|a, b| if qualities[b] < qualities[a] { b } else { a }).unwrap_or(0);
        let text = String::from_utf8_lossy(&texts[worst]).into_owned();
        Ok(text.lines().map(str::to_owned).collect())
    }
}

impl Parts {
    /// Divides the box of a case among `n` ranks; none where one of them needs the whole mesh.
    fn of(case: &Case, solver: &SolverConfig, n: usize) -> Option<Self> {
        if needs_whole(case, solver) {
            return None;
        }
        let (config, deform) = box_of(case.file.mesh.generate.as_ref()?)?;
        let layers = || BoxParts::layers(config.cells, 2, n);
        let parts = match geometric(solver, &config) {
            Geometric::Never => BoxParts::bisected(config.cells, n),
            // Boxes of multigrid with cells of different shapes or σ are found in the whole mesh.
            Geometric::Asked | Geometric::Open if deform.is_some() || !has_one_sigma(case) => None,
            Geometric::Asked => layers(),
            Geometric::Open if config.cells[2] / n < FEWEST_LAYERS => BoxParts::bisected(config.cells, n),
            Geometric::Open => layers(),
        };
        Some(Self { deform, parts: parts?, config })
    }
}

/// Whether a rank makes something of the whole mesh.
fn needs_whole(case: &Case, solver: &SolverConfig) -> bool {
    let (file, output) = (&case.file, &case.file.output);
    let MeshSection { refine, merge, check, .. } = file.mesh;
    file.equation.kind != EquationKind::ReactionDiffusion
        || (refine, merge, check) != (0, false, check.filter(|check| *check == CheckName::Generated))
        || (output.vtu.is_written() && !output.vtu.has_pieces())
        || case.field_config() != FieldConfig::default()
        || case.is_shown()
        || case.embedding.receiver.is_some()
        || case.embedding.mesh.is_some()
        || solver.partitioner != Partitioner::default()
}

/// Whether geometric multigrid may be the preconditioner.
enum Geometric {
    Never,
    /// It is chosen by itself, where it can be.
    Open,
    Asked,
}

fn geometric(solver: &SolverConfig, config: &BoxConfig) -> Geometric {
    let takes_diagonal = matches!(solver.method, Method::MergedCg | Method::SStepCg { .. });
    let is_matrix = solver.operator == OperatorKind::Assembled;
    match &solver.preconditioner {
        PreconditionerConfig::Gmg(_) => Geometric::Asked,
        PreconditionerConfig::Auto
            if config.split == BoxSplit::Hexahedron && !takes_diagonal && !is_matrix =>
        {
            Geometric::Open
        }
        _ => Geometric::Never,
    }
}

/// Whether σ is one number.
fn has_one_sigma(case: &Case) -> bool {
    matches!(case.file.equation.sigma, Value::Number(sigma) if sigma > 0.0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use femtile_comm::threads;

    use super::*;
    use crate::{Report, Silent, run};

    const EQUATION: &str = r#"
[equation]
sigma = 2
source = "sin(3*x) + y"
[[boundary]]
where = "xmin"
dirichlet = "y*y"
[[boundary]]
where = "z > 1 - 1e-9 && x < 0.4"
robin = { coefficient = 2, value = 1 }
[solver]
tolerance = 1e-12
"#;
    const OUTPUT: &str = r#"
functionals = [
  { kind = "max", name = "max" }, { kind = "min", name = "min" }, { kind = "l2_norm", name = "norm" },
  { kind = "energy", name = "energy" }, { kind = "integral", name = "integral" }, { kind = "mean", name = "mean" },
  { kind = "value_at", name = "value", point = [0.3, 0.4, 0.5] },
  { kind = "value_at", name = "values", points = [[0.9, 0.9, 0.9], [0.5, 0.5, 0.5]] },
  { kind = "flux", name = "inflow", where = "xmin" }, { kind = "flux", name = "outflow", where = "zmax" },
  { kind = "error_l2", name = "error", exact = "x" }, { kind = "error_h1", name = "slope", exact = "x*y" },
  { kind = "along", name = "line", from = [0, 0, 0], to = [1, 1, 1], points = 9 },
]
"#;

    fn case(folder: &Path, text: &str, comm: Option<&Comm>) -> Case {
        let mut case = Case::parse(&folder.join("case.toml"), text.into()).unwrap();
        let n = comm.map_or(1, Comm::n_ranks);
        case.file.output.directory = folder.join(format!("out-{n}"));
        case.file.solver.threads = 1;
        case.embedding.comm = comm.cloned();
        case.embedding.writes_files = comm.is_none_or(|comm| comm.rank() == 0);
        case
    }

    fn on_ranks(n: usize, folder: &Path, text: &str) -> Result<Report, CaseError> {
        let work = |comm: Comm| run(&case(folder, text, Some(&comm)), &mut Silent);
        threads::run(n, work, |comm| work(comm).map(drop))
    }

    #[test]
    fn the_report_is_that_of_one_rank_and_pieces_have_all_cells() {
        for (mesh, more, way) in [
            ("cells = [7, 5, 6]", "", "boxes"),
            (
                "cells = [7, 5, 6], cell = \"tetrahedron-5\", deform = 0.1",
                "preconditioner = \"amg\"",
                "boxes",
            ),
            ("cells = [4, 4, 16], cell = \"hexahedron\", upper = [1, 1, 1.5]", "", "layers"),
            (
                "cells = [6, 5, 4]",
                "[[region]]\nname = \"core\"\nwhere = \"hypot(x, y) < 0.4\"\n[[region]]\nname = \"low\"\nwhere = \"z < 0.3\"",
                "boxes",
            ),
            (
                "cells = [4, 3, 5], cell = \"hexahedron\", deform = 0.1, order = 2",
                "preconditioner = \"pmg\"\n[space]\ndegree = 2",
                "boxes",
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let output = format!("[output]\nvtu = \"pieces\"{OUTPUT}");
            let sigma =
                if more.contains("region") { "{ by_tag = { \"0\" = 1, \"1\" = 5, low = 2 } }" } else { "2" };
            let equation = EQUATION.replace("sigma = 2", &format!("sigma = {sigma}"));
            let text = format!("[mesh]\ngenerate = {{ kind = \"box\", {mesh} }}{equation}{more}\n{output}");
            let alone = run(&case(folder.path(), &text, None), &mut Silent).unwrap();
            for n in [2, 3] {
                let found = on_ranks(n, folder.path(), &text).unwrap();
                let ranks = found.ranks.as_ref().unwrap();
                let expected = if way == "layers" && n == 3 { "boxes" } else { way };
                assert_eq!((ranks.n_ranks, ranks.partition), (n, expected), "{mesh}");
                let sizes = |report: &Report| (report.mesh.n_nodes, report.mesh.n_cells, report.space.n_dofs);
                assert_eq!(sizes(&found), sizes(&alone), "{mesh}");
                assert_eq!(found.warnings, alone.warnings, "{mesh}");
                assert!((found.mesh.volume - alone.mesh.volume).abs() < 1e-12, "{mesh}");
                for (name, expected) in &alone.functionals {
                    let found = found.functionals[name];
                    assert!((found - expected).abs() < 1e-10, "{mesh}, {name}: {found} {expected}");
                }
                let folder = folder.path().join(format!("out-{n}"));
                let of_piece = |rank: usize| {
                    femtile_mesh::io::read(&folder.join(format!("solution_{rank:04}.vtu"))).unwrap().n_cells()
                };
                assert_eq!((0..n).map(of_piece).sum::<usize>(), alone.mesh.n_cells, "{mesh}");
                assert!(folder.join("line.csv").exists() && folder.join("solution.pvtu").exists());
                assert_eq!(crate::verify(&folder).unwrap(), []);
            }
        }
    }

    #[test]
    fn ranks_that_are_threads_make_their_parts_too() {
        let folder = tempfile::tempdir().unwrap();
        let mesh = "[mesh]\ngenerate = { kind = \"box\", cells = [5, 4, 6], cell = \"hexahedron\" }";
        let of = |ranks: usize, vtu: &str| {
            let output = format!("[output]\nvtu = {vtu}{OUTPUT}");
            let text = format!("{mesh}{EQUATION}ranks = {ranks}\n{output}");
            let mut case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
            case.file.output.directory = folder.path().join(format!("out-{ranks}"));
            run(&case, &mut Silent).unwrap()
        };
        let alone = of(1, "false");
        for (ranks, vtu) in [(2, "false"), (3, "\"pieces\"")] {
            let found = of(ranks, vtu);
            assert_eq!(found.ranks.unwrap().partition, "boxes");
            for (name, expected) in &alone.functionals {
                assert!((found.functionals[name] - expected).abs() < 1e-10, "{name}");
            }
            let folder = folder.path().join(format!("out-{ranks}"));
            assert_eq!(crate::verify(&folder).unwrap(), []);
            assert_eq!(folder.join("solution_0002.vtu").exists(), ranks == 3);
        }
        assert_eq!(of(2, "true").ranks.unwrap().partition, "bisection");
    }

    #[test]
    fn a_whole_mesh_serves_what_needs_it() {
        let small = "[mesh]\ngenerate = { kind = \"box\", cells = [4, 4, 6] }";
        let cubes = "[mesh]\ngenerate = { kind = \"box\", cells = [4, 4, 16], cell = \"hexahedron\"";
        let no_file = "[output]\nvtu = false\n";
        for (text, way) in [
            (format!("{small}{EQUATION}{no_file}"), "boxes"),
            (format!("{small}{EQUATION}"), "bisection"),
            (format!("{small}{EQUATION}{no_file}picture = true\n"), "bisection"),
            (format!("{small}{EQUATION}[output]\nvtu = \"pieces\"\nfields = [\"gradient\"]\n"), "bisection"),
            (format!("{small}\nrefine = 1{EQUATION}{no_file}"), "bisection"),
            (format!("{small}\ncheck = \"full\"{EQUATION}{no_file}"), "bisection"),
            (format!("{small}{EQUATION}{no_file}[[region]]\nname = \"a\"\nwhere = \"x < 0.5\"\n"), "boxes"),
            (format!("{cubes} }}{EQUATION}{no_file}"), "layers"),
            (format!("{cubes}, deform = 0.1 }}{EQUATION}preconditioner = \"jacobi\"\n{no_file}"), "boxes"),
            (format!("{cubes}, deform = 0.1 }}{EQUATION}{no_file}"), "bisection"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let found = on_ranks(2, folder.path(), &text).unwrap();
            assert_eq!(found.ranks.unwrap().partition, way, "{text}");
        }
    }

    #[test]
    fn an_error_is_placed_in_the_case() {
        let folder = tempfile::tempdir().unwrap();
        let said = |mesh: &str, output: &str| {
            let text = format!(
                "[mesh]\ngenerate = {{ kind = \"box\", {mesh} }}{EQUATION}[output]\nvtu = false\n{output}"
            );
            on_ranks(2, folder.path(), &text).unwrap_err().to_string()
        };
        for (mesh, output, word) in [
            ("cells = [4, 4, 4], deform = 0.4", "", "deform"),
            ("cells = [4, 4, 4], upper = [1, 1, -1]", "", "upper"),
            (
                "cells = [4, 4, 4]",
                "functionals = [{ kind = \"value_at\", name = \"a\", point = [2, 2, 2] }]",
                "outside",
            ),
            (
                "cells = [4, 4, 4]",
                "functionals = [{ kind = \"flux\", name = \"a\", where = \"x > 3\" }]",
                "x from 0 to 1",
            ),
        ] {
            let said = said(mesh, output);
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

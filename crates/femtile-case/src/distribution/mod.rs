//! Distributed meshes of cases: boxes that each rank generates in part, and others that the first rank reads
//! or generates, and sends.

use femtile_comm::Comm;
use femtile_device::cuda::Opening;
use femtile_mesh::Mesh;
use femtile_mesh::check::{CheckReport, check_part};
use femtile_mesh::generate::{BoxConfig, BoxPartition, BoxSplit, DeformConfig, part_of_box};
use femtile_mesh::partition::DistributedMesh;
use femtile_solve::{
    FEWEST_LAYERS, FieldConfig, Method, OperatorKind, Partitioner, PreconditionerConfig, SolveError,
    SolverConfig, Stage, Stages, cells_fill_rows, scatter,
};

use crate::checked_mesh::checked_mesh;
use crate::file::{CheckName, EquationKind, MeshSection, TimeSection, Value};
use crate::memory::{self, Hosted};
use crate::mesh_source::{
    box_of, check_config, of_deform, of_generator, place_in_generator, placed, scaled_by,
};
use crate::{Case, CaseError};

/// Bytes per cell of a multigrid box during its setup: its corner and σ, unscaled and scaled, and its
/// coefficient.
const BOX_CELL: f64 = 136.0;

/// A mesh of which ranks need only their parts, on one of these ranks.
pub(crate) struct MeshDistribution {
    pub comm: Comm,
    from: Source,
    /// Whether the first rank writes or draws the whole solution.
    pub wants_all: bool,
    /// Whether the first rank keeps the whole mesh, for output during the run.
    keeps_whole: bool,
}

/// The source of the parts of ranks.
enum Source {
    /// Each rank generates its part.
    Box(DistributedBox),
    /// The first rank reads or generates the mesh and sends parts. If geometric multigrid may be the
    /// automatic choice and supports the cells, the mesh is not distributed.
    First { may_have_layers: bool },
}

/// A box and its partition.
struct DistributedBox {
    config: BoxConfig,
    deform: Option<DeformConfig>,
    parts: BoxPartition,
}

/// The mesh of a rank.
pub(crate) enum RankMesh {
    Part(Box<RankMeshPart>),
    Whole(Box<Mesh>, Box<CheckReport>),
}

/// This rank's part of a distributed mesh.
pub(crate) struct RankMeshPart {
    pub mesh: DistributedMesh,
    pub checked: CheckReport,
    /// The whole mesh on the first rank, if it keeps it.
    pub whole: Option<Mesh>,
    pub comm: Comm,
    /// Whether the first rank writes or draws the whole solution.
    pub wants_all: bool,
    /// Whether the first rank keeps the whole mesh.
    pub keeps_whole: bool,
    /// Whether a condition, or a flux of a steady equation, has the tag of facets inside the mesh; the same on all ranks.
    pub has_inner_facets: bool,
}

impl MeshDistribution {
    /// Returns how the mesh of a case is distributed; none if a rank needs the whole mesh before the solve.
    /// Collective.
    ///
    /// # Errors
    /// Errors of the generator; another rank failed.
    pub fn of(case: &Case, config: &SolverConfig) -> Result<Option<Self>, CaseError> {
        let Some(comm) = case.embedding.comm.as_ref().filter(|comm| comm.n_ranks() > 1) else {
            return Ok(None);
        };
        let here = Source::of(case, config, comm.n_ranks());
        // Only the first rank may draw.
        let is_so = [here.is_none(), writes_all(case)];
        let [is_missing, wants_all] = comm.any(is_so).map_err(SolveError::from)?;
        let keeps_whole = is_in_time(case) && (wants_all || is_recorded(case));
        let of = |from| Self { comm: comm.clone(), from, wants_all, keeps_whole };
        Ok(here.filter(|_| !is_missing).map(of))
    }

    /// Generates or receives the mesh of a rank, and checks it: its part, or the whole mesh. Collective.
    ///
    /// # Errors
    /// As [`MeshDistribution::of`] and [`MeshDistribution::mesh`].
    pub fn held(
        case: &Case,
        solver: (&SolverConfig, Option<&Opening>),
        stages: &mut Stages<'_>,
    ) -> Result<RankMesh, CaseError> {
        if let Some(divided) = Self::of(case, solver.0)? {
            return divided.mesh(case, solver, stages);
        }
        let (mesh, checked) = checked_mesh(case, Hosted::whole(case)?, solver, stages)?;
        Ok(RankMesh::Whole(Box::new(mesh), Box::new(checked)))
    }

    /// Returns whether threads generate their parts of a case's box: they do for congruent hexahedra. For
    /// tetrahedra, extracting own cells for functionals costs as much time as parts save, and threads on one
    /// mesh share the data of all cells.
    pub fn is_for_threads(case: &Case, config: &SolverConfig) -> bool {
        let n = config.ranks.n();
        let is_made = || match Source::of(case, config, n) {
            Some(Source::Box(of)) => {
                of.config.split == BoxSplit::Hexahedron && of.bytes_of_boxes(case, config) == 0.0
            }
            _ => false,
        };
        n > 1 && case.embedding.comm.is_none() && !writes_all(case) && is_made()
    }

    /// Generates or receives the part of this rank, and checks it. If there are too few cells for all ranks,
    /// or multigrid needs the whole mesh, each rank has the whole mesh. Collective.
    ///
    /// # Errors
    /// Errors of the reader, the generator and the check; too little memory.
    fn mesh(
        self,
        case: &Case,
        solver: (&SolverConfig, Option<&Opening>),
        stages: &mut Stages<'_>,
    ) -> Result<RankMesh, CaseError> {
        match &self.from {
            Source::Box(parts) => self.made(case, parts, solver, stages),
            Source::First { may_have_layers } => self.sent(case, *may_have_layers, solver, stages),
        }
    }

    /// Generates the part of this rank.
    fn made(
        &self,
        case: &Case,
        parts: &DistributedBox,
        solver: (&SolverConfig, Option<&Opening>),
        stages: &mut Stages<'_>,
    ) -> Result<RankMesh, CaseError> {
        let of_boxes = parts.bytes_of_boxes(case, solver.0);
        let whole = match self.keeps_whole {
            true => self.of_first(case, solver, of_boxes, stages)?,
            false => None,
        };
        stages.begin(Stage::Read)?;
        let order = parts.deform.map_or(1, |deform| deform.order);
        let counts = parts.config.counts().map_err(|error| of_generator(case, error))?.with_order(order);
        let has_whole = self.wants_all && self.comm.rank() == 0;
        let hosted = if has_whole { Hosted::first(case)? } else { Hosted::parts(case)? };
        // The whole mesh of the first rank was checked with its part.
        if whole.is_none() {
            let hosted = hosted.with_each(of_boxes);
            memory::check(case, counts, (hosted, false), &place_in_generator("cells"))?;
        }
        let DistributedBox { config, deform, parts } = parts;
        let rank = (parts, self.comm.rank());
        let made = stages.interruptible(|stop| part_of_box(config, deform.as_ref(), rank, Some(stop)));
        stages.go_on()?;
        let mut mesh = made.map_err(|error| of_generator(case, of_deform(error)))?;
        scaled_by(case, |factor| mesh.scale(factor))?;
        stages.begin(Stage::Check)?;
        let mut report =
            check_part(&mut mesh, &check_config(case, false)).map_err(|error| placed(case, error))?;
        report.warnings = self.of_worst(&report)?;
        let (whole, checked) = whole.map_or((None, report), |(mesh, checked)| (Some(mesh), checked));
        // Generators tag sides alone.
        Ok(self.part(mesh, checked, whole, false))
    }

    /// The mesh of this rank, which has its part.
    fn part(
        &self,
        mesh: DistributedMesh,
        checked: CheckReport,
        whole: Option<Mesh>,
        has_inner_facets: bool,
    ) -> RankMesh {
        let Self { wants_all, keeps_whole, .. } = *self;
        let comm = self.comm.clone();
        RankMesh::Part(Box::new(RankMeshPart {
            mesh,
            checked,
            whole,
            comm,
            wants_all,
            keeps_whole,
            has_inner_facets,
        }))
    }

    /// Reads or generates the whole mesh on the first rank. Each process then holds some bytes for multigrid
    /// boxes. Collective; an error of the first rank ends the others.
    fn of_first(
        &self,
        case: &Case,
        solver: (&SolverConfig, Option<&Opening>),
        of_boxes: f64,
        stages: &mut Stages<'_>,
    ) -> Result<Option<(Mesh, CheckReport)>, CaseError> {
        let hosted = if self.keeps_whole { Hosted::first_keeping(case)? } else { Hosted::first(case)? };
        let hosted = hosted.with_each(of_boxes);
        stages.begin(Stage::Read)?;
        match self.comm.rank() {
            0 => checked_mesh(case, hosted, solver, stages).map(Some),
            _ => Ok(None),
        }
    }

    /// Receives the part of this rank from the first one, which reads or generates the whole mesh.
    fn sent(
        &self,
        case: &Case,
        may_have_layers: bool,
        solver: (&SolverConfig, Option<&Opening>),
        stages: &mut Stages<'_>,
    ) -> Result<RankMesh, CaseError> {
        let whole = self.of_first(case, solver, 0.0, stages)?;
        // Of a facet between two parts neither may have both cells.
        let is_here = whole.as_ref().is_some_and(|(mesh, _)| case.has_inner_facets(mesh));
        let [has_inner_facets] = self.comm.any([is_here]).map_err(SolveError::from)?;
        let may_send = |mesh: &Mesh| !(may_have_layers && cells_fill_rows(mesh));
        let given = whole.as_ref().filter(|(mesh, _)| may_send(mesh));
        let given = given.map(|(mesh, report)| (mesh, &*report.boundary));
        let part = scatter(&self.comm, given, solver.0.partitioner)?;
        stages.go_on()?;
        match (part, whole) {
            (Some(part), Some((mesh, report))) => {
                let whole = Some(mesh).filter(|_| self.keeps_whole);
                Ok(self.part(part, report, whole, has_inner_facets))
            }
            (Some(mut part), None) => {
                stages.begin(Stage::Check)?;
                let report =
                    check_part(&mut part, &check_config(case, false)).map_err(|error| placed(case, error))?;
                Ok(self.part(part, report, None, has_inner_facets))
            }
            (None, whole) => {
                let hosted = Hosted::whole(case)?;
                let (mesh, report) = match whole {
                    Some(whole) => whole,
                    None => checked_mesh(case, hosted, solver, stages)?,
                };
                Ok(RankMesh::Whole(Box::new(mesh), Box::new(report)))
            }
        }
    }

    /// The warnings of the rank with the worst cell. Collective.
    fn of_worst(&self, report: &CheckReport) -> Result<Vec<String>, SolveError> {
        let qualities = self.comm.all_gather(&[report.worst_quality])?.concat();
        let texts = self.comm.all_gather(report.warnings.join("\n").as_bytes())?;
        let worst =
            (0..texts.len()).reduce(|a, b| if qualities[b] < qualities[a] { b } else { a }).unwrap_or(0);
        let text = String::from_utf8_lossy(&texts[worst]).into_owned();
        Ok(text.lines().map(str::to_owned).collect())
    }
}

impl Source {
    /// Returns the source of the parts of `n` ranks; none if one of them needs the whole mesh.
    fn of(case: &Case, solver: &SolverConfig, n: usize) -> Option<Self> {
        if needs_whole(case) {
            return None;
        }
        let geometric = match case.file.equation.kind {
            EquationKind::Monodomain => Geometric::Never,
            _ => geometric(solver),
        };
        let boxed = case.file.mesh.generate.as_ref().and_then(box_of).filter(|_| is_made_alone(case, solver));
        let Some((config, deform)) = boxed else {
            let may_have_layers = matches!(geometric, Geometric::Open);
            return (!matches!(geometric, Geometric::Asked)).then_some(Self::First { may_have_layers });
        };
        let geometric = if config.split == BoxSplit::Hexahedron { geometric } else { Geometric::Never };
        let layers = || BoxPartition::layers(config.cells, 2, n);
        let parts = match geometric {
            Geometric::Asked => layers(),
            Geometric::Open if config.cells[2] / n >= FEWEST_LAYERS => layers(),
            Geometric::Never | Geometric::Open => BoxPartition::bisected(config.cells, n),
        };
        parts.map(|parts| Self::Box(DistributedBox { config, deform, parts }))
    }
}

impl DistributedBox {
    /// Bytes of the corners and σ of all cells, which each process holds for geometric multigrid on cells
    /// that are not congruent.
    fn bytes_of_boxes(&self, case: &Case, solver: &SolverConfig) -> f64 {
        let may_be =
            self.config.split == BoxSplit::Hexahedron && !matches!(geometric(solver), Geometric::Never);
        let is_bent = self.deform.is_some_and(|deform| deform.amplitude != 0.0);
        let equation = &case.file.equation;
        let has_one_sigma =
            matches!(equation.diffusion.as_ref().unwrap_or(&equation.sigma), Value::Number(_));
        let n_cells: f64 = self.config.cells.iter().map(|&n| n as f64).product();
        if may_be && (is_bent || !has_one_sigma) { BOX_CELL * n_cells } else { 0.0 }
    }
}

/// Whether an output of a rank needs the whole mesh.
fn needs_whole(case: &Case) -> bool {
    let (file, output, is_in_time) = (&case.file, &case.file.output, is_in_time(case));
    let of_whole = case.field_config() != FieldConfig::default() || case.needs_data();
    // Each rank writes its piece of what needs the whole solution, or of what is drawn.
    !is_in_time && output.vtu.has_pieces() && of_whole
        // Accepted flaws: facets of more than two cells have no place in the counts of a mesh in parts.
        || !file.mesh.accept.is_empty()
        // Notes on fibre directions are about all cells, which the first rank has in time-dependent runs.
        || !is_in_time && has_fibres(&file.equation.sigma)
        || case.embedding.receiver.is_some()
        || case.embedding.mesh.is_some()
}

fn is_in_time(case: &Case) -> bool {
    case.file.equation.kind.is_in_time()
}

/// Whether the first rank produces output on the whole mesh during the run or at its end: maps and
/// functionals of cardiac cases, notes on fibre directions.
fn is_recorded(case: &Case) -> bool {
    let in_run = |time: &TimeSection| {
        time.frames.is_some() || time.traces.is_some() || time.checkpoint.is_some() || time.restart
    };
    let equation = &case.file.equation;
    equation.kind == EquationKind::Monodomain
        || case.file.time.as_ref().is_some_and(in_run)
        || equation.diffusion.as_ref().is_some_and(has_fibres)
}

fn has_fibres(value: &Value) -> bool {
    femtile_solve::Value::from(value).has_fibres()
}

/// Whether a file or a picture shows the whole solution.
fn writes_all(case: &Case) -> bool {
    let vtu = case.file.output.vtu;
    (vtu.is_written() && !vtu.has_pieces())
        || case.field_config() != FieldConfig::default()
        || case.needs_data()
}

/// Whether the settings of the case allow generation in parts.
fn is_made_alone(case: &Case, solver: &SolverConfig) -> bool {
    let MeshSection { refine, merge, check, .. } = case.file.mesh;
    (refine, merge) == (0, false)
        && check.is_none_or(|check| check == CheckName::Generated)
        && solver.partitioner == Partitioner::default()
}

/// Whether geometric multigrid may be the preconditioner.
enum Geometric {
    Never,
    /// It may be the automatic choice.
    Open,
    Asked,
}

fn geometric(solver: &SolverConfig) -> Geometric {
    let takes_diagonal = matches!(solver.method, Method::MergedCg | Method::SStepCg { .. });
    let is_matrix = solver.operator == OperatorKind::Assembled;
    match &solver.preconditioner {
        PreconditionerConfig::Gmg(_) => Geometric::Asked,
        PreconditionerConfig::Auto if !takes_diagonal && !is_matrix => Geometric::Open,
        _ => Geometric::Never,
    }
}

#[cfg(test)]
mod tests;

use std::path::Path;

use femtile_device::MemoryUse;
use femtile_fem::FemError;
use femtile_fem::functionals::Line;
use femtile_fem::recovery::{ErrorEstimate, IsInterrupted, RecoveredGradient};
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_matrix_free::MetricEvaluation;
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{BegunFile, WriteOptions};
use femtile_mesh::partition::Partition;

use crate::component::Component;
use crate::data::SolutionData;
use crate::discretization::Discretization;
use crate::distributed_solution::DistributedSolution;
use crate::fields::{self, FieldConfig, Fields};
use crate::gathered_solution::{GatheredSolution, GatheredValues};
use crate::method::SolveDevice;
use crate::output;
use crate::preconditioner::Level;
use crate::system::SystemSummary;
use crate::tensor;
use crate::{NonlinearReport, RanksUsed, Region, SolveError, SolverConfig};

/// The solution at the owned unknowns, with the report of the solve.
pub(crate) struct Found {
    /// The values of each component.
    pub components: Vec<Vec<f64>>,
    pub outcome: CgOutcome,
    pub summary: SystemSummary,
    /// The settings with the methods that were used.
    pub config: SolverConfig,
    pub warnings: Vec<String>,
    /// None if the equation is linear.
    pub nonlinear: Option<NonlinearReport>,
}

impl Found {
    /// Puts warnings before those of the solve.
    pub fn after(self, warnings: &[String]) -> Self {
        Self { warnings: [warnings, &self.warnings].concat(), ..self }
    }
}

/// Results of a solve that do not belong to the mesh.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub components: Vec<Vec<f64>>,
    outcome: CgOutcome,
    levels: Vec<Level>,
    device: String,
    device_reason: String,
    operator: String,
    format_reason: Option<String>,
    preconditioner: &'static str,
    preconditioner_reason: String,
    has_full_start: bool,
    geometries: Vec<(MetricEvaluation, usize)>,
    nonlinear: Option<NonlinearReport>,
    /// Of a solve by several.
    pub ranks: Option<RanksUsed>,
    /// The cells of each of them.
    pub partition: Option<Partition>,
    kernel_launches: u64,
    memory: Option<MemoryUse>,
    warnings: Vec<String>,
    citations: Vec<&'static str>,
}

impl Finished {
    /// Takes what was found on a device, and adds warnings about arrays that did not fit there.
    pub fn new<D: SolveDevice>(
        device: &D,
        found: Found,
        [device_reason, preconditioner_reason]: [&str; 2],
    ) -> Self {
        let Found { components, outcome, summary, config, mut warnings, nonlinear } = found;
        let memory = device.memory_use();
        warnings.extend(memory.and_then(warning_of_overflow));
        Self {
            components,
            outcome,
            has_full_start: summary.has_full_start,
            geometries: summary.geometries,
            levels: summary.levels,
            device: device.description(),
            device_reason: device_reason.into(),
            operator: summary.format,
            format_reason: summary.format_reason,
            preconditioner: config.preconditioner.name(),
            preconditioner_reason: preconditioner_reason.into(),
            nonlinear,
            ranks: None,
            partition: None,
            kernel_launches: device.kernel_launches(),
            memory,
            warnings,
            citations: config.citations(&summary.citations),
        }
    }

    /// Names the devices of all ranks in place of that of this one.
    pub fn set_devices(&mut self, devices: String) {
        self.device = devices;
    }

    /// Adds papers behind the methods used.
    pub fn cite(&mut self, keys: &[&'static str]) {
        self.citations.extend_from_slice(keys);
    }
}

/// The solution of a problem on its mesh, with how it was found.
#[derive(Debug)]
#[must_use]
pub struct Solution<'m> {
    discretization: Discretization<'m>,
    finished: Finished,
    /// Present if the mesh is distributed; the other fields are then those on the rank's own cells.
    distributed: Option<DistributedSolution<'m>>,
}

impl<'m> Solution<'m> {
    pub(crate) fn new(discretization: Discretization<'m>, finished: Finished) -> Self {
        Self { discretization, finished, distributed: None }
    }

    /// The solution on the rank's own cells.
    pub(crate) fn distributed(
        discretization: Discretization<'m>,
        finished: Finished,
        distributed: DistributedSolution<'m>,
    ) -> Self {
        Self { discretization, finished, distributed: Some(distributed) }
    }

    pub(crate) fn warn(&mut self, warnings: impl IntoIterator<Item = String>) {
        self.finished.warnings.extend(warnings);
    }

    /// Returns the outcome of the iterations: how many, why they ended, residuals and the error estimate.
    pub fn outcome(&self) -> &CgOutcome {
        &self.finished.outcome
    }

    /// Returns whether the solve reached its tolerance.
    pub fn has_converged(&self) -> bool {
        self.finished.outcome.stop == Stop::Converged
    }

    /// Returns the values of the first component at the degrees of freedom; for linear elements these are the
    /// nodes. If the mesh is distributed, values, [`Solution::discretization`], data and files cover this
    /// rank's own cells only.
    pub fn values(&self) -> &[f64] {
        &self.finished.components[0]
    }

    /// Returns the number of components.
    pub fn n_components(&self) -> usize {
        self.finished.components.len()
    }

    /// Returns a component with its functionals.
    ///
    /// # Panics
    /// There is no component with this number.
    pub fn component(&self, component: usize) -> Component<'_> {
        Component {
            number: component,
            form: self.discretization.form(component),
            space: self.discretization.space(),
            rule: tensor::rule(self.discretization.config.quadrature),
            values: &self.finished.components[component],
            ranks: self.distributed.as_ref(),
        }
    }

    /// Returns nodes, cells and degrees of freedom of a component on the whole mesh, which no rank may have.
    pub fn counts(&self) -> [usize; 3] {
        let problem = &self.discretization;
        match &self.distributed {
            None => [problem.mesh.n_nodes(), problem.mesh.n_cells(), problem.n_dofs()],
            Some(distributed) => distributed.counts(),
        }
    }

    /// Returns whether the mesh is distributed, so that each rank has the solution on its own cells only.
    pub fn is_distributed(&self) -> bool {
        self.distributed.is_some()
    }

    /// Gathers the whole mesh and the solution of a distributed problem on the first rank; none on the
    /// others. Collective.
    ///
    /// # Cost
    /// The first rank holds the whole mesh and the share of one rank at a time.
    /// # Errors
    /// [`SolveError::Setting`] if the mesh is not distributed; another rank failed.
    pub fn collect(self) -> Result<Option<GatheredSolution>, SolveError> {
        let Some(distributed) = &self.distributed else {
            return Err(SolveError::solver("ranks", "a solution on a whole mesh is collected already"));
        };
        let found = distributed.collect(self.discretization.space(), &self.finished.components)?;
        let finished = self.finished;
        Ok(found.map(|(mesh, boundary, components)| GatheredSolution {
            mesh,
            boundary,
            values: GatheredValues { finished: Finished { components, ..finished } },
        }))
    }

    /// Returns the largest value of the first component.
    pub fn max(&self) -> f64 {
        self.component(0).max()
    }

    /// Returns the smallest value of the first component.
    pub fn min(&self) -> f64 {
        self.component(0).min()
    }

    /// Returns the first component at a point.
    ///
    /// # Errors
    /// [`FemError`] if the point lies outside the mesh.
    pub fn value_at(&self, point: [f64; 3]) -> Result<f64, FemError> {
        self.component(0).value_at(point)
    }

    /// Returns the first component at points, none outside the mesh.
    ///
    /// # Errors
    /// A cell that folds over itself.
    pub fn values_at(&self, points: &[[f64; 3]]) -> Result<Vec<Option<f64>>, FemError> {
        self.component(0).values_at(points)
    }

    /// Returns the first component at `n` evenly spaced points from one point to another, both of them included.
    ///
    /// # Errors
    /// As [`Solution::values_at`].
    pub fn along(&self, from: [f64; 3], to: [f64; 3], n: usize) -> Result<Line, FemError> {
        self.component(0).along(from, to, n)
    }

    /// Returns the flux of a component into the domain, $\int n\cdot\sigma\nabla u$ over a part of the boundary: `all`, a tag, a
    /// comparison or a list of facets.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if the region is no facet, and as [`Solution::values_at`].
    /// # Panics
    /// There is no component with this number.
    pub fn flux(&self, component: usize, region: impl Into<Region>) -> Result<f64, SolveError> {
        let problem = self.distributed.as_ref().map_or(&self.discretization, DistributedSolution::problem);
        let selected = problem.facets(region, &["region".into()])?;
        Ok(self.component(component).flux(&selected.facets)?)
    }

    /// Returns the recovered gradient of a component.
    ///
    /// # Errors
    /// As [`Solution::values_at`].
    /// # Panics
    /// There is no component with this number.
    pub fn recovered_gradient(&self, component: usize) -> Result<RecoveredGradient<'_>, FemError> {
        self.component(component).recovered_gradient()
    }

    /// Returns the estimate of the discretization error of all components together in the energy seminorm, with the share of
    /// each cell.
    ///
    /// # Errors
    /// A coefficient that is out of its range.
    pub fn error_estimate(&self) -> Result<ErrorEstimate, FemError> {
        let of = |component| self.recovered_gradient(component)?.error_estimate();
        Ok(fields::together((0..self.n_components()).map(of).collect::<Result<_, _>>()?))
    }

    /// Computes fields from the recovered gradients, to be written with the solution; one that cannot be computed is left out
    /// with a reason.
    pub fn fields(&self, config: FieldConfig) -> Fields {
        self.fields_interruptible(config, &|| false)
    }

    /// Computes fields, and asks now and then whether to end, which leaves out those that are not done.
    pub fn fields_interruptible(&self, config: FieldConfig, is_interrupted: IsInterrupted<'_>) -> Fields {
        Fields::new(self, config, is_interrupted)
    }

    /// Returns the discretized problem. If the mesh is distributed: this rank's cells only, no boundary
    /// conditions. Facets for [`Component::flux`](crate::Component::flux) are those that the problem had
    /// before the solve.
    pub fn discretization(&self) -> &Discretization<'m> {
        &self.discretization
    }

    /// Returns the levels of multigrid, the finest first; none without multigrid.
    pub fn levels(&self) -> &[Level] {
        &self.finished.levels
    }

    /// Returns the partition among ranks; none if one rank solved the problem.
    pub fn ranks(&self) -> Option<&RanksUsed> {
        self.finished.ranks.as_ref()
    }

    /// Returns the cells of each rank of a solve by several.
    pub fn partition(&self) -> Option<&Partition> {
        self.finished.partition.as_ref()
    }

    /// Returns the device that did the work, in words.
    pub fn device(&self) -> &str {
        &self.finished.device
    }

    /// Returns the reason for the device.
    pub fn device_reason(&self) -> &str {
        &self.finished.device_reason
    }

    /// Returns the form of the operator: the format of its matrix, or `matrix-free`.
    pub fn operator(&self) -> &str {
        &self.finished.operator
    }

    /// Returns the reason for the format of the matrix; none without a matrix.
    pub fn format_reason(&self) -> Option<&str> {
        self.finished.format_reason.as_deref()
    }

    /// Returns the name of the preconditioner, as in case files.
    pub fn preconditioner(&self) -> &'static str {
        self.finished.preconditioner
    }

    /// Returns the reason for the preconditioner.
    pub fn preconditioner_reason(&self) -> &str {
        &self.finished.preconditioner_reason
    }

    /// Returns how the metric of cells was obtained, and for how many of them; none with a matrix, nor on several
    /// ranks.
    pub fn geometries(&self) -> &[(MetricEvaluation, usize)] {
        &self.finished.geometries
    }

    /// Returns whether the iterations began with full multigrid.
    pub fn has_full_start(&self) -> bool {
        self.finished.has_full_start
    }

    /// Returns statistics of the nonlinear solve, if a coefficient depends on u.
    pub fn nonlinear(&self) -> Option<&NonlinearReport> {
        self.finished.nonlinear.as_ref()
    }

    /// Returns the number of kernels launched, including those in replayed graphs; zero on a CPU.
    pub fn kernel_launches(&self) -> u64 {
        self.finished.kernel_launches
    }

    /// Returns the memory that arrays took, of devices that count it.
    pub fn memory(&self) -> Option<MemoryUse> {
        self.finished.memory
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> &[String] {
        &self.finished.warnings
    }

    /// Returns the keys of the papers behind the methods used, as in `references.bib`.
    pub fn citations(&self) -> &[&'static str] {
        &self.finished.citations
    }

    /// Returns the mesh with its fields, u and further fields in memory, as [`Solution::write_vtu`] writes them.
    ///
    /// # Errors
    /// As [`Solution::values_at`].
    pub fn data(&self, fields: &Fields) -> Result<SolutionData, SolveError> {
        SolutionData::of_components(&self.discretization, &self.finished.components, fields)
    }

    /// Writes the mesh with its tags and fields, and u, for ParaView; the file appears when it is complete.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path.
    pub fn write_vtu(&self, path: impl AsRef<Path>) -> Result<(), SolveError> {
        self.write_vtu_with(path, &Fields::default(), WriteOptions::default()).map(drop)
    }

    /// As [`Solution::write_vtu`], with further fields and options of the file; returns its checksum if
    /// requested.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path.
    pub fn write_vtu_with(
        &self,
        path: impl AsRef<Path>,
        fields: &Fields,
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, SolveError> {
        let of = (&self.discretization, self.finished.components.as_slice());
        output::write_solution(path.as_ref(), of, fields, options)
    }

    /// Writes u into a file that [`SolutionFile::begin`](crate::SolutionFile::begin) has begun with the mesh
    /// of this solution, and gives it its name; returns its checksum if its options ask for it.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path, also for a file of another mesh.
    pub fn finish_vtu(&self, file: BegunFile) -> Result<Option<FileSum>, SolveError> {
        output::finish_vtu(file, self.discretization.space(), &self.finished.components)
    }
}

/// Returns the warning about arrays that did not fit in GPU memory.
fn warning_of_overflow(used: MemoryUse) -> Option<String> {
    let MemoryUse { device_peak, host_peak, .. } = used;
    let gigabytes = |bytes: usize| bytes as f64 * 1e-9;
    (host_peak > 0).then(|| {
        format!(
            "the memory of the GPU was too small: {:.2} GB went to the host's, which the GPU reads slowly, beside {:.2} GB \
             in its own; where most of it does, `cpu` is faster",
            gigabytes(host_peak),
            gigabytes(device_peak)
        )
    })
}

pub(crate) fn warning_of_outcome(config: &SolverConfig, outcome: &CgOutcome) -> Option<String> {
    if outcome.stop != Stop::Converged {
        let (reason, n) = (outcome.reason(), outcome.iterations);
        if outcome.stop == Stop::Stagnated {
            let floor = outcome.true_relative_residual;
            return Some(format!(
                "the solve {reason} (‖b − Ax‖/‖b‖ = {floor:.2e} is left after {n} iterations)"
            ));
        }
        let residual = outcome.relative_residual;
        return Some(format!("the solve {reason} (‖r‖/‖b‖ = {residual:.2e} after {n} iterations)"));
    }
    (outcome.true_relative_residual > 10.0 * config.tolerance).then(|| {
        format!(
            "rounding keeps the true residual at {:.1e}, above the tolerance {:.1e}",
            outcome.true_relative_residual, config.tolerance
        )
    })
}

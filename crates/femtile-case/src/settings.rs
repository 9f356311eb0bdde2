//! Sections of a case file in the terms of the library.

use std::sync::Arc;
use std::time::Duration;

use femtile_comm::Comm;
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::partition::DistributedMesh;
use femtile_multigrid::Smoother;
use femtile_solve::{
    AmgGraph, AmgOptions, DeviceChoice, FieldConfig, GmgOptions, Key, MatrixFormat, Method, NonlinearConfig,
    NonlinearMethod, OperatorKind, Overlap, PmgOptions, Poisson, PreconditionerConfig, Ranks, SolveError,
    SolverConfig, SpaceConfig, tag_regions, tag_regions_of_ranks,
};

use crate::file::{
    self, AmgSection, Amount, BoxSmootherName, Entries, Entry, FieldName, FormatName, GraphName, OfUnknowns,
    PreconditionerName, SpaceSection, Value,
};
use crate::{Case, CaseError};

/// A mesh and the boundary that its check has found.
pub(crate) type OnMesh<'m> = (&'m Mesh, &'m Arc<BoundaryFacets>);

impl Case {
    /// Returns the settings of the solve.
    pub(crate) fn solver_config(&self) -> Result<SolverConfig, CaseError> {
        let solver = &self.file.solver;
        let amg = || amg_options(&solver.amg.clone().unwrap_or_default());
        let memory_limit = solver.memory_limit.as_ref().map(Amount::bytes).transpose();
        let memory_limit =
            memory_limit.map_err(|message| self.wrong(&["solver".into(), "memory_limit".into()], message))?;
        Ok(SolverConfig {
            device: self.device()?,
            gpus: self.gpus()?,
            threads: solver.threads,
            ranks: self.ranks(),
            partitioner: solver.partition.into(),
            memory_limit: memory_limit.map(|bytes| bytes as u64),
            is_verified: false,
            operator: match solver.operator {
                file::Operator::Auto => OperatorKind::Auto,
                file::Operator::Assembled => OperatorKind::Assembled,
                file::Operator::MatrixFree => OperatorKind::MatrixFree,
            },
            format: match solver.format {
                FormatName::Auto => MatrixFormat::Auto,
                FormatName::Csr => MatrixFormat::Csr,
                FormatName::EllWarp => MatrixFormat::EllWarp,
            },
            metric: solver.metric.into(),
            remembered: self.remembered.clone(),
            method: match solver.method {
                file::Method::Cg => Method::Cg,
                file::Method::MergedCg => Method::MergedCg,
                file::Method::PipelinedCg => Method::PipelinedCg,
                file::Method::SStepCg => {
                    Method::SStepCg { steps: solver.steps.unwrap_or_else(Method::default_steps) }
                }
                file::Method::Gmres => {
                    Method::Gmres { restart: solver.restart.unwrap_or_else(Method::default_restart) }
                }
            },
            preconditioner: match solver.preconditioner {
                PreconditionerName::Auto => PreconditionerConfig::Auto,
                PreconditionerName::None => PreconditionerConfig::None,
                PreconditionerName::Jacobi => PreconditionerConfig::Jacobi,
                PreconditionerName::Amg => PreconditionerConfig::Amg(amg()),
                PreconditionerName::Gmg => {
                    let options = solver.gmg.clone().unwrap_or_default();
                    let (smoother, precision) = (smoother(options.smoother), options.precision.into());
                    let start = options.start.into();
                    PreconditionerConfig::Gmg(GmgOptions { smoother, precision, start })
                }
                PreconditionerName::Pmg => {
                    let options = solver.pmg.clone().unwrap_or_default();
                    let (sweeps, precision) = (options.sweeps, options.precision.into());
                    PreconditionerConfig::Pmg(PmgOptions { sweeps, precision, amg: amg() })
                }
            },
            tolerance: solver.tolerance,
            max_iterations: solver.max_iterations,
            time_limit: solver.time_limit_s.map(Duration::from_secs_f64),
            nonlinear: NonlinearConfig {
                method: match solver.nonlinear {
                    file::NonlinearName::Newton => NonlinearMethod::Newton,
                    file::NonlinearName::Picard => NonlinearMethod::Picard,
                },
                tolerance: solver.nonlinear_tolerance,
                max_iterations: solver.nonlinear_iterations,
            },
        })
    }

    /// Returns the requested device; several ranks compute on CPUs unless another device is requested.
    pub(crate) fn device(&self) -> Result<DeviceChoice, CaseError> {
        match DeviceChoice::with_gpus(&self.file.solver.device)?.0 {
            DeviceChoice::Auto if self.ranks() != Ranks::One => Ok(DeviceChoice::Cpu),
            device => Ok(device),
        }
    }

    /// Returns the GPUs that are asked for, if these are several.
    fn gpus(&self) -> Result<Vec<usize>, CaseError> {
        Ok(DeviceChoice::with_gpus(&self.file.solver.device)?.1)
    }

    /// Returns the ranks of the program that runs the case, or those of the case: one for each GPU if it asks
    /// for several.
    pub(crate) fn ranks(&self) -> Ranks {
        let n_gpus = self.gpus().map_or(0, |gpus| gpus.len());
        match (&self.embedding.comm, self.file.solver.ranks) {
            (Some(comm), _) if comm.n_ranks() > 1 => Ranks::Of(comm.clone()),
            (None, 1) if n_gpus > 1 => Ranks::Threads(n_gpus),
            (_, 1) => Ranks::One,
            (Some(_), _) => Ranks::One,
            (None, n) => Ranks::Threads(n),
        }
    }

    /// Returns the settings of the elements.
    pub(crate) fn space_config(&self) -> SpaceConfig {
        let SpaceSection { degree, components, quadrature, axisymmetric: _, thickness: _ } = self.file.space;
        SpaceConfig { degree: degree as usize, components, quadrature: quadrature.into() }
    }

    /// Returns the fields to compute; nodal fields are only computed for the file of the solution.
    pub(crate) fn field_config(&self) -> FieldConfig {
        let output = &self.file.output;
        let in_file = |name| output.vtu.is_written() && output.fields.contains(&name);
        FieldConfig {
            gradient: in_file(FieldName::Gradient),
            flux: in_file(FieldName::Flux),
            stress: in_file(FieldName::Stress),
            strain: in_file(FieldName::Strain),
            error: output.fields.contains(&FieldName::Error),
        }
    }

    /// Gives cells the tags of regions; returns regions that take cells from others.
    pub(crate) fn tag_regions(&self, mesh: &mut Mesh) -> Result<Vec<Overlap>, CaseError> {
        Ok(tag_regions(mesh, &self.regions())?)
    }

    /// As [`Case::tag_regions`], on a distributed mesh. Collective.
    pub(crate) fn tag_regions_of_ranks(
        &self,
        mesh: &mut DistributedMesh,
        comm: &Comm,
    ) -> Result<Vec<Overlap>, CaseError> {
        Ok(tag_regions_of_ranks(mesh, comm, &self.regions())?)
    }

    /// The name and the comparison of each region.
    fn regions(&self) -> Vec<(&str, &str)> {
        self.file.region.iter().map(|region| (&*region.name, &*region.r#where)).collect()
    }

    /// Returns the problem on a mesh with its boundary.
    pub(crate) fn problem<'m>(&self, on: OnMesh<'m>) -> Result<Poisson<'m>, CaseError> {
        self.stated(begun_on(on)?, [&self.file.equation.sigma, &self.file.equation.lambda])
    }

    /// Returns the conduction σ and the reaction λ of reaction and diffusion, of an equation in time from its own keys.
    pub(crate) fn conduction_and_reaction(&self) -> [Value; 2] {
        let equation = &self.file.equation;
        if equation.kind != file::EquationKind::Diffusion {
            return [equation.sigma.clone(), equation.lambda.clone()];
        }
        let diffusion = equation.diffusion.clone().unwrap_or(Value::Number(1.0));
        let lambda = match &equation.reaction {
            None => Value::Number(0.0),
            Some(Entry::Number(number)) => Value::Number(-number),
            Some(Entry::Text(text)) => Value::Text(format!("-({text})")),
        };
        [diffusion, lambda]
    }

    /// Returns whether the equation is one in time.
    pub(crate) fn is_in_time(&self) -> bool {
        let kind = self.file.equation.kind;
        kind.is_in_time() || kind == file::EquationKind::Form && self.file.time.is_some()
    }

    /// Returns the initial values, or the first iterate, of an equation with one component.
    pub(crate) fn initial(&self) -> Value {
        match self.file.equation.initial.as_ref().and_then(OfUnknowns::one).and_then(Entries::first) {
            None => Value::Number(0.0),
            Some(Entry::Number(number)) => Value::Number(*number),
            Some(Entry::Text(text)) => Value::Text(text.clone()),
        }
    }

    /// Returns the problem on a distributed mesh.
    pub(crate) fn problem_on_parts<'m>(
        &self,
        mesh: &'m DistributedMesh,
        comm: &Comm,
    ) -> Result<Poisson<'m>, CaseError> {
        self.stated(
            Poisson::distributed(mesh, comm)?,
            [&self.file.equation.sigma, &self.file.equation.lambda],
        )
    }

    /// States a problem that has begun on its mesh, with this conduction and this reaction.
    pub(crate) fn stated<'m>(
        &self,
        begun: Poisson<'m>,
        [sigma, lambda]: [&Value; 2],
    ) -> Result<Poisson<'m>, CaseError> {
        let (equation, space) = (&self.file.equation, self.space_config());
        let mut problem = begun
            .sigma(sigma)
            .lambda(lambda)
            .source(equation.source())
            .initial(&self.initial())
            .degree(space.degree)
            .components(space.components)
            .quadrature(space.quadrature);
        for (i, section) in self.file.boundary.iter().enumerate() {
            let (key, on) = section.place();
            problem = match (section.dirichlet(), &section.neumann, &section.robin) {
                (Some(value), ..) if key == "nodes" => problem.dirichlet_at_nodes(on, value)?,
                (Some(value), ..) => problem.dirichlet(on, value)?,
                (_, Some(value), _) => problem.neumann(on, value)?,
                (.., Some(robin)) => problem.robin(on, &robin.coefficient, &robin.value)?,
                _ => {
                    let path: [Key; 2] = ["boundary".into(), i.into()];
                    let message = "give exactly one of `dirichlet`, `neumann`, `robin` and `periodic`";
                    return Err(self.wrong(&path, message));
                }
            };
        }
        Ok(problem)
    }
}

/// Begins a problem on a mesh with its boundary.
pub(crate) fn begun_on<'m>((mesh, boundary): OnMesh<'m>) -> Result<Poisson<'m>, SolveError> {
    Poisson::with_boundary(mesh, Arc::clone(boundary))
}

/// Returns the options of algebraic multigrid of a section.
fn amg_options(section: &AmgSection) -> AmgOptions {
    let graph = match section.graph {
        GraphName::Matrix => AmgGraph::Matrix,
        GraphName::Mesh => AmgGraph::Mesh,
    };
    AmgOptions { config: section.config(), graph, precision: section.precision.into() }
}

fn smoother(name: BoxSmootherName) -> Smoother {
    name.into()
}

impl From<file::Quadrature> for femtile_solve::Quadrature {
    fn from(name: file::Quadrature) -> Self {
        match name {
            file::Quadrature::Gauss => Self::Gauss,
            file::Quadrature::GaussFine => Self::GaussFine,
            file::Quadrature::GaussLobatto => Self::GaussLobatto,
        }
    }
}

impl From<&Entry> for femtile_solve::Entry {
    fn from(entry: &Entry) -> Self {
        match entry {
            Entry::Number(number) => Self::Number(*number),
            Entry::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl From<&Value> for femtile_solve::Value {
    fn from(value: &Value) -> Self {
        let entries = |entries: &Vec<Entry>| entries.iter().map(femtile_solve::Entry::from).collect();
        let inner = |value: &Value| Self::from(value);
        match value {
            Value::Number(number) => Self::Number(*number),
            Value::Text(text) => Self::Text(text.clone()),
            Value::Tensor(rows) => Self::Tensor(rows.iter().map(entries).collect()),
            Value::Components(given) => Self::Components(entries(given)),
            Value::ByTag { by_tag, default } => Self::ByTag {
                parts: by_tag.iter().map(|(name, value)| (name.clone(), value.into())).collect(),
                default: default.as_deref().map(|value| Box::new(value.into())),
            },
            Value::Field { field } => Self::Field(field.clone()),
            Value::Fibres { fibre, along, across } => {
                Self::fibres(fibre.as_str(), inner(along), inner(across))
            }
            Value::Sheets { fibre, along, across, sheet, normal } => {
                Self::fibres(fibre.as_str(), inner(along), inner(across))
                    .in_sheets(sheet.as_str(), inner(normal))
            }
            Value::Bidomain { intra, extra } => Self::bidomain(inner(intra), inner(extra)),
        }
    }
}

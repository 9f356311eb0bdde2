use std::sync::Arc;

use femtile_device::Cpu;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::{BoundaryCondition, Condition};
use femtile_mesh::Mesh;
use femtile_mesh::check::{BoundaryFacets, boundary_facets};
use femtile_mesh::generate::Counts;

use crate::boundary::Region;
use crate::check::check_cells;
use crate::coefficient::{Value, coefficient, of_component, scalar};
use crate::discretization::Discretization;
use crate::memory::{Estimate, refuse_excess};
use crate::overlap::overlaps;
use crate::setting::{Key, below};
use crate::solution::Solution;
use crate::{Progress, Quadrature, Silent, SolveError, SolverConfig, SpaceConfig, Stage, Stages, tensor};

/// The problem $-\nabla \cdot (\sigma \nabla u) + \lambda u = f$ on a mesh, with conditions on its boundary.
///
/// σ is 1, λ and f are 0 and facets have no flux unless something else is said. Later conditions hold where several
/// name a facet, and given values hold on its edges.
///
/// ```
/// use femtile_mesh::generate::{SquareConfig, square};
/// use femtile_solve::{Poisson, SolverConfig};
///
/// let mesh = square(&SquareConfig { cells: [16, 16], ..SquareConfig::default() })?;
/// let problem = Poisson::new(&mesh).source(1.0).dirichlet("all", "x + y")?;
/// let solution = problem.solve(&SolverConfig::default())?;
/// assert!(solution.has_converged());
/// println!("{} in {} iterations", solution.max(), solution.outcome().iterations);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Poisson<'m> {
    mesh: &'m Mesh,
    boundary: Arc<BoundaryFacets>,
    sigma: Value,
    lambda: Value,
    source: Value,
    conditions: Vec<Given>,
    space: SpaceConfig,
}

/// A condition as it was given.
#[derive(Debug, Clone)]
struct Given {
    region: Region,
    facets: Vec<u32>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Dirichlet(Value),
    Neumann(Value),
    Robin { coefficient: Value, value: Value },
}

impl Kind {
    const fn name(&self) -> &'static str {
        match self {
            Self::Dirichlet(_) => "dirichlet",
            Self::Neumann(_) => "neumann",
            Self::Robin { .. } => "robin",
        }
    }

    /// Returns the datum that makes a solution other than zero.
    const fn datum(&self) -> &Value {
        match self {
            Self::Dirichlet(value) | Self::Neumann(value) | Self::Robin { value, .. } => value,
        }
    }
}

impl<'m> Poisson<'m> {
    /// Begins a problem on a mesh that was checked, as [`Mesh::read`] does.
    pub fn new(mesh: &'m Mesh) -> Self {
        Self {
            mesh,
            boundary: Arc::new(boundary_facets(mesh)),
            sigma: Value::Number(1.0),
            lambda: Value::Number(0.0),
            source: Value::Number(0.0),
            conditions: Vec::new(),
            space: SpaceConfig::default(),
        }
    }

    /// Sets the conductivity σ, positive: a number or a symmetric tensor. With the number zero and a positive λ, u is the
    /// projection of f/λ onto the space.
    pub fn sigma(mut self, sigma: impl Into<Value>) -> Self {
        self.sigma = sigma.into();
        self
    }

    /// Sets the reaction λ ≥ 0.
    pub fn lambda(mut self, lambda: impl Into<Value>) -> Self {
        self.lambda = lambda.into();
        self
    }

    /// Sets the source f.
    pub fn source(mut self, source: impl Into<Value>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the polynomial degree of the elements: 1 to 10 on quadrilaterals and hexahedra, 1 on simplices.
    pub fn degree(mut self, degree: usize) -> Self {
        self.space.degree = degree;
        self
    }

    /// Sets the number of components of u, each of which solves the equation.
    pub fn components(mut self, components: usize) -> Self {
        self.space.components = components;
        self
    }

    /// Sets the rule that integrates the operator on quadrilaterals and hexahedra.
    pub fn quadrature(mut self, quadrature: Quadrature) -> Self {
        self.space.quadrature = quadrature;
        self
    }

    /// Gives u on a part of the boundary.
    ///
    /// # Errors
    /// [`SolveError::Setting`] where the part is no facet.
    pub fn dirichlet(self, on: impl Into<Region>, value: impl Into<Value>) -> Result<Self, SolveError> {
        self.condition(on.into(), Kind::Dirichlet(value.into()))
    }

    /// Gives the flux σ ∂u/∂n into the domain on a part of the boundary.
    ///
    /// # Errors
    /// [`SolveError::Setting`] where the part is no facet.
    pub fn neumann(self, on: impl Into<Region>, flux: impl Into<Value>) -> Result<Self, SolveError> {
        self.condition(on.into(), Kind::Neumann(flux.into()))
    }

    /// Gives an exchange σ ∂u/∂n = coefficient · (value − u) on a part of the boundary.
    ///
    /// # Errors
    /// [`SolveError::Setting`] where the part is no facet.
    pub fn robin(
        self,
        on: impl Into<Region>,
        coefficient: impl Into<Value>,
        value: impl Into<Value>,
    ) -> Result<Self, SolveError> {
        let kind = Kind::Robin { coefficient: coefficient.into(), value: value.into() };
        self.condition(on.into(), kind)
    }

    fn condition(mut self, region: Region, kind: Kind) -> Result<Self, SolveError> {
        let path: [Key; 3] = ["boundary".into(), self.conditions.len().into(), "where".into()];
        let facets = region.facets(self.mesh, &self.boundary, &path)?;
        self.conditions.push(Given { region, facets, kind });
        Ok(self)
    }

    /// Solves the problem.
    ///
    /// # Errors
    /// [`SolveError`]; not converging is an outcome of the solution.
    pub fn solve(&self, config: &SolverConfig) -> Result<Solution<'m>, SolveError> {
        self.solve_with(config, &mut Silent)
    }

    /// Solves the problem and tells of its progress.
    ///
    /// # Errors
    /// As [`Poisson::solve`]; [`SolveError::Interrupted`].
    pub fn solve_with(
        &self,
        config: &SolverConfig,
        progress: &mut dyn Progress,
    ) -> Result<Solution<'m>, SolveError> {
        config.check()?;
        check_cells(config, &self.space, self.mesh.kind)?;
        let opened = config.device.open()?;
        let counts = Counts::from(self.mesh);
        let estimate = |on_gpu| Estimate::of_solve(config, &self.space, counts, on_gpu);
        let advice = "take a coarser mesh or a lighter preconditioner, or raise the limit";
        let place = (&["solver".into(), "memory_limit".into()][..], advice);
        refuse_excess(estimate, config.memory_limit, (config.device, opened.is_some()), place)?;
        let cpu = Cpu::new(config.threads)?;
        cpu.install(|| {
            let mut stages = Stages::new(progress);
            stages.begin(Stage::Space)?;
            let discretization = self.discretize()?;
            let names = |condition: usize| self.name(condition);
            let overlapping: Vec<String> =
                discretization.overlaps.iter().map(|overlap| overlap.warning(names, "facets")).collect();
            let mut solution = discretization.solve(&cpu, config, opened, &mut stages)?;
            solution.warn(overlapping);
            Ok(solution)
        })
    }

    /// Resolves coefficients and conditions on the mesh and makes the space.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the first setting that is wrong, [`SolveError::Fem`] where there is no such space.
    pub fn discretize(&self) -> Result<Discretization<'m>, SolveError> {
        self.space.check()?;
        let mut warnings = Vec::new();
        self.check_data(&mut warnings)?;
        let (mesh, n) = (self.mesh, self.space.components);
        let place = |key: &str| ["equation".into(), key.into()];
        let source = |component| of_component(mesh, &self.source, (component, n), &place("source"));
        let space = match tensor::is_for(mesh.kind) {
            true => Some(TensorSpace::new(mesh, self.space.degree)?),
            false => None,
        };
        warnings.extend(space.iter().flat_map(|space| tensor::warnings(self.space.quadrature, space)));
        let holds: Vec<Vec<u32>> = self.conditions.iter().map(|given| given.facets.clone()).collect();
        let is_all = |condition: usize| self.conditions[condition].region.is_all();
        Ok(Discretization {
            mesh,
            boundary: self.boundary.clone(),
            sigma: coefficient(mesh, &self.sigma, &place("sigma"))?,
            lambda: scalar(mesh, &self.lambda, &place("lambda"))?,
            sources: (0..n).map(source).collect::<Result<_, _>>()?,
            conditions: (0..n).map(|component| self.conditions_of(component)).collect::<Result<_, _>>()?,
            config: self.space,
            space,
            overlaps: overlaps(&holds, self.boundary.len(), is_all),
            warnings,
        })
    }

    fn conditions_of(&self, component: usize) -> Result<Vec<BoundaryCondition>, SolveError> {
        let one = |(i, given): (usize, &Given)| {
            let path: [Key; 2] = ["boundary".into(), i.into()];
            let condition = self.condition_of(given, component, &path)?;
            Ok(BoundaryCondition { facets: given.facets.clone(), condition })
        };
        self.conditions.iter().enumerate().map(one).collect()
    }

    fn condition_of(&self, given: &Given, component: usize, path: &[Key]) -> Result<Condition, SolveError> {
        let (mesh, which) = (self.mesh, (component, self.space.components));
        let path = below(path, given.kind.name());
        Ok(match &given.kind {
            Kind::Dirichlet(value) => Condition::Dirichlet(of_component(mesh, value, which, &path)?),
            Kind::Neumann(value) => Condition::Neumann(of_component(mesh, value, which, &path)?),
            Kind::Robin { coefficient, value } => Condition::Robin {
                coefficient: scalar(mesh, coefficient, &below(&path, "coefficient"))?,
                value: of_component(mesh, value, which, &below(&path, "value"))?,
            },
        })
    }

    /// Refuses a problem without anything that determines u, and warns of one in which u can only be zero.
    fn check_data(&self, warnings: &mut Vec<String>) -> Result<(), SolveError> {
        if self.sigma.is_zero() && self.lambda.is_zero() {
            let message =
                "0 leaves λu = f, and lambda is 0 too: give a positive `lambda`, or a positive `sigma`";
            return Err(SolveError::setting(&["equation".into(), "sigma".into()], message));
        }
        if !self.source.is_zero() {
            return Ok(());
        }
        if self.conditions.is_empty() && self.lambda.is_zero() {
            let message = "nothing determines u: give a `source`, a `lambda`, or a condition in [[boundary]]";
            return Err(SolveError::setting(&["equation".into()], message));
        }
        if self.conditions.iter().all(|given| given.kind.datum().is_zero()) {
            warnings.push("source and all values on the boundary are zero, and so is u".into());
        }
        Ok(())
    }

    /// Returns `boundary[1] (robin on "all")`.
    fn name(&self, condition: usize) -> String {
        let Given { region, kind, .. } = &self.conditions[condition];
        let on = region.name().map_or_else(String::new, |name| format!(" on \"{name}\""));
        format!("boundary[{condition}] ({}{on})", kind.name())
    }
}

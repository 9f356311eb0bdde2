mod memory;
mod overlaps;

use std::sync::Arc;

use femtile_comm::Comm;
use femtile_device::cuda::Opening;
use femtile_device::{Cpu, part};
use femtile_expression::Names;
use femtile_fem::{BoundaryCondition, Coefficient, Condition};
use femtile_mesh::Mesh;
use femtile_mesh::check::{BoundaryFacets, boundary_facets};
use femtile_mesh::partition::DistributedMesh;
use femtile_space::TensorSpace;

use crate::boundary::{InnerFacets, Region, Selected};
use crate::capacity::resolved_capacity;
use crate::check::check_cells;
use crate::coefficient::{Value, conductivity, of_component, scalar};
use crate::discretization::Discretization;
use crate::nodes::{Nodes, facets_within};
use crate::ranks::{MeshOnRanks, OnMesh};
use crate::setting::{Key, below};
use crate::solution::Solution;
use crate::{
    Progress, Quadrature, Ranks, Silent, SolveError, SolverConfig, SpaceConfig, Stage, Stages, tensor,
};

/// The problem $-\nabla \cdot (\sigma \nabla u) + \lambda u = f$ on a mesh, with conditions on its boundary.
///
/// By default σ is 1, λ and f are 0, and facets have no flux. If several conditions name a facet, the last
/// one holds; on edges of facets, Dirichlet values hold.
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
    initial: Value,
    /// Present if the mesh is distributed.
    divided: Option<MeshOnRanks<'m>>,
}

/// A condition as it was given.
#[derive(Debug, Clone)]
struct Given {
    place: Place,
    facets: Vec<u32>,
    /// Facets of its tag inside the mesh.
    n_inside: usize,
    kind: Kind,
}

/// The place where a condition was given.
#[derive(Debug, Clone)]
enum Place {
    Boundary(Region),
    /// With their numbers.
    Nodes(Nodes, Vec<u32>),
}

impl Given {
    /// Returns whether it is on the whole boundary by name.
    fn is_on_all(&self) -> bool {
        matches!(&self.place, Place::Boundary(region) if region.is_all())
    }

    /// Returns the nodes that were named themselves.
    fn named_nodes(&self) -> Option<&[u32]> {
        match &self.place {
            Place::Boundary(_) => None,
            Place::Nodes(_, nodes) => Some(nodes),
        }
    }
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
    /// Begins a problem on a mesh that was checked, as [`Mesh::read`] does. Searches for its boundary.
    pub fn new(mesh: &'m Mesh) -> Self {
        Self::on(mesh, Arc::new(boundary_facets(mesh)))
    }

    /// Begins a problem on a mesh with the boundary that its check has found, which saves the search.
    ///
    /// ```
    /// use femtile_mesh::check::{CheckConfig, check};
    /// use femtile_mesh::generate::{SquareConfig, square};
    /// use femtile_solve::{Poisson, SolverConfig};
    ///
    /// let mut mesh = square(&SquareConfig::default())?;
    /// let report = check(&mut mesh, &CheckConfig::default())?;
    /// let problem = Poisson::with_boundary(&mesh, report.boundary)?.source(1.0).dirichlet("all", 0.0)?;
    /// assert!(problem.solve(&SolverConfig::default())?.has_converged());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SolveError::Mesh`] for facets that are none of the mesh.
    pub fn with_boundary(mesh: &'m Mesh, boundary: Arc<BoundaryFacets>) -> Result<Self, SolveError> {
        boundary.belong_to(mesh)?;
        Ok(Self::on(mesh, boundary))
    }

    fn on(mesh: &'m Mesh, boundary: Arc<BoundaryFacets>) -> Self {
        Self {
            mesh,
            boundary,
            sigma: Value::Number(1.0),
            lambda: Value::Number(0.0),
            source: Value::Number(0.0),
            conditions: Vec::new(),
            space: SpaceConfig::default(),
            initial: Value::Number(0.0),
            divided: None,
        }
    }

    /// Begins a problem on a distributed mesh. This method and all later ones are collective, with the same
    /// problem on all ranks.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if the part belongs to another rank, or to another number of ranks.
    pub fn distributed(mesh: &'m DistributedMesh, comm: &Comm) -> Result<Self, SolveError> {
        let (expected, (rank, n_ranks)) = ((comm.rank(), comm.n_ranks()), mesh.rank());
        if (rank, n_ranks) != expected {
            let message = format!(
                "this is the part of rank {rank} of {n_ranks}, and it is on rank {} of {}",
                expected.0, expected.1
            );
            return Err(SolveError::solver("ranks", message));
        }
        let divided = Some(MeshOnRanks { mesh, comm: comm.clone() });
        Ok(Self { divided, ..Self::on(&mesh.part.mesh, Arc::new(mesh.part.boundary.clone())) })
    }

    /// Where names and comparisons are looked up.
    fn on_mesh(&self) -> OnMesh<'_> {
        OnMesh { mesh: self.mesh, divided: self.divided.as_ref() }
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

    /// Sets the first iterate for coefficients that depend on u; zero otherwise.
    pub fn initial(mut self, initial: impl Into<Value>) -> Self {
        self.initial = initial.into();
        self
    }

    /// Sets the polynomial degree of the elements: 1 to 10 on quadrilaterals and hexahedra, 1 on simplices.
    pub fn degree(mut self, degree: usize) -> Self {
        self.space.degree = degree;
        self
    }

    /// Sets the number of components of u; each component solves the equation.
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
    /// [`SolveError::Setting`] if the part is no facet.
    pub fn dirichlet(self, on: impl Into<Region>, value: impl Into<Value>) -> Result<Self, SolveError> {
        self.condition(on.into(), Kind::Dirichlet(value.into()))
    }

    /// Gives the flux σ ∂u/∂n into the domain on a part of the boundary.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if the part is no facet.
    pub fn neumann(self, on: impl Into<Region>, flux: impl Into<Value>) -> Result<Self, SolveError> {
        self.condition(on.into(), Kind::Neumann(flux.into()))
    }

    /// Gives an exchange σ ∂u/∂n = coefficient · (value − u) on a part of the boundary.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if the part is no facet.
    pub fn robin(
        self,
        on: impl Into<Region>,
        coefficient: impl Into<Value>,
        value: impl Into<Value>,
    ) -> Result<Self, SolveError> {
        let kind = Kind::Robin { coefficient: coefficient.into(), value: value.into() };
        self.condition(on.into(), kind)
    }

    /// Gives u at nodes of the mesh, on its boundary or inside, and all along edges, faces and cells whose corners are all
    /// among them.
    ///
    /// Single nodes, and in three dimensions also lines, are too small for Dirichlet values: functions of
    /// finite energy have no values there, so u does not converge under refinement. They serve only to fix a
    /// free constant.
    ///
    /// ```
    /// use femtile_mesh::generate::{SquareConfig, square};
    /// use femtile_solve::{Poisson, SolverConfig};
    ///
    /// // Fluxes alone leave a constant open, which one node settles.
    /// let mesh = square(&SquareConfig { cells: [16, 16], ..SquareConfig::default() })?;
    /// let problem = Poisson::new(&mesh)
    ///     .neumann("xmin", -1.0)?
    ///     .neumann("xmax", 1.0)?
    ///     .dirichlet_at_nodes("x < 1e-9 && y < 1e-9", 5.0)?;
    /// let solution = problem.solve(&SolverConfig::default())?;
    /// assert!((solution.max() - 6.0).abs() < 1e-8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SolveError::Setting`] if there is no such node.
    pub fn dirichlet_at_nodes(
        mut self,
        at: impl Into<Nodes>,
        value: impl Into<Value>,
    ) -> Result<Self, SolveError> {
        let (at, path) = (at.into(), self.next_condition("nodes"));
        let nodes = at.numbers(self.on_mesh(), &path)?;
        let facets = facets_within(self.mesh, &self.boundary, &nodes);
        let kind = Kind::Dirichlet(value.into());
        self.conditions.push(Given { place: Place::Nodes(at, nodes), facets, n_inside: 0, kind });
        Ok(self)
    }

    fn condition(mut self, region: Region, kind: Kind) -> Result<Self, SolveError> {
        let path = self.next_condition("where");
        let Selected { facets, n_inside } = region.facets(self.on_mesh(), &self.boundary, &path)?;
        self.conditions.push(Given { place: Place::Boundary(region), facets, n_inside, kind });
        Ok(self)
    }

    /// Returns a setting of the condition that is given next.
    fn next_condition(&self, key: &str) -> [Key; 3] {
        ["boundary".into(), self.conditions.len().into(), key.into()]
    }

    /// Solves the problem.
    ///
    /// # Errors
    /// [`SolveError`]; not converging is an outcome of the solution.
    pub fn solve(&self, config: &SolverConfig) -> Result<Solution<'m>, SolveError> {
        self.solve_with(config, &mut Silent)
    }

    /// Solves the problem and reports progress.
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
        let opened = if config.ranks == Ranks::One { config.device.open()? } else { None };
        self.check_memory(config, opened.is_some())?;
        let cpu = Cpu::new(config.threads)?;
        cpu.install(|| {
            let mut stages = Stages::new(progress);
            stages.begin(Stage::Space)?;
            let discretization = self.discretize()?;
            let names = |condition: usize| self.name(condition);
            let of_facets = discretization.overlaps.iter().map(|overlap| overlap.warning(names, "facets"));
            let of_nodes = discretization.node_overlaps.iter().map(|overlap| overlap.warning(names, "nodes"));
            let inside = discretization.inner_facets.iter().map(|inner| inner.warning(names));
            let told: Vec<String> = of_facets.chain(of_nodes).chain(inside).collect();
            let mut solution = discretization.solve(&cpu, config, opened.map(Opening::from), &mut stages)?;
            solution.warn(told);
            Ok(solution)
        })
    }

    /// Resolves coefficients and conditions on the mesh and makes the space.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the first setting that is wrong, [`SolveError::Fem`] if there is no such
    /// space.
    pub fn discretize(&self) -> Result<Discretization<'m>, SolveError> {
        let mut warnings = Vec::new();
        self.check_data(&mut warnings)?;
        self.resolve(None, warnings)
    }

    /// As [`Poisson::discretize`], with values that may depend on the time t, and the factor of ∂u/∂t.
    pub(crate) fn discretize_in_time(&self, capacity: &Value) -> Result<Discretization<'m>, SolveError> {
        self.resolve(Some(capacity), Vec::new())
    }

    /// Returns the problem with its formulas read: u may stand in the coefficients of the equation, t in all values of a
    /// problem in time.
    fn parsed(&self, has_time: bool) -> Result<Self, SolveError> {
        let (mesh, mut own) = (self.mesh, self.clone());
        let given = Names { time: has_time, others: &[] };
        let others: &[&str] = if self.space.components == 1 { &["u"] } else { &[] };
        let names = Names { time: has_time, others };
        for (key, value) in
            [("sigma", &mut own.sigma), ("lambda", &mut own.lambda), ("source", &mut own.source)]
        {
            *value = value.parsed(mesh, &["equation".into(), key.into()], &names)?;
        }
        for (i, condition) in own.conditions.iter_mut().enumerate() {
            let path = below(&["boundary".into(), i.into()], condition.kind.name());
            match &mut condition.kind {
                Kind::Dirichlet(value) | Kind::Neumann(value) => {
                    *value = value.parsed(mesh, &path, &given)?
                }
                Kind::Robin { coefficient, value } => {
                    *coefficient = coefficient.parsed(mesh, &below(&path, "coefficient"), &given)?;
                    *value = value.parsed(mesh, &below(&path, "value"), &given)?;
                }
            }
        }
        Ok(own)
    }

    fn resolve(
        &self,
        capacity: Option<&Value>,
        mut warnings: Vec<String>,
    ) -> Result<Discretization<'m>, SolveError> {
        if self.mesh.is_surface {
            let message = "is a surface in space: take an equation of `FormProblem`";
            return Err(SolveError::setting(&["mesh".into()], message));
        }
        self.space.check()?;
        let own = self.parsed(capacity.is_some())?;
        let (mesh, n) = (self.mesh, self.space.components);
        let place = |key: &str| ["equation".into(), key.into()];
        let source = |component| of_component(mesh, &own.source, (component, n), &place("source"));
        let space = match tensor::is_for(mesh.kind) {
            true => {
                let space = part("numbers of unknowns", || TensorSpace::new(mesh, self.space.degree));
                Some(Arc::new(space?))
            }
            false => None,
        };
        warnings.extend(space.iter().flat_map(|space| tensor::warnings(self.space.quadrature, space)));
        let sigma = conductivity(mesh, &own.sigma, &place("sigma"), &mut warnings)?;
        let lambda = scalar(mesh, &own.lambda, &place("lambda"))?;
        let capacity = match capacity {
            Some(capacity) => resolved_capacity(mesh, capacity, &lambda)?,
            None => Coefficient::Constant(1.0),
        };
        let overlaps = self.facet_overlaps()?;
        Ok(Discretization {
            mesh,
            boundary: self.boundary.clone(),
            sigma,
            lambda,
            capacity,
            sources: (0..n).map(source).collect::<Result<_, _>>()?,
            conditions: (0..n).map(|component| own.conditions_of(component)).collect::<Result<_, _>>()?,
            config: self.space,
            space,
            initial: self.initial.clone(),
            node_overlaps: self.node_overlaps(&overlaps)?,
            overlaps,
            inner_facets: self.inner_facets(),
            warnings,
            divided: self.divided.clone(),
        })
    }

    /// Returns the conditions on tags that are on inner facets too.
    fn inner_facets(&self) -> Vec<InnerFacets> {
        let each = self.conditions.iter().enumerate().map(|(condition, given)| (condition, given.n_inside));
        each.filter(|&(_, n)| n > 0).map(|(condition, n)| InnerFacets { condition, n }).collect()
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
            Kind::Dirichlet(value) => {
                let value = of_component(mesh, value, which, &path)?;
                match given.named_nodes() {
                    Some(nodes) => Condition::DirichletAtNodes { nodes: nodes.to_vec(), value },
                    None => Condition::Dirichlet(value),
                }
            }
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
        let Given { place, kind, .. } = &self.conditions[condition];
        let (preposition, name) = match place {
            Place::Boundary(region) => ("on", region.name()),
            Place::Nodes(nodes, _) => ("at", nodes.name()),
        };
        let on = name.map_or_else(String::new, |name| format!(" {preposition} \"{name}\""));
        format!("boundary[{condition}] ({}{on})", kind.name())
    }
}

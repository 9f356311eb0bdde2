//! An equation with coefficients and conditions on a mesh.

use std::sync::{Arc, OnceLock};

use femtile_expression::{Expression, Names, Shape};
use femtile_form::{
    Argument, BoundaryTerms, Coefficient, CoefficientShape, Derivation, Equation, Form, FormBuilder,
    FormError, Formulas, Input, Integral, Stabilisation,
};
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::{Field, Mesh};
use femtile_space::{PointMap, Space, SpaceError};

use super::cell_metric::cell_metric;
use super::continuation::Continuation;
use super::given::{Given, Place, Terms};
use super::totals::PointSource;
use crate::boundary::Selected;
use crate::coefficient::{check_count, coefficient, conductivity, scalar};
use crate::ranks::OnMesh;
use crate::setting::below;
use crate::{InnerFacets, Key, Method, Nodes, Region, SolveError, Value};

/// An equation of `femtile-form` on a mesh, with coefficients and conditions.
///
/// Of several integrals on one boundary facet the last one holds, of several values of one unknown the last one; values hold
/// in place of integrals.
///
/// ```
/// use std::sync::Arc;
/// use femtile_device::Cpu;
/// use femtile_form::Equation;
/// use femtile_mesh::check::boundary_facets;
/// use femtile_mesh::generate::{SquareConfig, square};
/// use femtile_solve::{FormProblem, Silent, SolverConfig, Stages, Value};
///
/// let mesh = square(&SquareConfig::default())?;
/// let boundary = Arc::new(boundary_facets(&mesh));
/// let mut plate = FormProblem::new(&mesh, boundary, Equation::named("elasticity")?);
/// plate.scalar("young", &Value::from(210e9))?;
/// plate.scalar("poisson", &Value::from(0.3))?;
/// plate.dirichlet("x < 1e-9", &[Some(Value::from(0)), Some(Value::from(0))])?;
/// plate.vector_on_boundary("traction", "x > 1 - 1e-9", &[Value::from(1e6), Value::from(0)])?;
/// let (cpu, mut silent) = (Cpu::new(1)?, Silent);
/// let solution = plate.solve(&cpu, &SolverConfig::default(), None, &mut Stages::new(&mut silent))?;
/// let [ux, _] = solution.value_at([1.0, 0.5, 0.0]).unwrap()[..] else { unreachable!() };
/// assert!(ux > 4e-6 && ux < 5e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct FormProblem<'m> {
    pub(super) mesh: &'m Mesh,
    pub(super) boundary: Arc<BoundaryFacets>,
    pub(super) equation: Equation,
    /// That of the space: the highest of all unknowns.
    pub(super) degree: usize,
    /// For each component whether its elements have degree 1 in a space of a higher degree.
    pub(super) is_linear: Vec<bool>,
    pub(super) coefficients: Vec<(String, Argument)>,
    pub(super) given: Vec<Given>,
    pub(super) terms: Vec<FacetTerm>,
    pub(super) sources: Vec<PointSource>,
    /// For each component, or none for zero.
    initial: Vec<Coefficient>,
    /// The solution of a manufactured problem, for each component.
    pub(super) exact: Option<Vec<Expression>>,
    pub(super) continuation: Option<Continuation>,
    pub(super) is_in_time: bool,
    pub(super) is_axisymmetric: bool,
    n_conditions: usize,
    inner_facets: Vec<InnerFacets>,
    notes: Vec<String>,
    /// The metric of the cells, once it is asked for.
    metric: OnceLock<Arc<Coefficient>>,
    /// The interpolation of components of degree 1, once it is asked for.
    pub(super) interpolated: OnceLock<Arc<Vec<Option<Terms>>>>,
}

/// An integral over boundary facets.
#[derive(Debug, Clone)]
pub(super) struct FacetTerm {
    /// Its name in the equation.
    pub name: String,
    pub facets: Vec<u32>,
    pub arguments: Vec<(String, Argument)>,
}

impl<'m> FormProblem<'m> {
    /// Begins a problem with elements of degree 1; `boundary` is that of the mesh.
    pub fn new(mesh: &'m Mesh, boundary: Arc<BoundaryFacets>, equation: Equation) -> Self {
        let is_linear = vec![false; equation.n_components(mesh.dimension())];
        Self {
            mesh,
            boundary,
            equation,
            degree: 1,
            is_linear,
            coefficients: Vec::new(),
            given: Vec::new(),
            terms: Vec::new(),
            sources: Vec::new(),
            initial: Vec::new(),
            exact: None,
            continuation: None,
            is_in_time: false,
            is_axisymmetric: false,
            n_conditions: 0,
            inner_facets: Vec::new(),
            notes: Vec::new(),
            metric: OnceLock::new(),
            interpolated: OnceLock::new(),
        }
    }

    /// Sets the polynomial degree of the elements.
    #[must_use]
    pub fn degree(mut self, degree: usize) -> Self {
        self.degree = degree;
        self
    }

    /// Sets the polynomial degree of the elements of each unknown, in the order of their names. Those of a lower degree are functions
    /// of the space of the highest one: their degrees of freedom between corners follow from those at corners.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for degrees that are neither the highest one nor 1, and for another number than unknowns.
    pub fn degrees(mut self, of_unknowns: &[usize]) -> Result<Self, SolveError> {
        let unknowns: Vec<(&str, usize)> =
            self.unknowns().into_iter().map(|(name, shape)| (name, shape.n_entries())).collect();
        check_count(of_unknowns.len(), unknowns.len(), &["unknown".into()])?;
        let highest = of_unknowns.iter().copied().max().unwrap_or(1);
        let mut is_linear = Vec::new();
        for (&(name, n), &degree) in unknowns.iter().zip(of_unknowns) {
            if degree != highest && degree != 1 {
                let path = ["unknown".into(), name.into(), "degree".into()];
                let message = format!("beside unknowns of degree {highest} others have this degree or 1");
                return Err(SolveError::setting(&path, message));
            }
            is_linear.extend(vec![degree != highest; n]);
        }
        (self.degree, self.is_linear, self.interpolated) = (highest, is_linear, OnceLock::new());
        Ok(self)
    }

    pub(super) fn is_stabilised(&self) -> bool {
        self.equation.is_stabilised()
    }

    pub(super) fn has_several_degrees(&self) -> bool {
        self.is_linear.contains(&true)
    }

    /// Returns the names of the unknowns, in the order of their components, with their shapes.
    pub fn unknowns(&self) -> Vec<(&str, Shape)> {
        self.equation.unknowns(self.mesh.dimension()).collect()
    }

    /// Solves in load steps: t grows from 0 to 1. Values that are set afterwards may depend on t. A linear equation is solved once,
    /// at t = 1; without load steps t is 0 in the formulas of an equation.
    #[must_use]
    pub fn continuation(mut self, continuation: Continuation) -> Self {
        self.continuation = Some(continuation);
        self
    }

    /// Makes the equation one in time for [`Self::integrate`]: values that are set afterwards may depend on t.
    #[must_use]
    pub fn in_time(mut self) -> Self {
        self.is_in_time = true;
        self
    }

    /// Makes the plane the half section of a body of revolution: x is the distance from the axis, y runs along it; see
    /// [`femtile_form::FormBuilder::axisymmetric`]. Fluxes, energies and [functionals](Space::axisymmetric) are those of the body.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a mesh in space, for one with a node on the other side of the axis, and after conditions.
    pub fn axisymmetric(mut self) -> Result<Self, SolveError> {
        let refuse = |message| Err(SolveError::setting(&["space".into(), "axisymmetric".into()], message));
        if self.n_conditions > 0 {
            return refuse(
                "is set before conditions, as their totals are divided by the area of the body".to_owned(),
            );
        }
        if self.mesh.dimension() != 2 {
            return refuse("is for meshes in the plane, the half section of the body".to_owned());
        }
        let (points, beyond) = (&self.mesh.points, -axis_rounding(self.mesh));
        if let Some(node) = points.iter().position(|[x, ..]| *x < beyond) {
            let [x, y, _] = points[node];
            return refuse(format!(
                "the axis x = 0 cuts the mesh: node {node} is at ({x}, {y}); mesh the half with x ≥ 0 alone, or move it there"
            ));
        }
        self.is_axisymmetric = true;
        Ok(self)
    }

    /// Returns the space of the unknowns.
    pub(super) fn space(&self) -> Result<Space<'m>, SpaceError> {
        Ok(Space::new(self.mesh, self.degree)?.axisymmetric(self.is_axisymmetric))
    }

    /// Sets the function that the solution of a nonlinear equation is sought from, or the one at the start of a run in time, with a
    /// value for each component; zero without it.
    ///
    /// # Errors
    /// As [`Self::scalar`], and for another number of values than components.
    pub fn initial(&mut self, values: &[Value]) -> Result<(), SolveError> {
        let (path, n) = (of_equation("initial"), self.n_components());
        check_count(values.len(), n, &path)?;
        let values = values.iter().enumerate();
        let resolve = |(i, value)| scalar(self.mesh, value, &self.of_component(&path, i));
        self.initial = values.map(resolve).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Returns the number of components of u.
    pub fn n_components(&self) -> usize {
        self.equation.n_components(self.mesh.dimension())
    }

    /// Returns the shape of a coefficient of the equation.
    pub fn coefficient_shape(&self, name: &str) -> Option<CoefficientShape> {
        self.equation.coefficient_shape(name)
    }

    /// Sets a scalar coefficient.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the key of the coefficient for a value that the mesh does not have, or a tensor.
    pub fn scalar(&mut self, name: &str, value: &Value) -> Result<(), SolveError> {
        let found = self.number(value, &self.of_coefficient(name))?;
        self.set(name, found.into());
        Ok(())
    }

    /// Sets the density of an equation without a capacity, for [`Self::modes`].
    ///
    /// # Errors
    /// As [`Self::scalar`].
    pub fn density(&mut self, value: &Value) -> Result<(), SolveError> {
        self.equation.set_capacity(DENSITY, &[DENSITY]);
        self.scalar(DENSITY, value)
    }

    /// Sets a coefficient that is a scalar or a tensor.
    ///
    /// # Errors
    /// As [`Self::scalar`].
    pub fn tensor(&mut self, name: &str, value: &Value) -> Result<(), SolveError> {
        let path = self.of_coefficient(name);
        let found = conductivity(self.mesh, &self.parsed(value, &path)?, &path, &mut self.notes)?;
        self.set(name, found.into());
        Ok(())
    }

    /// Sets a coefficient that is a vector: one value for each axis.
    ///
    /// # Errors
    /// As [`Self::scalar`], and for another number of values than axes.
    pub fn vector(&mut self, name: &str, values: &[Value]) -> Result<(), SolveError> {
        let path = self.of_coefficient(name);
        let found = match values.len() {
            // The third axis of formulas is the way around.
            3 if self.is_axisymmetric => self.numbers(values, &path)?,
            _ => self.components(values, &path)?,
        };
        self.set(name, found.into());
        Ok(())
    }

    /// Sets a coefficient that is a vector to a cell field with a component for each axis.
    ///
    /// # Errors
    /// As [`Self::scalar`].
    pub fn vector_field(&mut self, name: &str, value: &Value) -> Result<(), SolveError> {
        let path = self.of_coefficient(name);
        let found = coefficient(self.mesh, value, &path)?;
        let d = self.mesh.dimension();
        if !matches!(&found, Coefficient::CellField(field) if (d..=3).contains(&field.n_components)) {
            let message = format!("a vector is needed here: an array with {d} entries, or a cell field");
            return Err(SolveError::setting(&path, message));
        }
        self.set(name, found.into());
        Ok(())
    }

    /// Adds the integral of a scalar on a part of the boundary, such as a pressure.
    ///
    /// # Errors
    /// As [`Self::scalar`]; for a part without facets.
    pub fn scalars_on_boundary(
        &mut self,
        term: &str,
        region: impl Into<Region>,
        values: &[(&str, &Value)],
    ) -> Result<(), SolveError> {
        let path = self.condition();
        let facets = self.select(&region.into(), &path)?;
        let of_term = below(&path, term);
        let resolve = |(name, value): &(&str, &Value)| {
            // A term with one number is its value.
            let path = if values.len() == 1 { of_term.clone() } else { below(&of_term, *name) };
            Ok(((*name).to_owned(), self.number(value, &path)?.into()))
        };
        let arguments = values.iter().map(resolve).collect::<Result<_, SolveError>>()?;
        self.terms.push(FacetTerm { name: term.to_owned(), facets, arguments });
        Ok(())
    }

    /// Adds the integral of a vector on a part of the boundary, such as a traction.
    ///
    /// # Errors
    /// As [`Self::vector`]; for a part without facets.
    pub fn vector_on_boundary(
        &mut self,
        term: &str,
        region: impl Into<Region>,
        values: &[Value],
    ) -> Result<(), SolveError> {
        let path = self.condition();
        let facets = self.select(&region.into(), &path)?;
        let found = self.components(values, &below(&path, term))?;
        let arguments = vec![("value".to_owned(), found.into())];
        self.terms.push(FacetTerm { name: term.to_owned(), facets, arguments });
        Ok(())
    }

    /// Adds the integral of formulas on a part of the boundary: the flux into the body of the only unknown or of some of several,
    /// which may depend on the unknowns, their gradients and the normal.
    ///
    /// # Errors
    /// As [`Self::scalars_on_boundary`]. The formulas are read when the problem is solved.
    pub fn flux_on_boundary(
        &mut self,
        region: impl Into<Region>,
        formulas: impl Into<Formulas>,
    ) -> Result<(), SolveError> {
        let path = self.condition();
        let facets = self.select(&region.into(), &path)?;
        self.add_flux(facets, formulas.into());
        Ok(())
    }

    /// Adds the formulas of the condition that was begun.
    pub(super) fn add_flux(&mut self, facets: Vec<u32>, flux: Formulas) {
        let name = format!("{CONDITION}{}", self.n_conditions - 1);
        self.equation.set_boundary_term(&name, BoundaryTerms { flux, ..BoundaryTerms::default() });
        self.terms.push(FacetTerm { name, facets, arguments: Vec::new() });
    }

    /// Returns the Krylov method that goes with the tangent: conjugate gradients where they can, see
    /// [`Form::takes_conjugate_gradients`], else GMRES.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the key of a formula that cannot be read.
    pub fn default_method(&self) -> Result<Method, SolveError> {
        Ok(method_of(&self.form()?))
    }

    /// Stabilises convection, in elements of degree 1.
    pub fn stabilise(&mut self, by: Stabilisation) {
        self.equation.set_stabilisation(by);
    }

    /// Gives u values on a part of the boundary, for each component one or none.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a part without facets, and for another number of values than components.
    pub fn dirichlet(
        &mut self,
        region: impl Into<Region>,
        values: &[Option<Value>],
    ) -> Result<(), SolveError> {
        let path = self.condition();
        let facets = self.select(&region.into(), &path)?;
        self.give(Place::Facets(facets), values, &path)
    }

    /// Gives u values at nodes, and along edges, faces and cells between them, for each component one or none.
    ///
    /// # Errors
    /// As [`Self::dirichlet`].
    pub fn dirichlet_at_nodes(
        &mut self,
        nodes: impl Into<Nodes>,
        values: &[Option<Value>],
    ) -> Result<(), SolveError> {
        let path = self.condition();
        let nodes = nodes.into().numbers(OnMesh::whole(self.mesh), &below(&path, "nodes"))?;
        self.give(Place::Nodes(nodes), values, &path)
    }

    /// Returns the facets of a part of the boundary; `path` is the setting that names it.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if it has none.
    pub fn facets(&self, region: impl Into<Region>, path: &[Key]) -> Result<Selected, SolveError> {
        region.into().facets(OnMesh::whole(self.mesh), &self.boundary, path)
    }

    /// Returns tags of conditions that are on facets inside the mesh too, where they do not hold.
    pub fn inner_facets(&self) -> &[InnerFacets] {
        &self.inner_facets
    }

    /// Returns notes on the coefficients.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the form of the problem.
    pub(super) fn form(&self) -> Result<Form, SolveError> {
        self.built(None).map_err(|error| self.at_its_setting(error))
    }

    /// Returns the integrands of the problem as formulas, of modes without the capacity. A term that is the flux of a condition has the
    /// key of that, `boundary[2]`; these are in the order of their numbers.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the key of a formula that cannot be read.
    pub fn derivations(&self, is_of_modes: bool) -> Result<Vec<Derivation>, SolveError> {
        let found = self.builder(None);
        let found = found.and_then(|builder| builder.without_capacity(is_of_modes).derivations());
        let mut found = found.map_err(|error| self.at_its_setting(error))?;
        found.sort_by_key(|derivation| {
            derivation.term.as_deref().map(|term| (condition_of(term), term.to_owned()))
        });
        for derivation in &mut found {
            let condition = derivation.term.as_deref().and_then(condition_of);
            derivation.term =
                condition.map(|number| format!("boundary[{number}]")).or(derivation.term.take());
        }
        Ok(found)
    }

    /// Returns the form of the problem with a coefficient, as a cell field, by which it is differentiated.
    pub(super) fn form_by(&self, parameter: &str, values: &Field) -> Result<Form, SolveError> {
        self.built(Some((parameter, values))).map_err(|error| self.at_its_setting(error))
    }

    /// Returns an error with the setting that it is about.
    pub(super) fn at_its_setting(&self, error: FormError) -> SolveError {
        match error {
            FormError::Coefficient { coefficient, message }
                if Equation::text_of(self.equation.name()).is_none() =>
            {
                SolveError::setting(&self.of_coefficient(&coefficient), message)
            }
            FormError::Equation { message, .. } => SolveError::setting(&["equation".into()], message),
            other => at_its_key(other),
        }
    }

    /// Refuses an equation in time where a steady one is solved.
    pub(super) fn check_steady(&self) -> Result<(), SolveError> {
        match self.is_in_time {
            false => Ok(()),
            true => {
                let message = "the equation is one in time: advance it with `integrate`";
                Err(SolveError::setting(&["time".into()], message))
            }
        }
    }

    /// Refuses formulas of a steady problem that use the rate of the unknown, or t without load steps; forms in time without the
    /// rate; and forms without the unknown.
    pub(super) fn check_formulas(&self, form: &Form) -> Result<(), SolveError> {
        let reads = |is_wanted: &dyn Fn(&Input) -> bool| {
            form.integrals().iter().any(|Integral { integrand, .. }| {
                let inputs = integrand.inputs().iter().enumerate();
                inputs.into_iter().any(|(at, input)| is_wanted(input) && integrand.residual().reads(at))
            })
        };
        if self.equation.is_stabilised() && self.degree > 1 {
            let message = "stabilises elements of degree 1, whose residual has no second derivatives: take degree 1, or leave this out";
            return Err(SolveError::setting(&of_equation("stabilise"), message));
        }
        let path = ["equation".into()];
        let reads_rate = reads(&|input| matches!(input, Input::Rate(_)));
        if self.is_in_time && !reads_rate {
            let message = "an equation in time needs the factor of ∂u/∂t, such as 1: give `capacity`";
            return Err(SolveError::setting(&path, message));
        }
        if reads_rate && !self.is_in_time {
            return Err(SolveError::setting(
                &path,
                "a formula uses the rate of the unknown, and the problem is steady: give [time]",
            ));
        }
        if self.continuation.is_none() && !self.is_in_time && reads(&|input| *input == Input::Time) {
            let message = "a formula uses t, which load steps raise from 0 to 1: give [continuation]";
            return Err(SolveError::setting(&path, message));
        }
        if form.integrals().iter().all(|integral| integral.integrand.entries().is_empty()) {
            return Err(SolveError::setting(
                &path,
                "no formula uses the unknown, so that nothing determines it",
            ));
        }
        Ok(())
    }

    fn cell_metric(&self) -> Result<Arc<Coefficient>, FormError> {
        if let Some(metric) = self.metric.get() {
            return Ok(Arc::clone(metric));
        }
        let failure = |error: SpaceError| FormError::Coefficient {
            coefficient: "h".to_owned(),
            message: error.to_string(),
        };
        let metric = cell_metric(self.mesh).map_err(failure)?;
        Ok(Arc::clone(self.metric.get_or_init(|| Arc::new(metric))))
    }

    fn built(&self, parameter: Option<(&str, &Field)>) -> Result<Form, FormError> {
        self.builder(parameter)?.build()
    }

    fn builder(&self, parameter: Option<(&str, &Field)>) -> Result<FormBuilder<'_>, FormError> {
        let mut builder = self.equation.form(self.mesh.dimension()).axisymmetric(self.is_axisymmetric);
        if self.equation.needs_cell_metric() {
            builder = builder.with_cell_metric(self.cell_metric()?);
        }
        if let Some(exact) = &self.exact {
            builder = builder.with_exact(exact.clone());
        }
        for (name, argument) in &self.coefficients {
            builder = match parameter {
                Some((parameter, values)) if parameter == name => builder.parameter(name, values.clone())?,
                _ => builder.with(name, argument.clone())?,
            };
        }
        let mut is_taken = vec![false; self.boundary.len()];
        for term in self.terms.iter().rev() {
            let own: Vec<u32> =
                term.facets.iter().copied().filter(|&facet| !is_taken[facet as usize]).collect();
            own.iter().for_each(|&facet| is_taken[facet as usize] = true);
            let arguments: Vec<(&str, Argument)> =
                term.arguments.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            builder = builder.on_boundary(&term.name, &own, &arguments)?;
        }
        Ok(builder)
    }

    /// Returns a coefficient that was set.
    pub(super) fn coefficient(&self, name: &str) -> Option<&Argument> {
        self.coefficients.iter().find(|(own, _)| own == name).map(|(_, argument)| argument)
    }

    /// Returns the path of a coefficient; those of an equation of the user are its constants.
    fn of_coefficient(&self, name: &str) -> Vec<Key> {
        match Equation::text_of(self.equation.name()) {
            Some(_) => of_equation(name),
            None => below(&of_equation("constants"), name),
        }
    }

    /// Returns the first values of the unknowns, without Dirichlet values.
    pub(super) fn initial_values(&self, space: &Space<'_>) -> Result<Vec<f64>, SolveError> {
        self.interpolate(space, &self.initial, &of_equation("initial"))
    }

    /// Returns the values at the nodes of the elements of a function with a coefficient for each component, or none for zero.
    pub(super) fn interpolate(
        &self,
        space: &Space<'_>,
        of_components: &[Coefficient],
        path: &[Key],
    ) -> Result<Vec<f64>, SolveError> {
        let n = self.n_components();
        let mut values = vec![0.0; space.n_dofs() * n];
        if of_components.is_empty() {
            return Ok(values);
        }
        let mut dofs = vec![0; space.element().n_dofs()];
        let (mapping, mut map) = (space.mapping(space.element().nodes()), PointMap::default());
        for position in 0..space.n_cells() {
            mapping.of_cell(position, &mut map)?;
            space.cell_dofs(position, &mut dofs);
            let cell = space.cell(position);
            let tag = self.mesh.cell_tags.get(cell).copied().unwrap_or(0);
            for (&dof, &point) in dofs.iter().zip(&map.points) {
                for (component, value) in of_components.iter().enumerate() {
                    let value = value.scalar_at(cell, tag, point);
                    if !value.is_finite() {
                        let [x, y, z] = point;
                        let message = format!("is {value} at ({x}, {y}, {z}); it must be finite");
                        return Err(SolveError::setting(path, message));
                    }
                    values[dof as usize * n + component] = value;
                }
            }
        }
        Ok(values)
    }

    /// Resolves a scalar, which may depend on t if there are load steps or the equation is in time.
    fn number(&self, value: &Value, path: &[Key]) -> Result<Coefficient, SolveError> {
        scalar(self.mesh, &self.parsed(value, path)?, path)
    }

    fn parsed(&self, value: &Value, path: &[Key]) -> Result<Value, SolveError> {
        match self.continuation.is_some() || self.is_in_time {
            false => Ok(value.clone()),
            true => value.parsed(self.mesh, path, &Names { time: true, others: &[] }),
        }
    }

    fn set(&mut self, name: &str, argument: Argument) {
        self.coefficients.retain(|(own, _)| own != name);
        self.coefficients.push((name.to_owned(), argument));
    }

    /// Begins a condition and returns its path.
    pub(super) fn condition(&mut self) -> Vec<Key> {
        self.n_conditions += 1;
        vec!["boundary".into(), (self.n_conditions - 1).into()]
    }

    pub(super) fn select(&mut self, region: &Region, path: &[Key]) -> Result<Vec<u32>, SolveError> {
        let selected = region.facets(OnMesh::whole(self.mesh), &self.boundary, &below(path, "where"))?;
        if selected.n_inside > 0 {
            self.inner_facets.push(InnerFacets { condition: self.n_conditions - 1, n: selected.n_inside });
        }
        Ok(selected.facets)
    }

    fn give(&mut self, place: Place, values: &[Option<Value>], path: &[Key]) -> Result<(), SolveError> {
        let (path, n) = (below(path, "dirichlet"), self.n_components());
        if values.len() != n {
            let message = format!("{} entries, where u has {n} components: give one for each", values.len());
            return Err(SolveError::setting(&path, message));
        }
        let resolve = |(i, value): (usize, &Option<Value>)| {
            let path = self.of_component(&path, i);
            value.as_ref().map(|value| self.number(value, &path)).transpose()
        };
        let values = values.iter().enumerate().map(resolve).collect::<Result<_, _>>()?;
        self.given.push(Given { place, values, path });
        Ok(())
    }

    /// Returns the path of a component of a setting with a value for each: below its unknown, if there are several.
    fn of_component(&self, path: &[Key], component: usize) -> Vec<Key> {
        let unknowns = self.unknowns();
        let (mut path, mut left) = (path.to_vec(), component);
        for &(name, shape) in &unknowns {
            if left >= shape.n_entries() {
                left -= shape.n_entries();
                continue;
            }
            if unknowns.len() > 1 {
                path.push(name.into());
            }
            if shape != Shape::Number {
                path.push(left.into());
            }
            break;
        }
        path
    }

    fn components(&self, values: &[Value], path: &[Key]) -> Result<Vec<Coefficient>, SolveError> {
        let (found, d) = (values.len(), self.mesh.dimension());
        if found != d {
            let message = format!("{found} entries in {d} dimensions: give one for each axis");
            return Err(SolveError::setting(path, message));
        }
        self.numbers(values, path)
    }

    fn numbers(&self, values: &[Value], path: &[Key]) -> Result<Vec<Coefficient>, SolveError> {
        values.iter().enumerate().map(|(axis, value)| self.number(value, &below(path, axis))).collect()
    }
}

/// Distance beyond the axis that is rounding, relative to the size of the mesh.
const ON_AXIS: f64 = 1e-12;

/// Returns the distance from the axis of a body of revolution that is rounding.
pub(super) fn axis_rounding(mesh: &Mesh) -> f64 {
    ON_AXIS * mesh.points.iter().map(|[x, ..]| x.abs()).fold(0.0, f64::max)
}

/// Directions of GMRES before a restart. Restarts prolong the iterations of saddle points and of strong convection, to more than twice
/// as many with 30 directions.
pub(super) const RESTART: usize = 100;

/// Returns the Krylov method that goes with the tangent of a form.
pub(super) fn method_of(form: &Form) -> Method {
    match form.takes_conjugate_gradients() {
        true => Method::Cg,
        false => Method::Gmres { restart: RESTART },
    }
}

/// Returns the path of a key of the equation.
pub(super) fn of_equation(name: &str) -> Vec<Key> {
    vec!["equation".into(), name.into()]
}

/// The name of the density among the coefficients.
pub(super) const DENSITY: &str = "density";

/// Begins the names of terms that are formulas of conditions.
const CONDITION: &str = "condition-";

/// Returns the number of the condition whose flux a term is.
fn condition_of(term: &str) -> Option<usize> {
    term.strip_prefix(CONDITION)?.parse().ok()
}

/// Returns the error of a formula with the key that it has in a case file.
fn at_its_key(error: FormError) -> SolveError {
    let FormError::Formula { key, error: of_formula, .. } = &error else { return error.into() };
    let words: Vec<&str> = key.split('.').collect();
    let path = match words[..] {
        ["boundary", term, ref keys @ ..] => match condition_of(term) {
            Some(number) => {
                let path: Vec<Key> = vec!["boundary".into(), number.into()];
                keys.iter().fold(path, |path, key| below(&path, *key))
            }
            None => return error.into(),
        },
        ["functional"] => vec!["functional".into()],
        ["coefficients", name] => below(&of_equation("constants"), name),
        ["unknown", name] => vec!["unknown".into(), name.into()],
        [key @ ("flux" | "source" | "capacity"), unknown] => below(&of_equation(key), unknown),
        [key, ..] => of_equation(key),
        [] => return error.into(),
    };
    let within = (!of_formula.span.is_empty()).then(|| of_formula.span.clone());
    SolveError::Setting { path, within, message: of_formula.to_string() }
}

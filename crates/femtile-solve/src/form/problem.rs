//! An equation with coefficients and conditions on a mesh.

use std::sync::{Arc, OnceLock};

use femtile_expression::{Expression, Names, Shape};
use femtile_form::{
    Argument, BoundaryTerms, Coefficient, CoefficientShape, Derivation, Equation, Form, FormBuilder,
    FormError, Formulas, Input, Integral, ON_FACETS, Stabilisation,
};
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::{Field, Mesh};
use femtile_space::{PointMap, Space, SpaceError};

use super::cell_metric::cell_metric;
use super::continuation::Continuation;
use super::given::{Given, Place, Terms};
use super::inside::{OnFacets, with_inner_facets};
use super::interface::{Interface, interface_path};
use super::ties::{Floating, Pair, Tied};
use super::totals::PointSource;
use crate::capacity::resolved_capacity;
use crate::coefficient::{check_count, coefficient, conductivity, scalar};
use crate::ranks::OnMesh;
use crate::setting::below;
use crate::{Key, Method, Nodes, Region, SolveError, Value};

/// An equation of `femtile-form` on a mesh, with coefficients and conditions.
///
/// Of several integrals on one boundary facet the last one holds, of several values of one unknown the last one; values hold
/// in place of integrals.
///
/// A region with the name of a tag has the facets with it on the boundary and those between cells. There an integral is a source on the
/// surface, of both sides together, and a value holds at the nodes. What depends on the normal, on the gradient or on the cell needs
/// the side of a facet: [`Region::side`].
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
    /// The facets of the boundary, followed by both sides of each tagged facet inside the mesh and of those of interfaces.
    pub(super) facets: Arc<BoundaryFacets>,
    /// The number of those on the boundary.
    pub(super) n_outer: usize,
    /// The number of those before interfaces.
    pub(super) n_joined: usize,
    pub(super) interfaces: Vec<Interface>,
    boundary: Arc<BoundaryFacets>,
    pub(super) equation: Equation,
    /// That of the space: the highest of all unknowns.
    pub(super) degree: usize,
    /// For each component whether its elements have degree 1 in a space of a higher degree.
    pub(super) is_linear: Vec<bool>,
    pub(super) coefficients: Vec<(String, Argument)>,
    pub(super) given: Vec<Given>,
    pub(super) terms: Vec<FacetTerm>,
    pub(super) sources: Vec<PointSource>,
    pub(super) pairs: Vec<Pair>,
    pub(super) floating: Vec<Floating>,
    /// For each component, or none for zero.
    initial: Vec<Coefficient>,
    /// The solution of a manufactured problem, for each component.
    pub(super) exact: Option<Vec<Expression>>,
    pub(super) continuation: Option<Continuation>,
    pub(super) is_in_time: bool,
    /// Whether the capacity of the equation is its content.
    pub(super) has_content: bool,
    pub(super) is_axisymmetric: bool,
    pub(super) thickness: Option<Coefficient>,
    n_conditions: usize,
    notes: Vec<String>,
    /// The metric of the cells, once it is asked for.
    metric: OnceLock<Arc<Coefficient>>,
    /// The interpolation of components of degree 1, once it is asked for.
    pub(super) interpolated: OnceLock<Arc<Vec<Option<Terms>>>>,
    /// The degrees of freedom of sides that follow others, once they are asked for.
    pub(super) tied: OnceLock<Arc<Tied>>,
}

/// An integral over boundary facets.
#[derive(Debug, Clone)]
pub(super) struct FacetTerm {
    /// Its name in the equation.
    pub name: String,
    pub facets: Vec<u32>,
    pub arguments: Vec<(String, Argument)>,
    /// Whether the condition names a side of facets inside the mesh.
    pub has_side: bool,
    /// The number of its condition.
    pub condition: usize,
}

impl<'m> FormProblem<'m> {
    /// Begins a problem with elements of degree 1; `boundary` is that of the mesh.
    pub fn new(mesh: &'m Mesh, boundary: Arc<BoundaryFacets>, equation: Equation) -> Self {
        let is_linear = vec![false; equation.n_components(mesh.space_dimension())];
        let facets = with_inner_facets(mesh, &boundary);
        Self {
            mesh,
            n_joined: facets.len(),
            interfaces: Vec::new(),
            facets,
            n_outer: boundary.len(),
            boundary,
            equation,
            degree: 1,
            is_linear,
            coefficients: Vec::new(),
            given: Vec::new(),
            terms: Vec::new(),
            sources: Vec::new(),
            pairs: Vec::new(),
            floating: Vec::new(),
            initial: Vec::new(),
            exact: None,
            continuation: None,
            is_in_time: false,
            has_content: false,
            is_axisymmetric: false,
            thickness: None,
            n_conditions: 0,
            notes: Vec::new(),
            metric: OnceLock::new(),
            interpolated: OnceLock::new(),
            tied: OnceLock::new(),
        }
    }

    /// Sets the polynomial degree of the elements.
    #[must_use]
    pub fn degree(mut self, degree: usize) -> Self {
        self.degree = degree;
        (self.interpolated, self.tied) = (OnceLock::new(), OnceLock::new());
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
        self.is_linear = is_linear;
        self = self.degree(highest);
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
        self.equation.unknowns(self.mesh.space_dimension()).collect()
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

    /// Makes the capacity of the equation its content H: the equation has $\partial H(u)/\partial t$ in place of
    /// $c\,\partial u/\partial t$. In each step of [`Self::integrate`] the integral of H changes by what flows in, to the tolerance of the
    /// solve. Each stage evaluates H at the earlier functions that it starts from.
    #[must_use]
    pub fn with_content(mut self) -> Self {
        self.has_content = true;
        self
    }

    /// Sets the capacity c of diffusion in time; of one that depends on u the [content](Self::with_content) is its integral from 0 to u,
    /// by eight Gauss points.
    ///
    /// # Errors
    /// As [`Self::scalar`]; for a capacity that depends on t, and for one that is not positive at a corner or in the middle of a cell.
    pub fn capacity(&mut self, value: &Value) -> Result<(), SolveError> {
        let capacity = resolved_capacity(self.mesh, value, &Coefficient::ZERO)?;
        if capacity.uses_unknown() {
            self.equation.set_capacity("capacity*u", &[]);
            self.has_content = true;
        }
        self.set("capacity", capacity.mean_from_zero().into());
        Ok(())
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
        if self.mesh.space_dimension() != 2 {
            return refuse("is for meshes in the plane, the half section of the body".to_owned());
        }
        if self.thickness.is_some() {
            return refuse("bodies of revolution have no thickness: leave `thickness` out".to_owned());
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

    /// Gives a mesh in the plane, or a surface in space, a thickness, by which all integrals over cells and edges are multiplied:
    /// sources and fluxes are per volume and per area of the sheet.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a value that the mesh does not have or that is not positive at a corner of a cell, for a mesh of
    /// solids, for a body of revolution, and after conditions.
    pub fn thickness(mut self, value: &Value) -> Result<Self, SolveError> {
        let path: [Key; 2] = ["space".into(), "thickness".into()];
        let refuse = |message: String| Err(SolveError::setting(&path, message));
        if self.n_conditions > 0 {
            return refuse("is set before conditions, as their totals are divided by areas".to_owned());
        }
        if self.mesh.dimension() != 2 {
            return refuse("is for meshes in the plane and surfaces in space".to_owned());
        }
        if self.is_axisymmetric {
            return refuse("bodies of revolution have no thickness: leave one of them out".to_owned());
        }
        let value = value.parsed(self.mesh, &path, &Names { time: false, others: &[] })?;
        let found = scalar(self.mesh, &value, &path)?;
        for cell in 0..self.mesh.n_cells() {
            let tag = self.mesh.cell_tags.get(cell).copied().unwrap_or(0);
            for &node in self.mesh.cell(cell) {
                let point = self.mesh.points[node as usize];
                let thickness = found.scalar_at(cell, tag, point);
                if !(thickness > 0.0 && thickness.is_finite()) {
                    let [x, y, z] = point;
                    return refuse(format!(
                        "is {thickness} at ({x}, {y}, {z}); it must be positive and finite"
                    ));
                }
            }
        }
        self.thickness = Some(found);
        Ok(self)
    }

    /// Returns whether the sheet has a thickness.
    pub fn has_thickness(&self) -> bool {
        self.thickness.is_some()
    }

    /// Returns whether the thickness is one of cells, so that facets between them may have two.
    pub(super) fn has_thickness_of_cells(&self) -> bool {
        matches!(self.thickness, Some(Coefficient::ByTag(_) | Coefficient::CellField(_)))
    }

    /// Begins a form of an equation on the mesh, with the weight of all integrals.
    pub(super) fn begun<'e>(&self, equation: &'e Equation) -> FormBuilder<'e> {
        let builder = equation.form(self.mesh.space_dimension());
        builder.axisymmetric(self.is_axisymmetric).thickness(self.thickness.clone())
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

    /// Returns the name of the equation.
    pub fn equation_name(&self) -> &str {
        self.equation.name()
    }

    /// Returns the number of components of u.
    pub fn n_components(&self) -> usize {
        self.equation.n_components(self.mesh.space_dimension())
    }

    /// Returns the shape of a coefficient of the equation.
    pub fn coefficient_shape(&self, name: &str) -> Option<CoefficientShape> {
        self.equation.coefficient_shape(name)
    }

    /// Adds a coefficient for formulas of fluxes through the boundary.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a name that has a meaning in the equation.
    pub fn add_coefficient(&mut self, name: &str, shape: CoefficientShape) -> Result<(), SolveError> {
        self.equation.add_coefficient(name, shape).map_err(|error| match error {
            FormError::Coefficient { message, .. } => {
                SolveError::setting(&below(&of_equation("constants"), name), message)
            }
            other => other.into(),
        })
    }

    /// Sets a scalar coefficient, of diffusion without convection also a function of u.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the key of the coefficient for a value that the mesh does not have, or a tensor.
    pub fn scalar(&mut self, name: &str, value: &Value) -> Result<(), SolveError> {
        let found = self.number_of_state(value, &self.of_coefficient(name))?;
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

    /// Sets a coefficient that is a scalar or a tensor, of diffusion without convection also a function of u.
    ///
    /// # Errors
    /// As [`Self::scalar`].
    pub fn tensor(&mut self, name: &str, value: &Value) -> Result<(), SolveError> {
        let path = self.of_coefficient(name);
        let value = self.parsed(value, &path, self.names_of_state())?;
        let found = conductivity(self.mesh, &value, &path, &mut self.notes)?;
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
        let d = self.mesh.space_dimension();
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
        let on = self.select(region, &path)?;
        let of_term = below(&path, term);
        let resolve = |(name, value): &(&str, &Value)| {
            // A term with one number is its value.
            let path = if values.len() == 1 { of_term.clone() } else { below(&of_term, *name) };
            Ok(((*name).to_owned(), self.number_of_state(value, &path)?.into()))
        };
        let arguments = values.iter().map(resolve).collect::<Result<_, SolveError>>()?;
        self.add_term(term.to_owned(), on, arguments);
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
        let on = self.select(region, &path)?;
        let found = self.components(values, &below(&path, term))?;
        let arguments = vec![("value".to_owned(), found.into())];
        self.add_term(term.to_owned(), on, arguments);
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
        let on = self.select(region, &path)?;
        self.add_flux(on, formulas.into());
        Ok(())
    }

    /// Adds the formulas of the condition that was begun.
    pub(super) fn add_flux(&mut self, on: OnFacets, flux: Formulas) {
        let name = format!("{CONDITION}{}", self.n_conditions - 1);
        self.equation.set_boundary_term(&name, BoundaryTerms { flux, ..BoundaryTerms::default() });
        self.add_term(name, on, Vec::new());
    }

    /// Adds a term of the condition that was begun.
    fn add_term(&mut self, name: String, on: OnFacets, arguments: Vec<(String, Argument)>) {
        let (OnFacets { facets, has_side }, condition) = (on, self.n_conditions - 1);
        self.terms.push(FacetTerm { name, facets, arguments, has_side, condition });
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
        self.equation.set_stabilisation(Some(by));
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
        let region = region.into();
        // Both sides of an interface have the value, unless one of them is named.
        let facets = self.facets_of_flux(region, &below(&path, "where"))?;
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

    /// Returns notes on the coefficients.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the form of the problem.
    pub(super) fn form(&self) -> Result<Form, SolveError> {
        self.check_surface()?;
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
            FormError::Coefficient { coefficient, message } if !self.is_of_library(&coefficient) => {
                SolveError::setting(&self.of_coefficient(&coefficient), message)
            }
            FormError::Equation { message, .. } => SolveError::setting(&["equation".into()], message),
            other => at_its_key(other),
        }
    }

    /// Refuses displacements on surfaces in space, where equations of scalars alone have their meaning.
    fn check_surface(&self) -> Result<(), SolveError> {
        let Some(name) = self.equation.first_vector().filter(|_| self.mesh.is_surface) else {
            return Ok(());
        };
        let message = "on a surface in space unknowns are numbers: the equations of membranes and shells have more terms than those of \
                       vectors";
        let path: Vec<Key> = match Equation::text_of(self.equation.name()) {
            Some(_) => of_equation("kind"),
            None => vec!["unknown".into(), name.into(), "components".into()],
        };
        Err(SolveError::setting(&path, message))
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
        self.check_sides(form)?;
        self.check_interfaces(form)?;
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
        let mut builder = self.begun(&self.equation);
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
        for (term, own) in self.terms.iter().zip(self.facets_of_terms()).rev() {
            let arguments: Vec<(&str, Argument)> =
                term.arguments.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            builder = builder.on_boundary(&term.name, &own, &arguments)?;
        }
        for Interface { name, pairs, .. } in &self.interfaces {
            builder = builder.on_interface(name, pairs)?;
        }
        Ok(builder)
    }

    /// Returns a coefficient that was set.
    pub(super) fn coefficient(&self, name: &str) -> Option<&Argument> {
        self.coefficients.iter().find(|(own, _)| own == name).map(|(_, argument)| argument)
    }

    /// Returns the path of a coefficient; those of an equation of the user are its constants.
    fn of_coefficient(&self, name: &str) -> Vec<Key> {
        match self.is_of_library(name) {
            true => of_equation(name),
            false => below(&of_equation("constants"), name),
        }
    }

    /// Returns whether a coefficient has a key of its own in case files.
    pub(super) fn is_of_library(&self, coefficient: &str) -> bool {
        let library = Equation::named(self.equation.name());
        library.is_ok_and(|own| coefficient == DENSITY || own.coefficient_shape(coefficient).is_some())
    }

    /// Returns whether the first values were given.
    pub(super) fn has_initial(&self) -> bool {
        !self.initial.is_empty()
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
    pub(super) fn number(&self, value: &Value, path: &[Key]) -> Result<Coefficient, SolveError> {
        scalar(self.mesh, &self.parsed(value, path, &[])?, path)
    }

    /// Resolves a scalar, which may depend on the unknown as well.
    fn number_of_state(&self, value: &Value, path: &[Key]) -> Result<Coefficient, SolveError> {
        scalar(self.mesh, &self.parsed(value, path, self.names_of_state())?, path)
    }

    /// Returns the names of the unknowns in coefficients.
    fn names_of_state(&self) -> &'static [&'static str] {
        match (self.equation.name(), self.is_in_time) {
            ("reaction-diffusion", _) | ("diffusion", true) => &["u"],
            _ => &[],
        }
    }

    fn parsed(&self, value: &Value, path: &[Key], others: &[&str]) -> Result<Value, SolveError> {
        let time = self.continuation.is_some() || self.is_in_time;
        match time || !others.is_empty() {
            false => Ok(value.clone()),
            true => value.parsed(self.mesh, path, &Names { time, others }),
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

    pub(super) fn select(&self, region: impl Into<Region>, path: &[Key]) -> Result<OnFacets, SolveError> {
        self.on_facets(region.into(), &below(path, "where"))
    }

    /// Returns the boundary of the mesh.
    pub(super) fn boundary(&self) -> &BoundaryFacets {
        &self.boundary
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
    pub(super) fn of_component(&self, path: &[Key], component: usize) -> Vec<Key> {
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
        let (found, d) = (values.len(), self.mesh.space_dimension());
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
        ["functional"] | ["boundary", ON_FACETS, ..] => vec!["functional".into()],
        ["boundary", term, ref keys @ ..] => match condition_of(term) {
            Some(number) => {
                let path: Vec<Key> = vec!["boundary".into(), number.into()];
                keys.iter().fold(path, |path, key| below(&path, *key))
            }
            None => return error.into(),
        },
        ["interface", term, ..] => interface_path(term),
        ["coefficients", name] => below(&of_equation("constants"), name),
        ["unknown", name] => vec!["unknown".into(), name.into()],
        [key @ ("flux" | "source" | "capacity"), unknown] => below(&of_equation(key), unknown),
        [key, ..] => of_equation(key),
        [] => return error.into(),
    };
    // Factors stand in brackets in the formulas of interfaces, and integrands over facets in those of vectors.
    let is_given = !matches!(words[..], ["interface", ..] | ["boundary", ON_FACETS, ..]);
    let within = (is_given && !of_formula.span.is_empty()).then(|| of_formula.span.clone());
    SolveError::Setting { path, within, message: of_formula.to_string() }
}

//! A linear equation with coefficients and conditions on a mesh.

use std::sync::Arc;

use femtile_form::{Argument, Coefficient, Equation, Form, FormError};
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

use super::given::{Given, Place};
use crate::boundary::Selected;
use crate::coefficient::{coefficient, conductivity, scalar};
use crate::ranks::OnMesh;
use crate::setting::below;
use crate::{InnerFacets, Key, Nodes, Region, SolveError, Value};

/// A linear equation of `femtile-form` on a mesh, with coefficients and conditions.
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
    pub(super) degree: usize,
    pub(super) coefficients: Vec<(String, Argument)>,
    pub(super) given: Vec<Given>,
    pub(super) terms: Vec<FacetTerm>,
    n_conditions: usize,
    inner_facets: Vec<InnerFacets>,
    notes: Vec<String>,
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
        Self {
            mesh,
            boundary,
            equation,
            degree: 1,
            coefficients: Vec::new(),
            given: Vec::new(),
            terms: Vec::new(),
            n_conditions: 0,
            inner_facets: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the polynomial degree of the elements.
    #[must_use]
    pub fn degree(mut self, degree: usize) -> Self {
        self.degree = degree;
        self
    }

    /// Returns the number of components of u.
    pub fn n_components(&self) -> usize {
        self.equation.n_components(self.mesh.dimension())
    }

    /// Sets a scalar coefficient.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the key of the coefficient for a value that the mesh does not have, or a tensor.
    pub fn scalar(&mut self, name: &str, value: &Value) -> Result<(), SolveError> {
        let found = scalar(self.mesh, value, &of_equation(name))?;
        self.set(name, found.into());
        Ok(())
    }

    /// Sets a coefficient that is a scalar or a tensor.
    ///
    /// # Errors
    /// As [`Self::scalar`].
    pub fn tensor(&mut self, name: &str, value: &Value) -> Result<(), SolveError> {
        let found = conductivity(self.mesh, value, &of_equation(name), &mut self.notes)?;
        self.set(name, found.into());
        Ok(())
    }

    /// Sets a coefficient that is a vector: one value for each axis.
    ///
    /// # Errors
    /// As [`Self::scalar`], and for another number of values than axes.
    pub fn vector(&mut self, name: &str, values: &[Value]) -> Result<(), SolveError> {
        let found = self.components(values, &of_equation(name))?;
        self.set(name, found.into());
        Ok(())
    }

    /// Sets a coefficient that is a vector to a cell field with a component for each axis.
    ///
    /// # Errors
    /// As [`Self::scalar`].
    pub fn vector_field(&mut self, name: &str, value: &Value) -> Result<(), SolveError> {
        let path = of_equation(name);
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
            Ok(((*name).to_owned(), scalar(self.mesh, value, &path)?.into()))
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
    pub(super) fn form(&self) -> Result<Form, FormError> {
        let mut builder = self.equation.form(self.mesh.dimension());
        for (name, argument) in &self.coefficients {
            builder = builder.with(name, argument.clone())?;
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
        builder.build()
    }

    /// Returns a coefficient that was set.
    pub(super) fn coefficient(&self, name: &str) -> Option<&Argument> {
        self.coefficients.iter().find(|(own, _)| own == name).map(|(_, argument)| argument)
    }

    fn set(&mut self, name: &str, argument: Argument) {
        self.coefficients.retain(|(own, _)| own != name);
        self.coefficients.push((name.to_owned(), argument));
    }

    /// Begins a condition and returns its path.
    fn condition(&mut self) -> Vec<Key> {
        self.n_conditions += 1;
        vec!["boundary".into(), (self.n_conditions - 1).into()]
    }

    fn select(&mut self, region: &Region, path: &[Key]) -> Result<Vec<u32>, SolveError> {
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
            let path = if n == 1 { path.clone() } else { below(&path, i) };
            value.as_ref().map(|value| scalar(self.mesh, value, &path)).transpose()
        };
        let values = values.iter().enumerate().map(resolve).collect::<Result<_, _>>()?;
        self.given.push(Given { place, values, path });
        Ok(())
    }

    fn components(&self, values: &[Value], path: &[Key]) -> Result<Vec<Coefficient>, SolveError> {
        let (found, d) = (values.len(), self.mesh.dimension());
        if found != d {
            let message = format!("{found} entries in {d} dimensions: give one for each axis");
            return Err(SolveError::setting(path, message));
        }
        values.iter().enumerate().map(|(axis, value)| scalar(self.mesh, value, &below(path, axis))).collect()
    }
}

/// Returns the path of a coefficient.
pub(super) fn of_equation(name: &str) -> Vec<Key> {
    vec!["equation".into(), name.into()]
}

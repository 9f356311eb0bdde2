use femtile_form::{Domain, Form};
use femtile_mesh::check::BoundaryFacets;
use femtile_space::Space;

use crate::error::OperatorError;

/// A form on a space.
///
/// Unknowns are interleaved by components: component c of degree of freedom i of the space is unknown
/// $i\,n_\text{components} + c$.
#[derive(Debug, Clone, Copy)]
pub struct DiscreteForm<'a> {
    space: &'a Space<'a>,
    form: &'a Form,
    boundary: &'a BoundaryFacets,
}

/// The state at which residual and tangent are evaluated.
#[derive(Debug, Clone, Copy)]
pub struct State<'a> {
    /// u: one entry per unknown; empty for zero.
    pub u: &'a [f64],
    /// ∂u/∂t: one entry per unknown; empty for zero.
    pub rate: &'a [f64],
    /// The time.
    pub time: f64,
    /// α = ∂(∂u/∂t)/∂u of a time discretization, which multiplies the mass matrix in the tangent; zero if there is none.
    pub shift: f64,
}

impl Default for State<'_> {
    /// Returns the state zero.
    fn default() -> Self {
        Self { u: &[], rate: &[], time: 0.0, shift: 0.0 }
    }
}

impl<'a> State<'a> {
    /// Returns a stationary state.
    pub fn of(u: &'a [f64]) -> Self {
        Self { u, ..Self::default() }
    }
}

impl<'a> DiscreteForm<'a> {
    /// Combines a form with a space; `boundary` is the list in which the form counts boundary facets.
    ///
    /// # Errors
    /// [`OperatorError::Mismatch`] for different dimensions, [`OperatorError::NoSuchFacet`], and
    /// [`OperatorError::Form`] for coefficients that do not cover the mesh.
    pub fn new(
        space: &'a Space<'a>,
        form: &'a Form,
        boundary: &'a BoundaryFacets,
    ) -> Result<Self, OperatorError> {
        let (found, expected) = (form.dimension(), space.mesh().space_dimension());
        if found != expected {
            let message = format!("a form in {found} dimensions on a mesh of {expected}");
            return Err(OperatorError::Mismatch(message));
        }
        for integral in form.integrals() {
            integral.integrand.check(space.mesh())?;
            let facets = match &integral.domain {
                Domain::Boundary(facets) => facets.as_slice(),
                Domain::Interface(pairs) => pairs.as_flattened(),
                Domain::Cells | Domain::Interior => continue,
            };
            if let Some(&facet) = facets.iter().find(|&&facet| facet as usize >= boundary.len()) {
                return Err(OperatorError::NoSuchFacet { facet, n_facets: boundary.len() });
            }
        }
        Ok(Self { space, form, boundary })
    }

    /// Returns the space.
    pub fn space(&self) -> &'a Space<'a> {
        self.space
    }

    /// Returns the form.
    pub fn form(&self) -> &'a Form {
        self.form
    }

    /// Returns the boundary facets.
    pub fn boundary(&self) -> &'a BoundaryFacets {
        self.boundary
    }

    /// Returns the number of unknowns: degrees of freedom × components.
    pub fn n_unknowns(&self) -> usize {
        self.space.n_dofs() * self.form.n_components()
    }

    /// Fails unless a vector has one entry per unknown, or none if `may_be_empty`.
    pub(crate) fn check_length(
        &self,
        field: &'static str,
        vector: &[f64],
        may_be_empty: bool,
    ) -> Result<(), OperatorError> {
        let (found, expected) = (vector.len(), self.n_unknowns());
        match found == expected || may_be_empty && found == 0 {
            true => Ok(()),
            false => Err(OperatorError::Length { field, found, expected }),
        }
    }

    /// Fails unless the vectors of a state fit.
    pub(crate) fn check_state(&self, state: &State<'_>) -> Result<(), OperatorError> {
        self.check_length("u", state.u, true)?;
        self.check_length("rate", state.rate, true)
    }
}

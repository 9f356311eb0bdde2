use femtile_mesh::CellKind;
use femtile_space::{Element, MAX_DEGREE};

use crate::SolveError;

/// The most components of u.
pub const MAX_COMPONENTS: usize = 64;

/// Settings of the finite elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceConfig {
    /// Polynomial degree: 1 to 10 on quadrilaterals and hexahedra; on triangles and tetrahedra 1, of forms 1 to 6.
    pub degree: usize,
    /// Components of u, each of which solves the equation: on quadrilaterals and hexahedra, without a matrix.
    pub components: usize,
    /// The rule that integrates the operator on quadrilaterals and hexahedra.
    pub quadrature: Quadrature,
}

impl Default for SpaceConfig {
    fn default() -> Self {
        Self { degree: 1, components: 1, quadrature: Quadrature::Gauss }
    }
}

impl SpaceConfig {
    /// Checks what can be checked without a mesh.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the first setting that is wrong.
    pub fn check(&self) -> Result<(), SolveError> {
        let Self { degree, components, .. } = *self;
        let wrong =
            |key: &str, message: String| Err(SolveError::setting(&["space".into(), key.into()], message));
        if !(1..=MAX_COMPONENTS).contains(&components) {
            return wrong("components", format!("{components} is not between 1 and {MAX_COMPONENTS}"));
        }
        if !(1..=MAX_DEGREE).contains(&degree) {
            let message = format!(
                "degree {degree} is not offered: 1 to {MAX_DEGREE} are on quadrilaterals and hexahedra, 1 to 6 of forms on \
                 triangles and tetrahedra"
            );
            return wrong("degree", message);
        }
        Ok(())
    }
}

/// Rules along each axis of a cell, for elements of degree p.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quadrature {
    /// Gauss's with p + 1 points.
    #[default]
    Gauss,
    /// Gauss's with p + 2 points, for cells that bend and coefficients that vary within cells.
    GaussFine,
    /// Gauss–Lobatto's with p + 1 points, the nodes of the element: cheaper, and not exact for any coefficients.
    GaussLobatto,
}

impl Quadrature {
    /// Returns the name, as in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gauss => "gauss",
            Self::GaussFine => "gauss-fine",
            Self::GaussLobatto => "gauss-lobatto",
        }
    }
}

/// Checks that there are elements of a degree on a kind of cells.
///
/// # Errors
/// [`SolveError::Setting`] about `space.degree`.
pub fn check_degree(kind: CellKind, degree: usize) -> Result<(), SolveError> {
    match Element::new(kind, degree) {
        Ok(_) => Ok(()),
        Err(error) => Err(SolveError::setting(&["space".into(), "degree".into()], error.to_string())),
    }
}

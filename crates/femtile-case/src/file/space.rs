use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Value;

/// `[space]`: the finite elements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("anyOf" = [
    { "properties": { "thickness": false } },
    { "properties": { "axisymmetric": { "const": false } } }
]))]
pub struct SpaceSection {
    /// Polynomial degree p of the elements: 1 to 10 on quadrilaterals and hexahedra, 1 to 6 on triangles and tetrahedra, of the monodomain
    /// equation 1.
    #[schemars(range(min = 1, max = 10))]
    pub degree: u32,
    /// Components of u, each of which solves the equation: on quadrilaterals and hexahedra, without a matrix.
    #[schemars(range(min = 1))]
    pub components: usize,
    /// Quadrature of the operator on quadrilaterals and hexahedra.
    pub quadrature: Quadrature,
    /// The mesh in the plane is the half section of a body of revolution, where x is the distance from the axis.
    pub axisymmetric: bool,
    /// The thickness of a mesh in the plane or of a surface in space, by which all integrals
    /// are multiplied, positive: a number, an expression in x, y, z, values by tag, or a cell field; 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thickness: Option<Value>,
}

impl Default for SpaceSection {
    fn default() -> Self {
        Self { degree: 1, components: 1, quadrature: Quadrature::Gauss, axisymmetric: false, thickness: None }
    }
}

/// Rules along each axis of a cell, for elements of degree p.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quadrature {
    /// Gauss's with p + 1 points.
    #[default]
    Gauss,
    /// Gauss's with p + 2 points, for cells that bend and coefficients that vary within cells.
    GaussFine,
    /// Gauss–Lobatto's with p + 1 points, the nodes of the element: cheaper, and not exact for any coefficients.
    GaussLobatto,
}

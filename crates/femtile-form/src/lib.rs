//! Variational forms as data.
//!
//! Find u such that R(u; v) = 0 for all test functions v, where
//!
//! $$ R(u; v) = \sum_\text{cells} \int f_0\cdot v + f_1 : \nabla v \,dx + \sum_\text{facets} \int b_0\cdot v \,ds, $$
//!
//! and $f_0, f_1, b_0$ are functions of the point x, the normal n, the time t, the state (u, ∇u, ∂u/∂t) and
//! coefficients. An [`Equation`] has fluxes, sources and energies as text, of which they are made; with a [`Coefficient`] for each name it becomes a [`Form`], whose
//! [`Integrand`]s compute residual, tangent and energy density at a point. The tangent
//! $D' = \partial(f_0, f_1)/\partial(u, \nabla u)$ is exact: it is derived from the same graph of formulas, and so is its
//! [`Class`], by which operators choose their kernels.
//!
//! # Source
//! The separation of the equation at a point from basis and geometry is that of `[brown2021]`, libCEED.
#![forbid(unsafe_code)]

mod class;
mod coefficient;
mod definitions;
mod derivation;
mod equation;
mod error;
mod exact;
mod form;
mod formula;
mod integrand;
mod linearization;
mod objectivity;
mod parameter;
mod recipe;
mod stabilisation;

pub use class::{Class, Dependence, Storage};
pub use coefficient::{Coefficient, Compiled, PointFunction, Points, UNKNOWN, multiple_of_identity};
pub use derivation::Derivation;
pub use equation::{
    Axes, BoundaryTerms, CellTerms, CoefficientShape, Components, Equation, EquationText, Formulas,
    InteriorTerms, ON_FACETS, Parameter, Stabilisation, Unknown,
};
pub use error::FormError;
pub use form::{Argument, Domain, Form, FormBuilder, Integral};
pub use integrand::{CellData, Input, Integrand, Side};
pub use linearization::{Linearization, Varying};
pub use objectivity::Objectivity;
pub use parameter::ByParameter;

//! Tangents that products keep, in place of running the program at every point.

use std::sync::{Arc, Mutex, PoisonError};

use femtile_form::{Input, Integrand};

use super::CpuOperator;
use super::basis::Lanes;
use super::cells::CellScratch;
use super::constant::ConstantTangent;
use super::metric::StoredMetric;
use crate::discrete_form::State;

/// The tangent of an integrand that does not depend on the state, as the kernels of its class need it.
pub(crate) struct StoredTangent {
    /// Time and shift, if the tangent depends on them, else zero.
    at: [f64; 2],
    kind: Kind,
}

enum Kind {
    Metric(StoredMetric),
    Constant(ConstantTangent),
}

/// The last stored tangent of an integrand.
pub(crate) type LastTangent = Mutex<Option<Arc<StoredTangent>>>;

impl StoredTangent {
    /// Returns the tangent for products at a state, or none if its structure has no kernel of its own.
    ///
    /// # Cost
    /// The first call, and those at another time or shift, run the program of the derivative: once per cell if it is constant there, else
    /// at all points.
    pub fn of(operator: &CpuOperator<'_>, integrand: &Integrand, state: &State<'_>) -> Option<Arc<Self>> {
        let is_constant = ConstantTangent::fits(operator, integrand);
        if !is_constant && !StoredMetric::fits(operator, integrand) {
            return None;
        }
        let position = operator.cells.iter().position(|other| std::ptr::eq(*other, integrand))?;
        let inputs = integrand.inputs();
        let reads_time = inputs
            .iter()
            .enumerate()
            .any(|(at, input)| matches!(input, Input::Time) && integrand.derivative().reads(at));
        let reads_shift = integrand.derivative().reads(integrand.n_inputs() - 1);
        let at = [(reads_time, state.time), (reads_shift, state.shift)]
            .map(|(is_read, value)| if is_read { value } else { 0.0 });
        // Not locked while threads work: one that waits may begin another product.
        let last = || operator.stored[position].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stored) = last().as_ref().filter(|stored| stored.at == at) {
            return Some(stored.clone());
        }
        let kind = match is_constant {
            true => Kind::Constant(ConstantTangent::new(operator, integrand, state)?),
            false => Kind::Metric(StoredMetric::new(operator, integrand, state)),
        };
        let stored = Arc::new(Self { at, kind });
        *last() = Some(stored.clone());
        Some(stored)
    }

    /// Multiplies a batch of cells in place.
    ///
    /// # Shapes
    /// `u: [n_components][n]`
    pub fn multiply(
        &self,
        operator: &CpuOperator<'_>,
        batch: usize,
        u: &mut [Lanes],
        scratch: &mut CellScratch,
    ) {
        match &self.kind {
            Kind::Metric(metric) => metric.multiply(operator, batch, u, scratch),
            Kind::Constant(tangent) => tangent.multiply(operator, batch, u, scratch),
        }
    }

    /// Returns the bytes that a product reads.
    pub fn bytes(&self, operator: &CpuOperator<'_>) -> usize {
        match &self.kind {
            Kind::Metric(metric) => metric.bytes(),
            Kind::Constant(tangent) => tangent.bytes(operator),
        }
    }
}

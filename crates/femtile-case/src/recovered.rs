//! Estimates of the discretization error in a report, and doubt about them.

use femtile_fem::recovery::ErrorEstimate;
use femtile_solve::Fields;

use crate::Report;

impl Report {
    /// Takes the estimate of the error, unless it is none of the energy norm, with the warnings and citations of fields.
    pub(crate) fn take_fields(&mut self, fields: &Fields, is_energy: bool) {
        self.warnings.extend_from_slice(fields.left_out());
        if let Some(estimate) = fields.error_estimate().filter(|_| is_energy) {
            self.solve.discretization_error_estimate = Some(estimate.total);
            self.solve.discretization_error_relative =
                (estimate.norm > 0.0).then(|| estimate.total / estimate.norm);
            self.warnings.extend(doubt(estimate));
        }
        self.citations.extend(fields.citations().iter().map(|key| String::from(*key)));
    }
}

/// Share of fits of too low a degree from which the estimate of the error is not trusted.
const FEW_VALUES: f64 = 0.5;

/// Estimate relative to the norm of the solution from which it is not trusted.
const UNRESOLVED: f64 = 0.5;

/// Returns the reason not to trust an estimate of the error of the elements, if there is one.
fn doubt(estimate: &ErrorEstimate) -> Option<String> {
    let ErrorEstimate { total, norm, lowered, .. } = estimate;
    let reason = if *lowered >= FEW_VALUES {
        "the mesh, or its regions of one material, have too few nodes for it"
    } else if *total >= UNRESOLVED * norm && *norm > 0.0 {
        "it is as large as the solution, which the mesh does not resolve: the error may be many times larger"
    } else {
        return None;
    };
    Some(format!(
        "the estimate of the discretization error, {total:.1e}, cannot be trusted: {reason}; refine the mesh"
    ))
}

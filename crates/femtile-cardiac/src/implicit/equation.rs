//! The nonlinear equation of a step.

use femtile::device::Buffer;
use femtile::linalg::LinearOperator;
use femtile::linalg::comm::Alone;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::newton::{CorrectionOutcome, NonlinearEquation, ResidualNorm};
use femtile::linalg::precondition::Diagonal;
use femtile::linalg::sparse::StoredMatrix;

use super::{Implicit, TOLERANCE, Vectors};
use crate::{CardiacDevice, CardiacError};

/// $r(V) = \tfrac{c}{h} M (V_n + h s) - (\tfrac{c}{h} M + K) V - c\, G\, I(PV, w)$ with the states of a step of length h.
pub(super) struct StepEquation<'a, D: CardiacDevice> {
    pub of: &'a mut Implicit<D>,
    pub length: f64,
}

impl<D: CardiacDevice> NonlinearEquation<D> for StepEquation<'_, D> {
    type Error = CardiacError;

    fn residual(&mut self, u: &Buffer<f64, D>) -> Result<ResidualNorm, CardiacError> {
        let of = &mut *self.of;
        let device = u.device();
        let Vectors { old, residual, of_nodes, at_cells, current, slope, .. } = &mut of.vectors;
        of.sums.interpolate.apply(at_cells, u)?;
        let n_failed = of.ionic.implicit(at_cells, current, slope, self.length)?;
        of.linear.apply(residual, u)?;
        device.axpby(residual, 1.0, old, -1.0)?;
        of.sums.integrate.apply(of_nodes, current)?;
        device.axpby(residual, -of.storage, of_nodes, 1.0)?;
        // A residual of this size leaves the error that is accepted.
        let size = of.error * of.storage / self.length * of.mass_norm / TOLERANCE;
        // States without a solution have no residual: Newton's method takes a shorter step.
        let norm = if n_failed > 0 { f64::INFINITY } else { device.dot(residual, residual)?.sqrt() };
        Ok(ResidualNorm { norm, size })
    }

    fn correction(
        &mut self,
        delta: &mut Buffer<f64, D>,
        tolerance: f64,
    ) -> Result<CorrectionOutcome, CardiacError> {
        let of = &mut *self.of;
        let Vectors { residual, slope, of_values, .. } = &mut of.vectors;
        of.sums.assemble.apply(of_values, slope)?;
        of.tangent.combine_values(1.0, of.linear.values(), 0.0)?;
        of.tangent.combine_values(of.storage, of_values, 1.0)?;
        let Some(preconditioner) = &of.preconditioner else {
            return Ok(CorrectionOutcome { iterations: 0, has_converged: false });
        };
        delta.device().clone().fill(delta, 0.0)?;
        let config = KrylovConfig { tolerance, max_iterations: of.max_iterations, ..KrylovConfig::default() };
        let method = ConjugateGradient::new(config);
        let preconditioner: &Diagonal<f64, D> = preconditioner;
        let outcome = method.solve(delta, &of.tangent, preconditioner, residual, &Alone, &mut ())?;
        let has_converged = outcome.stop == Stop::Converged;
        Ok(CorrectionOutcome { iterations: outcome.iterations, has_converged })
    }
}

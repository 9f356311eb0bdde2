//! The nonlinear equation of a step.

use femtile::comm::Comm;
use femtile::device::Buffer;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{KrylovConfig, Target};
use femtile::linalg::newton::{CorrectionOutcome, NonlinearEquation, ResidualNorm};

use super::stopwatch::Part;
use super::{Implicit, TOLERANCE, Vectors};
use crate::{CardiacDevice, CardiacError};

/// $r(V) = \tfrac{c}{h} M (V_n + h s) - (\tfrac{c}{h} M + K) V - c\, G\, I(PV, w)$ with the states of a step of length h.
pub(super) struct StepEquation<'a, D: CardiacDevice> {
    pub of: &'a mut Implicit<D>,
    pub length: f64,
    /// The norm of a residual that is accepted; none before the first residual.
    pub accepted: Option<f64>,
}

impl<D: CardiacDevice> NonlinearEquation<D> for StepEquation<'_, D> {
    type Error = CardiacError;

    fn residual(&mut self, u: &Buffer<f64, D>) -> Result<ResidualNorm, CardiacError> {
        let Self { of, length, accepted } = self;
        let (of, length) = (&mut **of, *length);
        let device = u.device();
        let Vectors { old, of_nodes, at_cells, current, slope, .. } = &mut of.vectors;
        let residual = of.solver.b_mut();
        of.stopwatch.lap(Part::Other)?;
        D::matrix_operator(&of.sums.interpolate).apply(at_cells, u)?;
        of.stopwatch.lap(Part::AssemblyProducts)?;
        let n_failed = of.states.solve(at_cells, [current, slope], length)?;
        of.stopwatch.lap(Part::Membrane)?;
        D::matrix_operator(&of.linear).apply(residual, u)?;
        D::matrix_operator(&of.sums.integrate).apply(of_nodes, current)?;
        of.stopwatch.lap(Part::AssemblyProducts)?;
        device.axpby(residual, 1.0, old, -1.0)?;
        device.axpby(residual, -of.storage, of_nodes, 1.0)?;
        // States without a solution have no residual: Newton's method takes a shorter step.
        let norm = if n_failed > 0 { f64::INFINITY } else { device.dot(residual, residual)?.sqrt() };
        of.stopwatch.lap(Part::AssemblyRest)?;
        let accepted = *accepted.get_or_insert_with(|| of.accepted_residual(norm));
        Ok(ResidualNorm { norm, size: accepted / TOLERANCE })
    }

    fn correction(
        &mut self,
        delta: &mut Buffer<f64, D>,
        tolerance: f64,
    ) -> Result<CorrectionOutcome, CardiacError> {
        let of = &mut *self.of;
        let device = delta.device().clone();
        let Vectors { slope, of_values, .. } = &mut of.vectors;
        of.stopwatch.lap(Part::Other)?;
        D::matrix_operator(&of.sums.assemble).apply(of_values, slope)?;
        of.stopwatch.lap(Part::AssemblyProducts)?;
        of.tangent.combine(of.linear.values(), (of.storage, of_values))?;
        of.stopwatch.lap(Part::AssemblyRest)?;
        device.fill(of.solver.x_mut(), 0.0)?;
        let config = KrylovConfig { tolerance, max_iterations: of.max_iterations, ..KrylovConfig::default() };
        // The acceptance tests use the smallest Ritz value of the tangents before, which differ little; what decides in the end
        // is the residual of the nonlinear equation.
        let outcome = D::cg_solve(&mut of.solver, &config, Target::RightSide, &Comm::alone(), &mut ())?;
        device.copy(delta, of.solver.x())?;
        of.stopwatch.lap(Part::Solver)?;
        let has_converged = outcome.stop == Stop::Converged;
        Ok(CorrectionOutcome { iterations: outcome.iterations, has_converged })
    }
}

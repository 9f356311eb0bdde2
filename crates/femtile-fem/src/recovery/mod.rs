//! Gradient recovery with one order more than the solution's gradient, and the error estimate from it.

mod elements;
mod fit;
mod limit;
mod nodal;
mod patches;
mod regions;
mod sheet;

use femtile_expression::TapeScratch;
use femtile_space::Space;

use crate::FemError;
use crate::evaluation::{Evaluation, Rule, Wanted, dot, times};
use crate::forms::{Compiled, Form, PointCoefficients, Points};
use crate::functionals::degree_for;
use crate::tensor::SOURCE_RULE;
use limit::CellVectors;
use nodal::AtNodes;
pub use nodal::NodalGradient;
pub use regions::Regions;

/// Returns whether to stop early; called from any thread.
pub type IsInterrupted<'a> = &'a (dyn Fn() -> bool + Sync);

/// An estimate of the discretization error in the energy seminorm.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorEstimate {
    /// $\eta_K$ of each cell of the mesh: `[n_cells]`.
    pub cells: Vec<f64>,
    /// $\eta = \sqrt{\sum_K \eta_K^2}$.
    pub total: f64,
    /// The energy seminorm of u, $(\int_\Omega \sigma\nabla u\cdot\nabla u)^{1/2}$.
    pub norm: f64,
    /// The share, from 0 to 1, of fits with too few values for a polynomial of one degree more than the
    /// elements. Their gradient is hardly better than that of the elements, and their error estimate is too
    /// small.
    pub lowered: f64,
}

impl ErrorEstimate {
    /// Computes the estimate from the squares of the estimate and of the energy seminorm of all cells, and the share of
    /// [`NodalGradient::lowered`].
    pub fn of_squares(squares: Vec<[f64; 2]>, lowered: f64) -> Self {
        let root = |which: usize| squares.iter().map(|square| square[which]).sum::<f64>().sqrt();
        let (total, norm) = (root(0), root(1));
        Self { cells: squares.into_iter().map(|[square, _]| square.sqrt()).collect(), total, norm, lowered }
    }
}

/// The gradient of the solution of an equation with a conductivity σ at the nodes, with its flux density and the estimate of its error.
#[derive(Debug)]
pub struct RecoveredGradient<'a> {
    form: Form<'a>,
    gradient: NodalGradient<'a>,
}

impl<'a> RecoveredGradient<'a> {
    /// Recovers the gradient of the function with degrees of freedom `u: [n_dofs]`, as [`NodalGradient::new`] does.
    ///
    /// # Errors
    /// As [`NodalGradient::new`].
    pub fn new(space: Space<'a>, form: &Form<'a>, u: &'a [f64]) -> Result<Self, FemError> {
        Self::new_interruptible(space, form, u, &|| false)
    }

    /// As [`Self::new`], with a query per vertex whether to stop.
    ///
    /// # Errors
    /// As [`NodalGradient::new`].
    pub fn new_interruptible(
        space: Space<'a>,
        form: &Form<'a>,
        u: &'a [f64],
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, FemError> {
        let degree = degree_for(&space, &[form.sigma], 2 * space.element().degree());
        let (rule, regions) =
            (Rule { tensor: SOURCE_RULE, simplex: degree }, Regions::new(&space, form.sigma));
        let gradient = NodalGradient::with_rule((space, rule), regions, u.into(), is_interrupted)?;
        Ok(Self { form: *form, gradient })
    }

    /// Returns the gradient at the nodes, as [`NodalGradient::at_nodes`].
    pub fn at_nodes(&self) -> Vec<f64> {
        self.gradient.at_nodes()
    }

    /// Returns the flux density $-\sigma\,Gu$ at the nodes: `[n_dofs × 3]`, as [`Self::at_nodes`], positive in the
    /// direction of heat flow.
    ///
    /// It is limited by the flux densities $-\sigma\nabla u$ of the cells around the node, of linear elements on simplices with σ at
    /// the node.
    ///
    /// # Errors
    /// A σ that is not finite at a node.
    pub fn flux_density(&self) -> Result<Vec<f64>, FemError> {
        let (elements, d) = (&self.gradient.elements, self.form.mesh.dimension());
        let sigma = Compiled::tensor("sigma", self.form.sigma, self.form.mesh)?;
        let sigma_at = |points: &Points, tape: &mut TapeScratch| {
            let mut tensors = vec![[[0.0; 3]; 3]; points.len()];
            sigma.eval_tensor(&mut tensors, points, d, tape)?;
            Ok::<_, FemError>(tensors)
        };
        let minus_product = |sigma: &[[f64; 3]; 3], g: [f64; 3]| times(sigma, g).map(|x| -x);
        let mut of_cells = Vec::new();
        if !elements.space.is_linear() {
            let evaluation = Evaluation::new(&elements.space, elements.rule);
            of_cells = evaluation.blocks(None, self.wanted(), |samples| {
                let sigma = sigma_at(&samples.points, &mut samples.tape)?;
                samples.gradients.iter_mut().zip(&sigma).for_each(|(g, sigma)| *g = minus_product(sigma, *g));
                Ok(CellVectors::of_cells(&samples.gradients, &samples.weights, samples.positions.len()))
            })?;
        }
        let of_cells = of_cells.concat();
        self.gradient.limited(|found| {
            let AtNodes { dofs, cells, recovered, own } = found;
            let mut points = Points::default();
            for (&dof, &cell) in dofs.iter().zip(&*cells) {
                points.push(elements.space.cell(cell as usize) as u32, elements.point(dof));
                points.unknown.push(elements.u[dof as usize]);
            }
            let sigma = sigma_at(&points, &mut TapeScratch::default())?;
            for (((recovered, own), cell), sigma) in recovered.iter_mut().zip(own).zip(cells).zip(&sigma) {
                *recovered = minus_product(sigma, *recovered);
                *own = match of_cells.get(*cell as usize) {
                    Some(flux) => *flux,
                    None => own.replaced(minus_product(sigma, own.mean())),
                };
            }
            Ok(())
        })
    }

    /// Returns the error estimate
    ///
    /// $$ \eta_K^2 = \int_K \sigma\,(Gu - \nabla u)\cdot(Gu - \nabla u) \approx \int_K \sigma\,\nabla e\cdot\nabla e $$
    ///
    /// by quadrature, with p + 2 points along each axis of quadrilaterals and hexahedra. On regular meshes and for smooth solutions
    /// its ratio to the error tends to one.
    ///
    /// On coarse meshes with high degree, one-sided fits at the boundary make it up to a few times too large.
    ///
    /// # Errors
    /// [`FemError::Space`] for a folded cell; a coefficient out of its range.
    /// # Source
    /// `[zienkiewicz1987]`, with the recovered gradient of `[naga2005]`.
    pub fn error_estimate(&self) -> Result<ErrorEstimate, FemError> {
        let elements = &self.gradient.elements;
        let coefficients = PointCoefficients::of_any_sign(self.form.mesh, self.form.sigma, self.form.lambda)?;
        let evaluation = Evaluation::new(&elements.space, elements.rule);
        let of_blocks = evaluation.blocks(None, self.wanted(), |samples| {
            let mut sigma = vec![[[0.0; 3]; 3]; samples.points.len()];
            coefficients.sigma(&mut sigma, &samples.points, &mut samples.tape)?;
            let (mut recovered, mut nodal) = (Vec::with_capacity(sigma.len()), Vec::new());
            let mut dofs = vec![0; elements.space.element().n_dofs()];
            for &position in &samples.positions {
                elements.space.cell_dofs(position, &mut dofs);
                nodal.clear();
                nodal.extend(
                    (0..dofs.len()).map(|local| self.gradient.in_cell(position as u32, local, dofs[local])),
                );
                evaluation.interpolate(&mut recovered, &nodal);
            }
            let terms = recovered.iter().zip(&samples.gradients).zip(&sigma).zip(&samples.weights);
            let squares = terms.map(|(((recovered, own), sigma), weight)| {
                let e: [f64; 3] = std::array::from_fn(|a| recovered[a] - own[a]);
                [e, *own].map(|v| weight * dot(times(sigma, v), v))
            });
            let squares: Vec<[f64; 2]> = squares.collect();
            let add = |sum: [f64; 2], term: &[f64; 2]| [sum[0] + term[0], sum[1] + term[1]];
            let of_cell = |own: &[[f64; 2]]| own.iter().fold([0.0; 2], add);
            Ok(squares.chunks_exact(evaluation.n_q()).map(of_cell).collect::<Vec<_>>())
        })?;
        let mut squares = vec![[0.0; 2]; elements.space.n_cells()];
        for (position, square) in of_blocks.into_iter().flatten().enumerate() {
            squares[elements.space.cell(position)] = square;
        }
        Ok(ErrorEstimate::of_squares(squares, self.gradient.lowered()))
    }

    /// Samples with u, its gradients and the points, at which coefficients are evaluated.
    fn wanted(&self) -> Wanted<'_> {
        Wanted { u: &self.gradient.elements.u, gradients: true, points: true, unknown: true, revolved: false }
    }
}

//! Full multigrid on a mesh, for the initial guess of a solve.

use femtile_device::Buffer;
use femtile_fem::tensor::TensorProblem;
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_matrix_free::MatrixFreeDevice;
use femtile_multigrid::{BoxGrid, BoxedNestedIteration, NestedOperator};
use femtile_space::TensorSpace;

use super::extension::{Interpolation, extension};
use super::geometric::{Boxes, refuse, refused};
use super::lattice::CoarseProblem;
use super::operator::{OnCells, OperatorDevice};
use crate::method::SolveDevice;
use crate::right_side::interleaved;
use crate::{GmgOptions, SolveError};

/// Adds the coarse-grid correction of a residual of one component to a vector.
pub(super) type Nested<D> = BoxedNestedIteration<D>;

/// Full multigrid (FMG) for the system of a problem.
pub(crate) struct FullStart<D: SolveDevice> {
    nested: Nested<D>,
    components: usize,
    /// The extension of Dirichlet values into the box, zero at Dirichlet nodes; none if all Dirichlet values
    /// are zero.
    extended: Option<Buffer<f64, D>>,
    /// Whether the operators of the levels are those of the problem.
    is_scaled: bool,
}

impl<D: SolveDevice> FullStart<D> {
    /// Makes the coarser levels with the operators of the problem; none if there are no such levels.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if the problem cannot be transferred to coarser cells.
    pub fn new(
        on: &OnCells<'_, D>,
        options: &GmgOptions,
        boxes: &Boxes,
        problems: &[TensorProblem<'_>],
    ) -> Result<Option<Self>, SolveError>
    where
        D: OperatorDevice,
    {
        let mut grids: Vec<BoxGrid> =
            std::iter::successors(Some(boxes.finest().clone()), BoxGrid::coarsened).collect();
        grids.reverse();
        if grids.len() < 2 || boxes.is_known() {
            return Ok(None);
        }
        let coarse = &grids[..grids.len() - 1];
        let operators = coarse.iter().map(|grid| operator(on, boxes, &problems[0], grid));
        let (finest, operators) = ((boxes.finest(), boxes.nodes()), operators.collect::<Result<_, _>>()?);
        let nested = on.device.nested_iteration(finest, options.smoother, operators, options.precision);
        let nested = nested.map_err(refused)?;
        let extended = extended(on.device, boxes, problems, &grids)?;
        Ok(Some(Self { nested, components: problems.len(), extended, is_scaled: true }))
    }

    /// Full multigrid on levels with operators that are a multiple of those of the problem; none if a
    /// Dirichlet value is not zero.
    pub fn on_levels(nested: Option<Nested<D>>, problems: &[TensorProblem<'_>]) -> Option<Self> {
        let nested = nested.filter(|_| problems.iter().all(is_zero))?;
        Some(Self { nested, components: problems.len(), extended: None, is_scaled: false })
    }

    /// Returns an initial guess for $A w = b$.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn iterate(
        &self,
        operator: &dyn LinearOperator<f64, D>,
        b: &Buffer<f64, D>,
    ) -> Result<Buffer<f64, D>, LinalgError> {
        let device = operator.device();
        let mut w = Buffer::zeros(device, b.len())?;
        let Some(extended) = &self.extended else {
            self.add(device, &mut w, b)?;
            if !self.is_scaled {
                minimise_energy(operator, &mut w, b)?;
            }
            return Ok(w);
        };
        let mut r = Buffer::zeros(device, b.len())?;
        operator.apply(&mut r, extended)?;
        device.axpby(&mut r, 1.0, b, -1.0)?;
        device.copy(&mut w, extended)?;
        self.add(device, &mut w, &r)?;
        Ok(w)
    }

    /// Computes the initial guess component by component.
    fn add(&self, device: &D, w: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        if self.components == 1 {
            return (self.nested)(w, r);
        }
        let n = w.len() / self.components;
        let [mut own_w, mut own_r] = [Buffer::zeros(device, n)?, Buffer::zeros(device, n)?];
        for component in (0..self.components).map(|component| (component, self.components)) {
            device.take_component(&mut own_w, w, component)?;
            device.take_component(&mut own_r, r, component)?;
            (self.nested)(&mut own_w, &own_r)?;
            device.put_component(w, &own_w, component)?;
        }
        Ok(())
    }
}

/// Scales w such that $\tfrac12 w^\mathsf{T} A w - b^\mathsf{T} w$ is minimal, so that its error is not
/// larger than that of zero.
fn minimise_energy<D: SolveDevice>(
    operator: &dyn LinearOperator<f64, D>,
    w: &mut Buffer<f64, D>,
    b: &Buffer<f64, D>,
) -> Result<(), LinalgError> {
    let device = operator.device();
    let mut product = Buffer::zeros(device, b.len())?;
    operator.apply(&mut product, w)?;
    let factor = VectorKernels::<f64>::dot(device, w, b)? / VectorKernels::<f64>::dot(device, w, &product)?;
    device.axpby(w, 0.0, &product, if factor.is_finite() { factor } else { 0.0 })
}

/// Returns whether all Dirichlet values are zero.
fn is_zero(problem: &TensorProblem<'_>) -> bool {
    problem.constraints().values().iter().all(|&g| g == 0.0)
}

/// Makes the operator of a problem on the cells of a coarser grid; the host sets it up for the device.
fn operator<D: OperatorDevice>(
    &OnCells { cpu, device, rule }: &OnCells<'_, D>,
    boxes: &Boxes,
    problem: &TensorProblem<'_>,
    grid: &BoxGrid,
) -> Result<NestedOperator<D>, SolveError> {
    let lack = |why: String| refuse(&format!("cannot begin with full multigrid ({why}): leave `start` out"));
    let lattice = boxes.lattice().ok_or_else(|| lack("there are no rows of cells".into()))?;
    let cells = [0, 1, 2].map(|axis| grid.widths(axis).len().max(1));
    let coarse = CoarseProblem::new(lattice, problem, cells)?;
    let space = TensorSpace::new(coarse.mesh(), problem.space().degree())?;
    let own = TensorProblem::new(&space, &coarse.form())?;
    if own.constraints().dofs().len() != grid.n_nodes() - grid.n_unknowns() {
        return Err(lack("other values are given on coarser cells".into()));
    }
    let operator = MatrixFreeDevice::<f64>::matrix_free(device, cpu, &own, 1, (rule, None), None)?;
    let operator = <D as MatrixFreeDevice<f64>>::into_operator(operator);
    Ok(NestedOperator { operator, nodes: coarse.nodes(&space).map_err(lack)? })
}

/// Extends the Dirichlet values of all components into the box.
fn extended<D: OperatorDevice>(
    device: &D,
    boxes: &Boxes,
    problems: &[TensorProblem<'_>],
    grids: &[BoxGrid],
) -> Result<Option<Buffer<f64, D>>, SolveError> {
    if problems.iter().all(is_zero) {
        return Ok(None);
    }
    let interpolation = Interpolation::of(problems[0].space());
    let nodes = boxes.nodes();
    let one = |problem: &TensorProblem<'_>| {
        let (mut given, constraints) = (vec![0.0; nodes.len()], problem.constraints());
        let of_dofs = constraints.dofs().iter().zip(constraints.values());
        of_dofs.for_each(|(&dof, &value)| given[nodes[dof as usize] as usize] = value);
        let values = extension(grids, &interpolation, given);
        let mut own: Vec<f64> = nodes.iter().map(|&node| values[node as usize]).collect();
        constraints.dofs().iter().for_each(|&dof| own[dof as usize] = 0.0);
        own
    };
    let parts = problems.iter().map(one).collect();
    Ok(Some(Buffer::from_vec(device, interleaved(parts)).map_err(LinalgError::from)?))
}

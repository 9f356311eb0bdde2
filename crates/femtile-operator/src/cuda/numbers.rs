//! Numbers at the points that the programs of GPUs read, and their texts.

use femtile_device::parallel;
use femtile_expression::{Precision, Program};
use femtile_form::{Integrand, Linearization};
use femtile_matrix_free::TangentText;

use crate::cpu::{CellScratch, CpuOperator, Job, LANES, Lanes, Product};
use crate::discrete_form::State;

/// A program of an integrand for a GPU, with the numbers of cells before those of points.
pub(super) struct PointText {
    numbers: Program,
    /// Outputs of `numbers` in the order in which the text takes them.
    order: Vec<usize>,
    /// Numbers of a cell.
    pub n_of_cell: usize,
    program: Program,
    dimension: usize,
    has_values: bool,
}

/// Numbers of all cells, by batches: `[n_batches][n_numbers][n_q]`.
pub(super) struct Numbers {
    batches: Vec<Vec<Lanes>>,
    order: Vec<usize>,
    n_of_cell: usize,
    n_q: usize,
}

impl PointText {
    pub fn of(integrand: &Integrand, parts: Linearization) -> Self {
        let Linearization { numbers, is_by_cell, program } = parts;
        let mut order: Vec<usize> = (0..is_by_cell.len()).collect();
        order.sort_by_key(|&number| !is_by_cell[number]);
        let n_before = program.n_inputs() - order.len();
        let mut places: Vec<usize> = (0..program.n_inputs()).collect();
        order.iter().enumerate().for_each(|(place, &number)| places[n_before + number] = n_before + place);
        Self {
            numbers,
            n_of_cell: is_by_cell.iter().filter(|is_by_cell| **is_by_cell).count(),
            order,
            program: program.with_inputs(&places),
            dimension: integrand.dimension(),
            has_values: integrand.tangent_has_values(),
        }
    }

    /// Returns the numbers of a cell and of a point.
    pub fn n_numbers(&self) -> [usize; 2] {
        [self.n_of_cell, self.order.len() - self.n_of_cell]
    }

    /// Returns the text of a function of this name in double precision, which calls those of [`Expression::CUDA_HEADER`].
    ///
    /// [`Expression::CUDA_HEADER`]: femtile_expression::Expression::CUDA_HEADER
    pub fn function(&self, name: &str) -> String {
        self.program.cuda_function(name, Precision::F64)
    }

    /// Returns whether the text reads an input.
    pub fn reads(&self, input: usize) -> bool {
        self.program.reads(input)
    }

    /// Returns the text of the tangent of a field.
    pub fn tangent(&self, components: usize) -> TangentText {
        TangentText::new(&self.program, self.dimension, components, self.n_numbers(), self.has_values)
    }

    /// Computes the numbers of all cells at a state.
    pub fn evaluate(&self, operator: &CpuOperator<'_>, integrand: &Integrand, state: &State<'_>) -> Numbers {
        let n_q = operator.basis.n_q;
        let job = Job::new(operator, integrand, Product::Numbers(&self.numbers), state, &[]);
        let n_batches = match self.order.len() {
            0 => 0,
            _ => operator.discrete().space().n_cells().div_ceil(LANES),
        };
        let batches = parallel::map_with(n_batches, 1, CellScratch::default, |scratch, batch| {
            let mut values = vec![[f64::NAN; LANES]; self.order.len() * n_q];
            job.run_program(batch, &mut values, scratch);
            values
        });
        Numbers { batches, order: self.order.clone(), n_of_cell: self.n_of_cell, n_q }
    }
}

impl Numbers {
    /// Writes the numbers of the cell at a position: `[n]` of the cell, then `[n][n_q]` of its points.
    pub fn write(&self, position: usize, of_cell: &mut [f64], at_points: &mut [f64]) {
        let Some(values) = self.batches.get(position / LANES) else { return };
        let lane = position % LANES;
        let (own, others) = self.order.split_at(self.n_of_cell);
        of_cell.iter_mut().zip(own).for_each(|(to, &number)| *to = values[number * self.n_q][lane]);
        for (to, &number) in at_points.chunks_exact_mut(self.n_q).zip(others) {
            to.iter_mut().zip(&values[number * self.n_q..]).for_each(|(to, value)| *to = value[lane]);
        }
    }
}

//! Residual and tangent of a batch of cells.

use std::sync::Arc;

use femtile_device::cpu::Aligned;
use femtile_expression::{Program, ProgramInput, TapeScratch};
use femtile_form::{Input, Integrand};

use super::CpuOperator;
use super::basis::{BasisScratch, LANES, Lanes};
use super::stored::StoredTangent;
use crate::discrete_form::State;

/// The quantity to compute.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Product<'p> {
    Residual,
    Tangent,
    Derivative,
    Energy,
    /// The outputs of a program with the inputs of the integrand.
    Numbers(&'p Program),
}

/// The integral of an integrand over the cells, prepared for one of its programs.
pub(crate) struct Job<'j, 'a> {
    pub operator: &'j CpuOperator<'a>,
    pub integrand: &'j Integrand,
    program: &'j Program,
    state: &'j State<'j>,
    direction: &'j [f64],
    /// Inputs that the program reads.
    reads: Vec<bool>,
    reads_state: bool,
    reads_rate: bool,
    reads_direction: bool,
    /// Points of a cell at which the program runs.
    pub n_points: usize,
    /// The tangent that products are computed with, in place of the program.
    stored: Option<Arc<StoredTangent>>,
}

impl<'j, 'a> Job<'j, 'a> {
    pub fn new(
        operator: &'j CpuOperator<'a>,
        integrand: &'j Integrand,
        product: Product<'j>,
        state: &'j State<'j>,
        direction: &'j [f64],
    ) -> Self {
        let program = match product {
            Product::Residual => integrand.residual(),
            Product::Tangent => integrand.tangent(),
            Product::Derivative => integrand.derivative(),
            // Without a density nothing is summed.
            Product::Energy => integrand.energy().unwrap_or(integrand.residual()),
            Product::Numbers(program) => program,
        };
        let reads: Vec<bool> = (0..integrand.inputs().len()).map(|input| program.reads(input)).collect();
        let reads_any = |is_in: fn(&Input) -> bool| {
            integrand.inputs().iter().zip(&reads).any(|(input, is_read)| *is_read && is_in(input))
        };
        let reads_state = reads_any(|input| matches!(input, Input::State(_)));
        let reads_rate = reads_any(|input| matches!(input, Input::Rate(_)));
        let first = integrand.inputs().len();
        let reads_direction = (first..first + integrand.n_slots()).any(|input| program.reads(input));
        let stored = match product {
            Product::Tangent => StoredTangent::of(operator, integrand, state),
            _ => None,
        };
        Self {
            operator,
            integrand,
            program,
            state,
            direction,
            reads,
            reads_state,
            reads_rate,
            reads_direction,
            n_points: operator.basis.n_q,
            stored,
        }
    }
}

/// Workspace of a batch.
#[derive(Default)]
pub(crate) struct CellScratch {
    /// Coefficients of the shape functions: `[n_components][n]`.
    local: Vec<Lanes>,
    /// State, rate and direction at the points: `[n_components][1 + d][n_q]`.
    state: Vec<Lanes>,
    rate: Vec<Lanes>,
    direction: Vec<Lanes>,
    pub out: Vec<Lanes>,
    /// Tensors with the lanes of the SIMD level.
    pub tensors: Option<Aligned<f64>>,
    /// Values of inputs that are neither functions nor coordinates: `[n_data][n_q]`.
    data: Vec<Lanes>,
    basis: BasisScratch,
    tape: TapeScratch,
}

impl Job<'_, '_> {
    /// Computes the contributions of a batch of cells.
    ///
    /// # Shapes
    /// `found: [n_components][n]`
    pub fn run(&self, batch: usize, found: &mut [Lanes], scratch: &mut CellScratch) {
        if let Some(stored) = &self.stored {
            self.operator.gather(batch, self.direction, found);
            return stored.multiply(self.operator, batch, found, scratch);
        }
        let mut out = std::mem::take(&mut scratch.out);
        out.resize(self.integrand.n_slots() * self.operator.basis.n_q, [0.0; LANES]);
        self.run_program(batch, &mut out, scratch);
        self.integrate(batch, &mut out, found, &mut scratch.basis);
        scratch.out = out;
    }

    /// Returns the integral of the energy density over a batch of cells.
    pub fn energy(&self, batch: usize, scratch: &mut CellScratch) -> f64 {
        let mut out = std::mem::take(&mut scratch.out);
        out.resize(self.operator.basis.n_q, [0.0; LANES]);
        self.run_program(batch, &mut out, scratch);
        let weights = self.operator.geometry.batch(batch).weights;
        let products =
            out.iter().flatten().zip(weights.iter().flatten()).map(|(density, weight)| density * weight);
        let sum = products.sum();
        scratch.out = out;
        sum
    }

    /// Returns the integrals of all outputs over each cell of a batch.
    pub fn cell_integrals(&self, batch: usize, scratch: &mut CellScratch) -> Vec<Lanes> {
        let n_q = self.operator.basis.n_q;
        let mut out = std::mem::take(&mut scratch.out);
        out.resize(self.program.n_outputs() * n_q, [0.0; LANES]);
        self.run_program(batch, &mut out, scratch);
        let weights = self.operator.geometry.batch(batch).weights;
        let integral = |densities: &[Lanes]| {
            let sum = |lane| densities.iter().zip(weights).map(|(of, weight)| of[lane] * weight[lane]).sum();
            std::array::from_fn(sum)
        };
        let integrals = out.chunks_exact(n_q).map(integral).collect();
        scratch.out = out;
        integrals
    }

    /// Evaluates a function at the points of a batch, with its gradient in space; an empty vector is zero.
    fn evaluate(
        &self,
        batch: usize,
        u: &[f64],
        slots: &mut Vec<Lanes>,
        local: &mut Vec<Lanes>,
        scratch: &mut BasisScratch,
    ) {
        let operator = self.operator;
        let (basis, n_components) = (&operator.basis, operator.discrete.form().n_components());
        let per_component = (1 + basis.dimension) * basis.n_q;
        slots.resize(n_components * per_component, [0.0; LANES]);
        if u.is_empty() {
            return slots.fill([0.0; LANES]);
        }
        local.resize(n_components * basis.n, [0.0; LANES]);
        operator.gather(batch, u, local);
        let geometry = operator.geometry.batch(batch);
        for (slots, local) in slots.chunks_exact_mut(per_component).zip(local.chunks_exact(basis.n)) {
            basis.evaluate(&operator.cpu, local, slots, scratch);
            operator.cpu.simd().vectorize(
                #[inline(always)]
                || match basis.dimension {
                    2 => geometry.map_to_space::<2>(slots),
                    _ => geometry.map_to_space::<3>(slots),
                },
            );
        }
    }

    /// Multiplies fluxes by the weights and integrates them against the shape functions.
    fn integrate(&self, batch: usize, out: &mut [Lanes], found: &mut [Lanes], scratch: &mut BasisScratch) {
        let basis = &self.operator.basis;
        let geometry = self.operator.geometry.batch(batch);
        let components =
            out.chunks_exact_mut((1 + basis.dimension) * basis.n_q).zip(found.chunks_exact_mut(basis.n));
        for (out, found) in components {
            self.operator.cpu.simd().vectorize(
                #[inline(always)]
                || match basis.dimension {
                    2 => geometry.map_to_reference::<2>(out),
                    _ => geometry.map_to_reference::<3>(out),
                },
            );
            basis.integrate(&self.operator.cpu, out, found, scratch);
        }
    }

    /// Runs the program at the points of a batch.
    ///
    /// # Shapes
    /// `out: [n_outputs][n_points]`
    pub fn run_program(&self, batch: usize, out: &mut [Lanes], scratch: &mut CellScratch) {
        let n_q = self.n_points;
        let geometry = self.operator.geometry.batch(batch);
        let CellScratch { state, rate, direction, data, local, basis, tape, .. } = scratch;
        if self.reads_state {
            self.evaluate(batch, self.state.u, state, local, basis);
        }
        if self.reads_rate {
            self.evaluate(batch, self.state.rate, rate, local, basis);
        }
        if self.reads_direction {
            self.evaluate(batch, self.direction, direction, local, basis);
        }
        self.collect(batch, data);
        let slot = |slots: &[Lanes], slot: usize| {
            if slots.is_empty() { 0..0 } else { slot * n_q..(slot + 1) * n_q }
        };
        let d = self.operator.basis.dimension;
        let mut next = 0;
        let mut inputs = Vec::with_capacity(self.integrand.n_inputs());
        for (position, input) in self.integrand.inputs().iter().enumerate() {
            let slots: &[Lanes] = match *input {
                _ if !self.reads[position] => &[],
                Input::Coordinate(axis) => &geometry.points[slot(geometry.points, axis)],
                Input::State(at_slot) => &state[slot(state, at_slot)],
                Input::Rate(component) => &rate[slot(rate, component * (1 + d))],
                Input::Tag | Input::Cell(_) | Input::Point(_) => {
                    next += 1;
                    &data[(next - 1) * n_q..next * n_q]
                }
                Input::Time | Input::Normal(_) => &[],
            };
            inputs.push(match (input, slots.is_empty()) {
                (Input::Time, _) => ProgramInput::Uniform(self.state.time),
                (_, true) => ProgramInput::Uniform(0.0),
                (_, false) => ProgramInput::Values(slots.as_flattened()),
            });
        }
        for at_slot in 0..self.integrand.n_slots() {
            inputs.push(match self.reads_direction {
                true => ProgramInput::Values(direction[slot(direction, at_slot)].as_flattened()),
                false => ProgramInput::Uniform(0.0),
            });
        }
        inputs.push(ProgramInput::Uniform(self.state.shift));
        let mut outputs: Vec<&mut [f64]> =
            out.chunks_exact_mut(n_q).map(<[Lanes]>::as_flattened_mut).collect();
        self.program.run(&mut outputs, &inputs, tape);
    }

    /// Collects the values of tags, cell data and functions that the program reads, in the order of its inputs.
    fn collect(&self, batch: usize, data: &mut Vec<Lanes>) {
        let operator = self.operator;
        let space = operator.discrete.space();
        let (n_q, n_cells) = (self.n_points, space.n_cells());
        let cell = |lane: usize| space.cell((batch * LANES + lane).min(n_cells - 1));
        let tag = |cell: usize| space.mesh().cell_tags.get(cell).copied().unwrap_or(0);
        let points = operator.geometry.batch(batch).points;
        data.clear();
        for (position, input) in self.integrand.inputs().iter().enumerate() {
            if !self.reads[position] {
                continue;
            }
            match *input {
                Input::Tag => {
                    let values = std::array::from_fn(|lane| f64::from(tag(cell(lane))));
                    data.resize(data.len() + n_q, values);
                }
                Input::Cell(at) => {
                    let of = &self.integrand.cell_data()[at];
                    let values = std::array::from_fn(|lane| of.value(cell(lane), tag(cell(lane))));
                    data.resize(data.len() + n_q, values);
                }
                Input::Point(at) => {
                    let function = &self.integrand.point_data()[at];
                    let value = |q: usize, lane: usize| {
                        function.at([0, 1, 2].map(|axis| points[axis * n_q + q][lane]))
                    };
                    data.extend((0..n_q).map(|q| std::array::from_fn(|lane| value(q, lane))));
                }
                _ => {}
            }
        }
    }
}

//! Kernels on CPUs: threads over blocks of points, SIMD within a block.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use femtile::device::cpu::{SharedMut, SimdLevel, Source};
use femtile::device::{Buffer, Cpu};
use femtile::expression::{ProgramInput, TapeScratch};

use super::kernels::check_step;
use super::reference::HostProgram;
use super::{GatePrecision, IonicKernels, LocalScheme, Model, Points, States};
use crate::CardiacError;

/// Points of a block: its variables and temporary values fit in the L1 and L2 caches.
pub(crate) const BLOCK: usize = 256;

/// A stage of a scheme on a CPU.
#[derive(Debug)]
pub struct CpuProgram {
    program: HostProgram,
    workspaces: Pool<Workspace>,
}

/// Workspaces between calls: large allocations in each would cost more than a step of few points.
#[derive(Debug)]
pub(crate) struct Pool<W>(Mutex<Vec<W>>);

impl<W> Pool<W> {
    pub fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Runs `work` with a workspace that nobody else has meanwhile.
    pub fn with(&self, new: impl FnOnce() -> W, work: impl FnOnce(&mut W)) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut workspace = taken.unwrap_or_else(new);
        work(&mut workspace);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }
}

impl IonicKernels for Cpu {
    type Program = CpuProgram;

    fn ionic_prepare(
        &self,
        model: &Model,
        scheme: LocalScheme,
        gates: GatePrecision,
    ) -> Result<CpuProgram, CardiacError> {
        let program = HostProgram::new(model, scheme, gates)?;
        Ok(CpuProgram { program, workspaces: Pool::new() })
    }

    fn ionic_advance(
        &self,
        CpuProgram { program, workspaces }: &CpuProgram,
        points: &Points<Self>,
        v: &mut Buffer<f64, Self>,
        states: &mut States<Self>,
        stimulus: Option<&Buffer<f64, Self>>,
        dt: f64,
    ) -> Result<(), CardiacError> {
        check_step(points, [program.n_states(), program.n_single], v, states, stimulus)?;
        let (single, double) = states.parts_mut();
        let fields = Fields {
            list: points.list().map(Buffer::as_slice),
            stride: points.stride(),
            v: SharedMut::new(v.as_mut_slice()),
            single: SharedMut::new(single.as_mut_slice()),
            double: SharedMut::new(double.as_mut_slice()),
        };
        let stimulus = stimulus.map(Buffer::as_slice);
        self.for_ranges(points.len().div_ceil(BLOCK), 1, |blocks| {
            let width = BLOCK.min(points.len());
            workspaces.with(Workspace::default, |workspace| {
                workspace.resize(program, width, self.simd());
                for block in blocks {
                    let range = block * BLOCK..((block + 1) * BLOCK).min(points.len());
                    advance_block(program, &fields, stimulus, range, dt, workspace);
                }
            });
        });
        Ok(())
    }
}

/// The arrays that a step changes.
struct Fields<'a> {
    list: Option<&'a [u32]>,
    stride: usize,
    v: SharedMut<'a, f64>,
    /// The states with 32 bits and those with 64.
    single: SharedMut<'a, f32>,
    double: SharedMut<'a, f64>,
}

/// Arrays of a block, `[n][width]`.
#[derive(Debug, Default)]
struct Workspace {
    /// Most points of a block.
    width: usize,
    voltage: Vec<f64>,
    stimulus: Vec<f64>,
    /// The states with 32 bits, widened.
    gates: Vec<f64>,
    /// The variables after each stage.
    stages: [Vec<f64>; 2],
    scratch: TapeScratch,
}

impl Workspace {
    /// Prepares the arrays for blocks of `width` points.
    fn resize(&mut self, program: &HostProgram, width: usize, simd: SimdLevel) {
        if self.width == width {
            return;
        }
        let array = |n: usize| vec![0.0; n * width];
        *self = Self {
            width,
            voltage: array(1),
            stimulus: array(1),
            gates: array(program.n_single),
            stages: [array(program.inputs.n_variables), array(program.inputs.n_variables)],
            scratch: TapeScratch::with_simd(simd),
        };
    }
}

/// Advances the points of a block, which belong to no other.
fn advance_block(
    program: &HostProgram,
    fields: &Fields<'_>,
    stimulus: Option<&[f64]>,
    range: Range<usize>,
    dt: f64,
    workspace: &mut Workspace,
) {
    let (len, n_double) = (range.len(), program.n_states() - program.n_single);
    let Workspace { width, voltage, stimulus: of_block, gates, stages, scratch } = workspace;
    let width = *width;
    let v = Source::of_shared(&fields.v);
    for (i, point) in range.clone().enumerate() {
        let node = fields.list.map_or(point, |list| list[point] as usize);
        // SAFETY: a point or a number of a list is below the length of V, and belongs to this block alone.
        voltage[i] = unsafe { v.read(node) };
        of_block[i] = stimulus.map_or(0.0, |stimulus| stimulus[node]);
    }
    let rows = |state: usize| state * fields.stride + range.start..state * fields.stride + range.end;
    for (state, gates) in gates.chunks_exact_mut(width).enumerate() {
        // SAFETY: points of this block belong to no other.
        let stored = unsafe { fields.single.range(rows(state)) };
        gates.iter_mut().zip(stored).for_each(|(gate, stored)| *gate = f64::from(*stored));
    }
    let mut start = vec![ProgramInput::Values(&voltage[..len])];
    start.extend(gates.chunks_exact(width).map(|row| ProgramInput::Values(&row[..len])));
    // SAFETY: points of this block belong to no other, and nothing writes their states until all stages have run.
    start
        .extend((0..n_double).map(|state| ProgramInput::Values(unsafe { fields.double.range(rows(state)) })));
    let stimulus = match stimulus {
        Some(_) => ProgramInput::Values(&of_block[..len]),
        None => ProgramInput::Uniform(0.0),
    };
    let mut run = |at: &[ProgramInput<'_>], to: &mut [f64], length: f64| {
        let mut inputs = at.to_vec();
        inputs.extend([stimulus, ProgramInput::Uniform(length)]);
        inputs.extend(&start);
        let mut outputs: Vec<&mut [f64]> = to.chunks_exact_mut(width).map(|row| &mut row[..len]).collect();
        program.stage.run(&mut outputs, &inputs, scratch);
    };
    let [first, second] = stages;
    let lengths = program.scheme.lengths(dt);
    run(&start, first, lengths[0]);
    let last = if program.scheme.stages() == 1 {
        first
    } else {
        let middle: Vec<_> = first.chunks_exact(width).map(|row| ProgramInput::Values(&row[..len])).collect();
        run(&middle, second, lengths[1]);
        second
    };
    let mut last = last.chunks_exact(width).map(|row| &row[..len]);
    for (&value, point) in last.next().unwrap_or_default().iter().zip(range.clone()) {
        let node = fields.list.map_or(point, |list| list[point] as usize);
        // SAFETY: as above; no other thread reads or writes this entry.
        unsafe { fields.v.write(node, value) };
    }
    for (state, values) in last.by_ref().take(program.n_single).enumerate() {
        // SAFETY: as above.
        let stored = unsafe { fields.single.range(rows(state)) };
        stored.iter_mut().zip(values).for_each(|(stored, gate)| *stored = *gate as f32);
    }
    for (state, values) in last.enumerate() {
        // SAFETY: as above; nothing reads these states any more.
        unsafe { fields.double.range(rows(state)) }.copy_from_slice(values);
    }
}

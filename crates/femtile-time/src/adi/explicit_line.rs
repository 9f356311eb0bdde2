//! The explicit part of a stage along one line of x, for CPUs.

use std::ops::Range;

use femtile_device::{Buffer, Cpu, Scalar};

use super::line::{Sampler, Scratch};
use super::operator::{Coefficient, Mixed, Operator, Place};
use super::{Arrays, ExplicitStage};

/// Workspace of a thread.
pub(super) struct Workspace<T> {
    scratch: Scratch,
    halves: [Vec<f64>; 2],
    values: Vec<f64>,
    /// l and w along a line, or D on the neighbouring lines.
    lines: [Vec<T>; 6],
}

impl<T> Default for Workspace<T> {
    fn default() -> Self {
        Self {
            scratch: Scratch::default(),
            halves: Default::default(),
            values: Vec::new(),
            lines: std::array::from_fn(|_| Vec::new()),
        }
    }
}

/// A coefficient along lines: a constant, an array or a formula.
enum Source<'a, T> {
    Constant(T),
    Array(&'a [T]),
    Formula(Sampler),
}

impl<'a, T: Scalar> Source<'a, T> {
    fn new(coefficient: &Coefficient, array: Option<&'a Buffer<T, Cpu>>) -> Self {
        match (coefficient.constant, array) {
            (Some(value), _) => Self::Constant(T::from_f64(value)),
            (None, Some(array)) => Self::Array(array.as_slice()),
            (None, None) => Self::Formula(Sampler::new(coefficient)),
        }
    }

    /// Loads the values of a line into `out`.
    fn load(
        &self,
        operator: &Operator,
        node: [usize; 3],
        out: &mut Vec<T>,
        workspace: (&mut Vec<f64>, &mut Scratch),
    ) {
        let (grid, n) = (operator.grid(), operator.grid().nodes()[0]);
        out.clear();
        match self {
            Self::Constant(value) => out.resize(n, *value),
            Self::Array(all) => out.extend_from_slice(&all[grid.index(node)..][..n]),
            Self::Formula(sampler) => {
                let (values, scratch) = workspace;
                values.resize(n, 0.0);
                sampler.line(grid, node, values, scratch);
                out.extend(values.iter().map(|&value| T::from_f64(value)));
            }
        }
    }
}

/// The couplings l and w along an axis.
enum Axis<'a, T> {
    /// Couplings of the first, the inner and the last nodes.
    Constant([[f64; 2]; 3]),
    /// Bands of $I - τA_a$.
    Bands {
        lower: &'a [T],
        upper: &'a [T],
        factor: f64,
    },
    Formulas {
        diffusion: Sampler,
        convection: Sampler,
    },
}

/// The explicit part of a stage, ready to be applied line by line.
pub(super) struct Plan<'a, T: Scalar> {
    operator: &'a Operator,
    u: &'a [T],
    scale: f64,
    /// Factor of u itself: 1 or 0.
    identity: f64,
    /// The axes of the stage.
    range: Range<usize>,
    axes: Vec<Axis<'a, T>>,
    reaction: Source<'a, T>,
    source: Source<'a, T>,
    mixed: Vec<(&'a Mixed, Source<'a, T>)>,
}

impl<'a, T: Scalar> Plan<'a, T> {
    pub fn new(operator: &'a Operator, arrays: &'a Arrays<T, Cpu>, u: &'a [T], stage: ExplicitStage) -> Self {
        let d = operator.grid().dimension();
        let axis = |axis: usize| match (operator.constant_couplings(axis), &arrays.bands[axis]) {
            (Some(couplings), _) => Axis::Constant(couplings),
            (None, Some([lower, _, upper])) => {
                let (lower, upper) = (lower.as_slice(), upper.as_slice());
                Axis::Bands { lower, upper, factor: -1.0 / arrays.tau }
            }
            (None, None) => Axis::Formulas {
                diffusion: Sampler::new(&operator.diffusion[axis]),
                convection: Sampler::new(&operator.convection[axis]),
            },
        };
        let source = Coefficient::new(&operator.source.formula.at_time(stage.time));
        let mixed = operator.mixed.iter().enumerate().map(|(i, mixed)| {
            let array = arrays.mixed.get(i).and_then(Option::as_ref);
            (mixed, Source::new(&mixed.coefficient, array))
        });
        Self {
            operator,
            u,
            scale: stage.scale,
            identity: if stage.axis.is_some() { 1.0 } else { 0.0 },
            range: stage.axis.map_or(0..d, |axis| axis..axis + 1),
            axes: (0..d).map(axis).collect(),
            reaction: Source::new(&operator.reaction, arrays.reaction.as_ref()),
            source: Source::new(&source, arrays.source.as_ref()),
            mixed: if stage.axis.is_none() { mixed.collect() } else { Vec::new() },
        }
    }

    /// Returns `true` if the whole line lies on a Dirichlet side.
    pub fn is_held(&self, node: [usize; 3]) -> bool {
        (1..3).any(|axis| self.operator.is_held(axis, node[axis]))
    }

    /// Computes the line of x through `node`, whose first coordinate is 0.
    #[inline(always)]
    pub fn line(&self, node: [usize; 3], out: &mut [T], workspace: &mut Workspace<T>) {
        if self.is_held(node) {
            return out.fill(T::ZERO);
        }
        self.constants(node, out);
        for axis in self.range.clone() {
            if self.load_couplings(axis, node, workspace) {
                let [l, w, ..] = &workspace.lines;
                self.add_couplings(axis, node, l, w, out);
            }
        }
        let share = self.scale * self.range.len() as f64 / self.axes.len() as f64;
        let u = &self.u[self.operator.grid().index(node)..][..out.len()];
        let Workspace { lines: [values, ..], values: formula_values, scratch, .. } = workspace;
        if !matches!(self.reaction, Source::Constant(_)) {
            self.reaction.load(self.operator, node, values, (formula_values, scratch));
            let share = T::from_f64(share);
            out.iter_mut().zip(u).zip(&*values).for_each(|((out, &u), &r)| *out += share * r * u);
        }
        if !matches!(self.source, Source::Constant(_)) {
            self.source.load(self.operator, node, values, (formula_values, scratch));
            let scale = T::from_f64(self.scale);
            out.iter_mut().zip(&*values).for_each(|(out, &f)| *out += scale * f);
        }
        self.mixed(node, out, workspace);
        let last = out.len() - 1;
        for i in [0, last] {
            if self.operator.is_held(0, i) {
                out[i] = T::ZERO;
            }
        }
    }

    /// Sets the line to the part of the constant coefficients.
    #[inline(always)]
    fn constants(&self, node: [usize; 3], out: &mut [T]) {
        let constant = |source: &Source<'_, T>| match source {
            Source::Constant(value) => value.to_f64(),
            _ => 0.0,
        };
        let share = self.range.len() as f64 / self.axes.len() as f64;
        let r = T::from_f64(self.identity + self.scale * share * constant(&self.reaction));
        let f = T::from_f64(self.scale * constant(&self.source));
        let x = match (&self.axes[0], self.range.contains(&0)) {
            (Axis::Constant(couplings), true) => couplings.map(|pair| self.scaled(pair)),
            _ => [[T::ZERO; 2]; 3],
        };
        let line = &self.u[self.operator.grid().index(node)..][..out.len()];
        let mut others = [([line; 2], [T::ZERO; 2]); 2];
        let mut n_others = 0;
        for axis in self.range.clone().filter(|&axis| axis > 0) {
            if let Axis::Constant(couplings) = &self.axes[axis] {
                let pair = couplings[self.operator.place(axis, node[axis]) as usize];
                others[n_others] = (self.around(axis, node, out.len()), self.scaled(pair));
                n_others += 1;
            }
        }
        match (n_others, others) {
            (0, _) => stencil(out, line, x, [], r, f),
            (1, [one, _]) => stencil(out, line, x, [one], r, f),
            (_, both) => stencil(out, line, x, both, r, f),
        }
    }

    fn scaled(&self, pair: [f64; 2]) -> [T; 2] {
        pair.map(|value| T::from_f64(self.scale * value))
    }

    /// Returns the lines before and after a line along y or z.
    fn around(&self, axis: usize, node: [usize; 3], n: usize) -> [&'a [T]; 2] {
        self.operator.neighbours(axis, node).map(|near| &self.u[self.operator.grid().index(near)..][..n])
    }

    /// Loads l and w of a line into the first two lines of `workspace`; returns `false` if they are constant.
    fn load_couplings(&self, axis: usize, node: [usize; 3], workspace: &mut Workspace<T>) -> bool {
        let (operator, grid) = (self.operator, self.operator.grid());
        let n = grid.nodes()[0];
        let [l, w, ..] = &mut workspace.lines;
        match &self.axes[axis] {
            Axis::Constant(_) => return false,
            Axis::Bands { lower, upper, factor } => {
                let (start, factor) = (grid.index(node), T::from_f64(*factor));
                for (band, line) in [(lower, l), (upper, w)] {
                    line.clear();
                    line.extend(band[start..][..n].iter().map(|&value| factor * value));
                }
            }
            Axis::Formulas { diffusion, convection } => {
                let [before, behind] = &mut workspace.halves;
                before.resize(n + 1, 0.0);
                let mut next = node;
                if axis == 0 {
                    diffusion.half_line(grid, 0, node, before, &mut workspace.scratch);
                    behind.clear();
                    behind.extend_from_slice(&before[1..]);
                } else {
                    behind.resize(n, 0.0);
                    diffusion.half_line(grid, axis, node, &mut before[..n], &mut workspace.scratch);
                    next[axis] += 1;
                    diffusion.half_line(grid, axis, next, behind, &mut workspace.scratch);
                }
                workspace.values.resize(n, 0.0);
                convection.line(grid, node, &mut workspace.values, &mut workspace.scratch);
                l.clear();
                w.clear();
                for i in 0..n {
                    let number = if axis == 0 { i } else { node[axis] };
                    let place = operator.place(axis, number);
                    let pair = operator.couplings(axis, [before[i], behind[i]], workspace.values[i], place);
                    let [before, behind] = if operator.is_held(axis, number) { [0.0; 2] } else { pair };
                    l.push(T::from_f64(before));
                    w.push(T::from_f64(behind));
                }
            }
        }
        true
    }

    /// Adds the part along an axis, with couplings l and w.
    #[inline(always)]
    fn add_couplings(&self, axis: usize, node: [usize; 3], l: &[T], w: &[T], out: &mut [T]) {
        let (n, scale) = (out.len(), T::from_f64(self.scale));
        let u = &self.u[self.operator.grid().index(node)..][..n];
        let (l, w) = (&l[..n], &w[..n]);
        if axis > 0 {
            let [before, behind] = self.around(axis, node, n);
            for i in 0..n {
                out[i] += scale * (l[i] * (before[i] - u[i]) + w[i] * (behind[i] - u[i]));
            }
            return;
        }
        for i in 1..n - 1 {
            out[i] += scale * (l[i] * (u[i - 1] - u[i]) + w[i] * (u[i + 1] - u[i]));
        }
        for (i, before, behind) in [(0, n - 1, 1), (n - 1, n - 2, 0)] {
            out[i] += scale * (l[i] * (u[before] - u[i]) + w[i] * (u[behind] - u[i]));
        }
    }

    /// Adds the mixed derivatives to a line that is not on a Dirichlet side.
    #[inline(always)]
    pub fn mixed(&self, node: [usize; 3], out: &mut [T], workspace: &mut Workspace<T>) {
        for (mixed, source) in &self.mixed {
            self.one_mixed(mixed, source, node, out, workspace);
        }
        let touches_x = self.mixed.iter().any(|(mixed, _)| mixed.axes[0] == 0);
        if !touches_x {
            return;
        }
        let (n, u) = (out.len(), |i: usize| self.u[i].to_f64());
        for i in [0, n - 1] {
            let mut end = node;
            end[0] = i;
            if self.operator.is_held(0, i) {
                continue;
            }
            let pairs = self.mixed.iter().filter(|(mixed, _)| mixed.axes[0] == 0);
            let sum: f64 = pairs.map(|(mixed, _)| self.operator.one_mixed_at(mixed, end, &u)).sum();
            out[i] += T::from_f64(self.scale * sum);
        }
    }

    /// Adds one mixed derivative to the nodes of a line, its ends excluded if the derivative is along x.
    #[inline(always)]
    fn one_mixed(
        &self,
        mixed: &Mixed,
        source: &Source<'_, T>,
        node: [usize; 3],
        out: &mut [T],
        workspace: &mut Workspace<T>,
    ) {
        let (operator, n, [a, b]) = (self.operator, out.len(), mixed.axes);
        let place = |axis: usize| if axis == 0 { Place::Inner } else { operator.place(axis, node[axis]) };
        let ([gradient_a, divergence_a], [gradient_b, divergence_b]) =
            (operator.weights(a, place(a)), operator.weights(b, place(b)));
        let nodes = if a == 0 { 1..n - 1 } else { 0..n };
        let shifted = |axis: usize, node: [usize; 3], side: usize| match side {
            _ if axis == 0 => node,
            1 => node,
            side => operator.neighbours(axis, node)[side / 2],
        };
        let constant = if let Source::Constant(value) = source { Some(value.to_f64()) } else { None };
        if constant.is_none() {
            for (k, (axis, side)) in [(a, 0), (a, 1), (a, 2), (b, 0), (b, 1), (b, 2)].into_iter().enumerate()
            {
                let formula_values = (&mut workspace.values, &mut workspace.scratch);
                source.load(operator, shifted(axis, node, side), &mut workspace.lines[k], formula_values);
            }
        }
        for (i, j) in (0..9).map(|k| (k / 3, k % 3)) {
            let (first, second) = (divergence_a[i] * gradient_b[j], divergence_b[j] * gradient_a[i]);
            if first == 0.0 && second == 0.0 {
                continue;
            }
            let start = operator.grid().index(shifted(b, shifted(a, node, i), j)) + nodes.start;
            let start = if a == 0 { start + i - 1 } else { start };
            let (u, out) = (&self.u[start..][..nodes.len()], &mut out[nodes.clone()]);
            if let Some(d) = constant {
                let weight = T::from_f64(self.scale * d * (first + second));
                out.iter_mut().zip(u).for_each(|(out, &u)| *out += weight * u);
                continue;
            }
            let (first, second) = (T::from_f64(self.scale * first), T::from_f64(self.scale * second));
            let from = if a == 0 { nodes.start + i - 1 } else { 0 };
            let along_a = &workspace.lines[i][from..][..nodes.len()];
            let along_b = &workspace.lines[3 + j][nodes.start..][..nodes.len()];
            for (((out, &u), &d), &e) in out.iter_mut().zip(u).zip(along_a).zip(along_b) {
                *out += (first * d + second * e) * u;
            }
        }
    }
}

/// Sets a line to $r u + f$ and the couplings along x and N other axes.
#[inline(always)]
fn stencil<T: Scalar, const N: usize>(
    out: &mut [T],
    u: &[T],
    [[first_l, first_w], [l, w], [last_l, last_w]]: [[T; 2]; 3],
    others: [([&[T]; 2], [T; 2]); N],
    r: T,
    f: T,
) {
    let n = out.len();
    let others = others.map(|([before, behind], pair)| ([&before[..n], &behind[..n]], pair));
    let u = &u[..n];
    for i in 1..n - 1 {
        out[i] = rest(i, u, &others, r, f) + l * (u[i - 1] - u[i]) + w * (u[i + 1] - u[i]);
    }
    out[0] = rest(0, u, &others, r, f) + first_l * (u[n - 1] - u[0]) + first_w * (u[1] - u[0]);
    out[n - 1] = rest(n - 1, u, &others, r, f) + last_l * (u[n - 2] - u[n - 1]) + last_w * (u[0] - u[n - 1]);
}

/// Returns $r u + f$ and the couplings to the neighbours along y and z of node i.
#[inline(always)]
fn rest<T: Scalar, const N: usize>(i: usize, u: &[T], others: &[([&[T]; 2], [T; 2]); N], r: T, f: T) -> T {
    let mut sum = r * u[i] + f;
    for &([before, behind], [l, w]) in others {
        sum += l * (before[i] - u[i]) + w * (behind[i] - u[i]);
    }
    sum
}

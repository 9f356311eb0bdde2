//! The exact solve on the nodes inside windows of cells, given the values around them.

use std::mem::swap;

use femtile_device::Cpu;
use femtile_tensor::{Contract, Factor, contract, lanes, subtract_contraction};

use crate::axis::PatchLine;

/// Values of windows side by side, and room to work in.
#[derive(Debug)]
pub(crate) struct Tensors<T> {
    /// On the nodes inside, `[n_z][n_y][n_x][lanes]`.
    pub inside: Vec<T>,
    /// Around them: ends along x of all lines, `[m_z][m_y][2]`; ends along y of lines inside along x, `[m_z][2][n_x]`; ends
    /// along z of those inside along x and y, `[2][n_y][n_x]`. None where there is no such axis.
    pub around: [Vec<T>; 3],
    /// On the planes in the middle across x, y and z.
    pub planes: [Vec<T>; 3],
    /// As long as `inside`.
    next: Vec<T>,
    room: [Vec<T>; 2],
}

impl<T: Contract> Tensors<T> {
    /// For windows of so many nodes along each axis.
    pub fn new(cpu: &Cpu, m: [usize; 3]) -> Self {
        let zeros = |len: usize| vec![T::ZERO; len * lanes::<T>(cpu)];
        let n = m.map(inner);
        let or_none = |len: usize| zeros(if m[2] > 1 { len } else { 0 });
        Self {
            inside: zeros(n.iter().product()),
            next: zeros(n.iter().product()),
            around: [zeros(m[2] * m[1] * 2), zeros(m[2] * 2 * n[0]), or_none(2 * n[1] * n[0])],
            planes: [zeros(n[2] * n[1]), zeros(n[2] * n[0]), or_none(n[1] * n[0])],
            room: [0, 1].map(|_| zeros(4 * (m[0] * m[1]).max(m[2] * m[0].max(m[1])))),
        }
    }
}

/// Nodes inside a line of so many; of an axis that there is not, the only one.
pub(crate) fn inner(m: usize) -> usize {
    if m == 1 { 1 } else { m - 2 }
}

/// $x_i = A_{ii}^{-1} (b_i - A_{ib} x_b)$, where i are the nodes inside and b those around them: values that were inside do not
/// matter, so that none are read and no residual is formed.
///
/// In the basis of the eigenvectors $A_{ii}$ is diagonal, and what a side of the window adds is a product of two columns with
/// what two axes make of its values: of planes instead of the whole window.
///
/// # Source
/// `[cui2024]`, eqs. (2.13) and (2.14), and section 4.1.3, which forms the residual from values on the boundary of patches.
#[derive(Debug)]
pub(crate) struct LocalSolve<'a, T> {
    lines: [&'a PatchLine<T>; 3],
    n_axes: usize,
    /// One over the sums of eigenvalues, for each lane.
    reciprocals: Vec<T>,
    /// Eigenvalues along x, and their sums with those along y, for each lane.
    values: [Vec<T>; 2],
}

impl<'a, T: Contract> LocalSolve<'a, T> {
    /// Of what the axes have.
    pub fn new(cpu: &Cpu, lines: [&'a PatchLine<T>; 3]) -> Self {
        let [x, y, z] = lines.map(|line| &line.values);
        let of_plane = || y.iter().flat_map(|y| x.iter().map(move |x| x + y));
        let in_lanes = |value: f64| std::iter::repeat_n(T::from_f64(value), lanes::<T>(cpu));
        let reciprocals = z.iter().flat_map(|z| of_plane().map(move |sum| 1.0 / (sum + z)));
        Self {
            n_axes: if lines[2].both.n_cols() == 1 { 2 } else { 3 },
            reciprocals: reciprocals.flat_map(in_lanes).collect(),
            values: [x.iter().copied().flat_map(in_lanes).collect(), of_plane().flat_map(in_lanes).collect()],
            lines,
        }
    }

    /// From residuals to corrections inside: $A_{ii}^{-1} r_i$.
    pub fn correct(&self, cpu: &Cpu, inside: &mut Vec<T>, next: &mut Vec<T>) {
        self.along_all(cpu, |line| &line.forward, inside, next);
        scale(cpu, inside, &self.reciprocals);
        self.along_all(cpu, |line| &line.back, inside, next);
    }

    /// From right sides inside and values around to the solution in the basis of eigenvectors, inside.
    pub fn solve(&self, cpu: &Cpu, tensors: &mut Tensors<T>) {
        let Tensors { inside, next, around, room, .. } = tensors;
        self.along_all(cpu, |line| &line.forward, inside, next);
        self.subtract_x(cpu, inside, &around[0], room);
        self.subtract_y(cpu, inside, &around[1], room);
        if self.n_axes == 3 {
            self.subtract_z(cpu, inside, &around[2], room);
        }
        scale(cpu, inside, &self.reciprocals);
    }

    /// Ends along x: $Q_y P_z + P_y Q_z$ and $P_y P_z$ of their values.
    fn subtract_x(&self, cpu: &Cpu, inside: &mut [T], ends: &[T], [a, b]: &mut [Vec<T>; 2]) {
        let [x, y, z] = self.lines;
        let m = y.both.n_cols();
        let of_z = part(a, ends.len() / z.both.n_cols() * z.both.n_rows());
        contract(cpu, &z.both, 2 * m, ends, of_z);
        let of_y = part(b, of_z.len() / (2 * m) * y.sums.n_rows());
        contract(cpu, &y.sums, 2, of_z, of_y);
        subtract_contraction(cpu, &x.ends, 1, of_y, inside);
    }

    /// Ends along y: $\Lambda_x P_x P_z + P_x Q_z$ and $P_x P_z$ of their values inside along x.
    fn subtract_y(&self, cpu: &Cpu, inside: &mut [T], ends: &[T], [a, b]: &mut [Vec<T>; 2]) {
        let [x, y, z] = self.lines;
        let n = x.values.len();
        let of_x = part(a, ends.len());
        contract(cpu, &x.inner, 1, ends, of_x);
        let of_z = part(b, ends.len() / z.both.n_cols() * z.both.n_rows());
        contract(cpu, &z.both, 2 * n, of_x, of_z);
        let len = of_z.len() / (2 * z.values.len());
        for pair in of_z.chunks_exact_mut(2 * len) {
            let (first, second) = pair.split_at_mut(len);
            add_scaled(cpu, second, first, &self.values[0]);
        }
        subtract_contraction(cpu, &y.ends, n, of_z, inside);
    }

    /// Ends along z: $(\Lambda_x + \Lambda_y) P_x P_y$ and $P_x P_y$ of their values inside along x and y.
    fn subtract_z(&self, cpu: &Cpu, inside: &mut [T], ends: &[T], [a, b]: &mut [Vec<T>; 2]) {
        let [x, y, z] = self.lines;
        let of_x = part(a, ends.len());
        contract(cpu, &x.inner, 1, ends, of_x);
        let (first, second) = part(b, 2 * ends.len()).split_at_mut(ends.len());
        contract(cpu, &y.inner, x.values.len(), of_x, first);
        second.fill(T::ZERO);
        add_scaled(cpu, second, first, &self.values[1]);
        subtract_contraction(cpu, &z.ends, x.values.len() * y.values.len(), part(b, 2 * ends.len()), inside);
    }

    /// From the basis of eigenvectors to values on all nodes inside.
    pub fn back(&self, cpu: &Cpu, Tensors { inside, next, .. }: &mut Tensors<T>) {
        self.along_all(cpu, |line| &line.back, inside, next);
    }

    /// A square matrix of each axis applied along it.
    fn along_all(
        &self,
        cpu: &Cpu,
        factor: impl Fn(&PatchLine<T>) -> &Factor<T>,
        x: &mut Vec<T>,
        next: &mut Vec<T>,
    ) {
        let mut inner = 1;
        for line in &self.lines[..self.n_axes] {
            contract(cpu, factor(line), inner, x, next);
            swap(x, next);
            inner *= line.values.len();
        }
    }

    /// From the basis of eigenvectors to values on the planes in the middle, which is much less.
    pub fn back_to_planes(&self, cpu: &Cpu, tensors: &mut Tensors<T>) {
        let Tensors { inside, planes, room: [a, b], .. } = tensors;
        let n = self.lines.map(|line| line.values.len());
        for (across, plane) in planes.iter_mut().enumerate().take(self.n_axes) {
            let mut inner: usize = n[..across].iter().product();
            let mut len = inside.len() / n[across];
            contract(cpu, &self.lines[across].back_middle, inner, inside, part(a, len));
            inner = 1;
            for axis in (0..self.n_axes).filter(|axis| *axis != across) {
                let line = self.lines[axis];
                contract(cpu, &line.back, inner, part(a, len), part(b, len));
                inner *= n[axis];
                swap(a, b);
            }
            len = plane.len();
            plane.copy_from_slice(part(a, len));
        }
    }
}

/// The beginning of some room.
fn part<T>(room: &mut [T], len: usize) -> &mut [T] {
    &mut room[..len]
}

/// $x_i \leftarrow f_i x_i$.
pub(crate) fn scale<T: Contract>(cpu: &Cpu, x: &mut [T], factors: &[T]) {
    cpu.vectorize(
        #[inline(always)]
        || x.iter_mut().zip(factors).for_each(|(x, factor)| *x *= *factor),
    );
}

/// $y_i \leftarrow y_i + f_i x_i$, with the factors from the first again after the last.
fn add_scaled<T: Contract>(cpu: &Cpu, y: &mut [T], x: &[T], factors: &[T]) {
    cpu.vectorize(
        #[inline(always)]
        || {
            for (y, x) in y.chunks_exact_mut(factors.len()).zip(x.chunks_exact(factors.len())) {
                for ((y, x), factor) in y.iter_mut().zip(x).zip(factors) {
                    *y += *factor * *x;
                }
            }
        },
    );
}

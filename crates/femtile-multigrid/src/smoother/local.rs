//! The exact local solve on the inner nodes of patches, given the values around them, by the fast diagonalization method.

use std::mem::swap;

use femtile_device::Cpu;
use femtile_sum_factorization::{Factor, SumFactorization, contract, lanes, subtract_contraction};

use crate::axis::PatchLine;

/// Values of patches in SIMD lanes, and workspace.
#[derive(Debug)]
pub(crate) struct Tensors<T> {
    /// Values at inner nodes, those at open ends included, `[n_z][n_y][n_x][lanes]`.
    pub inside: Vec<T>,
    /// Values around them at e closed ends: along x on all lines, `[m_z][m_y][e]`; along y on lines inside along x,
    /// `[m_z][e][n_x]`; along z on lines inside along x and y, `[e][n_y][n_x]`.
    pub around: [Vec<T>; 3],
    /// Values on the middle planes across x, y and z; an open end counts as one.
    pub planes: [Vec<T>; 3],
    /// Workspace as long as `inside`.
    next: Vec<T>,
    workspace: [Vec<T>; 2],
}

impl<T: SumFactorization> Tensors<T> {
    pub fn new() -> Self {
        let none = || [(); 3].map(|()| Vec::new());
        Self {
            inside: Vec::new(),
            around: none(),
            planes: none(),
            next: Vec::new(),
            workspace: [Vec::new(), Vec::new()],
        }
    }

    /// Resizes for patches of m nodes along each axis, n of them inner.
    pub fn fit(&mut self, cpu: &Cpu, m: [usize; 3], n: [usize; 3]) {
        let resize = |values: &mut Vec<T>, len: usize| values.resize(len * lanes::<T>(cpu), T::ZERO);
        let ends = [0, 1, 2].map(|axis| m[axis] - n[axis]);
        let around = [m[2] * m[1] * ends[0], m[2] * ends[1] * n[0], ends[2] * n[1] * n[0]];
        let across_z = if m[2] > 1 { n[1] * n[0] } else { 0 };
        resize(&mut self.inside, n.iter().product());
        resize(&mut self.next, n.iter().product());
        self.around.iter_mut().zip(around).for_each(|(values, len)| resize(values, len));
        self.planes
            .iter_mut()
            .zip([n[2] * n[1], n[2] * n[0], across_z])
            .for_each(|(values, len)| resize(values, len));
        let of_room = 4 * (m[0] * m[1]).max(m[2] * m[0].max(m[1]));
        self.workspace.iter_mut().for_each(|values| resize(values, of_room));
    }
}

/// $x_i = A_{ii}^{-1} (b_i - A_{ib} x_b)$ for inner nodes i and surrounding nodes b. Old inner values do not enter, so
/// they are not read and no residual is formed.
///
/// In the eigenvector basis $A_{ii}$ is diagonal, and each side of the patch contributes outer products of two columns
/// with transformed planes instead of the whole patch.
///
/// # Source
/// `[cui2024]`, eqs. (2.13) and (2.14); section 4.1.3 forms the residual from boundary values of patches.
#[derive(Debug)]
pub(crate) struct LocalSolve<'a, T> {
    lines: [&'a PatchLine<T>; 3],
    n_axes: usize,
    /// Reciprocal sums of eigenvalues, per lane.
    reciprocals: Vec<T>,
    /// Eigenvalues along x, and their sums with those along y, per lane.
    values: [Vec<T>; 2],
}

impl<'a, T: SumFactorization> LocalSolve<'a, T> {
    /// The local solve for the matrices of each axis.
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

    /// Computes the solution in the eigenvector basis from inner right-hand sides and surrounding values.
    pub fn solve(&self, cpu: &Cpu, tensors: &mut Tensors<T>) {
        let Tensors { inside, next, around, workspace, .. } = tensors;
        self.along_all(cpu, |line| &line.forward, inside, next);
        if !around[0].is_empty() {
            self.subtract_x(cpu, inside, &around[0], workspace);
        }
        if !around[1].is_empty() {
            self.subtract_y(cpu, inside, &around[1], workspace);
        }
        if !around[2].is_empty() {
            self.subtract_z(cpu, inside, &around[2], workspace);
        }
        scale(cpu, inside, &self.reciprocals);
    }

    /// Subtracts ends along x: $Q_y P_z + P_y Q_z$ and $P_y P_z$ of their values.
    fn subtract_x(&self, cpu: &Cpu, inside: &mut [T], ends: &[T], [a, b]: &mut [Vec<T>; 2]) {
        let [x, y, z] = self.lines;
        let (m, e) = (y.both.n_cols(), x.ends.n_cols() / 2);
        let of_z = part(a, ends.len() / z.both.n_cols() * z.both.n_rows());
        contract(cpu, &z.both, e * m, ends, of_z);
        let of_y = part(b, of_z.len() / (2 * m) * y.sums.n_rows());
        contract(cpu, &y.sums, e, of_z, of_y);
        subtract_contraction(cpu, &x.ends, 1, of_y, inside);
    }

    /// Subtracts ends along y: $\Lambda_x P_x P_z + P_x Q_z$ and $P_x P_z$ of their values.
    fn subtract_y(&self, cpu: &Cpu, inside: &mut [T], ends: &[T], [a, b]: &mut [Vec<T>; 2]) {
        let [x, y, z] = self.lines;
        let (n, e) = (x.values.len(), y.ends.n_cols() / 2);
        let of_x = part(a, ends.len());
        contract(cpu, &x.inner, 1, ends, of_x);
        let of_z = part(b, ends.len() / z.both.n_cols() * z.both.n_rows());
        contract(cpu, &z.both, e * n, of_x, of_z);
        let len = of_z.len() / (2 * z.values.len());
        for pair in of_z.chunks_exact_mut(2 * len) {
            let (first, second) = pair.split_at_mut(len);
            add_scaled(cpu, second, first, &self.values[0]);
        }
        subtract_contraction(cpu, &y.ends, n, of_z, inside);
    }

    /// Subtracts ends along z: $(\Lambda_x + \Lambda_y) P_x P_y$ and $P_x P_y$ of their values.
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

    /// Transforms from the eigenvector basis to all inner nodes.
    pub fn back(&self, cpu: &Cpu, Tensors { inside, next, .. }: &mut Tensors<T>) {
        self.along_all(cpu, |line| &line.back, inside, next);
    }

    /// Applies a square matrix of each axis along it.
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

    /// Transforms from the eigenvector basis to the middle planes only.
    pub fn back_to_planes(&self, cpu: &Cpu, tensors: &mut Tensors<T>) {
        let Tensors { inside, planes, workspace: [a, b], .. } = tensors;
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

/// Returns the first `len` entries of a workspace.
fn part<T>(workspace: &mut [T], len: usize) -> &mut [T] {
    &mut workspace[..len]
}

/// $x_i \leftarrow f_i x_i$.
pub(crate) fn scale<T: SumFactorization>(cpu: &Cpu, x: &mut [T], factors: &[T]) {
    cpu.vectorize(
        #[inline(always)]
        || x.iter_mut().zip(factors).for_each(|(x, factor)| *x *= *factor),
    );
}

/// $y_i \leftarrow y_i + f_i x_i$; the factors repeat.
fn add_scaled<T: SumFactorization>(cpu: &Cpu, y: &mut [T], x: &[T], factors: &[T]) {
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

use femtile_device::Cpu;
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};
use femtile_sum_factorization::{
    Factor, Mapped, Metric, SumFactorization, contract, gradient, lanes, separable,
};

use super::shapes::ShapeKind;

/// Workspace of products, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct ProductWorkspace<T>([Vec<T>; 3]);

/// $\int_K c\, \nabla\varphi_i \cdot \nabla\varphi_j$ for cells in SIMD lanes, by sum factorization with k + 1 Gauss
/// points per axis.
///
/// # Cost
/// Twelve products with 1-D matrices in three dimensions, eight in two, and the metric at each point; for rectangles
/// seven products.
/// # Source
/// `[kronbichler2022]`, section 2.1.
#[derive(Debug, Clone)]
pub(crate) struct CellProduct<T> {
    kind: ShapeKind,
    /// Shape functions at points, and the transpose.
    values: [Factor<T>; 2],
    /// Derivatives at points of the polynomials through them, and the transpose.
    slopes: [Factor<T>; 2],
    /// Quadrature weights along an axis.
    weights: Vec<T>,
    /// 1 and $2 \hat x - 1$ at the points, and their derivatives.
    powers: [Vec<T>; 2],
    /// Mass and stiffness of a cell of width one.
    matrices: [Factor<T>; 2],
}

impl<T: SumFactorization> CellProduct<T> {
    pub fn new(degree: usize, kind: ShapeKind) -> Self {
        let (points, weights) = gauss_legendre(degree + 1);
        let shapes = Lagrange::gauss_lobatto(degree);
        let (values, slopes) = (shapes.values(&points), shapes.slopes(&points));
        let at_points = Lagrange::new(points.clone()).slopes(&points);
        let pair = |table: &Table| [Factor::new(table), Factor::new(&table.transpose())];
        let powers =
            |of: &dyn Fn(f64) -> [f64; 2]| points.iter().flat_map(|x| of(*x)).map(T::from_f64).collect();
        Self {
            kind,
            values: pair(&values),
            slopes: pair(&at_points),
            matrices: [&values, &slopes].map(|table| Factor::new(&table.gram(&weights))),
            powers: [powers(&|x| [1.0, 2.0 * x - 1.0]), powers(&|_| [0.0, 1.0])],
            weights: weights.iter().map(|&weight| T::from_f64(weight)).collect(),
        }
    }

    /// Returns the number of nodes of a cell along an axis.
    pub fn n(&self) -> usize {
        self.weights.len()
    }

    /// $u \leftarrow A u$ for cells with geometry `shape`, `[len][lanes]`.
    pub fn apply(
        &self,
        cpu: &Cpu,
        shape: &[T],
        u: &mut [T],
        ProductWorkspace(workspace): &mut ProductWorkspace<T>,
    ) {
        let n_lanes = lanes::<T>(cpu);
        let [a, b, scratch] = workspace;
        scratch.resize(2 * u.len() + Mapped::<T>::workspace_of_order(1, n_lanes), T::ZERO);
        if self.kind == ShapeKind::Rectangular {
            return separable(cpu, [&self.matrices[0], &self.matrices[1]], shape, u, scratch);
        }
        a.resize(u.len(), T::ZERO);
        b.resize(u.len(), T::ZERO);
        let (coefficients, sigma) = shape.split_at(shape.len() - n_lanes);
        let n = self.n();
        let [up, down] = &self.values;
        if self.kind == ShapeKind::Bilinear {
            contract(cpu, up, 1, u, a);
            contract(cpu, up, n, a, u);
            self.act_on_squares(cpu, (coefficients, sigma), u, [a, b]);
            contract(cpu, down, 1, u, a);
            contract(cpu, down, n, a, u);
            return;
        }
        let metric = Metric::Mapped(Mapped {
            coefficients,
            order: 1,
            tables: self.powers.each_ref().map(|powers| &powers[..]),
            weights: &self.weights,
            sigma,
            lambda: &[],
        });
        let along_all = |factor: &Factor<T>, u: &mut [T], a: &mut [T], b: &mut [T]| {
            contract(cpu, factor, 1, u, a);
            contract(cpu, factor, n, a, b);
            contract(cpu, factor, n * n, b, u);
        };
        along_all(up, u, a, b);
        gradient(cpu, [&self.slopes[0], &self.slopes[1]], metric, u, scratch);
        along_all(down, u, a, b);
    }

    /// $u \leftarrow \sum_{ab} D_a^\mathsf{T} G_{ab} D_b u$ at the points of quadrilaterals.
    fn act_on_squares(&self, cpu: &Cpu, shape: (&[T], &[T]), u: &mut [T], [a, b]: [&mut [T]; 2]) {
        let n = self.n();
        let [slopes, transposed] = &self.slopes;
        contract(cpu, slopes, 1, u, a);
        contract(cpu, slopes, n, u, b);
        cpu.vectorize(
            #[inline(always)]
            || self.metric_of_squares(shape, a, b),
        );
        contract(cpu, transposed, 1, a, u);
        contract(cpu, transposed, n, b, a);
        cpu.vectorize(
            #[inline(always)]
            || u.iter_mut().zip(&*a).for_each(|(u, a)| *u += *a),
        );
    }

    /// Multiplies a gradient by $w\, c \det J\, J^{-1} J^{-\mathsf{T}}$.
    #[inline(always)]
    fn metric_of_squares(&self, (coefficients, sigma): (&[T], &[T]), a: &mut [T], b: &mut [T]) {
        let (n, n_lanes) = (self.n(), sigma.len());
        let [_, _, x1, y1, x2, y2, x12, y12] =
            std::array::from_fn(|i| &coefficients[i * n_lanes..(i + 1) * n_lanes]);
        let points = a.chunks_exact_mut(n_lanes).zip(b.chunks_exact_mut(n_lanes));
        for (at, (a, b)) in points.enumerate() {
            let [xi, eta] = [at % n, at / n].map(|at| self.powers[0][2 * at + 1]);
            let weight = self.weights[at % n] * self.weights[at / n];
            for lane in 0..n_lanes {
                let along_x = [x1[lane] + eta * x12[lane], y1[lane] + eta * y12[lane]];
                let along_y = [x2[lane] + xi * x12[lane], y2[lane] + xi * y12[lane]];
                let determinant = along_x[0] * along_y[1] - along_x[1] * along_y[0];
                let scale = weight * sigma[lane] / determinant;
                // $\det J\, J^{-\mathsf{T}}$ times the gradient, then its transpose.
                let (p, q) = (a[lane], b[lane]);
                let flux = [along_y[1] * p - along_x[1] * q, along_x[0] * q - along_y[0] * p];
                a[lane] = scale * (along_y[1] * flux[0] - along_y[0] * flux[1]);
                b[lane] = scale * (along_x[0] * flux[1] - along_x[1] * flux[0]);
            }
        }
    }

    /// Returns the matrices of cells, `[n^d][n^d]`, column by column.
    pub fn matrix(&self, cpu: &Cpu, shape: &[T], workspace: &mut ProductWorkspace<T>) -> Vec<T> {
        let n_lanes = lanes::<T>(cpu);
        let d = if self.kind == ShapeKind::Bilinear { 2 } else { 3 };
        let n = self.n().pow(d);
        let in_lanes: Vec<T> = shape.iter().flat_map(|&entry| std::iter::repeat_n(entry, n_lanes)).collect();
        let mut entries = vec![T::ZERO; n * n];
        let mut u = vec![T::ZERO; n * n_lanes];
        for first in (0..n).step_by(n_lanes) {
            let columns = first..(first + n_lanes).min(n);
            u.fill(T::ZERO);
            columns.clone().for_each(|column| u[column * n_lanes + column - first] = T::ONE);
            self.apply(cpu, &in_lanes, &mut u, workspace);
            for column in columns {
                (0..n).for_each(|row| entries[column * n + row] = u[row * n_lanes + column - first]);
            }
        }
        entries
    }
}

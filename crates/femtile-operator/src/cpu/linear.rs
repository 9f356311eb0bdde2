//! Matrices of linear simplices.

use super::basis::{LANES, Lanes, add_product, add_products};
use super::cells::Job;
use super::geometry::multiply;

/// The entries of D' at the points of a batch, and a pair of components.
#[derive(Clone, Copy)]
pub(super) struct LinearPair<'e> {
    /// Row and column of each.
    pub list: &'e [[usize; 2]],
    /// `[n_entries][n_q]`
    pub entries: &'e [Lanes],
    /// Components of the test and of the trial function.
    pub pair: [usize; 2],
    /// Whether D' is a symmetric matrix at each point.
    pub is_symmetric: bool,
}

impl Job<'_, '_> {
    /// Computes the part of a pair of components of the matrices of linear simplices. The gradients g of their shape functions φ are
    /// the same at all points, so that D' is summed over the points first:
    ///
    /// $$ K_{ij} = g_i \cdot \Bigl(\sum_q w D'_{11}\, g_j + \sum_q w D'_{10}\, \varphi_j\Bigr)
    ///    + \sum_q w \varphi_i \,(D'_{01}\, g_j + D'_{00}\, \varphi_j). $$
    ///
    /// # Shapes
    /// `matrix: [c][N][c][N]`
    pub(super) fn matrix_of_linear<const D: usize, const N: usize>(
        &self,
        batch: usize,
        LinearPair { list, entries, pair: [test, trial], is_symmetric }: LinearPair<'_>,
        matrix: &mut [Lanes],
    ) {
        let basis = &self.operator.basis;
        let n_components = self.operator.discrete.form().n_components();
        let geometry = self.operator.geometry.batch(batch);
        let mut found = [[[0.0; LANES]; N]; N];
        self.operator.cpu.simd().vectorize(
            #[inline(always)]
            || {
                let gradients = geometry.gradients_of_linear::<D, N>();
                let mut fluxes = [[[0.0; LANES]; N]; D];
                for (&[row, column], values) in list.iter().zip(entries.chunks_exact(basis.n_q)) {
                    if row / (1 + D) == test && column / (1 + D) == trial {
                        let slots = [row % (1 + D), column % (1 + D)];
                        add_entry_of_linear::<D, N>(
                            (slots, values),
                            (&basis.tables, geometry.weights, &gradients),
                            &mut fluxes,
                            &mut found,
                        );
                    }
                }
                for (gradients, fluxes) in gradients.iter().zip(&fluxes) {
                    for i in 0..N {
                        for j in 0..N {
                            add_products(&mut found[i][j], &gradients[i], &fluxes[j]);
                        }
                    }
                }
            },
        );
        for i in 0..N {
            for j in if is_symmetric && test == trial { i } else { 0 }..N {
                matrix[((test * N + i) * n_components + trial) * N + j] = found[i][j];
                if is_symmetric {
                    matrix[((trial * N + j) * n_components + test) * N + i] = found[i][j];
                }
            }
        }
    }
}

/// Adds an entry of D' at the points to the fluxes of the trial functions, `fluxes`, that meet the gradients of the test functions, or
/// to the matrix.
#[inline(always)]
fn add_entry_of_linear<const D: usize, const N: usize>(
    ([row, column], values): ([usize; 2], &[Lanes]),
    (shapes, weights, gradients): (&[f64], &[Lanes], &[[Lanes; N]; D]),
    fluxes: &mut [[Lanes; N]; D],
    matrix: &mut [[Lanes; N]; N],
) {
    // The integral of the entry alone, and times each shape function.
    let (mut sum, mut moments) = ([0.0; LANES], [[0.0; LANES]; N]);
    for ((value, weight), shapes) in values.iter().zip(weights).zip(shapes.chunks_exact(N)) {
        if row > 0 && column > 0 {
            add_products(&mut sum, weight, value);
            continue;
        }
        let mut product = *value;
        multiply(&mut product, weight);
        for j in 0..N {
            add_product(&mut moments[j], shapes[j], &product);
            if row == 0 && column == 0 {
                let mut product = product;
                multiply(&mut product, &[shapes[j]; LANES]);
                for i in 0..N {
                    add_product(&mut matrix[i][j], shapes[i], &product);
                }
            }
        }
    }
    for j in 0..N {
        match (row, column) {
            (0, 0) => {}
            (0, _) => {
                for i in 0..N {
                    add_products(&mut matrix[i][j], &moments[i], &gradients[column - 1][j]);
                }
            }
            (_, 0) => {
                for lane in 0..LANES {
                    fluxes[row - 1][j][lane] += moments[j][lane];
                }
            }
            _ => add_products(&mut fluxes[row - 1][j], &sum, &gradients[column - 1][j]),
        }
    }
}

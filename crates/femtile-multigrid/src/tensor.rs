//! Sums of products of 1-D matrices applied to tensors side by side, and their inverses.

use femtile_device::Cpu;
use femtile_tensor::{Contract, contract};

use crate::axis::{Line, PatchLine};

/// Room for tensors, kept from one batch to the next.
#[derive(Debug)]
pub(crate) struct Room<T> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
    d: Vec<T>,
}

impl<T: Contract> Room<T> {
    /// For so many values.
    pub fn new(len: usize) -> Self {
        let empty = || vec![T::ZERO; len];
        Self { a: empty(), b: empty(), c: empty(), d: empty() }
    }

    /// $x \leftarrow (K_x M_y M_z + M_x K_y M_z + M_x M_y K_z) x$, the last term in three dimensions alone.
    ///
    /// # Source
    /// `[cui2024]`, eqs. (2.11) and (2.12); seven products, as section 3.1.1 shares them.
    pub fn laplace(&mut self, cpu: &Cpu, [x_line, y_line, z_line]: [&Line<T>; 3], x: &mut [T]) {
        let len = x.len();
        let [a, b, c, d] = [&mut self.a, &mut self.b, &mut self.c, &mut self.d].map(|room| &mut room[..len]);
        let (n, m) = (x_line.mass.n_cols(), y_line.mass.n_cols());
        contract(cpu, &x_line.mass, 1, x, a);
        contract(cpu, &x_line.stiffness, 1, x, b);
        contract(cpu, &y_line.mass, n, b, c);
        contract(cpu, &y_line.stiffness, n, a, d);
        add(cpu, c, d);
        if z_line.mass.n_cols() == 1 {
            x.copy_from_slice(c);
            return;
        }
        contract(cpu, &y_line.mass, n, a, b);
        contract(cpu, &z_line.mass, n * m, c, x);
        contract(cpu, &z_line.stiffness, n * m, b, d);
        add(cpu, x, d);
    }

    /// $x \leftarrow S\, (\Lambda_x + \Lambda_y + \Lambda_z)^{-1} S^\mathsf{T} x$ with $S = S_z \otimes S_y \otimes S_x$ and the
    /// reciprocals of the sums.
    ///
    /// # Source
    /// `[cui2024]`, eqs. (2.13) and (2.14).
    pub fn solve(&mut self, cpu: &Cpu, lines: [&PatchLine<T>; 3], reciprocals: &[T], x: &mut [T]) {
        let a = &mut self.a[..x.len()];
        turn(cpu, lines, 0, x, a);
        let n_lanes = x.len() / reciprocals.len();
        cpu.vectorize(
            #[inline(always)]
            || {
                for (x, factor) in x.chunks_exact_mut(n_lanes).zip(reciprocals) {
                    x.iter_mut().for_each(|x| *x *= *factor);
                }
            },
        );
        turn(cpu, lines, 1, x, a);
    }
}

/// $x \leftarrow S^\mathsf{T} x$ or $x \leftarrow S x$, leaving out an axis that there is not.
fn turn<T: Contract>(cpu: &Cpu, lines: [&PatchLine<T>; 3], which: usize, x: &mut [T], room: &mut [T]) {
    let mut inner = 1;
    for line in lines.into_iter().filter(|line| line.line.mass.n_cols() > 1) {
        let factor = &line.vectors[which];
        contract(cpu, factor, inner, x, room);
        x.copy_from_slice(room);
        inner *= factor.n_rows();
    }
}

fn add<T: Contract>(cpu: &Cpu, y: &mut [T], x: &[T]) {
    cpu.vectorize(
        #[inline(always)]
        || y.iter_mut().zip(x).for_each(|(y, x)| *y += *x),
    );
}

/// Reciprocals of the sums of eigenvalues.
pub(crate) fn reciprocals<T: Contract>(lines: [&PatchLine<T>; 3]) -> Vec<T> {
    let [x, y, z] = lines.map(|line| &line.values);
    let sums = z.iter().flat_map(|z| y.iter().flat_map(move |y| x.iter().map(move |x| x + y + z)));
    sums.map(|sum| T::from_f64(1.0 / sum)).collect()
}

use femtile_device::Cpu;
use femtile_tensor::{Contract, lanes};

use super::PostOrder;
use crate::axis::PatchLine;
use crate::grid::BoxGrid;
use crate::tensor::{Inverse, Laplace, Room};
use crate::windows::{Group, Shared, Windows, gather, scatter};

/// Exact solves on the nodes inside patches of cells, one colour after another:
/// $$ x \leftarrow x + R_j^\mathsf{T} A_j^{-1} (R_j b - \bar A_j \bar R_j x). $$
///
/// Patches of a colour stand side by side in lanes and are shared out among threads; they change nothing that another one
/// reads, so that results have the same bits for any number of threads.
///
/// # Cost
/// Seven products with 1-D matrices of 2k + 1 rows and six with 2k − 1 rows a patch, four and four in two dimensions; each
/// node inside takes part in $2^d$ patches.
/// # Source
/// `[cui2024]`, Alg. 2.3, eqs. (2.8), (2.13) and (2.14).
#[derive(Debug, Clone)]
pub(crate) struct Patches<T> {
    cpu: Cpu,
    windows: Windows<PatchLine<T>>,
}

impl<T: Contract> Patches<T> {
    /// The cells around every vertex inside.
    pub fn around_vertices(cpu: &Cpu, grid: &BoxGrid) -> Self {
        Self::of_cells(cpu, grid, [2; 3])
    }

    /// One patch of all cells, which solves exactly.
    pub fn whole(cpu: &Cpu, grid: &BoxGrid) -> Self {
        Self::of_cells(cpu, grid, [0, 1, 2].map(|axis| grid.widths(axis).len()))
    }

    fn of_cells(cpu: &Cpu, grid: &BoxGrid, cells: [usize; 3]) -> Self {
        let windows = Windows::new(grid, cells, |widths| PatchLine::new(grid.degree(), widths));
        Self { cpu: cpu.clone(), windows }
    }

    /// All patches once.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        let n_colours = self.windows.colours.len();
        let x = Shared::new(x);
        for step in 0..n_colours {
            let colour = if order == PostOrder::Same { step } else { n_colours - 1 - step };
            self.windows
                .for_batches::<T>(&self.cpu, colour, |group, batches| self.solve(&x, b, group, batches));
        }
    }

    /// Some patches of a colour.
    fn solve(&self, x: &Shared<'_, T>, b: &[T], group: &Group, batches: &mut dyn Iterator<Item = &[u32]>) {
        let n_lanes = lanes::<T>(&self.cpu);
        let lines = [0, 1, 2].map(|axis| &self.windows.kinds[axis][group.kinds[axis]]);
        let laplace = Laplace::new(lines.map(|line| &line.line), n_lanes);
        let inverse = Inverse::new(lines);
        let Windows { nodes, offsets, inside, .. } = &self.windows;
        let len = offsets.len() * n_lanes;
        let (mut room, mut window) = (Room::new(len), vec![T::ZERO; len]);
        let mut residual = vec![T::ZERO; inside.len() * n_lanes];
        for firsts in batches {
            #[allow(unsafe_code)]
            // SAFETY: patches of a colour change the nodes inside them alone, which no other of them has; the nodes exist.
            gather(&self.cpu, offsets, firsts, &mut window, |node| unsafe { x.get(node) });
            laplace.apply(&self.cpu, &mut window, &mut room);
            gather(&self.cpu, inside, firsts, &mut residual, |node| b[node]);
            subtract_inside(*nodes, n_lanes, &mut residual, &window);
            inverse.apply(&self.cpu, &mut residual, &mut room);
            #[allow(unsafe_code)]
            // SAFETY: as above.
            scatter(&self.cpu, inside, firsts, &residual, |node, value| unsafe { x.add(node, value) });
        }
    }
}

/// Subtracts the nodes inside windows of so many nodes.
fn subtract_inside<T: Contract>([n, m, l]: [usize; 3], n_lanes: usize, r: &mut [T], window: &[T]) {
    let planes = if l == 1 { 0..1 } else { 1..l - 1 };
    let mut rows = r.chunks_exact_mut((n - 2) * n_lanes);
    for plane in planes {
        for row in 1..m - 1 {
            let first = ((plane * m + row) * n + 1) * n_lanes;
            let Some(r) = rows.next() else { return };
            for (r, value) in r.iter_mut().zip(&window[first..]) {
                *r -= *value;
            }
        }
    }
}

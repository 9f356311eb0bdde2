//! $-\Delta u + u = f$ on a cube of side 4 with natural sides, linear tetrahedra, every entry of b one.

use femtile::device::{Buffer, Device, DeviceError, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::csr::{Csr, HostOffsets};

/// Corners of the six tetrahedra of a cube; corner `x + 2y + 4z` lies at (x, y, z).
const KUHN: [[usize; 4]; 6] =
    [[0, 1, 3, 7], [0, 5, 1, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 4, 5, 7], [0, 6, 4, 7]];

/// A row as its 27 possible neighbours `(1+dx) + 3(1+dy) + 9(1+dz)`; `None` where no cell joins the two.
type Stencil = [Option<f64>; 27];

/// Side of the cube.
pub const SIDE: f64 = 4.0;

/// The matrix of the cube with `n` nodes a side: n³ rows, 15 entries in each row inside.
///
/// # Errors
/// [`LinalgError::Device`] when the device has not enough memory.
pub fn matrix<T: Scalar, D: Device>(device: &D, n: usize) -> Result<Csr<T, D>, LinalgError> {
    let corners: [Stencil; 8] = std::array::from_fn(|corner| corner_share(corner, SIDE / (n - 1) as f64));
    let rows = || (0..n * n * n).map(|row| [row % n, row / n % n, row / (n * n)]);
    let stencil_of = |node: [usize; 3]| stencil(node, n, &corners);
    let lengths: Vec<usize> = rows().map(|node| stencil_of(node).iter().flatten().count()).collect();
    let total = lengths.iter().sum();
    let offsets = HostOffsets::from_row_lengths(lengths.iter().copied());
    let mut columns = femtile::device::cpu::zeroed_vec::<u32>(total);
    let mut values = femtile::device::cpu::zeroed_vec::<T>(total);
    let mut entry = 0;
    for (row, node) in rows().enumerate() {
        for (i, value) in stencil_of(node).iter().enumerate() {
            let Some(value) = value else { continue };
            let reach = [i % 3, i / 3 % 3, i / 9].map(|d| d as i64 - 1);
            let n = n as i64;
            columns[entry] = (row as i64 + reach[0] + n * (reach[1] + n * reach[2])) as u32;
            values[entry] = T::from_f64(*value);
            entry += 1;
        }
    }
    Csr::from_parts(device, n * n * n, offsets, columns, values)
}

/// A right side whose entries are all one.
///
/// # Errors
/// When the device has not enough memory.
pub fn ones<T: Scalar, D: Device>(device: &D, n: usize) -> Result<Buffer<T, D>, DeviceError> {
    Buffer::from_vec(device, vec![T::ONE; n * n * n])
}

/// The sum of the shares of the cubes around a node.
fn stencil(node: [usize; 3], n: usize, corners: &[Stencil; 8]) -> Stencil {
    let mut row = Stencil::default();
    for (corner, share) in corners.iter().enumerate() {
        let inside = |d: usize| match corner >> d & 1 {
            0 => node[d] + 1 < n,
            _ => node[d] > 0,
        };
        if (0..3).all(inside) {
            for (entry, part) in row.iter_mut().zip(share) {
                if let Some(part) = part {
                    *entry = Some(entry.unwrap_or(0.0) + part);
                }
            }
        }
    }
    row
}

/// What the cube of which a node is this corner adds to the node's row; `h` is its side.
fn corner_share(corner: usize, h: f64) -> Stencil {
    let mut share = Stencil::default();
    for cell in &KUHN {
        let Some(a) = cell.iter().position(|&c| c == corner) else { continue };
        for (b, &other) in cell.iter().enumerate() {
            let place = |d: usize| 1 + (other >> d & 1) - (corner >> d & 1);
            let entry = &mut share[place(0) + 3 * place(1) + 9 * place(2)];
            *entry = Some(entry.unwrap_or(0.0) + cell_entry(cell, a, b, h));
        }
    }
    share
}

/// Entry (a, b) of stiffness plus mass of a tetrahedron whose edges follow the path of `cell`.
///
/// The corners of a Kuhn tetrahedron can be put in an order in which one coordinate grows at each
/// step; the gradient of the i-th shape function is then (e_{i} − e_{i+1}) / h with e the directions
/// of the steps (none before the first and after the last).
fn cell_entry(cell: &[usize; 4], a: usize, b: usize, h: f64) -> f64 {
    let volume = h * h * h / 6.0;
    let rank = |i: usize| cell[i].count_ones();
    let stiffness = match rank(a).abs_diff(rank(b)) {
        0 => {
            if rank(a) == 0 || rank(a) == 3 {
                1.0
            } else {
                2.0
            }
        }
        1 => -1.0,
        _ => 0.0,
    };
    let mass = if a == b { 0.1 } else { 0.05 };
    volume * (stiffness / (h * h) + mass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile::device::Reference;

    #[test]
    fn rows_add_up_to_the_volume_and_inner_rows_have_fifteen_entries() {
        let n = 5;
        let a = matrix::<f64, _>(&Reference, n).expect("a small matrix");
        let total: f64 = a.values().as_slice().iter().sum();
        assert!((total - SIDE.powi(3)).abs() < 1e-12 * SIDE.powi(3));
        assert_eq!(a.row(2 + n * (2 + n * 2)).count(), 15);
        assert_eq!(a.n_rows(), 125);
        for row in 0..125 {
            for (column, value) in a.row(row) {
                assert!(a.row(column).any(|(c, v)| c == row && v == value));
            }
        }
    }
}

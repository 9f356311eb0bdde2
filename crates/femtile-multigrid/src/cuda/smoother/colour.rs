use femtile_device::cuda::{Header, Structure};

use super::parts::vertices;
use crate::PostOrder;
use crate::grid::BoxGrid;

/// The header `colour.cuh`: one colour of vertex patches.
pub const COLOUR_HEADER: Header = Header { name: "colour.cuh", text: include_str!("colour.cuh") };

/// Returns `struct Colour` of the kernels: `counts` patches along each axis, the first of them after `places` cells, and
/// the factors of stiffness along each axis.
pub fn colour(
    grid: &BoxGrid,
    counts: [usize; 3],
    places: [usize; 3],
    order: PostOrder,
    scales: [f64; 3],
) -> Structure {
    let cells = [0, 1, 2].map(|axis| grid.widths(axis).len());
    let [_, row, layer] = grid.strides();
    let [first, last] = [0, 1].map(|end| [0, 1, 2].map(|axis| vertices(grid, axis)[end]));
    let words = [counts, places, cells, first, last].into_iter().flatten();
    let mut fields: Vec<u64> = [row, layer].into_iter().chain(words).map(|word| word as u64).collect();
    fields.push(u64::from(order == PostOrder::Reversed));
    fields.extend(scales.map(f64::to_bits));
    Structure(fields)
}

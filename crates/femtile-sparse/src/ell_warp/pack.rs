//! Entries in the order of slices, and back.

use femtile_device::cpu::zeroed_vec;
use femtile_device::{Element, HostDevice, Scalar, parallel};

use super::Numbering;
use super::slices::{Slices, stored_lane};
use crate::Csr;

/// Stands for the entry of a row where there is only padding.
pub(super) const PADDING: u32 = u32::MAX;

/// The arrays of a matrix in slices, on the host.
pub(super) struct Packed<V> {
    pub values: Vec<V>,
    pub columns: Vec<u32>,
    /// For each stored entry its number in its row, where rows are not stored in their own order.
    pub entries: Option<Vec<u32>>,
}

/// One row as it is packed: new column, value, number in the row of the original.
type Row<V> = Vec<(u32, V, u32)>;

/// Lays the entries of a matrix out in slices.
///
/// Padding has value 0 and the column that its lane has just read, so that it reads nothing else of x; lanes without
/// any entry take the first column of the slice.
pub(super) fn pack<V: Scalar, S: Scalar, H: HostDevice>(
    a: &Csr<S, H>,
    slices: &Slices,
    numbering: Numbering,
) -> Packed<V> {
    let n_stored = slices.n_stored();
    let place_of = place_of_rows(slices, numbering);
    let is_sorted = numbering == Numbering::SortedColumns && place_of.is_some();
    let (mut values, mut columns) = (zeroed_vec::<V>(n_stored), zeroed_vec::<u32>(n_stored));
    let mut entries = if is_sorted { zeroed_vec::<u32>(n_stored) } else { Vec::new() };
    let places: Vec<_> = split(slices, &mut values)
        .into_iter()
        .zip(split(slices, &mut columns))
        .zip(if is_sorted {
            split(slices, &mut entries)
        } else {
            (0..slices.len()).map(|_| &mut [][..]).collect()
        })
        .enumerate()
        .collect();
    parallel::for_each_item_with(places, 1, Vec::new, |row, (slice, ((values, columns), entries))| {
        pack_slice(a, slices, slice, place_of.as_deref(), is_sorted, row, (values, columns, entries));
    });
    Packed { values, columns, entries: is_sorted.then_some(entries) }
}

/// The new number of each row, where vectors are renumbered.
fn place_of_rows(slices: &Slices, numbering: Numbering) -> Option<Vec<u32>> {
    let rows = slices.rows.as_ref().filter(|_| numbering != Numbering::Kept)?;
    let mut place_of = vec![0; rows.len()];
    rows.iter().enumerate().for_each(|(place, &row)| place_of[row as usize] = place as u32);
    Some(place_of)
}

/// The parts of an array that belong to each slice.
fn split<'a, E: Element>(slices: &Slices, array: &'a mut [E]) -> Vec<&'a mut [E]> {
    let mut rest = array;
    let mut parts = Vec::with_capacity(slices.len());
    for slice in 0..slices.len() {
        let (part, after) = rest.split_at_mut(slices.columns(slice).len() * slices.lanes);
        parts.push(part);
        rest = after;
    }
    parts
}

fn pack_slice<V: Scalar, S: Scalar, H: HostDevice>(
    a: &Csr<S, H>,
    slices: &Slices,
    slice: usize,
    place_of: Option<&[u32]>,
    is_sorted: bool,
    row: &mut Row<V>,
    (values, columns, entries): (&mut [V], &mut [u32], &mut [u32]),
) {
    let (lanes, lanes_of_row) = (slices.lanes, slices.lanes_of_row(slice));
    let width = slices.columns(slice).len();
    columns.fill(PADDING);
    entries.fill(PADDING);
    let places = slices.places(slice, a.n_rows());
    for place in places.clone() {
        read_row(a, slices.row(place), place_of, is_sorted, row);
        let first_lane = (place - places.start) * lanes_of_row;
        for (k, &(column, value, entry)) in row.iter().enumerate() {
            let at = k / lanes_of_row * lanes + stored_lane(first_lane + k % lanes_of_row, lanes);
            values[at] = value;
            columns[at] = column;
            if is_sorted {
                entries[at] = entry;
            }
        }
        // Lanes of a row that have none of its entries read what its last lane reads.
        if let Some(&(last, ..)) = row.last() {
            (first_lane + row.len().min(lanes_of_row)..first_lane + lanes_of_row).for_each(|lane| {
                columns[stored_lane(lane, lanes)] = last;
            });
        }
    }
    let any = columns.iter().copied().filter(|&column| column != PADDING).min().unwrap_or(0);
    for lane in 0..lanes {
        let mut last = any;
        for column in (0..width).map(|j| j * lanes + lane) {
            if columns[column] == PADDING {
                columns[column] = last;
            }
            last = columns[column];
        }
    }
}

fn read_row<V: Scalar, S: Scalar, H: HostDevice>(
    a: &Csr<S, H>,
    number: usize,
    place_of: Option<&[u32]>,
    is_sorted: bool,
    row: &mut Row<V>,
) {
    let new = |column: usize| place_of.map_or(column as u32, |place_of| place_of[column]);
    row.clear();
    row.extend(
        a.row(number)
            .zip(0..)
            .map(|((column, value), entry)| (new(column), V::from_f64(value.to_f64()), entry)),
    );
    if is_sorted {
        row.sort_unstable_by_key(|&(column, ..)| column);
    }
}

/// The rows of the original from packed entries: columns ascend, padding is left out.
///
/// `lengths` says how many entries a row has.
pub(super) fn unpack<V: Scalar>(
    packed: &Packed<V>,
    slices: &Slices,
    numbering: Numbering,
    lengths: &[u32],
) -> Vec<Vec<(u32, V)>> {
    let mut rows = vec![Vec::new(); lengths.len()];
    for slice in 0..slices.len() {
        let (lanes, lanes_of_row) = (slices.lanes, slices.lanes_of_row(slice));
        let first = slices.columns(slice).start;
        let places = slices.places(slice, lengths.len());
        for place in places.clone() {
            let row = slices.row(place);
            let first_lane = (place - places.start) * lanes_of_row;
            rows[row] = (0..lengths[row] as usize)
                .map(|k| {
                    let lane = stored_lane(first_lane + k % lanes_of_row, lanes);
                    let at = (first + k / lanes_of_row) * lanes + lane;
                    let column = packed.columns[at];
                    let is_renumbered = numbering != Numbering::Kept;
                    let column = if is_renumbered { slices.row(column as usize) as u32 } else { column };
                    (column, packed.values[at])
                })
                .collect();
            rows[row].sort_unstable_by_key(|&(column, _): &(u32, V)| column);
        }
    }
    rows
}

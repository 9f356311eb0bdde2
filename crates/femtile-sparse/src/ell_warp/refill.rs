//! New values on the same pattern, slice by slice, where the host has the layout.

use std::ops::Range;

use femtile_device::{Buffer, HostDevice, Scalar};

use super::slices::stored_lane;
use super::{EllWarp, Layout};
use crate::Csr;
use crate::rows::offset;

/// The source of new values: a matrix in rows, and the places of its rows in slices.
pub(super) struct Refill<'a, V: Scalar, D: HostDevice> {
    n_rows: usize,
    lanes: usize,
    starts: &'a [u32],
    shapes: Option<(&'a [u32], &'a [u32])>,
    rows: Option<&'a [u32]>,
    entries: Option<&'a [u32]>,
    csr: &'a Csr<V, D>,
}

impl<'a, V: Scalar, D: HostDevice> Refill<'a, V, D> {
    /// The plan, and the values that it is to change.
    pub fn new<T: Scalar>(a: &'a mut EllWarp<T, D, V>, csr: &'a Csr<V, D>) -> (Self, &'a mut [V]) {
        let Layout { starts, shapes, rows, .. } = &*a.layout;
        let refill = Self {
            n_rows: a.n_rows,
            lanes: a.config.lanes,
            starts: starts.as_slice(),
            shapes: shapes.as_ref().map(|(firsts, folds)| (firsts.as_slice(), folds.as_slice())),
            rows: rows.as_ref().map(Buffer::as_slice),
            entries: a.entries.as_deref().map(Buffer::as_slice),
            csr,
        };
        (refill, a.values.as_mut_slice())
    }

    /// Where each slice begins, in columns of slices.
    pub fn starts(&self) -> &'a [u32] {
        self.starts
    }

    /// Stored entries of some slices.
    pub fn stored(&self, slices: Range<usize>) -> Range<usize> {
        self.starts[slices.start] as usize * self.lanes..self.starts[slices.end] as usize * self.lanes
    }

    /// Overwrites the values of some slices, which are `values`; padding becomes 0.
    pub fn fill(&self, slices: Range<usize>, values: &mut [V]) {
        let first = self.stored(slices.clone()).start;
        for slice in slices {
            let stored = self.stored(slice..slice + 1);
            let of_slice = &mut values[stored.start - first..stored.end - first];
            of_slice.fill(V::ZERO);
            match self.entries {
                None => self.fill_in_order(slice, of_slice),
                Some(entries) => self.fill_by_entry(slice, of_slice, &entries[stored]),
            }
        }
    }

    /// The places of a slice, and the lanes of a row in it.
    fn places(&self, slice: usize) -> (Range<usize>, usize) {
        match self.shapes {
            Some((firsts, folds)) => (firsts[slice] as usize..firsts[slice + 1] as usize, 1 << folds[slice]),
            None => (slice * self.lanes..((slice + 1) * self.lanes).min(self.n_rows), 1),
        }
    }

    /// The values of the row at a place.
    fn row(&self, place: usize) -> &'a [V] {
        let row = self.rows.map_or(place, |rows| rows[place] as usize);
        let offsets = self.csr.offsets();
        &self.csr.values().as_slice()[offset(offsets, row)..offset(offsets, row + 1)]
    }

    /// Rows whose entries are stored in their own order; what a row has too much is left out.
    fn fill_in_order(&self, slice: usize, of_slice: &mut [V]) {
        let (places, lanes_of_row) = self.places(slice);
        for (i, place) in places.enumerate() {
            let columns = of_slice.chunks_exact_mut(self.lanes);
            for (column, entries) in columns.zip(self.row(place).chunks(lanes_of_row)) {
                for (lane, &value) in (i * lanes_of_row..).zip(entries) {
                    column[stored_lane(lane, self.lanes)] = value;
                }
            }
        }
    }

    /// Rows whose stored entries have the number of their entry; that of padding is past the end of any row.
    fn fill_by_entry(&self, slice: usize, of_slice: &mut [V], entries: &[u32]) {
        let (places, lanes_of_row) = self.places(slice);
        for (i, place) in places.enumerate() {
            let row = self.row(place);
            let lanes = i * lanes_of_row..(i + 1) * lanes_of_row;
            for at in (0..of_slice.len()).step_by(self.lanes) {
                for at in lanes.clone().map(|lane| at + stored_lane(lane, self.lanes)) {
                    of_slice[at] = row.get(entries[at] as usize).copied().unwrap_or(V::ZERO);
                }
            }
        }
    }
}

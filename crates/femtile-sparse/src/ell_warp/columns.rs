//! Columns as numbers or as distances.

use femtile_device::cpu::zeroed_vec;
use femtile_device::{Buffer, Device, HostDevice, parallel};
use femtile_linalg::LinalgError;

use super::slices::Slices;

/// The columns of all entries, in the order of the values.
#[derive(Debug)]
pub(crate) enum Columns<D: Device> {
    /// 32 bits each.
    Full(Buffer<u32, D>),
    /// Distances of 16 bits in each lane from entry to entry, the first from the base of the slice.
    Delta {
        /// A slice has one distance for each entry or, where some do not fit, two for the number itself, the
        /// lower half first.
        words: Buffer<u16, D>,
        /// Where each slice begins, in `lanes` words; the last number is the end.
        starts: Buffer<u32, D>,
        /// The smallest column of each slice.
        bases: Buffer<u32, D>,
    },
}

impl<D: Device> Columns<D> {
    /// Bytes of the columns and of what describes them.
    pub fn n_bytes(&self) -> usize {
        match self {
            Self::Full(columns) => 4 * columns.len(),
            Self::Delta { words, starts, bases } => 2 * words.len() + 4 * (starts.len() + bases.len()),
        }
    }

    pub fn copy_to<E: Device>(&self, device: &E) -> Result<Columns<E>, LinalgError> {
        Ok(match self {
            Self::Full(columns) => Columns::Full(Buffer::from_vec(device, columns.to_host()?)?),
            Self::Delta { words, starts, bases } => Columns::Delta {
                words: Buffer::from_vec(device, words.to_host()?)?,
                starts: Buffer::from_vec(device, starts.to_host()?)?,
                bases: Buffer::from_vec(device, bases.to_host()?)?,
            },
        })
    }

    /// Distances from numbers.
    pub fn compressed(device: &D, slices: &Slices, columns: &[u32]) -> Result<Self, LinalgError> {
        let lanes = slices.lanes;
        let of_slice = |slice: usize| {
            let range = slices.columns(slice);
            &columns[range.start * lanes..range.end * lanes]
        };
        let bases = parallel::map(slices.len(), 1, |s| of_slice(s).iter().copied().min().unwrap_or(0));
        let sizes = parallel::map(slices.len(), 1, |s| {
            let width = slices.columns(s).len() as u32;
            // A long row is begun in several places at once, where only numbers serve.
            let is_long = slices.longs.binary_search(&(s as u32)).is_ok();
            if !is_long && fits(of_slice(s), lanes, bases[s]) { width } else { width.saturating_mul(2) }
        });
        let mut starts = Vec::with_capacity(sizes.len() + 1);
        let mut end = 0u64;
        starts.push(0);
        for size in sizes {
            end += u64::from(size);
            starts.push(narrow_words(end)?);
        }
        let mut words = zeroed_vec::<u16>(end as usize * lanes);
        let mut rest = words.as_mut_slice();
        let mut places = Vec::with_capacity(slices.len());
        for s in 0..slices.len() {
            let (place, after) = rest.split_at_mut((starts[s + 1] - starts[s]) as usize * lanes);
            places.push((s, place));
            rest = after;
        }
        parallel::for_each_item(places, 1, |(s, words)| write_words(words, of_slice(s), lanes, bases[s]));
        Ok(Self::Delta {
            words: Buffer::from_vec(device, words)?,
            starts: Buffer::from_vec(device, starts)?,
            bases: Buffer::from_vec(device, bases)?,
        })
    }

    /// The numbers of all columns.
    pub fn to_numbers(&self, slices: &Slices) -> Result<Vec<u32>, LinalgError> {
        let (words, starts, bases) = match self {
            Self::Full(columns) => return Ok(columns.to_host()?),
            Self::Delta { words, starts, bases } => (words.to_host()?, starts.to_host()?, bases.to_host()?),
        };
        let lanes = slices.lanes;
        let mut columns = Vec::with_capacity(slices.n_stored());
        for s in 0..slices.len() {
            let width = slices.columns(s).len();
            let words = &words[starts[s] as usize * lanes..starts[s + 1] as usize * lanes];
            if words.len() == width * lanes {
                let mut last = vec![bases[s]; lanes];
                for word in words.chunks_exact(lanes) {
                    last.iter_mut().zip(word).for_each(|(last, &delta)| *last += u32::from(delta));
                    columns.extend_from_slice(&last);
                }
            } else {
                let pairs = words.as_chunks::<2>().0;
                columns.extend(pairs.iter().map(|&[low, high]| u32::from(low) | u32::from(high) << 16));
            }
        }
        Ok(columns)
    }
}

impl<D: HostDevice> Columns<D> {
    /// Returns whether the arrays are equal.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Full(columns), Self::Full(others)) => columns.as_slice() == others.as_slice(),
            (
                Self::Delta { words, starts, bases },
                Self::Delta { words: other_words, starts: other_starts, bases: other_bases },
            ) => {
                words.as_slice() == other_words.as_slice()
                    && starts.as_slice() == other_starts.as_slice()
                    && bases.as_slice() == other_bases.as_slice()
            }
            _ => false,
        }
    }
}

/// The number of columns of words of all slices, in 32 bits.
pub(super) fn narrow_words(n: u64) -> Result<u32, LinalgError> {
    // All bits stand for a slice whose columns cannot be counted.
    u32::try_from(n).ok().filter(|&n| n < u32::MAX).ok_or_else(|| LinalgError::Setting {
        field: "indices",
        message: "there are 2³² − 1 columns of distances or more: keep 32-bit columns".into(),
    })
}

/// The column before each entry of its lane, the base before the first.
fn before(columns: &[u32], lanes: usize, base: u32, i: usize) -> u32 {
    if i < lanes { base } else { columns[i - lanes] }
}

fn fits(columns: &[u32], lanes: usize, base: u32) -> bool {
    columns.iter().enumerate().all(|(i, &column)| {
        column.checked_sub(before(columns, lanes, base, i)).is_some_and(|delta| delta <= u32::from(u16::MAX))
    })
}

fn write_words(words: &mut [u16], columns: &[u32], lanes: usize, base: u32) {
    if words.len() == columns.len() {
        for (i, word) in words.iter_mut().enumerate() {
            *word = (columns[i] - before(columns, lanes, base, i)) as u16;
        }
    } else {
        for (pair, &column) in words.as_chunks_mut::<2>().0.iter_mut().zip(columns) {
            *pair = [column as u16, (column >> 16) as u16];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_whose_columns_cannot_be_counted_is_refused_alone_and_beside_others() {
        let all_bits = u64::from(2_u32.pow(31).saturating_mul(2));
        assert!(narrow_words(all_bits).is_err() && narrow_words(all_bits + 1).is_err());
        assert_eq!(narrow_words(all_bits - 1).unwrap(), u32::MAX - 1);
    }
}

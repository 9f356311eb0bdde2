//! Distribution of systems over the threads of a GPU in the hybrid algorithm; measured on an H200, see `bench/README.md`.

/// Shared memory that a block may have on every GPU from compute capability 8.0 on, less what is taken statically.
const SHARED_BYTES: usize = 96 << 10;
/// The same on GPUs with more.
const LARGE_SHARED_BYTES: usize = 224 << 10;

/// Most static shared memory that a block takes to exchange the ends of chunks.
const EXCHANGE_BYTES: usize = 30 << 10;

/// The distribution of systems over the threads of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Rows that a thread eliminates.
    pub rows: usize,
    /// Threads that share a system.
    pub chunks: usize,
    /// Systems of a block.
    pub systems: usize,
    /// Rows of each chunk that are copied ahead, where there is a queue.
    pub depth: usize,
    /// Blocks that a multiprocessor is to hold at least.
    pub blocks: usize,
}

impl Shape {
    /// Threads of a block.
    pub fn threads(&self) -> usize {
        self.chunks * self.systems
    }

    /// The same for rings, which take more registers a thread.
    fn for_rings(self) -> Self {
        let systems = if self.threads() > 256 { self.systems / 2 } else { self.systems };
        Self { systems, blocks: 1, ..self }
    }

    /// Returns the same with a queue for `arrays` arrays that leaves memory for the exchange within a block.
    pub fn within(self, shared_bytes: usize, bytes: usize, arrays: usize) -> Self {
        let workspace = shared_bytes.saturating_sub(EXCHANGE_BYTES);
        // One array leaves room for a longer queue, and is copied the faster for it.
        let wanted = if arrays == 1 { self.rows.min(16) } else { self.depth };
        let depth = wanted.min(workspace / (arrays * self.threads() * bytes)).max(1);
        Self { depth, ..self }
    }
}

/// Shape for contiguous lines of `length` rows of numbers of `bytes` bytes; none where they are too long.
///
/// Chunks have up to `usual` rows where a warp takes systems, which it does up to 1,024 rows; longer systems are spread
/// over the warps of a block.
pub(super) fn of_rows(length: usize, bytes: usize, usual: usize) -> Option<Shape> {
    let (width, most) = (16 / bytes, 32);
    let chunks = [2, 4, 8, 16, 32].into_iter().find(|chunks| length.div_ceil(*chunks) <= usual);
    let mut chunks = chunks.unwrap_or_else(|| length.div_ceil(most).next_power_of_two().max(32));
    let rows = |chunks: usize| length.div_ceil(chunks).next_multiple_of(width);
    // An odd number of packs a chunk needs no gaps in shared memory.
    if chunks < 32
        && (rows(chunks) / width).is_multiple_of(2)
        && !(rows(2 * chunks) / width).is_multiple_of(2)
    {
        chunks *= 2;
    }
    let shape = Shape { rows: rows(chunks), chunks, systems: (32 / chunks).max(1), depth: 0, blocks: 1 };
    (chunks <= 512 && shared_bytes_of_rows(&shape, bytes, 4) <= LARGE_SHARED_BYTES).then_some(shape)
}

/// Rows of a chunk of contiguous lines, where they do well.
///
/// Long chunks take less arithmetic. Lines that do not come in packs of 16 bytes take more instructions to copy, and
/// with a rule there is little to copy at all: then more threads count for more.
pub(super) fn usual_rows(bytes: usize, in_packs: bool, has_rule: bool) -> usize {
    match (bytes, in_packs, has_rule) {
        (4, true, false) => 32,
        (8, _, true) => 8,
        _ => 16,
    }
}

/// Returns the bytes of shared memory of a block for contiguous lines, with `arrays` arrays in it.
pub(super) fn shared_bytes_of_rows(shape: &Shape, bytes: usize, arrays: usize) -> usize {
    let packs = shape.rows * bytes / 16;
    arrays * shape.threads() * (packs | 1) * 16
}

/// Shape for lines of any other stride; none where they are too long for the registers of a multiprocessor.
pub(super) fn of_columns(length: usize, bytes: usize, is_ring: bool) -> Option<Shape> {
    let (chunks, systems, depth, blocks) = match (bytes, length) {
        (8, ..=64) => (8, 16, 8, 3),
        (8, ..=128) => (16, 16, 6, 3),
        (8, ..=256) => (16, 16, 8, 2),
        (8, ..=512) => (32, 8, 12, 2),
        (8, ..=1024) => (64, 8, 8, 1),
        (4, ..=64) => (8, 32, 8, 2),
        (4, ..=128) => (8, 32, 8, 3),
        (4, ..=192) => (8, 32, 12, 2),
        (4, ..=256) => (16, 32, 16, 1),
        (4, ..=512) => (16, 32, 12, 1),
        (4, ..=1024) => (32, 16, 8, 1),
        (4, ..=2048) => (64, 8, 8, 1),
        _ => return None,
    };
    let rows = length.div_ceil(chunks).max(1);
    let shape = Shape { rows, chunks, systems, depth: depth.min(rows), blocks };
    Some(if is_ring { shape.for_rings() } else { shape })
}

/// Returns the bytes of shared memory of a block for lines of any stride, with `arrays` arrays in its queue.
pub(super) fn shared_bytes_of_columns(shape: &Shape, bytes: usize, arrays: usize) -> usize {
    arrays * shape.threads() * shape.depth * bytes
}

/// Returns whether every GPU from compute capability 8.0 on has that much shared memory for a block.
pub(super) fn fits_everywhere(bytes: usize) -> bool {
    bytes <= SHARED_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_up_to_its_limit_has_threads_in_whole_warps_that_take_all_rows() {
        for bytes in [4, 8] {
            for length in 1..=6000 {
                for usual in [8, 16, 32] {
                    let Some(shape) = of_rows(length, bytes, usual) else {
                        panic!("{length} rows of {bytes} bytes");
                    };
                    assert!(shape.rows * shape.chunks >= length && shape.rows <= 32, "{length}: {shape:?}");
                    assert!(shape.threads().is_multiple_of(32) && shape.chunks.is_power_of_two());
                    assert_eq!(shape.rows * bytes % 16, 0);
                }
            }
            for (length, is_ring) in (1..=1024).flat_map(|length| [(length, false), (length, true)]) {
                let shape = of_columns(length, bytes, is_ring).unwrap();
                assert!(shape.rows * shape.chunks >= length && shape.rows <= 32, "{length}: {shape:?}");
                assert!(
                    shape.threads().is_multiple_of(32) && (shape.systems * bytes).is_multiple_of(16),
                    "{length}: {shape:?}"
                );
                assert!(shared_bytes_of_columns(&shape, bytes, 4) <= LARGE_SHARED_BYTES - (30 << 10));
            }
            assert!(of_rows(1 << 20, bytes, 32).is_none() && of_columns(2049, bytes, false).is_none());
        }
    }
}

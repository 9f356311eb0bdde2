//! Identity of meshes, assemblies and problems with equal sizes.
//!
//! `Assembly` identifies its systems by a number and its mesh by hashes, so systems of another assembly and changed
//! meshes are refused.

use std::sync::atomic::{AtomicU64, Ordering};

use femtile_mesh::Mesh;

use crate::FemError;

/// Returns a number unique in the process; never 0.
pub(super) fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Words sampled from each array of a mesh that has the same address as before.
const SAMPLES: usize = 256;

/// The sizes of a mesh, hashes of its cells and points, and their addresses.
#[derive(Debug, Clone)]
pub struct MeshIdentity {
    counts: [usize; 2],
    of_all: u64,
    of_samples: u64,
    addresses: [usize; 2],
}

impl MeshIdentity {
    /// Records the identity of a mesh.
    ///
    /// # Cost
    /// Reads cells and points once.
    pub fn of(mesh: &Mesh) -> Self {
        Self {
            counts: [mesh.n_nodes(), mesh.n_cells()],
            of_all: words(mesh).into_iter().fold(0, hash),
            of_samples: of_samples(mesh),
            addresses: words(mesh).map(|words| words.as_ptr().addr()),
        }
    }

    /// Checks that a mesh is the recorded one.
    ///
    /// # Cost
    /// Independent of the size of the mesh if its arrays have the same addresses; else reads cells and points once.
    /// # Errors
    /// [`FemError::OtherMesh`] with the sizes, [`FemError::ChangedMesh`] if they are equal.
    pub fn check(&mut self, mesh: &Mesh) -> Result<(), FemError> {
        let found = [mesh.n_nodes(), mesh.n_cells()];
        if found != self.counts {
            return Err(FemError::OtherMesh { expected: self.counts, found });
        }
        let addresses = words(mesh).map(|words| words.as_ptr().addr());
        let has_moved = addresses != self.addresses;
        if of_samples(mesh) != self.of_samples || has_moved && Self::of(mesh).of_all != self.of_all {
            return Err(FemError::ChangedMesh);
        }
        self.addresses = addresses;
        Ok(())
    }
}

/// Returns cells and points of a mesh as words.
fn words(mesh: &Mesh) -> [&[u32]; 2] {
    [&mesh.cells, bytemuck::cast_slice(mesh.points.as_flattened())]
}

/// Returns a hash of words evenly spread over cells and points.
fn of_samples(mesh: &Mesh) -> u64 {
    words(mesh).into_iter().fold(0, |seed, words| {
        let n = words.len().min(SAMPLES);
        let samples: Vec<u32> = (0..n).map(|i| words[i * words.len() / n]).collect();
        hash(seed, &samples)
    })
}

/// Continues a hash, in independent lanes so that a processor overlaps several multiplications.
fn hash(seed: u64, words: &[u32]) -> u64 {
    const LANES: usize = 8;
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u32| (hash ^ u64::from(word)).wrapping_mul(FACTOR).rotate_left(29);
    let mut lanes = [seed; LANES];
    let (whole, rest) = words.as_chunks::<LANES>();
    for words in whole {
        lanes.iter_mut().zip(words).for_each(|(lane, &word)| *lane = mix(*lane, word));
    }
    let folded = lanes
        .into_iter()
        .fold(words.len() as u64, |hash, lane| mix(mix(hash, lane as u32), (lane >> 32) as u32));
    rest.iter().fold(folded, |hash, &word| mix(hash, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_every_word_and_its_place() {
        let words: Vec<u32> = (0..21).collect();
        for i in 0..words.len() {
            for other in [words[i] ^ 1, words[i] ^ 1 << 31, words[(i + 1) % 21]] {
                let mut changed = words.clone();
                changed[i] = other;
                assert_ne!(hash(7, &changed), hash(7, &words), "word {i} becomes {other}");
            }
        }
        assert_ne!(hash(7, &words[..20]), hash(7, &words));
    }
}

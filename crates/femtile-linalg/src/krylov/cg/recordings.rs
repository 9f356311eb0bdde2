use femtile_device::Device;

use super::plan::Block;

/// Recordings that are kept at most.
const MOST: usize = 16;

/// The recordings of blocks, the one used last at the end.
pub(super) struct Recordings<D: Device>(Vec<(Block, D::Recording)>);

impl<D: Device> Default for Recordings<D> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<D: Device> Recordings<D> {
    /// Takes the recording of a block, to be given back by [`Recordings::keep`]; an empty one if there is none.
    pub fn take(&mut self, block: Block) -> D::Recording {
        let place = self.0.iter().position(|(of, _)| *of == block);
        place.map_or_else(D::Recording::default, |place| self.0.remove(place).1)
    }

    /// Keeps the recording of a block, in place of the one that has not been used for the longest time.
    pub fn keep(&mut self, block: Block, recording: D::Recording) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push((block, recording));
    }
}

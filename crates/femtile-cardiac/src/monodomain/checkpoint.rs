//! The state of a run as bytes, from which it continues bit for bit.

use std::io::{Read, Write};

use femtile::time::implicit::{CheckpointError, read_sealed, write_sealed};

/// The state of a run on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Identifies the problem: a hash of the mesh, the case and the version.
    pub fingerprint: [u8; 32],
    /// Steps, iterations of linear solvers and of Newton's method, and rejected steps so far.
    pub counts: [u64; 4],
    /// Time reached.
    pub time: f64,
    /// Length of the next step.
    pub length: f64,
    /// Potential, arrays of activation, states of each tissue and of the scheme.
    pub arrays: Vec<Vec<f64>>,
}

const MAGIC: &[u8; 8] = b"FEMTILEH";
const VERSION: u32 = 2;
/// More arrays than any state has.
const MOST_ARRAYS: u64 = 1 << 16;

impl Checkpoint {
    /// Returns the state without its arrays.
    pub fn without_arrays(&self) -> Self {
        let Self { fingerprint, counts, time, length, .. } = *self;
        Self { fingerprint, counts, time, length, arrays: Vec::new() }
    }

    /// Writes the checkpoint, little-endian, with its checksum at the end.
    ///
    /// # Errors
    /// [`CheckpointError::Io`].
    pub fn write(&self, to: &mut impl Write) -> Result<(), CheckpointError> {
        write_sealed(to, |to| self.write_content(to))
    }

    fn write_content(&self, to: &mut dyn Write) -> Result<(), CheckpointError> {
        to.write_all(MAGIC)?;
        to.write_all(&VERSION.to_le_bytes())?;
        to.write_all(&self.fingerprint)?;
        for word in self.counts.into_iter().chain([self.time.to_bits(), self.length.to_bits()]) {
            to.write_all(&word.to_le_bytes())?;
        }
        to.write_all(&(self.arrays.len() as u64).to_le_bytes())?;
        for array in &self.arrays {
            to.write_all(&(array.len() as u64).to_le_bytes())?;
            let bytes: Vec<u8> = array.iter().flat_map(|value| value.to_le_bytes()).collect();
            to.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Reads a checkpoint; memory grows with the bytes read.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn read(from: &mut impl Read) -> Result<Self, CheckpointError> {
        read_sealed(from, Self::read_content)
    }

    fn read_content(from: &mut dyn Read) -> Result<Self, CheckpointError> {
        let mut magic = [0; 8];
        from.read_exact(&mut magic).map_err(|_| CheckpointError::Format("it is too short"))?;
        if &magic != MAGIC {
            return Err(CheckpointError::Format("it begins with other bytes"));
        }
        let mut version = [0; 4];
        from.read_exact(&mut version)?;
        if u32::from_le_bytes(version) != VERSION {
            return Err(CheckpointError::Format("it has another version"));
        }
        let mut fingerprint = [0; 32];
        from.read_exact(&mut fingerprint)?;
        let counts = [word(from)?, word(from)?, word(from)?, word(from)?];
        let [time, length, n_arrays] = [word(from)?, word(from)?, word(from)?];
        if n_arrays > MOST_ARRAYS {
            return Err(CheckpointError::Format("it has too many arrays"));
        }
        let arrays = (0..n_arrays).map(|_| array(from)).collect::<Result<_, _>>()?;
        let [time, length] = [time, length].map(f64::from_bits);
        Ok(Self { fingerprint, counts, time, length, arrays })
    }
}

fn word(from: &mut dyn Read) -> Result<u64, CheckpointError> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).map_err(|_| CheckpointError::Format("it ends too early"))?;
    Ok(u64::from_le_bytes(bytes))
}

fn array(from: &mut dyn Read) -> Result<Vec<f64>, CheckpointError> {
    let n_bytes = word(from)?.saturating_mul(8);
    let mut bytes = Vec::new();
    if from.take(n_bytes).read_to_end(&mut bytes)? as u64 != n_bytes {
        return Err(CheckpointError::Format("it ends too early"));
    }
    Ok(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_read_back_and_a_cut_or_changed_one_is_refused() {
        let state = Checkpoint {
            fingerprint: [7; 32],
            counts: [11, 13, 0, 2],
            time: 0.3,
            length: f64::NAN,
            arrays: vec![vec![1.0, f64::NAN, -0.0], Vec::new(), vec![2.5]],
        };
        let mut bytes = Vec::new();
        state.write(&mut bytes).unwrap();
        let found = Checkpoint::read(&mut bytes.as_slice()).unwrap();
        let mut again = Vec::new();
        found.write(&mut again).unwrap();
        assert_eq!(bytes, again);
        for end in 0..bytes.len() {
            assert!(Checkpoint::read(&mut &bytes[..end]).is_err(), "{end} of {} bytes", bytes.len());
        }
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Checkpoint::read(&mut bytes.as_slice()).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

//! The state of a run as bytes, from which it continues bit for bit.

use std::io::{Read, Write};

use super::{read_sealed, write_sealed};

/// The state of an integrator on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Identifies the problem: a hash of the mesh, the case and the version.
    pub fingerprint: [u8; 32],
    /// Steps done.
    pub step: u64,
    /// Steps rejected.
    pub rejected: u64,
    /// Number of kinks and jumps so far.
    pub restarts: u64,
    /// Iterations of linear solvers so far.
    pub iterations: u64,
    /// The length of the next step.
    pub length: f64,
    /// The error of the last accepted step, as a share of the tolerance.
    pub last_error: f64,
    /// The largest norm of u so far.
    pub largest_norm: f64,
    /// Data learned by the system: see [`super::SemiDiscrete::memory`].
    pub memory: Vec<f64>,
    /// The last values with their times, the newest first.
    pub history: Vec<(f64, Vec<f64>)>,
}

/// A checkpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The bytes are not a checkpoint, or one of another version.
    #[error("it is no checkpoint of this version of femtile: {0}")]
    Format(&'static str),
    /// The bytes are not those that were written.
    #[error(
        "its checksum is not that of its content, it was damaged: remove it, and run the case without `restart`"
    )]
    Damaged,
    /// The checkpoint belongs to another problem.
    #[error("it belongs to {0}; remove it, or take the case that it was made with")]
    Other(&'static str),
}

const MAGIC: &[u8; 8] = b"FEMTILEC";
const VERSION: u32 = 3;

impl Checkpoint {
    /// Returns the state with the times of its history and without the values.
    pub fn without_values(&self) -> Self {
        let Self {
            fingerprint, step, rejected, restarts, iterations, length, last_error, largest_norm, ..
        } = *self;
        let history = self.history.iter().map(|(time, _)| (*time, Vec::new())).collect();
        let memory = self.memory.clone();
        Self {
            fingerprint,
            step,
            rejected,
            restarts,
            iterations,
            length,
            last_error,
            largest_norm,
            memory,
            history,
        }
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
        for count in [self.step, self.rejected, self.restarts, self.iterations] {
            to.write_all(&count.to_le_bytes())?;
        }
        for number in [self.length, self.last_error, self.largest_norm] {
            to.write_all(&number.to_le_bytes())?;
        }
        to.write_all(&(self.memory.len() as u64).to_le_bytes())?;
        for number in &self.memory {
            to.write_all(&number.to_le_bytes())?;
        }
        let n = self.history.first().map_or(0, |(_, values)| values.len());
        to.write_all(&(self.history.len() as u64).to_le_bytes())?;
        to.write_all(&(n as u64).to_le_bytes())?;
        for (time, values) in &self.history {
            to.write_all(&time.to_le_bytes())?;
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
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
        if u32::from_le_bytes(array(from)?) != VERSION {
            return Err(CheckpointError::Format("it has another version"));
        }
        let fingerprint = array(from)?;
        let [step, rejected, restarts, iterations] = [count(from)?, count(from)?, count(from)?, count(from)?];
        let [length, last_error, largest_norm] = [number(from)?, number(from)?, number(from)?];
        let n_memory = count(from)?;
        let memory = (0..n_memory).map(|_| number(from)).collect::<Result<_, _>>()?;
        let depth = count(from)?;
        let n_bytes = count(from)?.saturating_mul(8);
        if !(1..=super::history::DEPTH as u64).contains(&depth) {
            return Err(CheckpointError::Format("its history is empty or too long"));
        }
        let one = |_| {
            let time = number(from)?;
            let mut bytes = Vec::new();
            if from.take(n_bytes).read_to_end(&mut bytes)? as u64 != n_bytes {
                return Err(CheckpointError::Format("it ends too early"));
            }
            let values = bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
            Ok((time, values.collect()))
        };
        let history = (0..depth).map(one).collect::<Result<_, CheckpointError>>()?;
        Ok(Self {
            fingerprint,
            step,
            rejected,
            restarts,
            iterations,
            length,
            last_error,
            largest_norm,
            memory,
            history,
        })
    }
}

fn array<const N: usize>(from: &mut dyn Read) -> Result<[u8; N], CheckpointError> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn count(from: &mut dyn Read) -> Result<u64, CheckpointError> {
    Ok(u64::from_le_bytes(array(from)?))
}

fn number(from: &mut dyn Read) -> Result<f64, CheckpointError> {
    Ok(f64::from_le_bytes(array(from)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_with_a_flipped_bit_is_refused() {
        let state = Checkpoint {
            fingerprint: [7; 32],
            step: 3,
            rejected: 1,
            restarts: 0,
            iterations: 40,
            length: 0.25,
            last_error: 0.5,
            largest_norm: 2.0,
            memory: vec![1.0],
            history: vec![(0.75, vec![1.0, 2.0]), (0.5, vec![0.5, 3.0])],
        };
        let mut bytes = Vec::new();
        state.write(&mut bytes).unwrap();
        assert_eq!(Checkpoint::read(&mut bytes.as_slice()).unwrap(), state);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Checkpoint::read(&mut bytes.as_slice()).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

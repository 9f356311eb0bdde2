//! Messages with arrays: a length, then the values.

use std::collections::BTreeMap;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use femtile_comm::{Comm, Incoming, Outgoing};
use femtile_linalg::LinalgError;
use femtile_mesh::Field;

/// The most bytes of a message.
const MOST_BYTES: usize = 1 << 30;

/// The error about a message with unexpected content.
pub(super) fn truncated(rank: usize) -> LinalgError {
    LinalgError::Rank { rank, message: "sent a part of a mesh that is not whole".into() }
}

/// Sends to one rank.
#[derive(Clone, Copy)]
pub(super) struct To<'a> {
    pub comm: &'a Comm,
    pub rank: usize,
}

impl To<'_> {
    /// Sends an array.
    pub fn array<T: Pod>(&self, values: &[T]) -> Result<(), LinalgError> {
        self.bytes(cast_slice(&[values.len() as u64]))?;
        cast_slice(values).chunks(MOST_BYTES).try_for_each(|bytes| self.bytes(bytes))
    }

    /// Sends strings.
    pub fn texts<'t>(&self, texts: impl Iterator<Item = &'t String> + Clone) -> Result<(), LinalgError> {
        let lengths: Vec<u64> = texts.clone().map(|text| text.len() as u64).collect();
        self.array(&lengths)?;
        self.array(texts.map(String::as_str).collect::<String>().as_bytes())
    }

    /// Sends fields with their names.
    pub fn fields(&self, fields: &BTreeMap<String, Field>) -> Result<(), LinalgError> {
        self.texts(fields.keys())?;
        for field in fields.values() {
            self.array(&[field.n_components as u64])?;
            self.array(&field.values)?;
        }
        Ok(())
    }

    fn bytes(&self, bytes: &[u8]) -> Result<(), LinalgError> {
        self.comm.exchange(&[Outgoing { to: self.rank, bytes }], &mut [], &mut || ())
    }
}

/// Receives from one rank; each method is the counterpart of the one of [`To`] with the same name.
#[derive(Clone, Copy)]
pub(super) struct From<'a> {
    pub comm: &'a Comm,
    pub rank: usize,
}

impl From<'_> {
    /// Receives an array.
    pub fn array<T: Pod>(&self) -> Result<Vec<T>, LinalgError> {
        let mut n = [0_u64];
        self.bytes(cast_slice_mut(&mut n))?;
        let mut values = vec![T::zeroed(); n[0] as usize];
        cast_slice_mut(&mut values).chunks_mut(MOST_BYTES).try_for_each(|bytes| self.bytes(bytes))?;
        Ok(values)
    }

    /// Receives strings.
    pub fn texts(&self) -> Result<Vec<String>, LinalgError> {
        let lengths: Vec<u64> = self.array()?;
        let bytes: Vec<u8> = self.array()?;
        let mut begin = 0;
        let text = |length: &u64| {
            let text = bytes.get(begin..begin + *length as usize);
            begin += *length as usize;
            text.map(|text| String::from_utf8_lossy(text).into_owned()).ok_or_else(|| truncated(self.rank))
        };
        lengths.iter().map(text).collect()
    }

    /// Receives fields with their names.
    pub fn fields(&self) -> Result<BTreeMap<String, Field>, LinalgError> {
        let field = |name| {
            let [n_components]: [u64; 1] = self.array()?.try_into().map_err(|_| truncated(self.rank))?;
            Ok((name, Field { n_components: n_components as usize, values: self.array()? }))
        };
        self.texts()?.into_iter().map(field).collect()
    }

    fn bytes(&self, bytes: &mut [u8]) -> Result<(), LinalgError> {
        self.comm.exchange(&[], &mut [Incoming { from: self.rank, bytes }], &mut || ())
    }
}

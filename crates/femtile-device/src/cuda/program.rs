//! Sources of kernels and their specialisation.
//!
//! A `Program` is a `.cu` file. A `Specialisation` adds macros (`FEMTILE_…`) and generated headers, such as hooks
//! and formulas of a case. Each is compiled once to a CUBIN, which `cache` keeps on disk under a hash of all its
//! inputs.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::Element;

/// A header that kernels include by name.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// The name in `#include "…"`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The header that every kernel may include: types, packs of 16 bytes, reductions of warps and blocks.
pub const FEMTILE_HEADER: Header = Header { name: "femtile.cuh", text: include_str!("headers/femtile.cuh") };

/// Products of small f64 matrices by a warp, on tensor cores if there are any.
pub const MMA_HEADER: Header = Header { name: "mma.cuh", text: include_str!("headers/mma.cuh") };

/// Tiles in shared memory without bank conflicts.
pub const TILE_HEADER: Header = Header { name: "tile.cuh", text: include_str!("headers/tile.cuh") };

/// Asynchronous copies to shared memory.
pub const COPY_HEADER: Header = Header { name: "copy.cuh", text: include_str!("headers/copy.cuh") };

/// Loads of data that is read once, bypassing the first-level cache.
pub const STREAM_HEADER: Header = Header { name: "stream.cuh", text: include_str!("headers/stream.cuh") };

/// Lines of values at a fixed stride.
pub const STRIDED_HEADER: Header = Header { name: "strided.cuh", text: include_str!("headers/strided.cuh") };

/// Rows processed by `FEMTILE_LANES` neighbouring lanes of a warp together.
pub const LANES_HEADER: Header = Header { name: "lanes.cuh", text: include_str!("headers/lanes.cuh") };

/// Tables of keys in shared memory; needs [`LANES_HEADER`].
pub const TABLE_HEADER: Header = Header { name: "table.cuh", text: include_str!("headers/table.cuh") };

/// Reciprocals to about one unit in the last place, without the branches of a full division.
pub const RECIPROCAL_HEADER: Header =
    Header { name: "reciprocal.cuh", text: include_str!("headers/reciprocal.cuh") };

/// A `.cu` file: `extern "C"` kernels, specialised by macros alone.
///
/// The same text is compiled by NVRTC and by the C++ compiler of the host, for the emulator.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name, as errors and the cache show it.
    pub name: &'static str,
    /// Its text.
    pub source: &'static str,
    /// Headers besides [`FEMTILE_HEADER`].
    pub headers: &'static [Header],
}

impl Program {
    /// The program for numbers of type `T`, which its text calls `T` as well.
    pub fn of<T: Element>(&'static self) -> Specialisation {
        Specialisation {
            program: self,
            defines: vec![("FEMTILE_T", T::C_NAME.into())],
            generated: Vec::new(),
        }
    }
}

/// A program with everything that makes it one binary: macros and generated headers.
#[derive(Debug, Clone)]
pub struct Specialisation {
    program: &'static Program,
    defines: Vec<(&'static str, String)>,
    generated: Vec<Generated>,
}

/// A header whose text is made at run time.
#[derive(Debug, Clone)]
struct Generated {
    name: &'static str,
    text: String,
    /// Half of the SHA-256 of the text: texts may be long, and every launch asks for the key.
    sum: u128,
}

impl Specialisation {
    /// A program with these macros, that of its numbers among them.
    pub(super) fn with_defines(program: &'static Program, defines: Vec<(&'static str, String)>) -> Self {
        Self { program, defines, generated: Vec::new() }
    }

    /// Defines a macro, in capitals so that it conflicts with no name of the compiler's own headers.
    #[must_use]
    pub fn define(mut self, name: &'static str, value: impl ToString) -> Self {
        self.defines.push((name, value.to_string()));
        self
    }

    /// Adds a header whose text is made at run time; the program includes it by name.
    #[must_use]
    pub fn header(mut self, name: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        let digest = Sha256::digest(&text);
        let sum = digest.iter().take(16).fold(0, |sum, &byte| sum << 8 | u128::from(byte));
        self.generated.push(Generated { name, text, sum });
        self
    }

    /// The `.cu` file.
    pub fn program(&self) -> &'static Program {
        self.program
    }

    /// Macros as (name, value).
    pub fn defines(&self) -> &[(&'static str, String)] {
        &self.defines
    }

    /// All headers as (name, text).
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let written = std::iter::once(&FEMTILE_HEADER).chain(self.program.headers);
        let generated = self.generated.iter().map(|header| (header.name, header.text.as_str()));
        written.map(|header| (header.name, header.text)).chain(generated)
    }

    /// Returns a key that identifies the specialisation among those of all programs.
    pub fn key(&self) -> String {
        let mut key = self.to_string();
        for Generated { name, sum, .. } in &self.generated {
            let _ = write!(key, " {name}:{sum:x}");
        }
        key
    }
}

impl std::fmt::Display for Specialisation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.program.name)?;
        for (name, value) in &self.defines {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

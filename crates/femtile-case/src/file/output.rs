//! The files of a solution and their formats.

use femtile_mesh::io::vtu::Compression;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a solution on a mesh that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum VtuOutput {
    /// All cells, or nothing.
    Whole(bool),
    /// A part of the mesh, or parts.
    Part(VtuPart),
}

/// Other cells than all, or more files than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VtuPart {
    /// The facets of cells on the boundary, with the points that they use.
    Surface,
    /// The cells of each rank in a file of their own, and a file that names these.
    Pieces,
}

impl VtuOutput {
    /// Returns whether a file is written.
    pub fn is_written(self) -> bool {
        self != Self::Whole(false)
    }

    /// Returns whether the file has the boundary alone.
    pub fn is_surface(self) -> bool {
        self == Self::Part(VtuPart::Surface)
    }

    /// Returns whether ranks write files of their own.
    pub fn has_pieces(self) -> bool {
        self == Self::Part(VtuPart::Pieces)
    }
}

/// Compression of the files of a solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CompressOutput {
    /// With zlib, or not.
    Default(bool),
    /// With a method.
    Method(CompressionName),
}

/// A method of compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CompressionName {
    /// zlib at its fastest level.
    Zlib,
    /// LZ4: about twice the size of zlib in less than half of the processor time.
    Lz4,
}

impl From<CompressOutput> for Compression {
    fn from(output: CompressOutput) -> Self {
        match output {
            CompressOutput::Default(false) => Self::None,
            CompressOutput::Default(true) | CompressOutput::Method(CompressionName::Zlib) => Self::Zlib,
            CompressOutput::Method(CompressionName::Lz4) => Self::Lz4,
        }
    }
}

/// The picture of a solution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PictureOutput {
    /// Of the field of the equation, or no picture.
    Default(bool),
    /// Of a field by its name: `u`, one of its components such as `u[1]`, a field of `fields` or of the mesh; of vectors
    /// without a number the length.
    Field(String),
}

impl PictureOutput {
    /// Returns whether a picture is drawn.
    pub fn is_drawn(&self) -> bool {
        *self != Self::Default(false)
    }

    /// Returns the name of the field, where the case has one.
    pub(crate) fn field(&self) -> Option<&str> {
        match self {
            Self::Default(_) => None,
            Self::Field(name) => Some(name),
        }
    }
}

//! Options of VTU files.

/// Compression of arrays, in blocks of 32 KiB by all threads.
///
/// All compressed arrays are held in memory before the first is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Values as they are.
    #[default]
    None,
    /// zlib at its fastest level.
    Zlib,
    /// LZ4: about twice the size of zlib in less than half of the processor time.
    Lz4,
}

impl Compression {
    /// Returns VTK's name of the compressor.
    pub(super) fn compressor(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Zlib => Some("vtkZLibDataCompressor"),
            Self::Lz4 => Some("vtkLZ4DataCompressor"),
        }
    }

    /// Returns the compression of this name of VTK.
    pub(super) fn of_compressor(name: &str) -> Option<Self> {
        [Self::Zlib, Self::Lz4].into_iter().find(|compression| compression.compressor() == Some(name))
    }
}

/// Options of a VTU file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Compression of all arrays.
    pub compression: Compression,
    /// Write tagged facets as cells too, after the cells of the mesh.
    pub facets: bool,
    /// Write the facets of cells on the boundary instead of the cells, with the points that they use, and the values of
    /// these points and of the cells to which the facets belong.
    pub surface: bool,
    /// Return the sum of the file, taken while it is written.
    pub sum: bool,
}

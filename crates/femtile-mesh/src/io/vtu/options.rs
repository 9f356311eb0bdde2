//! Options of VTU files.

use crate::partition::Partition;

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

/// The cells that a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent<'a> {
    /// All of them.
    #[default]
    Whole,
    /// The boundary facets instead of the cells, with the points that they use, and the values of these
    /// points and of the cells to which the facets belong.
    Surface,
    /// The cells of some ranks, one file per rank, and a `.pvtu` that names the files of all ranks.
    Pieces(Pieces<'a>),
    /// All of them, as the file of a rank if each has cells of its own.
    Piece(Piece),
}

/// The file of one rank, named as in [`Pieces`]; the first rank also writes the `.pvtu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The rank.
    pub rank: usize,
    /// Number of ranks, all of which have cells.
    pub n_ranks: usize,
}

/// The pieces of a mesh that are written as files of their own, each with the points that its cells use.
///
/// The files stand beside the `.pvtu`, with a number behind its name: `solution_0003.vtu`. Ranks without cells have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces<'a> {
    /// The cells of each rank.
    pub partition: &'a Partition,
    /// The only rank that is written here, if other processes write theirs. The first rank also writes the
    /// `.pvtu`.
    pub only: Option<usize>,
}

impl Pieces<'_> {
    /// Returns the name of the file of a rank beside a `.pvtu` of this name.
    pub fn name(pvtu: &str, rank: usize) -> String {
        format!("{}_{rank:04}.vtu", pvtu.strip_suffix(".pvtu").unwrap_or(pvtu))
    }

    /// Returns the ranks with cells.
    pub fn ranks(&self) -> Vec<usize> {
        let mut has_cells = vec![false; self.partition.n_ranks()];
        self.partition.ranks().iter().for_each(|&rank| has_cells[rank as usize] = true);
        has_cells.iter().enumerate().filter_map(|(rank, has_cells)| has_cells.then_some(rank)).collect()
    }

    /// Returns the cells of each rank that is written here.
    pub(super) fn cells(&self) -> Vec<Vec<u32>> {
        let mut cells = vec![Vec::new(); self.partition.n_ranks()];
        for (&rank, cell) in self.partition.ranks().iter().zip(0..) {
            if self.only.is_none_or(|only| only == rank as usize) {
                cells[rank as usize].push(cell);
            }
        }
        cells
    }
}

/// Options of a VTU file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions<'a> {
    /// Compression of all arrays.
    pub compression: Compression,
    /// Write tagged facets as cells too, after the cells of a whole mesh.
    pub facets: bool,
    /// The cells that are written.
    pub extent: Extent<'a>,
    /// Return the sum of the file, taken while it is written; that of the `.pvtu` if there are pieces.
    pub sum: bool,
}

impl WriteOptions<'_> {
    /// Returns whether the boundary alone is written.
    pub(super) fn is_surface(self) -> bool {
        self.extent == Extent::Surface
    }
}

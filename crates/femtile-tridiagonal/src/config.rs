use std::fmt;
use std::str::FromStr;

use femtile_linalg::LinalgError;

/// Boundary of a system: the couplings beyond the first and the last row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Ends {
    /// Nothing: the first lower and the last upper entry are not read.
    #[default]
    Open,
    /// The other end: $a_0$ couples to $u_{N-1}$ and $c_{N-1}$ to $u_0$.
    Periodic,
}

/// The treatment of zero and small pivots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Stability {
    /// They are not: for matrices that are diagonally dominant, or nearly so.
    #[default]
    Unpivoted,
    /// Rows are exchanged with the next one where that one has the larger entry for its size.
    PartialPivoting,
}

/// An algorithm by name; not every device has all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// The algorithm that was measured to be fastest for this length, axis, precision and device.
    #[default]
    Auto,
    /// Elimination row by row, a thread or SIMD lane a system: `[laszlo2016]`, Alg. 1; on a GPU threads in a line, Alg. 7.
    Thomas,
    /// The same on a GPU with threads in a plane: `[laszlo2016]`, Alg. 6.
    ThomasGrid,
    /// The same on a GPU with tiles transposed in shared memory: `[laszlo2016]`, Alg. 8.
    ThomasShared,
    /// The same on a GPU with tiles transposed by register shuffles: `[laszlo2016]`, Alg. 9.
    ThomasShuffle,
    /// Parallel cyclic reduction: `[laszlo2016]`, Alg. 2.
    Pcr,
    /// Cyclic reduction: `[laszlo2016]`, section 2.2.
    Cr,
    /// Elimination within chunks of a system, parallel cyclic reduction between them: `[laszlo2016]`, Alg. 3–5, 10, 11.
    Hybrid,
}

impl Algorithm {
    /// All algorithms, in the order in which they are listed.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::Thomas,
        Self::ThomasGrid,
        Self::ThomasShared,
        Self::ThomasShuffle,
        Self::Pcr,
        Self::Cr,
        Self::Hybrid,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Thomas => "thomas",
            Self::ThomasGrid => "thomas-grid",
            Self::ThomasShared => "thomas-shared",
            Self::ThomasShuffle => "thomas-shuffle",
            Self::Pcr => "pcr",
            Self::Cr => "cr",
            Self::Hybrid => "hybrid",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = LinalgError;

    fn from_str(name: &str) -> Result<Self, LinalgError> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            LinalgError::Setting { field: "algorithm", message: format!("`{name}` is none of: {names}") }
        })
    }
}

/// Settings for solving a batch of tridiagonal systems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TridiagonalConfig {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Boundary of a system: the couplings beyond the first and the last row.
    pub ends: Ends,
    /// The treatment of small pivots.
    pub stability: Stability,
}

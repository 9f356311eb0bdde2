use femtile::device::Buffer;
use femtile::fem::AssemblyKernels;
use femtile::linalg::sparse::Csr;

use super::{blobs, checkerboard, kuhn_box, regular};
use crate::BenchError;

/// The problems that solvers are measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elliptic {
    /// [`kuhn_box`], every entry of b one.
    Box,
    /// [`regular`], the same.
    Regular,
    /// [`checkerboard`].
    Checkerboard,
    /// [`blobs`] with 1, 10 and 100 inside, every entry of b one.
    Blobs,
}

/// A system and its name.
#[derive(Debug)]
pub struct EllipticSystem<D: AssemblyKernels<f64>> {
    /// Name in records.
    pub name: String,
    /// The matrix.
    pub a: Csr<f64, D>,
    /// The right side.
    pub b: Buffer<f64, D>,
}

impl Elliptic {
    /// All of them, the default first.
    pub const ALL: [Self; 4] = [Self::Box, Self::Regular, Self::Checkerboard, Self::Blobs];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::Regular => "regular",
            Self::Checkerboard => "checkerboard",
            Self::Blobs => "blobs",
        }
    }

    /// Returns the default number of nodes along a side.
    pub fn default_nodes(self) -> usize {
        match self {
            Self::Box | Self::Regular | Self::Blobs => 65,
            Self::Checkerboard => 129,
        }
    }

    /// Returns its systems one after another, with `nodes` nodes along a side of the box.
    ///
    /// # Errors
    /// [`BenchError::Setting`] for numbers of nodes that refinement cannot give; when the device has not enough memory.
    pub fn systems<D: AssemblyKernels<f64>>(
        self,
        device: &D,
        nodes: usize,
    ) -> Result<Vec<EllipticSystem<D>>, BenchError> {
        let system = |name: &str, a: Csr<f64, D>| -> Result<_, BenchError> {
            let b = Buffer::from_vec(device, vec![1.0; a.n_rows()])?;
            Ok(EllipticSystem { name: name.into(), a, b })
        };
        match self {
            Self::Box => Ok(vec![system(self.name(), kuhn_box::matrix(device, nodes)?)?]),
            Self::Regular => {
                let mesh = regular::mesh(regular::refinements(nodes)?)?;
                Ok(vec![system(self.name(), kuhn_box::system(device, &mesh)?.matrix)?])
            }
            Self::Checkerboard => {
                let found = checkerboard::system(device, &kuhn_box::mesh(nodes)?)?;
                Ok(vec![EllipticSystem { name: self.name().into(), a: found.matrix, b: found.rhs }])
            }
            Self::Blobs => {
                let mesh = kuhn_box::mesh(nodes)?;
                let of = |inside: f64| {
                    let name = format!("{}, 1 and {inside}", self.name());
                    system(&name, blobs::system(device, &mesh, inside)?.matrix)
                };
                blobs::INSIDE.into_iter().map(of).collect()
            }
        }
    }
}

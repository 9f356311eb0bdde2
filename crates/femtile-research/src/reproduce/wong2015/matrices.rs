//! The fifteen matrices: published figures and replacements.

use std::cell::OnceCell;

use femtile::device::{Cpu, Reference};
use femtile::linalg::sparse::Csr;

use super::once;
use super::peers::BestOfPeer;
use super::rivals::Rivals;
use super::search::Searched;
use femtile_bench::BenchError;
use femtile_bench::problems::irregular_box;
use femtile_bench::sparse::profiles;
use femtile_bench::sparse::profiles::Profile;

/// Replacement of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A synthetic matrix with the row lengths of the published one.
    Profile(&'static str),
    /// A bent box with a number of nodes a side, refined once.
    Box(usize),
}
use Source::{Box, Profile as Known};

/// A row of the paper's tables.
#[derive(Debug)]
pub(super) struct Matrix {
    /// Its name in the paper.
    pub name: &'static str,
    source: Source,
    /// Table 2: non-zeros, rows, shortest and longest row, mean.
    pub sizes: [usize; 5],
    /// Table 3: threads of a block of K1.
    pub k1_block: usize,
    /// Table 7: values a thread of MGPU, after 1, 50 and 1,200 products.
    pub values_per_thread: [usize; 3],
    /// Table 9: threshold and threads of a block of K2, after 1, 50 and 1,200 products.
    pub k2: [[usize; 2]; 3],
    /// Table 4: products after which reordering has paid: K1 on the GPU and on the CPU, then K2; 0 for never.
    pub alphas: [usize; 4],
    /// True if section 7 uses it.
    pub is_in_section_7: bool,
}

const fn matrix(
    name: &'static str,
    (source, is_in_section_7): (Source, bool),
    sizes: [usize; 5],
    k1_block: usize,
    values_per_thread: [usize; 3],
    k2: [[usize; 2]; 3],
    alphas: [usize; 4],
) -> Matrix {
    Matrix { name, source, sizes, k1_block, values_per_thread, k2, alphas, is_in_section_7 }
}

#[rustfmt::skip]
static MATRICES: [Matrix; 15] = [
    matrix("Circuit", (Known("scircuit"), true), [958_936, 170_998, 1, 353, 6],
        64, [6, 6, 4], [[80, 160], [38, 128], [112, 160]], [3, 15, 3, 12]),
    matrix("Economics", (Known("mac_econ_fwd500"), false), [1_273_389, 206_500, 1, 44, 7],
        64, [6, 6, 6], [[7, 96]; 3], [3, 12, 3, 13]),
    matrix("Epidemiology", (Known("mc2depi"), true), [2_100_225, 525_825, 2, 4, 4],
        128, [6, 4, 4], [[4, 128]; 3], [2, 20, 2, 21]),
    matrix("FEMAccelerator", (Known("cop20k_A"), false), [2_624_331, 121_192, 8, 81, 22],
        64, [6, 6, 4], [[58, 64], [57, 64], [58, 64]], [3, 12, 3, 12]),
    matrix("FEMCantilever", (Known("cant"), false), [4_007_383, 62_451, 1, 78, 65],
        64, [10, 10, 10], [[19, 224]; 3], [12, 50, 9, 39]),
    matrix("FEMHarbor", (Known("rma10"), true), [2_374_001, 46_835, 4, 145, 51],
        96, [10, 12, 16], [[128, 96], [132, 96], [139, 96]], [7, 27, 7, 28]),
    matrix("FEMShip", (Known("shipsec1"), false), [7_813_404, 140_874, 24, 102, 56],
        96, [10, 10, 10], [[28, 128], [27, 128], [27, 128]], [8, 27, 8, 24]),
    matrix("FEMSpheres", (Known("consph"), false), [6_010_480, 83_334, 1, 81, 73],
        96, [10, 12, 12], [[47, 128], [81, 96], [81, 96]], [10, 34, 10, 34]),
    matrix("Heart 3K", (Box(8), true), [37_035, 3_129, 5, 21, 12],
        32, [12, 10, 10], [[7, 256], [7, 256], [6, 192]], [1, 4, 1, 4]),
    matrix("Heart 5K", (Box(9), true), [52_715, 4_563, 6, 22, 12],
        64, [10, 8, 8], [[10, 192], [13, 96], [6, 192]], [1, 5, 1, 5]),
    matrix("Heart 30K", (Box(16), true), [367_443, 28_639, 6, 24, 13],
        64, [10, 10, 6], [[21, 64], [17, 64], [17, 64]], [3, 10, 3, 10]),
    matrix("Protein", (Known("pdb1HYS"), false), [4_344_765, 36_417, 18, 204, 120],
        64, [10, 16, 16], [[172, 96], [167, 96], [171, 96]], [21, 96, 21, 91]),
    matrix("QCD", (Known("qcd"), true), [1_916_928, 49_152, 39, 39, 39],
        224, [10, 10, 10], [[39, 96], [39, 224], [39, 128]], [4, 17, 4, 17]),
    matrix("Webbase", (Known("webbase-1M"), false), [3_105_536, 1_000_005, 1, 4700, 4],
        32, [6, 4, 4], [[658, 128], [682, 128], [672, 128]], [0, 0, 2, 12]),
    matrix("WindTunnel", (Known("pwtk"), false), [11_634_424, 217_918, 2, 180, 54],
        96, [10, 10, 10], [[38, 96], [37, 96], [38, 96]], [8, 26, 8, 24]),
];

/// Profiles of tests have about this share of the rows.
const SMALL_SCALE: usize = 64;
/// Nodes a side of the coarse box of tests.
const SMALL_BOX: usize = 4;

impl Matrix {
    fn build(&self, is_small: bool) -> Result<Csr<f64, Reference>, BenchError> {
        let missing = || BenchError::Setting {
            field: "matrix",
            message: format!("nothing stands in for {}", self.name),
        };
        match self.source {
            Known(name) => {
                let profile = profiles::all().iter().find(|profile| profile.name == name);
                let profile = profile.ok_or_else(missing)?;
                Ok(profile.matrix(if is_small { small_scale(profile) } else { 1 })?)
            }
            Box(coarse) => {
                let coarse = if is_small { SMALL_BOX } else { coarse };
                irregular_box::matrix::<f64, _>(&Cpu::new(0)?, coarse, 1)?
                    .copy_to(&Reference)
                    .map_err(Into::into)
            }
        }
    }

    /// Its name, and what is measured in its place.
    pub fn label(&self) -> String {
        match self.source {
            Known(name) => format!("{} ({name})", self.name),
            Box(_) => format!("{} (box)", self.name),
        }
    }
}

/// A copy with fewer rows would not hold the longest ones.
fn small_scale(profile: &Profile) -> usize {
    let least_rows = (8 * profile.quartiles[3]).max(256);
    SMALL_SCALE.min(profile.n_rows / least_rows).max(1)
}

/// A matrix and what has been measured with it: each once a session.
#[derive(Debug)]
pub(super) struct Case {
    pub matrix: &'static Matrix,
    a: OnceCell<Csr<f64, Reference>>,
    pub(super) searched: OnceCell<Searched>,
    pub(super) rivals: OnceCell<Rivals>,
    pub(super) peer: OnceCell<Option<BestOfPeer>>,
    pub(super) refills: OnceCell<[super::refill::Refills; 2]>,
    pub(super) variants: OnceCell<[super::variants::Variants; 2]>,
}

impl Case {
    /// Returns the replacement of the matrix.
    pub fn a(&self, is_small: bool) -> Result<&Csr<f64, Reference>, BenchError> {
        once(&self.a, || self.matrix.build(is_small))
    }
}

/// All matrices, none of them built.
pub(super) fn cases() -> Vec<Case> {
    let case = |matrix| Case {
        matrix,
        a: OnceCell::new(),
        searched: OnceCell::new(),
        rivals: OnceCell::new(),
        peer: OnceCell::new(),
        refills: OnceCell::new(),
        variants: OnceCell::new(),
    };
    MATRICES.iter().map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_copies_of_all_matrices_can_be_built() {
        for case in cases() {
            let a = case.a(true).unwrap();
            assert!(a.n_rows() > 200 && a.n_nonzeros() >= a.n_rows(), "{}", case.matrix.name);
        }
    }

    #[test]
    fn boxes_have_about_the_nodes_of_the_hearts() {
        for case in cases() {
            let Box(_) = case.matrix.source else { continue };
            let rows = case.a(false).unwrap().n_rows() as f64;
            assert!((0.9..1.1).contains(&(rows / case.matrix.sizes[1] as f64)), "{rows}");
        }
    }
}

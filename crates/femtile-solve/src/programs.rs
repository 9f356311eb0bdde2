//! Programs of GPUs that a solve will probably need, to be compiled while the mesh is read.

use femtile_device::cuda::Specialisation;

use crate::{PreconditionerConfig, SolverConfig};

/// Of every solve.
const COMMON: [&str; 6] = [
    "vector FEMTILE_T=double",
    "convert FEMTILE_T=float FEMTILE_FROM=double",
    "convert FEMTILE_T=double FEMTILE_FROM=float",
    "cg FEMTILE_T=double FEMTILE_DIAGONAL=1 FEMTILE_FLEXIBLE=0",
    "cg FEMTILE_T=double FEMTILE_DIAGONAL=0 FEMTILE_FLEXIBLE=0",
    "vector FEMTILE_T=float",
];

/// Of products with a matrix.
const MATRIX: [&str; 1] = ["csr FEMTILE_T=double FEMTILE_OFFSET=unsigned int"];

/// Of algebraic multigrid, in the order in which it needs them.
const AMG: [&str; 14] = [
    "copies FEMTILE_T=float FEMTILE_FROM=double",
    "copies FEMTILE_T=float FEMTILE_FROM=float",
    "amg_matrix FEMTILE_T=float FEMTILE_LANES=4",
    "amg_aggregate FEMTILE_T=float FEMTILE_LANES=4",
    "scan FEMTILE_T=unsigned int FEMTILE_TILE=1024",
    "amg_prolong FEMTILE_T=float FEMTILE_LANES=32",
    "amg_product FEMTILE_T=float FEMTILE_LANES=4",
    "amg_product FEMTILE_T=float FEMTILE_LANES=32",
    "amg_matrix FEMTILE_T=float FEMTILE_LANES=32",
    "amg_aggregate FEMTILE_T=float FEMTILE_LANES=32",
    "ell_warp_slices FEMTILE_T=unsigned int",
    "polynomial FEMTILE_T=float",
    "csr FEMTILE_T=float FEMTILE_OFFSET=unsigned int",
    "convert FEMTILE_T=float FEMTILE_FROM=float",
];

/// Returns programs that a solve with these settings will probably need, those needed first first.
///
/// Programs that depend on the cells or the form are not among them: their operators announce them when they are made.
pub fn likely_programs(config: &SolverConfig) -> Vec<Specialisation> {
    let (uses_matrix, uses_amg) = match config.preconditioner {
        PreconditionerConfig::Gmg(_) => (false, false),
        PreconditionerConfig::Amg(_) | PreconditionerConfig::Auto | PreconditionerConfig::Pmg(_) => {
            (true, true)
        }
        _ => (true, false),
    };
    let amg = if uses_amg { &AMG[..] } else { &[] };
    let matrix = if uses_matrix { &MATRIX[..] } else { &[] };
    named(amg.iter().chain(&COMMON).chain(matrix))
}

/// Returns the programs of some names, with every hook.
fn named<'a>(names: impl Iterator<Item = &'a &'a str>) -> Vec<Specialisation> {
    let lists = [
        femtile_linalg::cuda_specialisations(),
        femtile_sparse::cuda_specialisations(),
        femtile_amg::cuda_specialisations(),
    ];
    let all: Vec<(String, Specialisation)> =
        lists.into_iter().flatten().map(|program| (program.to_string(), program)).collect();
    let of_name = |name: &&str| {
        let name = String::from(*name);
        all.iter().filter(move |(found, _)| *found == name).map(|(_, program)| program.clone())
    };
    names.flat_map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_program() {
        for name in AMG.iter().chain(&COMMON).chain(&MATRIX) {
            assert!(!named([name].into_iter()).is_empty(), "{name}");
        }
    }
}

use femtile::device::{Cpu, Reference};
use femtile_conformance::suite::block_tridiagonal::FULL_BLOCKS;

use crate::cpus;

mod on_cpus {
    use super::{Cpu, FULL_BLOCKS, cpus};

    fn devices(_check: &str) -> Vec<Cpu> {
        cpus()
    }

    femtile_conformance::block_tridiagonal!(devices, FULL_BLOCKS);
}

mod on_the_reference {
    use super::{FULL_BLOCKS, Reference};

    fn devices(_check: &str) -> Vec<Reference> {
        vec![Reference]
    }

    femtile_conformance::block_tridiagonal!(devices, FULL_BLOCKS);
}

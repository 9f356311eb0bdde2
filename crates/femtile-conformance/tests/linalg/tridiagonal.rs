use femtile::device::{Cpu, Reference};
use femtile_conformance::suite::FULL;

use crate::cpus;

mod on_cpus {
    use super::{Cpu, FULL, cpus};

    fn devices(_check: &str) -> Vec<Cpu> {
        cpus()
    }

    femtile_conformance::tridiagonal!(devices, FULL);
}

mod on_the_reference {
    use super::{FULL, Reference};

    fn devices(_check: &str) -> Vec<Reference> {
        vec![Reference]
    }

    femtile_conformance::tridiagonal!(devices, FULL);
}

use femtile_device::Cpu;
use femtile_multigrid::{BoxGrid, Multigrid, MultigridConfig, PostOrder, Smoother};

use crate::dense::on;

/// Returns cycles of full multigrid for f = 1 to 1e-9 with cells of width 2^(1 − level), the level count of `[cui2024]`.
fn cycles(dimension: usize, degree: usize, level: usize, config: MultigridConfig) -> usize {
    let coarse = BoxGrid::unit(dimension, degree, 2).unwrap();
    let cpu = Cpu::new(0).unwrap();
    let multigrid = Multigrid::<f64>::new(&cpu, &coarse, level - 1, config).unwrap();
    let b = on(&cpu, &multigrid.grid().load(|_| 1.0));
    let mut x = on(&cpu, &vec![f64::NAN; b.len()]);
    let outcome = multigrid.solve_full(&mut x, &b, 1e-9, 60).unwrap();
    assert!(outcome.is_converged, "{outcome:?}");
    outcome.cycles()
}

/// Compares a row with the printed one: in the better order no entry is more than one above, and the sum is not above.
fn compare(dimension: usize, theirs: &[usize]) {
    let of = |post| {
        let config = MultigridConfig { smoother: Smoother::VertexPatch, post };
        (1..=theirs.len()).map(|degree| cycles(dimension, degree, 4, config)).collect::<Vec<_>>()
    };
    let ours = [PostOrder::Same, PostOrder::Reversed].map(of);
    let better = ours.iter().min_by_key(|row| row.iter().sum::<usize>()).unwrap();
    assert!(better.iter().zip(theirs).all(|(ours, theirs)| ours <= &(theirs + 1)), "{ours:?}");
    assert!(better.iter().sum::<usize>() <= theirs.iter().sum(), "{ours:?}");
}

#[test]
fn table_1_has_as_few_cycles_as_the_paper() {
    compare(2, &[9, 5, 3, 3, 3, 2, 2, 2, 2, 2]);
}

#[test]
fn table_2_has_as_few_cycles_as_the_paper() {
    // Degrees beyond five are left to `femtile reproduce cui2024 table-2`.
    compare(3, &[6, 5, 3, 3, 3]);
}

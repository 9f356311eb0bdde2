use femtile::device::{Buffer, Reference};
use femtile::linalg::LinearOperator;
use femtile::linalg::hooks::DotHook;
use femtile_conformance::suite::csr::product;
use femtile_conformance::suite::formats::formats;
use femtile_conformance::suite::problems::{Parts, Random, random_matrix};
use femtile_research::formats::{Coo, Hyb, Jds};

use crate::cpus;

#[test]
fn bytes_and_padding_of_a_small_matrix_are_as_computed_by_hand() {
    let a =
        Parts::<f64>::from_rows(3, vec![vec![(0, 2.0), (2, -1.0)], vec![], vec![(1, 3.0)]]).on(&Reference);
    let coo = Coo::from_csr(&Reference, &a).unwrap();
    assert_eq!((coo.padding(), coo.product_bytes()), (1.0, 3 * 16 + 3 * 16));
    let jds = Jds::from_csr(&Reference, &a).unwrap();
    assert_eq!((jds.padding(), jds.product_bytes()), (64.0 / 3.0, 3 * 12 + 3 * 24 + 3 * 4));
    assert_eq!(Hyb::from_csr(&Reference, &a).unwrap().parts(), [3, 0]);
}

#[test]
fn the_dot_hook_sums_x_times_y_with_the_same_bits_on_any_number_of_threads() {
    for n in [0, 1, 257, 10_007] {
        let mut random = Random::new(11);
        let parts = random_matrix::<f64>(n, n, &mut random);
        let x: Vec<f64> = random.vector(n);
        let y = product(&parts.on(&Reference), &x);
        let expected: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        let mut bits: Vec<Vec<u64>> = vec![];
        for cpu in cpus() {
            let x = Buffer::from_host(&cpu, &x).unwrap();
            let sum = |operator: &dyn LinearOperator<_, _>| {
                let dot = DotHook::new(n);
                operator.apply_with(&mut Buffer::zeros(&cpu, n).unwrap(), &x, &dot).unwrap();
                assert!((dot.sum() - expected).abs() <= 1e-13 * (n as f64 + 1.0));
                dot.sum().to_bits()
            };
            bits.push(formats(&cpu, &parts).iter().map(|format| sum(format.operator.as_ref())).collect());
        }
        assert!(bits.windows(2).all(|pair| pair[0] == pair[1]), "{n} rows");
    }
}

use femtile_conformance::suite::formats::{apply, formats};
use femtile_conformance::suite::problems::{Random, random_matrix};

use crate::cpus;

#[test]
fn products_of_compared_formats_have_the_same_bits_on_any_number_of_threads() {
    for n in [0, 1, 257, 10_007] {
        let mut random = Random::new(11);
        let parts = random_matrix::<f64>(n, n, &mut random);
        let x: Vec<f64> = random.vector(n);
        let mut bits: Vec<Vec<u64>> = vec![];
        for cpu in cpus() {
            let products = formats(&cpu, &parts).map(|(_, matrix)| apply(&cpu, &matrix, n, &x));
            bits.push(products.concat().into_iter().map(f64::to_bits).collect());
        }
        assert!(bits.windows(2).all(|pair| pair[0] == pair[1]), "{n} rows");
    }
}

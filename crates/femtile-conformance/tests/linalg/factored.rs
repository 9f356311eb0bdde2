use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::tridiagonal::factored::FactoredKernels;
use femtile::linalg::tridiagonal::{Ends, FactoredTridiagonal, Layout};
use femtile_conformance::suite::problems::Random;
use femtile_conformance::suite::tridiagonal::{Batch, row_major};

use crate::cpus;

fn hold<T: Scalar, D: FactoredKernels<T>>(device: &D, n: usize) {
    for (axis, shape) in [[n, 37], [37, n]].into_iter().enumerate() {
        let mut band_strides = [0; 2];
        band_strides[axis] = 1;
        let (strides, mut random) = (row_major(&shape), Random::new(n as u64));
        let mut batch =
            Batch::<T>::filled(&shape, &strides, &band_strides, axis, &mut random, |_, random| {
                [random.unit(), 2.1 + random.unit().abs(), random.unit()]
            });
        batch.poison_ends();
        let [lower, diagonal, upper] = &batch.bands;
        let layout = Layout::contiguous(&shape).unwrap();
        let mut solver = FactoredTridiagonal::new(device, &layout, axis, lower, diagonal, upper).unwrap();
        let mut u = Buffer::from_host(device, &batch.d).unwrap();
        solver.solve_in_place(&mut u).unwrap();
        let u = u.to_host().unwrap();
        let error = batch.backward_error(&u, Ends::Open, |_| true) / T::EPSILON.to_f64();
        assert!(error <= 20.0, "{} rows, axis {axis}: {error} ε", n);
        let d = Buffer::from_host(device, &batch.d).unwrap();
        let mut other = Buffer::from_vec(device, vec![T::from_f64(f64::NAN); batch.d.len()]).unwrap();
        solver.solve(&mut other, &d).unwrap();
        assert_eq!(other.to_host().unwrap(), u);
    }
}

#[test]
fn one_matrix_is_eliminated_once_for_all_right_sides() {
    for n in [1, 2, 3, 33, 64, 100] {
        hold::<f64, _>(&Reference, n);
        hold::<f32, _>(&Reference, n);
        for cpu in cpus() {
            hold::<f64, _>(&cpu, n);
            hold::<f32, _>(&cpu, n);
        }
    }
}

#[test]
fn a_singular_matrix_is_refused_with_its_row() {
    let layout = Layout::contiguous(&[4, 2]).unwrap();
    let refused = FactoredTridiagonal::constant(&Reference, &layout, 1, [1.0, 1.0, 1.0]).map(|_| ());
    assert!(refused.unwrap_err().to_string().contains("row 1 is 0"));
    let constant = FactoredTridiagonal::constant(&Reference, &layout, 1, [1.0, 4.0, 1.0]);
    let mut u = Buffer::from_vec(&Reference, vec![5.0; 8]).unwrap();
    constant.unwrap().solve_in_place(&mut u).unwrap();
    assert!(u.as_slice().iter().all(|u| (u - 1.0_f64).abs() < 1e-15));
}

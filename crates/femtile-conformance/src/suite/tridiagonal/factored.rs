use femtile::device::{Buffer, Scalar};
use femtile::tridiagonal::factored::FactoredKernels;
use femtile::tridiagonal::{BatchLayout, Ends, FactoredTridiagonal};

use super::{Batch, TridiagonalDevice, row_major};
use crate::suite::Scope;
use crate::suite::problems::Random;

fn hold<T: Scalar, D: FactoredKernels<T>>(device: &D, [n, side]: [usize; 2], ends: Ends) {
    for (axis, shape) in [[n, side], [side, n]].into_iter().enumerate() {
        let mut band_strides = [0; 2];
        band_strides[axis] = 1;
        let (strides, mut random) = (row_major(&shape), Random::new(n as u64));
        let mut batch =
            Batch::<T>::filled(&shape, &strides, &band_strides, axis, &mut random, |_, random| {
                [random.unit(), 2.1 + random.unit().abs(), random.unit()]
            });
        if ends == Ends::Open {
            batch.poison_ends();
        }
        let bands = batch.bands.each_ref().map(Vec::as_slice);
        let layout = BatchLayout::contiguous(&shape).unwrap();
        let mut solver = FactoredTridiagonal::new(device, &layout, axis, ends, bands).unwrap();
        let mut u = Buffer::from_host(device, &batch.d).unwrap();
        solver.solve_in_place(&mut u).unwrap();
        let u = u.to_host().unwrap();
        let error = batch.backward_error(&u, ends, |_| true) / T::EPSILON.to_f64();
        assert!(error <= 20.0, "{} rows, axis {axis}: {error} ε", n);
        let d = Buffer::from_host(device, &batch.d).unwrap();
        let mut other = Buffer::from_vec(device, vec![T::from_f64(f64::NAN); batch.d.len()]).unwrap();
        solver.solve(&mut other, &d).unwrap();
        assert_eq!(other.to_host().unwrap(), u);
    }
}

/// Open systems and rings of all lengths of the scope along both axes of a matrix.
pub fn one_matrix_solves_for_all_right_sides<D: TridiagonalDevice>(device: &D, scope: &Scope) {
    for &n in scope.lengths {
        for ends in [Ends::Open, Ends::Periodic] {
            hold::<f64, _>(device, [n, scope.side], ends);
            hold::<f32, _>(device, [n, scope.side], ends);
        }
    }
}

/// A matrix with a zero pivot; one with constant coefficients.
pub fn a_singular_matrix_is_refused_with_its_row<D: TridiagonalDevice>(device: &D, _: &Scope) {
    let layout = BatchLayout::contiguous(&[4, 2]).unwrap();
    let constant = |ends, bands: [f64; 3]| FactoredTridiagonal::constant(device, &layout, 1, ends, bands);
    for ends in [Ends::Open, Ends::Periodic] {
        let refused = constant(ends, if ends == Ends::Open { [1.0; 3] } else { [0.5, 1.0, 0.5] }).map(|_| ());
        assert!(refused.unwrap_err().to_string().contains("row 1 is zero"));
    }
    let mut u = Buffer::from_host(device, &[5.0; 8]).unwrap();
    constant(Ends::Open, [1.0, 4.0, 1.0]).unwrap().solve_in_place(&mut u).unwrap();
    assert!(u.to_host().unwrap().iter().all(|u| (u - 1.0_f64).abs() < 1e-15));
}

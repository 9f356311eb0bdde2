//! The same on a GPU, by the emulator: it stops kernels that access memory out of bounds.

use std::sync::Arc;

use femtile::device::{Buffer, Cuda, Device, DeviceError};
use femtile::linalg::hooks::{Hook, NoHook};
use femtile::linalg::krylov::cg::{CgKernels, CgScalars, CgSums};
use femtile::linalg::sparse::csr::{Csr, CsrKernels};
use femtile::linalg::vector::{Convert, VectorKernels};
use femtile::linalg::{LinalgError, LinearOperator};
use femtile::multigrid::{BoxGrid, BoxKernels, PostOrder};
use femtile_conformance::emulator::Emulator;

use crate::{matrix, refused, zeros};

fn gpu(check: &str) -> Option<Cuda> {
    match Emulator::new() {
        Ok(emulator) => Some(Cuda::with_driver(Arc::new(emulator))),
        Err(error) => {
            eprintln!("SKIPPED: {check} on emulated CUDA: {error}");
            None
        }
    }
}

#[test]
fn copies_have_one_length_and_one_device() {
    let Some(device) = gpu("copies_have_one_length_and_one_device") else { return };
    let mut memory = device.allocate::<f64>(3).unwrap();
    let is_short = |error| matches!(error, DeviceError::LengthMismatch { .. });
    assert!(device.upload(&mut memory, &[0.0; 4]).is_err_and(is_short));
    assert!(device.download(&mut [0.0; 4], &memory).is_err_and(is_short));
    assert!(device.begin_read::<f64>(&memory, 4).is_err_and(is_short));
    assert!(device.allocate::<f64>(usize::MAX / 4).is_err());
    let Some(other) = gpu("copies_have_one_length_and_one_device") else { return };
    let is_foreign = |error| matches!(error, DeviceError::OtherDevice { .. });
    assert!(other.upload(&mut memory, &[0.0; 3]).is_err_and(is_foreign));
}

#[test]
fn kernels_refuse_vectors_that_do_not_fit() {
    let Some(device) = gpu("kernels_refuse_vectors_that_do_not_fit") else { return };
    let (a, mut long, mut short) = (matrix(&device, 300), zeros(&device, 300), zeros(&device, 1));
    refused(device.csr_apply(&mut long, &a, &short, &NoHook), ("x", 300, 1));
    refused(device.csr_apply(&mut short, &a, &long, &NoHook), ("y", 300, 1));
    refused(device.csr_inverse_diagonal(&mut short, &a), ("d", 300, 1));
    refused(Convert::<f64, f64>::convert(&device, &mut short, 1.0, &long), ("x", 1, 300));
    let coarsest = BoxKernels::<f64>::box_coarsest(&device, &BoxGrid::unit(3, 1, 3).unwrap()).unwrap();
    refused(device.box_smooth(&coarsest, &mut short, &long, PostOrder::Same), ("x", 64, 1));
    // Numbers of a solve that are those of a shorter one.
    let mut scalars = CgScalars::new(&device, 0.0, 1, 64, 1).unwrap();
    let q = zeros(&device, 300);
    refused(device.cg_residual(&mut long, &q, None, &mut scalars), ("partials", 5, 1));
    scalars.p_dot_q = zeros(&device, 1);
    let mut sums = CgSums::new(&device, 1).unwrap();
    refused(CgKernels::<f64>::cg_decide(&device, &mut scalars, &sums), ("p_dot_q", 64, 1));
    refused(device.cg_first_dot(CgSums::<Cuda>::R_DOT_Z, &long, &q, &mut sums), ("partials", 6, 1));
}

#[test]
fn numbers_past_the_end_of_a_vector_are_not_followed() {
    let Some(device) = gpu("numbers_past_the_end_of_a_vector_are_not_followed") else { return };
    let x = Buffer::from_vec(&device, vec![1.0, 2.0, 3.0]).unwrap();
    let order = Buffer::from_vec(&device, vec![2, u32::MAX, 0]).unwrap();
    let mut y = zeros(&device, 3);
    Convert::<f64, f64>::gather(&device, &mut y, 1.0, &x, &order).unwrap();
    let found = y.to_host().unwrap();
    assert!(found[0] == 3.0 && found[1].is_nan() && found[2] == 1.0, "{found:?}");
}

/// Hands the hook that it is given to a larger matrix.
struct Larger(Csr<f64, Cuda>);

impl LinearOperator<f64, Cuda> for Larger {
    fn n_rows(&self) -> usize {
        3
    }

    fn n_cols(&self) -> usize {
        3
    }

    fn device(&self) -> &Cuda {
        self.0.device()
    }

    fn apply_with(
        &self,
        _: &mut Buffer<f64, Cuda>,
        _: &Buffer<f64, Cuda>,
        hook: &dyn Hook<f64>,
    ) -> Result<(), LinalgError> {
        let n = self.0.n_rows();
        let x = zeros(self.device(), n);
        self.0.apply_with(&mut zeros(self.device(), n), &x, hook)
    }
}

#[test]
fn a_hook_for_few_rows_is_not_given_to_an_operator_with_many() {
    let Some(device) = gpu("a_hook_for_few_rows_is_not_given_to_an_operator_with_many") else { return };
    let larger = Larger(matrix(&device, 1000));
    let (mut q, p) = (zeros(&device, 3), zeros(&device, 3));
    let n_partials = CgKernels::<f64>::cg_partials(&device, 3);
    let mut scalars = CgScalars::new(&device, 0.0, 1, 64, n_partials).unwrap();
    refused(device.cg_product(&mut q, &larger, &p, &mut scalars), ("rows of the hook", 3, 1000));
}

#[test]
fn work_is_recorded_again_once_an_array_that_it_uses_was_given_back() {
    let Some(device) = gpu("work_is_recorded_again") else { return };
    let y = Buffer::from_vec(&device, vec![1.0; 7]).unwrap();
    let mut recording = Default::default();
    let mut add_to = |x: &mut Buffer<f64, Cuda>| {
        device.repeat(&mut recording, 2, &mut || device.axpby(x, 1.0, &y, 1.0)).unwrap();
        x.to_host().unwrap()
    };
    let mut first = zeros(&device, 7);
    for round in 1..=3 {
        assert_eq!(add_to(&mut first), vec![2.0 * f64::from(round); 7]);
    }
    drop(first);
    let mut second = zeros(&device, 7);
    for round in 1..=3 {
        assert_eq!(add_to(&mut second), vec![2.0 * f64::from(round); 7]);
    }
}

use std::panic::{AssertUnwindSafe, catch_unwind};

use femtile::device::{Buffer, Cpu};
use femtile::linalg::hooks::{Hook, NoHook};
use femtile::linalg::precondition::polynomial::{PolynomialKernels, Relaxed, Step};
use femtile::linalg::sparse::csr::{Csr, CsrKernels, HostOffsets};
use femtile::linalg::sparse::ell_warp::EllWarpKernels;
use femtile::linalg::sparse::{EllWarp, EllWarpConfig, StoredMatrix};
use femtile::linalg::{LinalgError, LinearOperator};
use femtile_research::formats::{ComparedFormat, ComparedMatrix};

use crate::{N, cpu, matrix, refused, zeros};

#[test]
fn kernels_of_every_format_refuse_vectors_that_do_not_fit() {
    let cpu = cpu();
    let a = matrix(&cpu, N);
    let [merge, hyb] = [ComparedFormat::Merge, ComparedFormat::Hyb]
        .map(|format| ComparedMatrix::new(&cpu, &a, format).unwrap());
    let ell_warp: EllWarp<f64, Cpu> = EllWarp::from_csr(&cpu, &a, &EllWarpConfig::new(8)).unwrap();
    for (field, n_y, n_x) in [("x", N, 1), ("y", 1, N)] {
        let (mut y, x) = (zeros(&cpu, n_y), zeros(&cpu, n_x));
        let wanted = (field, N, 1);
        refused(cpu.csr_apply(&mut y, &a, &x, &NoHook), wanted);
        refused(merge.apply(&mut y, &x), wanted);
        refused(hyb.apply(&mut y, &x), wanted);
        refused(cpu.ell_warp_apply(&mut y, &ell_warp, &x, &NoHook), wanted);
        refused(a.apply(&mut y, &x), wanted);
    }
    refused(cpu.csr_inverse_diagonal(&mut zeros(&cpu, 1), &a), ("d", N, 1));
    refused(cpu.ell_warp_sort(&mut zeros(&cpu, N), &zeros(&cpu, 1), &ell_warp), ("from", N, 1));
    refused(cpu.ell_warp_unsort(&mut zeros(&cpu, 1), &zeros(&cpu, N), &ell_warp), ("to", N, 1));
    let (mut filled, other) = (ell_warp, matrix(&cpu, N / 2));
    refused(cpu.ell_warp_refill(&mut filled, &other), ("rows of the new matrix", N, N / 2));
}

#[test]
fn matrices_whose_rows_or_columns_32_bits_do_not_number_are_not_put_in_slices() {
    let cpu = cpu();
    let offsets = HostOffsets::from_row_lengths([0].into_iter());
    let wide = Csr::<f64, Cpu>::from_parts(&cpu, 1 << 32, offsets, Vec::new(), Vec::new()).unwrap();
    let config = EllWarpConfig::new(8);
    for made in [EllWarp::<f64, Cpu>::from_csr(&cpu, &wide, &config), EllWarp::convert(&wide, &config)] {
        assert!(matches!(made, Err(LinalgError::Setting { field: "columns", .. })), "{made:?}");
    }
}

#[test]
fn stored_values_are_overwritten_but_never_shortened() {
    let cpu = cpu();
    let mut a = matrix(&cpu, 5);
    assert!(a.values_mut().upload(&[0.0]).is_err());
    a.values_mut().as_mut_slice().fill(3.0);
    let (mut y, x) = (zeros(&cpu, 5), Buffer::from_vec(&cpu, vec![1.0; 5]).unwrap());
    a.apply(&mut y, &x).unwrap();
    assert_eq!(y.as_slice(), [6.0, 9.0, 9.0, 9.0, 6.0]);
}

#[test]
fn smoothers_refuse_vectors_of_other_lengths() {
    let cpu = cpu();
    let a = matrix(&cpu, N);
    let (b, short, step) = (zeros(&cpu, N), zeros(&cpu, 1), Step { alpha: 1.0, beta: 0.0, is_kept: true });
    let (mut next, mut direction, mut product) = (zeros(&cpu, N), zeros(&cpu, 1), zeros(&cpu, N));
    refused(cpu.relax_from_zero(&mut next, &mut direction, step, &b, &b), ("direction", N, 1));
    refused(cpu.relax_residual(&mut direction, &mut product, &a, &b, &b), ("b", 1, N));
    let (x, inverse_diagonal) = (&b, &short);
    let vectors = Relaxed {
        b: &b,
        inverse_diagonal,
        x,
        next: &mut next,
        direction: &mut direction,
        product: &mut product,
    };
    refused(cpu.relax(&a, step, vectors), ("inverse_diagonal", N, 1));
}

/// An operator that shows the same rows to its hook twice, which hooks that write rows must not believe.
struct Repeats(Cpu);

impl LinearOperator<f64, Cpu> for Repeats {
    fn n_rows(&self) -> usize {
        7
    }

    fn n_cols(&self) -> usize {
        7
    }

    fn device(&self) -> &Cpu {
        &self.0
    }

    fn apply_with(
        &self,
        y: &mut Buffer<f64, Cpu>,
        x: &Buffer<f64, Cpu>,
        hook: &dyn Hook<f64>,
    ) -> Result<(), LinalgError> {
        (0..2).for_each(|_| hook.post(0..7, x.as_slice(), y.as_slice()));
        Ok(())
    }
}

#[test]
fn rows_are_not_handed_out_twice_to_a_hook_that_writes_them() {
    let cpu = cpu();
    let (b, x) = (zeros(&cpu, 7), zeros(&cpu, 7));
    let (mut r, mut product) = (zeros(&cpu, 7), zeros(&cpu, 7));
    let relaxed =
        AssertUnwindSafe(|| cpu.relax_residual(&mut r, &mut product, &Repeats(cpu.clone()), &x, &b));
    let panic = catch_unwind(relaxed).unwrap_err();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("0..7 against the contract"), "{said}");
}

use femtile::device::{Buffer, Device, DeviceError};
use femtile::linalg::krylov::cg::{CgKernels, CgScalars};
use femtile::linalg::krylov::s_step_cg::SStepCgKernels;
use femtile::linalg::vector::{Convert, VectorKernels};
use femtile::multigrid::{BoxGrid, BoxKernels};
use femtile::time::adi::AdiKernels;

use crate::{N, cpu, refused, zeros};

#[test]
fn copies_between_raw_memory_and_the_host_have_one_length() {
    let cpu = cpu();
    let mut memory = cpu.allocate::<f64>(3).unwrap();
    let wanted = |expected, found| move |error: DeviceError| matches!(error, DeviceError::LengthMismatch { expected: e, found: f, .. } if (e, f) == (expected, found));
    assert!(cpu.upload(&mut memory, &[0.0; 4]).is_err_and(wanted(3, 4)));
    assert!(cpu.download(&mut [0.0; 4], &memory).is_err_and(wanted(4, 3)));
    assert!(Device::begin_read(&cpu, &memory, 4).is_err_and(wanted(4, 3)));
}

#[test]
fn vectors_of_two_lengths_are_no_conversion() {
    let cpu = cpu();
    let (mut y, x) = (Buffer::<f32, _>::zeros(&cpu, 1).unwrap(), zeros(&cpu, N));
    refused(Convert::<f64, f32>::convert(&cpu, &mut y, 1.0, &x), ("x", 1, N));
    refused(VectorKernels::copy(&cpu, &mut zeros(&cpu, 1), &x), ("x", 1, N));
    let order = Buffer::from_vec(&cpu, vec![2, 9, 0]).unwrap();
    let (mut y, x) = (zeros(&cpu, 3), Buffer::from_vec(&cpu, vec![1.0, 2.0, 3.0]).unwrap());
    Convert::<f64, f64>::gather(&cpu, &mut y, 1.0, &x, &order).unwrap();
    assert!(y.as_slice()[1].is_nan() && [y.as_slice()[0], y.as_slice()[2]] == [3.0, 1.0]);
}

#[test]
fn passes_of_conjugate_gradients_refuse_vectors_of_other_lengths() {
    let cpu = cpu();
    let (mut r, q, short) = (zeros(&cpu, N), zeros(&cpu, N), zeros(&cpu, 1));
    let mut scalars = CgScalars::new(&cpu, 0.0, 1, 1, 0).unwrap();
    refused(cpu.cg_residual(&mut r, &short, None, &mut scalars), ("q", N, 1));
    refused(cpu.cg_residual(&mut r, &q, Some(&short), &mut scalars), ("inverse_diagonal", N, 1));
    refused(cpu.cg_dot(3, &q, &q, &mut scalars), ("place", 2, 3));
    let mut x = zeros(&cpu, 1);
    refused(cpu.cg_direction(&mut r, &mut x, &q, None, &mut scalars), ("x", N, 1));
    let t = [zeros(&cpu, N), zeros(&cpu, 1)];
    refused(cpu.s_step_gram(&[zeros(&cpu, N)], &t, None), ("t", N, 1));
    refused(cpu.s_step_residual(&mut r, &q, &q, Some(&short)), ("inverse_diagonal", N, 1));
}

#[test]
fn levels_of_boxes_refuse_vectors_of_other_grids() {
    let cpu = cpu();
    let operator = BoxKernels::<f64>::box_operator(&cpu, &BoxGrid::unit(2, 2, 2).unwrap()).unwrap();
    let (mut r, short) = (zeros(&cpu, 25), zeros(&cpu, 1));
    refused(cpu.box_residual(&operator, &mut r, &short, &short), ("b", 25, 1));
    refused(BoxKernels::<f64>::box_add(&cpu, &mut r, 1.0, &short), ("y", 1, 25));
}

#[test]
fn values_for_nodes_that_do_not_exist_are_left_out() {
    let cpu = cpu();
    let mut w = zeros(&cpu, 3);
    let nodes = Buffer::from_vec(&cpu, vec![1, 1 << 40]).unwrap();
    let values = Buffer::from_vec(&cpu, vec![5.0, 7.0]).unwrap();
    cpu.adi_set(&mut w, &nodes, &values).unwrap();
    cpu.adi_add(&mut w, &nodes, &values, 2.0).unwrap();
    assert_eq!(w.as_slice(), [0.0, 15.0, 0.0]);
    assert!(cpu.adi_set(&mut w, &nodes, &zeros(&cpu, 1)).is_err());
}

//! Arrays of other libraries on emulated CUDA: used where they lie, left to their owner.

use femtile::device::cuda::Borrowed;
use femtile::device::{Buffer, Cuda, Device, MemorySpace};
use femtile::linalg::vector::VectorKernels;
use femtile::tridiagonal::{Bands, BatchLayout, Tridiagonal, TridiagonalConfig};

use crate::emulated_cases::{PLENTY, gpu};

/// An array that stands for that of another library.
fn foreign(device: &Cuda, values: Vec<f64>) -> Buffer<f64, Cuda> {
    Buffer::from_vec(device, values).unwrap()
}

/// The array of another library as a buffer.
fn borrowed(array: &Buffer<f64, Cuda>) -> Borrowed<f64> {
    // SAFETY: the array outlives the buffer in these tests, and the emulator has finished its work when a call returns.
    unsafe { Borrowed::new(array.device(), array.address(), array.len()) }
}

#[test]
fn systems_are_solved_in_arrays_of_others_without_a_copy() {
    let Some(device) = gpu("systems_are_solved_in_arrays_of_others_without_a_copy", PLENTY) else { return };
    let [n_systems, n_rows] = [3, 7];
    let bands = [-1.0, 2.5, -1.0].map(|value| foreign(&device, vec![value; n_systems * n_rows]));
    let d = foreign(&device, vec![0.5; n_systems * n_rows]);
    let u = foreign(&device, vec![f64::NAN; n_systems * n_rows]);
    let before = device.memory_use();
    let layout = BatchLayout::contiguous(&[n_systems, n_rows, 1]).unwrap();
    let mut solver = Tridiagonal::new(&device, &layout, 1, TridiagonalConfig::default()).unwrap();
    let mut target = borrowed(&u);
    let [lower, diagonal, upper] = bands.each_ref().map(borrowed);
    let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
    // SAFETY: a solve overwrites the values of the buffer and leaves it where it is.
    let outcome = solver.solve(unsafe { target.buffer_mut() }, bands, &borrowed(&d)).unwrap();
    drop((solver, target, lower, diagonal, upper));
    assert!(outcome.is_solved());
    let x = u.to_host().unwrap();
    for (i, x_i) in x.iter().enumerate() {
        let neighbour = |is: bool, j: usize| if is { x[j] } else { 0.0 };
        let before = neighbour(i % n_rows > 0, i.wrapping_sub(1));
        let after = neighbour(i % n_rows + 1 < n_rows, i + 1);
        assert!((2.5 * x_i - before - after - 0.5).abs() < 1e-13, "{i}");
    }
    assert_eq!(device.memory_use().map(|used| used.device), before.map(|used| used.device));
}

#[test]
fn arrays_of_others_are_neither_freed_nor_moved_and_recordings_of_them_are_not_replayed() {
    let name = "arrays_of_others_are_neither_freed_nor_moved_and_recordings_of_them_are_not_replayed";
    let Some(device) = gpu(name, PLENTY) else { return };
    device.overflow_to_host(1 << 20);
    let array = foreign(&device, vec![1.0; 9]);
    let mut x = Buffer::from_vec(&device, vec![0.0; 9]).unwrap();
    let (mut recording, mut n_calls) = (Default::default(), 0);
    for round in 1..=3 {
        let mut y = borrowed(&array);
        // SAFETY: the buffer stays where it is: an array of others cannot be moved.
        assert!(!unsafe { y.buffer_mut() }.move_to(MemorySpace::Host).unwrap());
        device
            .repeat(&mut recording, 1, &mut || {
                n_calls += 1;
                device.axpby(&mut x, 1.0, &y, 1.0)
            })
            .unwrap();
        drop(y);
        assert_eq!(x.to_host().unwrap(), vec![f64::from(round); 9]);
    }
    assert_eq!(n_calls, 3, "work on an array that was given back is done anew");
    assert_eq!(array.to_host().unwrap(), vec![1.0; 9]);
}

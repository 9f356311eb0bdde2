//! Transfers between elements of two degrees, held to those of the processor.

use femtile::device::cpu::vector::Lanes;
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::linalg::{LinalgError, Transfer};
use femtile::matrix_free::{CudaDegreeTransfer, DegreeTransfer};
use femtile::mesh::Mesh;
use femtile::space::TensorSpace;
use femtile::sum_factorization::SumFactorization;

use super::Scope;
use super::matrix_free::{bend, cubes, deformed, ring, side};
use super::problems::Random;
use super::quadrilaterals::{band, bent_squares};

fn dot<T: SumFactorization>(x: &[T], y: &[T]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
}

fn assert_close<T: SumFactorization>(found: &[T], wanted: &[T], tolerance: f64, what: &str) {
    let size = wanted.iter().fold(0.0_f64, |size, x| size.max(x.to_f64().abs()));
    for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let error = (found.to_f64() - wanted.to_f64()).abs();
        assert!(error <= tolerance * size, "{what}: entry {i} is off by {:e}", error / size);
    }
}

/// Applies a transfer to e, added to x, and its transpose to r.
fn both<T: SumFactorization, D: femtile::device::Device>(
    device: &D,
    transfer: &dyn Transfer<T, D>,
    [e, x, r]: [&[T]; 3],
) -> [Vec<T>; 2] {
    let [from_below, mut raised, from_above] = [e, x, r].map(|x| Buffer::from_host(device, x).unwrap());
    transfer.prolongate(&mut raised, &from_below).unwrap();
    let mut lowered = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); e.len()]).unwrap();
    transfer.restrict(&mut lowered, &from_above).unwrap();
    [raised, lowered].map(|x| x.to_host().unwrap())
}

/// Both ways are those of the processor to rounding, transposes of each other, and have the same bits again.
fn check<T: SumFactorization + Lanes>(
    device: &Cuda,
    mesh: &Mesh,
    degrees: [usize; 2],
    given: [&[u32]; 2],
    tolerance: f64,
) {
    let [coarse, fine] = degrees.map(|degree| TensorSpace::new(mesh, degree).unwrap());
    let (below, above) = ((&coarse, given[0]), (&fine, given[1]));
    let cpu = Cpu::new(1).unwrap();
    let on_cpu = DegreeTransfer::<T>::new(&cpu, below, above).unwrap();
    let on_gpu = CudaDegreeTransfer::<T>::new(device, below, above).unwrap();
    assert_eq!((on_gpu.n_coarse(), on_gpu.n_fine()), (coarse.n_dofs(), fine.n_dofs()));
    let mut random = Random::new(31);
    let mut vector = |n: usize| -> Vec<T> { random.vector::<f64>(n).into_iter().map(T::from_f64).collect() };
    let (e, x, r) = (vector(coarse.n_dofs()), vector(fine.n_dofs()), vector(fine.n_dofs()));
    let wanted = both(&cpu, &on_cpu, [&e, &x, &r]);
    let found = both(device, &on_gpu, [&e, &x, &r]);
    let what = format!("{degrees:?} on {} cells", mesh.n_cells());
    assert_close(&found[0], &wanted[0], tolerance, &format!("up, {what}"));
    assert_close(&found[1], &wanted[1], tolerance, &format!("down, {what}"));
    assert!(given[0].iter().all(|&dof| found[1][dof as usize] == T::ZERO), "{what}");
    assert!(given[1].iter().all(|&dof| found[0][dof as usize] == x[dof as usize]), "{what}");
    assert!(both(device, &on_gpu, [&e, &x, &r]) == found, "{what}: bits differ from run to run");
    let [raised, lowered] = both(device, &on_gpu, [&e, &vec![T::ZERO; x.len()], &r]);
    let (there, back) = (dot(&raised, &r), dot(&e, &lowered));
    let size = (dot(&raised, &raised) * dot(&r, &r)).sqrt();
    assert!((there - back).abs() <= tolerance * size, "{what}: {there} and {back}");
}

/// Cells of any shape, in any arrangement, with and without constrained unknowns.
pub fn transfers_agree_with_those_of_the_processor(device: &Cuda, scope: &Scope) {
    let mut meshes = vec![deformed(cubes([3, 2, 2]), bend), ring(5), bent_squares([5, 7]), band()];
    let mut pairs = vec![[1, 2], [2, 3], [2, 4], [1, 3], [3, 5]];
    if scope.has_every_kind {
        meshes.extend([deformed(cubes([7, 5, 6]), bend), bent_squares([37, 23])]);
        pairs.extend([[1, 1], [3, 6], [4, 7], [4, 8], [5, 9], [5, 10]]);
    }
    for mesh in &meshes {
        for &degrees in &pairs {
            check::<f64>(device, mesh, degrees, [&[], &[]], 1e-13);
            let last = mesh.n_cells() - 1;
            let [below, above] = degrees.map(|degree| side(mesh, degree, last));
            check::<f64>(device, mesh, degrees, [&below, &above], 1e-13);
            check::<f32>(device, mesh, degrees, [&below, &above], 2e-6);
        }
    }
}

/// A coarser space without free unknowns, as a single cell with values on its whole boundary has.
pub fn spaces_without_free_unknowns_have_transfers(device: &Cuda, _: &Scope) {
    let mesh = cubes([1, 1, 1]);
    let all: Vec<u32> = (0..27).collect();
    check::<f64>(device, &mesh, [1, 2], [&all[..8], &[]], 1e-13);
    check::<f64>(device, &mesh, [1, 2], [&all[..8], &all], 1e-13);
}

/// Vectors of wrong lengths are refused by name.
pub fn vectors_of_other_lengths_are_refused(device: &Cuda, _: &Scope) {
    let mesh = cubes([1, 1, 1]);
    let [coarse, fine] = [1, 2].map(|degree| TensorSpace::new(&mesh, degree).unwrap());
    let transfer = CudaDegreeTransfer::<f64>::new(device, (&coarse, &[]), (&fine, &[])).unwrap();
    let zeros = |n: usize| Buffer::<f64, Cuda>::zeros(device, n).unwrap();
    for (n_fine, n_coarse, names) in [(8, 8, ["x", "r"]), (27, 27, ["e", "b"])] {
        let refused = [
            transfer.prolongate(&mut zeros(n_fine), &zeros(n_coarse)).unwrap_err(),
            transfer.restrict(&mut zeros(n_coarse), &zeros(n_fine)).unwrap_err(),
        ];
        for (error, name) in refused.iter().zip(names) {
            assert!(matches!(error, LinalgError::Length { field, .. } if *field == name), "{error}");
        }
    }
}

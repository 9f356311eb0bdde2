//! Residuals and transfers on a GPU, compared with those of a CPU.

use femtile::device::{Buffer, Cpu, Cuda};
use femtile::linalg::LinearOperator;
use femtile::multigrid::{BoxGrid, BoxOperator, CudaBoxOperator, CudaTransfer};
use femtile::sum_factorization::SumFactorization;

use super::{assert_close, cells, of_widths, uneven, values};
use crate::suite::Scope;
use crate::suite::problems::Random;

pub(super) fn residual_agrees<T: SumFactorization>(device: &Cuda, grid: &BoxGrid, tolerance: f64) {
    let mut random = Random::new(3);
    let (x, b) = (values::<T>(grid, &mut random), values::<T>(grid, &mut random));
    let mut wanted = x.clone();
    BoxOperator::new(&Cpu::new(1).unwrap(), grid).residual(&mut wanted, &b, &x);
    let [x, b] = [x, b].map(|values| Buffer::from_host(device, &values).unwrap());
    let residual = |operator: &CudaBoxOperator<T>| {
        let mut r = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); x.len()]).unwrap();
        operator.residual(&mut r, &b, &x).unwrap();
        r.to_host().unwrap()
    };
    let operator = CudaBoxOperator::new(device, grid).unwrap();
    let r = residual(&operator);
    let what = format!("degree {}", grid.degree());
    assert_close(&r, &wanted, tolerance, &what);
    let operator = operator.with_row_cells(16);
    assert!(residual(&operator) == r, "{what}, long rows");
    // A x = b - r.
    let wanted: Vec<T> = b.to_host().unwrap().iter().zip(&wanted).map(|(b, r)| *b - *r).collect();
    let mut y = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); x.len()]).unwrap();
    operator.apply(&mut y, &x).unwrap();
    assert_close(&y.to_host().unwrap(), &wanted, tolerance, &format!("{what}, product"));
}

/// Residuals of every degree, on cells of different widths.
pub fn residuals_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        residual_agrees::<f64>(device, &uneven(degree, [4, 3, 5]), 1e-12);
        residual_agrees::<f32>(device, &uneven(degree, [1, 3, 2]), 1e-5);
    }
    // Equal cells, which use a stencil.
    for counts in [[4, 3, 5], [1, 2, 1], [300, 2, 2]] {
        residual_agrees::<f64>(device, &cells(1, counts), 1e-12);
        residual_agrees::<f32>(device, &cells(1, counts), 1e-5);
    }
    // Rows processed in several parts.
    residual_agrees::<f64>(device, &uneven(1, [37, 3, 2]), 1e-12);
    residual_agrees::<f64>(device, &uneven(2, [32, 2, 3]), 1e-12);
}

/// Splits every cell into `parts` equal cells along each axis.
fn parted(grid: &BoxGrid, parts: [usize; 3]) -> BoxGrid {
    let of_axis = |axis: usize| {
        let n = parts[axis];
        grid.widths(axis).iter().flat_map(|width| vec![width / n as f64; n]).collect()
    };
    let parted = of_widths(grid.degree(), [of_axis(0), of_axis(1), of_axis(2)]);
    parted.with_free_sides(grid.free_sides()).unwrap()
}

pub(super) fn transfers_nest<T: SumFactorization>(
    device: &Cuda,
    coarse: &BoxGrid,
    parts: [usize; 3],
    tolerance: f64,
) {
    let (cpu, fine) = (Cpu::new(1).unwrap(), parted(coarse, parts));
    let mut random = Random::new(9);
    let (x, start) = (values::<T>(coarse, &mut random), values::<T>(&fine, &mut random));
    let transfer = CudaTransfer::new(device, coarse, &fine).unwrap();
    let on_device = Buffer::from_host(device, &x).unwrap();
    let upwards = |start: &[T]| {
        let mut on_fine = Buffer::from_host(device, start).unwrap();
        transfer.prolongate(&mut on_fine, &on_device).unwrap();
        on_fine.to_host().unwrap()
    };
    let what = format!("degree {}, {parts:?} parts", coarse.degree());
    let up = upwards(&vec![T::ZERO; fine.n_nodes()]);
    // The same function on both grids has the same distance from a polynomial.
    let exact = |[x, y, z]: [f64; 3]| 1.0 + x - 2.0 * y * z;
    let distance = |grid: &BoxGrid, x: &[T]| {
        let x: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
        grid.error_l2(&x, exact, coarse.degree() + 2)
    };
    let (found, wanted) = (distance(&fine, &up), distance(coarse, &x));
    assert!((found / wanted - 1.0).abs() <= tolerance, "{what}: {found} {wanted}");
    let added: Vec<T> = up.iter().zip(&start).map(|(up, start)| *up + *start).collect();
    assert_close(&upwards(&start), &added, tolerance, &what);
    // Spaces are nested: the coarse operator is the Galerkin product.
    let product = |grid: &BoxGrid, x: &[T]| {
        let mut r = vec![T::ZERO; x.len()];
        BoxOperator::new(&cpu, grid).residual(&mut r, &vec![T::ZERO; x.len()], x);
        r
    };
    let of_fine = Buffer::from_host(device, &product(&fine, &up)).unwrap();
    let mut down = Buffer::from_host(device, &vec![T::from_f64(f64::NAN); x.len()]).unwrap();
    transfer.restrict(&mut down, &of_fine).unwrap();
    assert_close(&down.to_host().unwrap(), &product(coarse, &x), tolerance, &what);
}

/// Prolongation preserves functions, and restriction is consistent with integrals.
pub fn transfers_keep_functions_and_integrals(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        transfers_nest::<f64>(device, &uneven(degree, [2, 3, 3]), [2; 3], 1e-11);
        transfers_nest::<f32>(device, &uneven(degree, [3, 1, 2]), [2; 3], 1e-4);
    }
    let highest = if scope.has_every_kind { 8 } else { 2 };
    for degree in 1..=highest {
        for parts in [[2, 1, 1], [1, 2, 1], [1, 1, 2], [2, 2, 1], [1, 2, 2]] {
            transfers_nest::<f64>(device, &uneven(degree, [3, 2, 3]), parts, 1e-11);
        }
        transfers_nest::<f32>(device, &uneven(degree, [2, 3, 2]), [2, 1, 2], 1e-4);
    }
}

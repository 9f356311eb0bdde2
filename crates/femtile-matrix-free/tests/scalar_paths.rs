//! Kernels with `unsafe` on the scalar path, at sizes that Miri checks in a minute: `cargo +nightly miri test -p
//! femtile-matrix-free --test scalar_paths`.
#![forbid(unsafe_code)]

use femtile_device::cpu::SimdLevel;
use femtile_device::{Buffer, Cpu, Device, Reference};
use femtile_fem::{Assembly, Coefficient, Form};
use femtile_linalg::comm::SingleRank;
use femtile_linalg::hooks::DotHook;
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile_linalg::precondition::Diagonal;
use femtile_linalg::precondition::polynomial::{PolynomialKernels, Relaxed, Step};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_matrix_free::{MatrixFree, MatrixFreeConfig, Terms};
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile_space::TensorSpace;
use femtile_sparse::{Csr, EllWarp, EllWarpConfig, StoredMatrix};
use femtile_tridiagonal::block::{
    BlockBands, BlockOrder, BlockShape, BlockTridiagonal, BlockTridiagonalConfig, BlockTridiagonalKernels,
};
use femtile_tridiagonal::{
    Bands, BatchLayout, Ends, Stability, Tridiagonal, TridiagonalConfig, TridiagonalKernels,
};

fn cpu() -> Cpu {
    Cpu::with_simd(2, SimdLevel::Scalar).expect("two threads")
}

fn values(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i * 7919 % 1013) as f64 / 1013.0 - 0.4).collect()
}

fn on<D: Device>(device: &D, values: Vec<f64>) -> Buffer<f64, D> {
    Buffer::from_vec(device, values).expect("memory")
}

fn cubes(split: BoxSplit) -> Mesh {
    box_mesh(&BoxConfig { cells: [2, 2, 1], split, ..BoxConfig::default() }).expect("a box")
}

fn are_close(found: &[f64], expected: &[f64]) {
    let size = expected.iter().fold(1.0_f64, |size, x| size.max(x.abs()));
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= 1e-12 * size), "{found:?} {expected:?}");
}

const ONE: Coefficient = Coefficient::Constant(1.0);

/// Assembles stiffness and mass of linear elements by refilling a matrix of a format.
fn refilled<M: StoredMatrix<Cpu>>(cpu: &Cpu, config: M::Config) -> M {
    let (mesh, boundary) = (cubes(BoxSplit::Kuhn), BoundaryFacets::default());
    let form =
        Form { mesh: &mesh, boundary: &boundary, sigma: &ONE, lambda: &ONE, source: &ONE, conditions: &[] };
    let mut assembly = Assembly::<f64, Cpu, M>::in_format(cpu, &mesh, config).expect("an assembly");
    let mut system = assembly.system(&form).expect("a system");
    assembly.refill(&mut system, &form).expect("the same system");
    system.matrix
}

#[test]
fn products_of_all_formats_are_those_of_rows() -> Result<(), LinalgError> {
    let cpu = cpu();
    let a: Csr<f64, Cpu> = refilled(&cpu, ());
    let x = on(&cpu, values(a.n_cols()));
    let row = |row| a.row(row).map(|(column, value)| value * x.as_slice()[column]).sum();
    let expected: Vec<f64> = (0..a.n_rows()).map(row).collect();
    let in_slices = EllWarpConfig::new(8);
    let filled: EllWarp<f64, Cpu> = refilled(&cpu, in_slices);
    let made: EllWarp<f64, Cpu> = EllWarp::from_csr(&cpu, &a, &in_slices)?;
    let all: [&dyn LinearOperator<f64, Cpu>; 3] = [&a, &filled, &made];
    for operator in all {
        let (mut y, dot) = (on(&cpu, vec![f64::NAN; a.n_rows()]), DotHook::new(a.n_rows()));
        operator.apply_with(&mut y, &x, &dot)?;
        are_close(y.as_slice(), &expected);
        are_close(&[dot.sum()], &[cpu.dot(&x, &y)?]);
    }
    Ok(())
}

#[test]
fn a_solve_and_a_step_of_a_smoother_lower_the_residual() -> Result<(), LinalgError> {
    let cpu = cpu();
    let a: Csr<f64, Cpu> = refilled(&cpu, ());
    let (n, m) = (a.n_rows(), Diagonal::new(&a)?);
    let (b, mut x) = (on(&cpu, values(n)), Buffer::zeros(&cpu, n)?);
    let outcome =
        ConjugateGradient::new(KrylovConfig::default()).solve(&mut x, &a, &m, &b, &SingleRank, &mut ())?;
    assert_eq!(outcome.stop, Stop::Converged);
    let [mut next, mut direction, mut product] =
        [vec![0.0; n], vec![0.0; n], vec![0.0; n]].map(|v| on(&cpu, v));
    let inverse_diagonal = on(&cpu, vec![0.1; n]);
    let step = Step { alpha: 0.5, beta: 0.0, is_kept: true };
    let vectors = Relaxed {
        b: &b,
        inverse_diagonal: &inverse_diagonal,
        x: &x,
        next: &mut next,
        direction: &mut direction,
        product: &mut product,
    };
    cpu.relax(&a, step, vectors)?;
    are_close(
        next.as_slice(),
        &x.as_slice().iter().zip(direction.as_slice()).map(|(x, d)| x + d).collect::<Vec<_>>(),
    );
    let mut r = Buffer::zeros(&cpu, n)?;
    cpu.relax_residual(&mut r, &mut product, &a, &x, &b)?;
    assert!(cpu.dot(&r, &r)? < 1e-12 * cpu.dot(&b, &b)?);
    Ok(())
}

/// Solves the same batch along every axis of a padded array.
fn lines<D: TridiagonalKernels<f64>>(
    device: &D,
    ends: Ends,
    stability: Stability,
) -> Result<Vec<f64>, LinalgError> {
    let layout = BatchLayout::with_strides(&[3, 3, 4], &[15, 4, 1])?;
    let n = layout.required_len();
    let bands = [0.3, 4.0, -0.7].map(|size| on(device, values(n).iter().map(|x| size + 0.1 * x).collect()));
    let bands = Bands::Arrays { lower: &bands[0], diagonal: &bands[1], upper: &bands[2] };
    let mut u = on(device, values(n));
    for axis in 0..3 {
        let config = TridiagonalConfig { ends, stability, ..TridiagonalConfig::default() };
        let mut solver = Tridiagonal::new(device, &layout, axis, config)?;
        assert!(solver.solve_in_place(&mut u, bands)?.is_solved());
    }
    Ok(u.to_host()?)
}

#[test]
fn lines_along_every_axis_are_solved_as_plain_loops_do() -> Result<(), LinalgError> {
    use {Ends::*, Stability::*};
    for (ends, stability) in [(Open, Unpivoted), (Open, PartialPivoting), (Periodic, Unpivoted)] {
        are_close(&lines(&cpu(), ends, stability)?, &lines(&Reference, ends, stability)?);
    }
    Ok(())
}

fn blocks<D: BlockTridiagonalKernels<f64>>(device: &D) -> Result<Vec<f64>, LinalgError> {
    let shape = BlockShape { block: 2, n_rows: 4, n_systems: 5, order: BlockOrder::Interleaved };
    let small = || values(shape.band_len()).iter().map(|x| 0.1 * x).collect::<Vec<_>>();
    let mut middle = small();
    middle.iter_mut().enumerate().filter(|(at, _)| [0, 3].contains(&(at % 4))).for_each(|(_, b)| *b += 3.0);
    let [lower, diagonal, upper] = [small(), middle, small()].map(|band| on(device, band));
    let bands = BlockBands { lower: &lower, diagonal: &diagonal, upper: &upper };
    let mut u = on(device, values(shape.vector_len()));
    let mut solver = BlockTridiagonal::new(device, shape, BlockTridiagonalConfig::default())?;
    assert!(solver.solve_in_place(&mut u, bands)?.is_solved());
    Ok(u.to_host()?)
}

#[test]
fn blocks_are_solved_as_plain_loops_do() -> Result<(), LinalgError> {
    are_close(&blocks(&cpu())?, &blocks(&Reference)?);
    Ok(())
}

#[test]
fn cells_gather_and_scatter_so_that_the_operator_is_symmetric() -> Result<(), LinalgError> {
    let (cpu, mesh) = (cpu(), cubes(BoxSplit::Hexahedron));
    let space = TensorSpace::new(&mesh, 2).expect("a space");
    let terms = Terms { sigma: Some(&ONE), lambda: Some(&ONE) };
    let a = MatrixFree::<f64>::new(&cpu, &space, terms, MatrixFreeConfig::default()).expect("an operator");
    let n = space.n_dofs();
    let (x, mut y) = (on(&cpu, values(n)), on(&cpu, vec![f64::NAN; n]));
    let (ones, mut mass) = (on(&cpu, vec![1.0; n]), on(&cpu, vec![f64::NAN; n]));
    a.apply(&mut y, &x)?;
    a.apply(&mut mass, &ones)?;
    are_close(&[cpu.dot(&ones, &y)?, cpu.sum(&mass)?], &[cpu.dot(&x, &mass)?, 1.0]);
    Ok(())
}

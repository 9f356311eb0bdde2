//! Multigrid: what a cycle gives, and how many iterations a solve takes.

use std::sync::Arc;

use femtile::amg::{Amg, AmgConfig, AmgKernels, Cycle, PatchFormat, Smoother};
use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{CgKernels, CgSolver, ConjugateGradient, KrylovConfig, Target};
use femtile::linalg::sparse::{Format, MatrixFormat};
use femtile::linalg::vector::Convert;
use femtile::linalg::{LinalgError, Preconditioner};

use super::Scope;
use super::problems::{CsrArrays, Random, laplacian};

/// The side of the largest grid that no device sets up itself: others group its nodes as the reference does.
const LARGEST: usize = 38;

/// A device with the kernels of cycles in both precisions, for solves in f64.
pub trait AmgDevice:
    CgKernels<f64> + AmgKernels<f32> + AmgKernels<f64> + Convert<f64, f32> + Convert<f32, f64> + Convert<f64, f64>
{
}

impl<D> AmgDevice for D where
    D: CgKernels<f64>
        + AmgKernels<f32>
        + AmgKernels<f64>
        + Convert<f64, f32>
        + Convert<f32, f64>
        + Convert<f64, f64>
{
}

fn apply<H: Scalar, D>(device: &D, parts: &CsrArrays<f64>, r: &[f64], config: &AmgConfig) -> Vec<f64>
where
    D: AmgDevice + AmgKernels<H> + Convert<f64, H> + Convert<H, f64>,
{
    let amg = Amg::<H, D>::new(&parts.on(device), None, config).unwrap();
    let mut z = Buffer::from_vec(device, vec![f64::NAN; r.len()]).unwrap();
    amg.apply(&mut z, &Buffer::from_host(device, r).unwrap()).unwrap();
    z.to_host().unwrap()
}

fn close(expected: &[f64], found: &[f64], tolerance: f64, what: &str) {
    let size = expected.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    for (i, (e, f)) in expected.iter().zip(found).enumerate() {
        assert!((e - f).abs() <= tolerance * size, "{what}: entry {i} is {f} where {e} is expected");
    }
}

/// Every polynomial smoother and cycle, in both precisions.
pub fn cycles_agree_with_the_reference<D: AmgDevice>(device: &D, scope: &Scope) {
    let n = scope.side * scope.side;
    let mut random = Random::new(11);
    let (parts, r) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    for smoother in
        [Smoother::Jacobi { sweeps: 1 }, Smoother::Jacobi { sweeps: 2 }, Smoother::Chebyshev { degree: 3 }]
    {
        for cycle in [Cycle::V, Cycle::W] {
            let config = AmgConfig { smoother, cycle, coarse_rows: 12, ..AmgConfig::default() };
            let what = format!("{config:?}");
            let double = apply::<f64, _>(&Reference, &parts, &r, &config);
            close(&double, &apply::<f64, _>(device, &parts, &r, &config), 1e-12, &what);
            let single = apply::<f32, _>(&Reference, &parts, &r, &config);
            close(&single, &apply::<f32, _>(device, &parts, &r, &config), 1e-4, &what);
        }
    }
}

/// Levels in slices of rows, all of them where they are asked for, against levels in compressed rows.
pub fn cycles_do_not_depend_on_the_format_of_levels<D: AmgDevice>(device: &D, scope: &Scope) {
    let n = scope.side * scope.side;
    let mut random = Random::new(15);
    let (parts, r) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    for smoother in [Smoother::Jacobi { sweeps: 2 }, Smoother::Chebyshev { degree: 2 }] {
        for cycle in [Cycle::V, Cycle::W] {
            let rows = AmgConfig {
                smoother,
                cycle,
                coarse_rows: 12,
                format: MatrixFormat::Csr,
                ..AmgConfig::default()
            };
            let slices = AmgConfig { format: MatrixFormat::EllWarp, ..rows.clone() };
            let amg = Amg::<f32, D>::new(&parts.on(device), None, &slices).unwrap();
            let formats = amg.hierarchy().formats();
            assert!(formats.len() > 1 && formats.iter().all(|format| matches!(format, Format::EllWarp(_))));
            let what = format!("{slices:?}");
            let double = apply::<f64, _>(device, &parts, &r, &rows);
            close(&double, &apply::<f64, _>(device, &parts, &r, &slices), 1e-12, &what);
            let single = apply::<f32, _>(device, &parts, &r, &rows);
            close(&single, &apply::<f32, _>(device, &parts, &r, &slices), 1e-4, &what);
        }
    }
}

/// Levels in slices take other values over, and give the same bits in every run.
pub fn levels_in_slices_are_refilled<D: AmgDevice>(device: &D, scope: &Scope) {
    let n = scope.side * scope.side;
    let mut random = Random::new(16);
    let [a, other] = [(); 2].map(|()| laplacian::<f64>(scope.side, &mut random).on(device));
    let r = Buffer::from_vec(device, random.vector::<f64>(n)).unwrap();
    let config = AmgConfig { coarse_rows: 12, format: MatrixFormat::EllWarp, ..AmgConfig::default() };
    let z = |amg: &Amg<f32, D>| {
        let mut z = Buffer::from_vec(device, vec![f64::NAN; n]).unwrap();
        amg.apply(&mut z, &r).unwrap();
        z.to_host().unwrap()
    };
    let mut amg = Amg::<f32, D>::new(&a, None, &config).unwrap();
    let before = z(&amg);
    amg.refill(&other, None).unwrap();
    assert_ne!(z(&amg), before);
    amg.refill(&a, None).unwrap();
    assert_eq!(z(&amg), before);
    assert!(amg.hierarchy().formats().iter().all(|format| *format != Format::Csr));
}

/// The smoother by patches with its blocks in every format, in both precisions; several patches, and one alone.
pub fn cycles_with_patches_agree_with_the_reference<D: AmgDevice>(device: &D, scope: &Scope) {
    let mut random = Random::new(13);
    for side in [scope.side, (2 * scope.side).min(LARGEST)] {
        let (parts, r) = (laplacian::<f64>(side, &mut random), random.vector::<f64>(side * side));
        for (format, inner, cycle) in [
            (PatchFormat::FullRowEll, 3, Cycle::V),
            (PatchFormat::FullRowEll, 4, Cycle::W),
            (PatchFormat::Csr, 2, Cycle::V),
            (PatchFormat::SymmetricCoo, 1, Cycle::V),
            (PatchFormat::SymmetricCoo, 3, Cycle::W),
        ] {
            let smoother = Smoother::Patch { inner, format };
            let config = AmgConfig { smoother, cycle, coarse_rows: 12, ..AmgConfig::default() };
            let what = format!("{side} nodes a side, {config:?}");
            let double = apply::<f64, _>(&Reference, &parts, &r, &config);
            close(&double, &apply::<f64, _>(device, &parts, &r, &config), 1e-12, &what);
            let single = apply::<f32, _>(&Reference, &parts, &r, &config);
            close(&single, &apply::<f32, _>(device, &parts, &r, &config), 1e-4, &what);
        }
    }
}

/// The formats without atomic operations give the same bits in every run.
pub fn cycles_with_patches_give_the_same_bits_again<D: AmgDevice>(device: &D, scope: &Scope) {
    let mut random = Random::new(14);
    let (parts, r) =
        (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(scope.side * scope.side));
    for format in [PatchFormat::FullRowEll, PatchFormat::Csr] {
        let smoother = Smoother::Patch { inner: 3, format };
        let config = AmgConfig { smoother, coarse_rows: 12, ..AmgConfig::default() };
        let bits = || apply::<f32, _>(device, &parts, &r, &config).into_iter().map(f64::to_bits);
        assert!(bits().eq(bits()), "{format:?}");
    }
}

/// A solve takes as many iterations as on the reference, give or take one.
pub fn solves_with_multigrid_converge_as_on_the_reference<D: AmgDevice>(device: &D, scope: &Scope) {
    let n = scope.side * scope.side;
    let mut random = Random::new(12);
    let (parts, b) = (laplacian::<f64>(scope.side, &mut random), random.vector::<f64>(n));
    let config = AmgConfig { coarse_rows: 12, ..AmgConfig::default() };
    let (expected, x) = solve(&Reference, &parts, &b, &config).unwrap();
    let (found, y) = solve(device, &parts, &b, &config).unwrap();
    assert!(found.abs_diff(expected) <= 1, "{found} iterations where {expected} are expected");
    close(&x, &y, 1e-8, "the solution");
}

/// Solves that are kept, levels in f32, residuals of all sizes: the bits of solves alone.
pub fn kept_solves_with_multigrid_have_the_bits_of_single_ones<D: AmgDevice>(device: &D, scope: &Scope) {
    let n = scope.side * scope.side;
    let mut random = Random::new(17);
    let parts = laplacian::<f64>(scope.side, &mut random);
    for cycle in [Cycle::V, Cycle::W] {
        let config = AmgConfig { coarse_rows: 12, cycle, ..AmgConfig::default() };
        let a = Arc::new(parts.on(device));
        let amg = Arc::new(Amg::<f32, D>::new(&a, None, &config).unwrap());
        let mut solver = CgSolver::new(a.clone(), amg.clone()).unwrap();
        let krylov = KrylovConfig { tolerance: 1e-9, ..KrylovConfig::default() };
        for exponent in [0, 1, 5, -60, -59, 30, 31] {
            let b: Vec<f64> = random.vector::<f64>(n).iter().map(|b| b * 2f64.powi(exponent)).collect();
            let (right, mut x) = (Buffer::from_host(device, &b).unwrap(), Buffer::zeros(device, n).unwrap());
            let cg = ConjugateGradient::new(krylov.clone());
            let alone = cg.solve(&mut x, a.as_ref(), amg.as_ref(), &right, &SingleRank, &mut ()).unwrap();
            solver.x_mut().upload(&vec![0.0; n]).unwrap();
            solver.b_mut().upload(&b).unwrap();
            let kept = solver.solve(&krylov, Target::RightSide, &SingleRank, &mut ()).unwrap();
            assert_eq!(
                (kept.stop, kept.residuals),
                (Stop::Converged, alone.residuals),
                "{cycle:?} {exponent}"
            );
            assert!(solver.x().to_host().unwrap() == x.to_host().unwrap(), "{cycle:?} {exponent}");
        }
    }
}

fn solve<D: AmgDevice>(
    device: &D,
    parts: &CsrArrays<f64>,
    b: &[f64],
    config: &AmgConfig,
) -> Result<(usize, Vec<f64>), LinalgError> {
    let a = parts.on(device);
    let amg = Amg::<f32, D>::new(&a, None, config).unwrap();
    let b = Buffer::from_host(device, b)?;
    let mut x = Buffer::zeros(device, b.len())?;
    let cg = ConjugateGradient::new(KrylovConfig { tolerance: 1e-10, ..KrylovConfig::default() });
    let outcome = cg.solve(&mut x, &a, &amg, &b, &SingleRank, &mut ())?;
    assert_eq!(outcome.stop, Stop::Converged);
    Ok((outcome.iterations, x.to_host()?))
}

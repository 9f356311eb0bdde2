//! Solves on a GPU by full multigrid and by Krylov methods.

use femtile::device::{Buffer, Cpu, Cuda};
use femtile::linalg::Preconditioner;
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile::multigrid::{
    BoxGrid, CudaBoxOperator, GeometricMultigrid, Multigrid, MultigridConfig, PostOrder, Smoother,
};
use femtile::sum_factorization::SumFactorization;

use super::assert_close;
use crate::suite::Scope;

fn solves<T: SumFactorization>(device: &Cuda, degree: usize, n_levels: usize) {
    let coarse = BoxGrid::new(degree, &[vec![0.3; 2], vec![0.25; 2], vec![0.4; 2]]).unwrap();
    solves_from::<T>(device, &coarse, n_levels);
}

/// Solves for an unsymmetric right-hand side, with cycles in the precision `T`.
pub(super) fn solves_from<T: SumFactorization>(device: &Cuda, coarse: &BoxGrid, n_levels: usize) {
    let (degree, smoother) = (coarse.degree(), Smoother::VertexPatch);
    let cpu = Cpu::new(1).unwrap();
    let config = MultigridConfig { smoother, ..MultigridConfig::default() };
    let reference = Multigrid::<T>::new(&cpu, coarse, n_levels, config).unwrap();
    let found = Multigrid::<T, Cuda>::new(device, coarse, n_levels, config).unwrap();
    let b = reference.grid().load(|[x, y, z]| 1.0 + x - y * y + z);
    let mut wanted = Buffer::zeros(&cpu, b.len()).unwrap();
    let side = Buffer::from_host(&cpu, &b).unwrap();
    let expected = reference.solve_full(&mut wanted, &side, 1e-10, 60).unwrap();
    let mut x = Buffer::from_vec(device, vec![f64::NAN; b.len()]).unwrap();
    let side = Buffer::from_host(device, &b).unwrap();
    let outcome = found.solve_full(&mut x, &side, 1e-10, 60).unwrap();
    // Where rounding of cycles in f32 limits the last ones, the tolerance may be missed by little.
    let more = usize::from(size_of::<T>() == 4);
    let is_alike = outcome.cycles().abs_diff(expected.cycles()) <= more;
    assert!(outcome.is_converged && is_alike, "{outcome:?} {expected:?}");
    let what = format!("degree {degree}, {n_levels} levels");
    assert_close(&x.to_host().unwrap(), wanted.as_slice(), 1e-8, &what);
    // The preconditioner is applied three times: recordings begin with the second.
    let cycle = GeometricMultigrid::<T, Cuda>::with_smoother(device, coarse, n_levels, smoother).unwrap();
    let on_cpu = GeometricMultigrid::<T>::with_smoother(&cpu, coarse, n_levels, smoother).unwrap();
    let mut z = Buffer::from_host(&cpu, &b).unwrap();
    on_cpu.apply(&mut z, &Buffer::from_host(&cpu, &b).unwrap()).unwrap();
    let tolerance = if size_of::<T>() == 4 { 3e-5 } else { 1e-12 };
    for _ in 0..3 {
        let mut found = Buffer::from_vec(device, vec![f64::NAN; b.len()]).unwrap();
        cycle.apply(&mut found, &side).unwrap();
        assert_close(&found.to_host().unwrap(), z.as_slice(), tolerance, &what);
    }
}

/// Conjugate gradients and GMRES with f32 cycles.
pub fn krylov_methods_take_cycles_and_products(device: &Cuda, _scope: &Scope) {
    let coarse = BoxGrid::unit(3, 2, 2).unwrap();
    for post in [PostOrder::Reversed, PostOrder::Same] {
        let config = MultigridConfig { post, ..MultigridConfig::default() };
        let cycle = GeometricMultigrid::from_multigrid(
            Multigrid::<f32, Cuda>::new(device, &coarse, 3, config).unwrap(),
        );
        let cycle = cycle.unwrap();
        let grid = cycle.multigrid().grid();
        let a = CudaBoxOperator::<f64>::new(device, grid).unwrap();
        let b = Buffer::from_vec(device, grid.load(|[x, y, z]| 1.0 + x - y * y + z)).unwrap();
        let mut x = Buffer::zeros(device, b.len()).unwrap();
        let outcome = match post {
            PostOrder::Reversed => {
                let method = ConjugateGradient::new(KrylovConfig::default());
                method.solve(&mut x, &a, &cycle, &b, &SingleRank, &mut ()).unwrap()
            }
            PostOrder::Same => {
                let method = Gmres::new(GmresConfig::default());
                method.solve(&mut x, &a, &cycle, &b, &SingleRank, &mut ()).unwrap()
            }
        };
        assert!(outcome.stop == Stop::Converged && outcome.iterations <= 9, "{outcome:?}");
        assert!(outcome.true_relative_residual < 2e-10, "{outcome:?}");
    }
}

/// Full multigrid, and its cycle as a preconditioner, as on the CPU.
pub fn full_multigrid_takes_the_cycles_of_the_reference(device: &Cuda, scope: &Scope) {
    solves::<f64>(device, 1, 3);
    solves::<f32>(device, 2, 3);
    solves::<f32>(device, 3, 2);
    if scope.has_every_kind {
        for degree in 4..=8 {
            solves::<f64>(device, degree, 2);
            solves::<f32>(device, degree, 3);
        }
        solves::<f32>(device, 1, 6);
    }
}

//! x·Ax of the ranks of a problem on cells, held to that of the whole.

use femtile::device::{Buffer, Cuda};
use femtile::fem::Coefficient;
use femtile::fem::dofs::TensorSpace;
use femtile::fem::tensor::CellMatrices;
use femtile::linalg::hooks::Hook;
use femtile::linalg::krylov::cg::{CgKernels, CgScalars};
use femtile::linalg::{GhostedOperator, LinalgError, LinearOperator};
use femtile::matrix_free::{CellRule, CudaMatrixFree, CudaMatrixFreeConfig, Terms};
use femtile::mesh::Mesh;
use femtile::mesh::generate::{SquareConfig, SquareSplit, square};

use super::Scope;
use super::matrix_free::{bend, cubes, deformed, side};
use super::problems::Random;

/// The rows of a rank with values of others that do not change.
struct WithGhosts {
    rows: CudaMatrixFree<f64>,
    ghosts: Buffer<f64, Cuda>,
}

impl LinearOperator<f64, Cuda> for WithGhosts {
    fn n_rows(&self) -> usize {
        GhostedOperator::n_owned(&self.rows)
    }

    fn n_cols(&self) -> usize {
        self.n_rows()
    }

    fn device(&self) -> &Cuda {
        self.ghosts.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<f64, Cuda>,
        x: &Buffer<f64, Cuda>,
        hook: &dyn Hook<f64>,
    ) -> Result<(), LinalgError> {
        self.rows.apply_ghosted(y, x, &self.ghosts, hook)
    }
}

/// Numbers with the unknowns that a rank owns first, where each vertex, edge, face and cell has an owner, and their count.
fn numbers(space: &TensorSpace<'_>, owners: &[usize], rank: usize) -> (Vec<u32>, usize) {
    let is_own: Vec<bool> = owners.iter().map(|&owner| owner == rank).collect();
    let n_owned = is_own.iter().filter(|is_own| **is_own).count();
    let (mut own, mut other) = (0, n_owned as u32);
    let number = |is_own: &bool| {
        let next = if *is_own { &mut own } else { &mut other };
        *next += 1;
        *next - 1
    };
    let numbers = is_own.iter().map(number).collect();
    assert_eq!(owners.len(), space.n_dofs());
    (numbers, n_owned)
}

/// The owner of each unknown, the same for those of an entity.
fn owners(space: &TensorSpace<'_>, n_ranks: usize, random: &mut Random) -> Vec<usize> {
    let mut starts = vec![false; space.n_dofs()];
    for cell in 0..space.n_cells() {
        space.firsts(cell).iter().for_each(|&first| starts[first as usize] = true);
    }
    let mut owner = 0;
    let of_unknown = |is_start: bool| {
        if is_start {
            owner = random.below(n_ranks);
        }
        owner
    };
    starts.into_iter().map(of_unknown).collect()
}

fn check(device: &Cuda, mesh: &Mesh, degree: usize, n_ranks: usize) {
    let mut random = Random::new(31);
    let space = TensorSpace::new(mesh, degree).unwrap();
    let (sigma, lambda) = (Coefficient::Constant(1.5), Coefficient::Constant(0.4));
    let terms = Terms { sigma: Some(&sigma), lambda: Some(&lambda) };
    let rule = CellRule::GaussLobatto;
    let given = side(mesh, degree, 0);
    let x: Vec<f64> = random.vector(space.n_dofs());
    let mut free = x.clone();
    given.iter().for_each(|&unknown| free[unknown as usize] = 0.0);
    let mut y = vec![f64::NAN; x.len()];
    CellMatrices::new(&space, &sigma, &lambda, rule).unwrap().apply(&mut y, &free).unwrap();
    let of_free: f64 = free.iter().zip(&y).map(|(x, y)| x * y).sum();
    let of_given: f64 = given.iter().map(|&unknown| x[unknown as usize].powi(2)).sum();
    let owners = owners(&space, n_ranks, &mut random);
    let mut sums = [0.0; 2];
    for rank in 0..n_ranks {
        let (numbers, n_owned) = numbers(&space, &owners, rank);
        let mut values = vec![0.0; x.len()];
        numbers.iter().zip(&x).for_each(|(&number, &x)| values[number as usize] = x);
        let own = Buffer::from_host(device, &values[..n_owned]).unwrap();
        for (sum, by_cells) in sums.iter_mut().zip([false, true]) {
            let config = CudaMatrixFreeConfig::default();
            let part = (numbers.as_slice(), n_owned);
            let rows =
                CudaMatrixFree::of_part(device, (&space, terms, rule), (&given, &[]), config, part).unwrap();
            let rows = if by_cells { rows.with_sums_of_cells().unwrap() } else { rows };
            let ghosts = Buffer::from_host(device, &values[n_owned..]).unwrap();
            let n_partials = CgKernels::<f64>::cg_partials(device, n_owned);
            let n_addends = CgKernels::<f64>::cg_addends(device);
            let mut scalars = CgScalars::new(device, 0.0, 1, n_addends, n_partials).unwrap();
            let mut y = Buffer::zeros(device, n_owned).unwrap();
            device.cg_product(&mut y, &WithGhosts { rows, ghosts }, &own, &mut scalars).unwrap();
            *sum += scalars.p_dot_q.to_host().unwrap().iter().sum::<f64>();
        }
    }
    for (found, way) in sums.into_iter().zip(["rows", "cells"]) {
        let expected = of_free + of_given;
        let error = (found - expected).abs() / expected;
        assert!(error < 1e-12, "degree {degree}, {n_ranks} ranks, by {way}: off by {error:e}");
    }
}

/// By rows and by cells, x·Ax of all ranks is that of the whole, whoever owns which vertices, edges, faces and cells.
pub fn sums_of_ranks_are_those_of_the_whole(device: &Cuda, scope: &Scope) {
    let cells = if scope.has_every_kind { [9, 8, 7] } else { [4, 3, 3] };
    let solid = deformed(cubes(cells), bend);
    let split = SquareSplit::Quadrilateral;
    let plane = square(&SquareConfig { cells: [12, 11], split, ..SquareConfig::default() }).unwrap();
    check(device, &solid, 3, 2);
    check(device, &plane, 4, 3);
    if scope.has_every_kind {
        check(device, &solid, 2, 3);
        check(device, &solid, 5, 3);
    }
    let space = TensorSpace::new(&solid, 1).unwrap();
    let one = Coefficient::Constant(1.0);
    let of_cells = (&space, Terms { sigma: Some(&one), lambda: None }, CellRule::GaussLobatto);
    let numbers: Vec<u32> = (0..space.n_dofs() as u32).collect();
    let part = (numbers.as_slice(), space.n_dofs() / 2);
    let config = CudaMatrixFreeConfig::default();
    let linear = CudaMatrixFree::<f64>::of_part(device, of_cells, (&[], &[]), config, part).unwrap();
    assert!(!linear.can_sum_cells() && linear.with_sums_of_cells().is_err(), "cells without inner unknowns");
}

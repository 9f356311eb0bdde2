//! x·Ax of the ranks of a problem on cells, held to that of the whole.

use femtile::device::{Buffer, Cuda};
use femtile::fem::Coefficient;
use femtile::fem::tensor::{CellMatrices, FacetMatrix};
use femtile::linalg::hooks::Hook;
use femtile::linalg::krylov::cg::{CgKernels, CgScalars};
use femtile::linalg::{GhostedOperator, LinalgError, LinearOperator};
use femtile::matrix_free::{CellRule, CudaMatrixFree, CudaMatrixFreeConfig, Terms};
use femtile::mesh::Mesh;
use femtile::mesh::generate::{SquareConfig, SquareSplit, square};
use femtile::space::TensorSpace;

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

/// Full matrices between unknowns that are chosen at random, as of Robin conditions.
fn facets(space: &TensorSpace<'_>, random: &mut Random) -> Vec<FacetMatrix> {
    let facet = |_| {
        let mut dofs: Vec<u32> = (0..9).map(|_| random.below(space.n_dofs()) as u32).collect();
        dofs.sort_unstable();
        dofs.dedup();
        dofs.truncate(4);
        FacetMatrix { entries: random.vector(dofs.len().pow(2)), dofs }
    };
    (0..4).map(facet).filter(|facet| facet.dofs.len() == 4).collect()
}

fn check(device: &Cuda, mesh: &Mesh, (degree, components): (usize, usize), n_ranks: usize) {
    let mut random = Random::new(31);
    let space = TensorSpace::new(mesh, degree).unwrap();
    let (sigma, lambda) = (Coefficient::Constant(1.5), Coefficient::Constant(0.4));
    let terms = Terms { sigma: Some(&sigma), lambda: Some(&lambda) };
    let rule = CellRule::GaussLobatto;
    let (given, facets, n) = (side(mesh, degree, 0), facets(&space, &mut random), space.n_dofs());
    // [unknown][component]
    let x: Vec<f64> = random.vector(n * components);
    let matrices = CellMatrices::new(&space, &sigma, &lambda, rule).unwrap();
    let mut expected = 0.0;
    for component in 0..components {
        let mut free: Vec<f64> = x.iter().skip(component).step_by(components).copied().collect();
        for &unknown in &given {
            expected += std::mem::take(&mut free[unknown as usize]).powi(2);
        }
        let mut y = vec![f64::NAN; n];
        matrices.apply(&mut y, &free).unwrap();
        expected += free.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>();
        for FacetMatrix { dofs, entries } in &facets {
            for (row, of_row) in dofs.iter().zip(entries.chunks_exact(dofs.len())) {
                let product = dofs.iter().zip(of_row).map(|(&column, entry)| entry * free[column as usize]);
                expected += free[*row as usize] * product.sum::<f64>();
            }
        }
    }
    let owners = owners(&space, n_ranks, &mut random);
    let mut sums = [0.0; 2];
    for rank in 0..n_ranks {
        let (numbers, n_owned) = numbers(&space, &owners, rank);
        let mut values = vec![0.0; x.len()];
        for (&number, x) in numbers.iter().zip(x.chunks_exact(components)) {
            values[number as usize * components..][..components].copy_from_slice(x);
        }
        let (own, others) = values.split_at(n_owned * components);
        for (sum, by_cells) in sums.iter_mut().zip([false, true]) {
            let config = CudaMatrixFreeConfig { components, ..CudaMatrixFreeConfig::default() };
            let part = (numbers.as_slice(), n_owned);
            let rows = CudaMatrixFree::local(device, (&space, terms, rule), (&given, &facets), config, part);
            let rows = if by_cells { rows.unwrap().with_sums_of_cells() } else { Ok(rows.unwrap()) };
            let (rows, ghosts) = (rows.unwrap(), Buffer::from_host(device, others).unwrap());
            let n_partials = CgKernels::<f64>::cg_partials(device, own.len());
            let n_addends = CgKernels::<f64>::cg_addends(device);
            let mut scalars = CgScalars::new(device, 0.0, 1, n_addends, n_partials).unwrap();
            let mut y = Buffer::zeros(device, own.len()).unwrap();
            let own = Buffer::from_host(device, own).unwrap();
            device.cg_product(&mut y, &WithGhosts { rows, ghosts }, &own, &mut scalars).unwrap();
            *sum += scalars.p_dot_q.to_host().unwrap().iter().sum::<f64>();
        }
    }
    for (found, way) in sums.into_iter().zip(["rows", "cells"]) {
        let error = (found - expected).abs() / expected.abs();
        assert!(error < 1e-12, "degree {degree}, {n_ranks} ranks, by {way}: off by {error:e}");
    }
}

/// By rows and by cells, x·Ax of all ranks is that of the whole, whoever owns which vertices, edges, faces and cells.
pub fn sums_of_ranks_are_those_of_the_whole(device: &Cuda, scope: &Scope) {
    let cells = if scope.has_every_kind { [9, 8, 7] } else { [4, 3, 3] };
    let solid = deformed(cubes(cells), bend);
    let split = SquareSplit::Quadrilateral;
    let plane = square(&SquareConfig { cells: [12, 11], split, ..SquareConfig::default() }).unwrap();
    check(device, &solid, (3, 1), 2);
    check(device, &plane, (4, 2), 3);
    if scope.has_every_kind {
        check(device, &solid, (2, 3), 3);
        check(device, &solid, (5, 1), 3);
    }
    let space = TensorSpace::new(&solid, 1).unwrap();
    let one = Coefficient::Constant(1.0);
    let of_cells = (&space, Terms { sigma: Some(&one), lambda: None }, CellRule::GaussLobatto);
    let numbers: Vec<u32> = (0..space.n_dofs() as u32).collect();
    let part = (numbers.as_slice(), space.n_dofs() / 2);
    let config = CudaMatrixFreeConfig::default();
    let linear = CudaMatrixFree::<f64>::local(device, of_cells, (&[], &[]), config, part).unwrap();
    assert!(!linear.can_sum_cells() && linear.with_sums_of_cells().is_err(), "cells without inner unknowns");
}

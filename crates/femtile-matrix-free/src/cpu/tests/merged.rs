//! Hooks of the loop over cells: the rows they see, and conjugate gradients with merged vector operations.

use std::ops::Range;
use std::sync::Mutex;

use femtile_device::{Buffer, Cpu};
use femtile_linalg::comm::SingleRank;
use femtile_linalg::hooks::{MergedHook, MergedOperator};
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile_linalg::krylov::merged_cg::MergedCg;
use femtile_linalg::precondition::{Diagonal, SharedDiagonal};
use femtile_linalg::{LinearOperator, Preconditioner};
use femtile_space::TensorSpace;

use super::super::*;
use super::{bend, cubes, deformed, values};
use crate::Terms;
use crate::cpu::tests::test_meshes::{ring, squares};
use femtile_fem::forms::Coefficient;
use femtile_fem::tensor::FacetMatrix;

/// Initializes x as late and reads y as early as the contract allows.
struct Recorder<'a> {
    x: &'a [f64],
    y: &'a [f64],
    before: f64,
    begun: Mutex<Vec<Range<usize>>>,
    completed: Mutex<Vec<(usize, Range<usize>)>>,
}

impl MergedHook<f64> for Recorder<'_> {
    fn pre(&self, rows: Range<usize>, x: &mut [f64], y: &[f64]) {
        assert!(y.iter().all(|&y| y == self.before), "y was written before {rows:?} began");
        x.copy_from_slice(&self.x[rows.clone()]);
        self.begun.lock().unwrap().push(rows);
    }

    fn post(&self, tile: usize, rows: Range<usize>, x: &[f64], y: &[f64]) {
        assert_eq!(x, &self.x[rows.clone()]);
        assert_eq!(y, &self.y[rows.clone()], "rows {rows:?} of tile {tile} were not complete");
        self.completed.lock().unwrap().push((tile, rows));
    }
}

pub(super) fn tiles_exactly(mut ranges: Vec<Range<usize>>, n: usize) {
    ranges.sort_by_key(|range| range.start);
    assert_eq!(ranges.first().map(|range| range.start), Some(0));
    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(ranges.last().map(|range| range.end), Some(n));
}

/// Returns all unknowns in the plane x = 0 of cubes, `cells` per side along x.
fn plane(space: &TensorSpace<'_>, cells: u32) -> Vec<u32> {
    let mut found: Vec<u32> = (0..space.n_cells())
        .filter(|&position| space.order()[position].is_multiple_of(cells))
        .flat_map(|position| {
            let mut dofs = vec![0; space.dofs_per_cell()];
            space.cell_dofs(position, &mut dofs);
            dofs.into_iter().step_by(space.degree() + 1)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn work_around_the_loop_sees_each_range_before_its_first_read_and_after_its_last_write() {
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: Some(&one) };
    let meshes = [(cubes([9, 9, 7]), 9), (deformed(squares(23, 19), bend_flat), 23), (ring(9, 1), 0)];
    for (mesh, along_x) in &meshes {
        for degree in [1, 3, 4] {
            let space = TensorSpace::new(mesh, degree).unwrap();
            let constrained = if *along_x > 0 { plane(&space, *along_x) } else { Vec::new() };
            let facet = FacetMatrix {
                dofs: vec![space.n_dofs() as u32 / 2, space.n_dofs() as u32 - 1],
                entries: vec![2.0, 1.0, 1.0, 3.0],
            };
            for components in [1, 3] {
                let config = MatrixFreeConfig {
                    constrained: &constrained,
                    facets: std::slice::from_ref(&facet),
                    components,
                    ..MatrixFreeConfig::default()
                };
                let x = values(space.n_dofs() * components);
                let mut tiles = None;
                for threads in [1, 2, 5] {
                    let cpu = Cpu::new(threads).unwrap();
                    let a = MatrixFree::<f64>::new(&cpu, &space, terms, config).unwrap();
                    let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; x.len()]).unwrap();
                    a.apply(&mut y, &Buffer::from_vec(&cpu, x.clone()).unwrap()).unwrap();
                    let recorder = Recorder {
                        x: &x,
                        y: &y.to_host().unwrap(),
                        before: 7.0,
                        begun: Mutex::default(),
                        completed: Mutex::default(),
                    };
                    let mut y = Buffer::from_vec(&cpu, vec![7.0; x.len()]).unwrap();
                    let mut given = Buffer::from_vec(&cpu, vec![f64::NAN; x.len()]).unwrap();
                    a.apply_merged(&mut y, &mut given, &recorder).unwrap();
                    let (pre, mut post) =
                        (recorder.begun.into_inner().unwrap(), recorder.completed.into_inner().unwrap());
                    post.sort_by_key(|(tile, _)| *tile);
                    assert!(post.iter().enumerate().all(|(i, (tile, _))| i == *tile));
                    assert_eq!(post.len(), a.n_tiles());
                    tiles_exactly(pre, x.len());
                    tiles_exactly(post.iter().map(|(_, rows)| rows.clone()).collect(), x.len());
                    assert_eq!(*tiles.get_or_insert_with(|| post.clone()), post, "tiles depend on threads");
                }
            }
        }
    }
}

fn bend_flat([x, y, _]: [f64; 3]) -> [f64; 3] {
    [x + 0.002 * y * y, y - 0.001 * x * y, 0.0]
}

#[test]
fn visits_begin_rows_before_cells_read_them_and_end_them_after_the_last_addition() {
    let one = Coefficient::Constant(1.0);
    let space_of = cubes([9, 8, 7]);
    let space = TensorSpace::new(&space_of, 3).unwrap();
    for (components, threads) in [(1, 1), (3, 1), (1, 4)] {
        let cpu = Cpu::new(threads).unwrap();
        let terms = Terms { sigma: Some(&one), lambda: None };
        let config = MatrixFreeConfig { components, ..MatrixFreeConfig::default() };
        let a = MatrixFree::<f64>::new(&cpu, &space, terms, config).unwrap();
        // 0: untouched, 1: begun, 2: complete; and how often each row is added to.
        let (mut states, mut added) = (vec![0; a.n_rows()], vec![0; a.n_rows()]);
        let mut n_reads = 0;
        a.cell_loop().visits(&mut |visit| match visit {
            Visit::Before(rows) => states[rows].iter_mut().for_each(|state| {
                assert_eq!(*state, 0);
                *state = 1;
            }),
            Visit::Read(rows) => {
                n_reads += rows.len();
                assert!(states[rows].iter().all(|&state| state == 1));
            }
            Visit::Add(rows) => {
                assert!(states[rows.clone()].iter().all(|&state| state == 1));
                added[rows].iter_mut().for_each(|n| *n += 1);
            }
            Visit::After(rows) => states[rows].iter_mut().for_each(|state| {
                assert_eq!(*state, 1);
                *state = 2;
            }),
        });
        assert!(states.iter().all(|&state| state == 2));
        assert_eq!(n_reads, 9 * 8 * 7 * 64 * components);
        assert_eq!(added.iter().sum::<usize>(), n_reads);
        let lives: Vec<usize> = a.cell_loop().liveliness().collect();
        assert_eq!(lives.len(), space.n_dofs().div_ceil(64));
        assert!(lives.iter().all(|&life| (1..=space.groups().len()).contains(&life)));
    }
}

#[test]
fn components_have_the_operator_each() {
    let two = Coefficient::Constant(2.0);
    let terms = Terms { sigma: Some(&two), lambda: Some(&two) };
    for mesh in [deformed(cubes([3, 2, 3]), bend), cubes([3, 3, 2]), ring(9, 1), squares(4, 3)] {
        for degree in [1, 2, 4] {
            let space = TensorSpace::new(&mesh, degree).unwrap();
            let n = space.n_dofs();
            let cpu = Cpu::new(2).unwrap();
            let constrained = [0];
            let config = MatrixFreeConfig { constrained: &constrained, ..MatrixFreeConfig::default() };
            let alone = MatrixFree::<f64>::new(&cpu, &space, terms, config).unwrap();
            for components in [2, 3] {
                let config = MatrixFreeConfig { components, ..config };
                let all = MatrixFree::<f64>::new(&cpu, &space, terms, config).unwrap();
                let x = values(n * components);
                let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; x.len()]).unwrap();
                all.apply(&mut y, &Buffer::from_vec(&cpu, x.clone()).unwrap()).unwrap();
                let diagonal = all.diagonal();
                let of_one = alone.diagonal();
                for component in 0..components {
                    let part = |v: &[f64]| -> Vec<f64> {
                        v.iter().skip(component).step_by(components).copied().collect()
                    };
                    let mut expected = Buffer::from_vec(&cpu, vec![f64::NAN; n]).unwrap();
                    alone.apply(&mut expected, &Buffer::from_vec(&cpu, part(&x)).unwrap()).unwrap();
                    let found = part(y.as_slice());
                    for (found, expected) in found.iter().zip(expected.as_slice()) {
                        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
                    }
                    for (found, expected) in part(&diagonal).iter().zip(&of_one) {
                        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
                    }
                }
            }
        }
    }
}

#[test]
fn merged_conjugate_gradients_go_the_way_of_plain_ones() {
    let (one, small) = (Coefficient::Constant(1.0), Coefficient::Constant(0.1));
    let terms = Terms { sigma: Some(&one), lambda: Some(&small) };
    for (mesh, degree, components) in [
        (deformed(cubes([5, 5, 5]), bend), 3, 1),
        (cubes([6, 5, 7]), 2, 3),
        (cubes([2, 2, 2]), 5, 1),
        (deformed(squares(11, 9), bend_flat), 4, 2),
    ] {
        let space = TensorSpace::new(&mesh, degree).unwrap();
        let config = MatrixFreeConfig { components, ..MatrixFreeConfig::default() };
        let mut first: Option<(Vec<f64>, Vec<f64>)> = None;
        for threads in [1, 2, 3] {
            let cpu = Cpu::new(threads).unwrap();
            let a = MatrixFree::<f64>::new(&cpu, &space, terms, config).unwrap();
            let inverse: Vec<f64> = a.diagonal().into_iter().map(f64::recip).collect();
            let shared: Vec<f64> = inverse.iter().step_by(components).copied().collect();
            let shared = SharedDiagonal::new(Buffer::from_vec(&cpu, shared).unwrap(), components);
            let jacobi = Diagonal::from_inverse(Buffer::from_vec(&cpu, inverse).unwrap());
            let b = Buffer::from_vec(&cpu, values(a.n_rows())).unwrap();
            let zeros = || Buffer::from_vec(&cpu, vec![0.0; a.n_rows()]).unwrap();
            let config = KrylovConfig { tolerance: 1e-10, ..KrylovConfig::default() };
            let (mut x, mut expected) = (zeros(), zeros());
            let plain = ConjugateGradient::new(config.clone())
                .solve(&mut expected, &a, &jacobi, &b, &SingleRank, &mut ())
                .unwrap();
            let merged = MergedCg::new(config).solve(&mut x, &a, &shared, &b, &SingleRank, &mut ()).unwrap();
            assert_eq!((merged.stop, plain.stop), (Stop::Converged, Stop::Converged));
            let slack = (plain.iterations / 50).max(1);
            assert!(merged.iterations.abs_diff(plain.iterations) <= slack);
            assert!(merged.true_relative_residual <= 2.0 * plain.true_relative_residual);
            for (found, expected) in merged.residuals.iter().zip(&plain.residuals).take(20) {
                assert!((found - expected).abs() <= 1e-8 * expected, "{found} {expected}");
            }
            let found = (x.to_host().unwrap(), merged.residuals);
            assert_eq!(
                *first.get_or_insert_with(|| found.clone()),
                found,
                "bits differ with {threads} threads"
            );
            let mut z = zeros();
            shared.apply(&mut z, &b).unwrap();
            let mut expected = zeros();
            jacobi.apply(&mut expected, &b).unwrap();
            assert_eq!(z.as_slice(), expected.as_slice());
        }
    }
}

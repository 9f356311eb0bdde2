//! The rows of a rank, with unknowns of others as ghosts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use femtile_fem::tensor::FacetMatrix;
use femtile_linalg::GhostedOperator;
use femtile_linalg::hooks::{DotHook, MergedHook, MergedRows, NoHook};

use super::merged::tiles_exactly;
use super::*;
use crate::local_numbering::lengths;

/// First unknown and number of unknowns of each vertex, edge, face and cell.
fn entities(space: &TensorSpace<'_>) -> BTreeMap<u32, u32> {
    let lengths = lengths(space);
    let of_cell = |position| space.firsts(position).iter().copied().zip(lengths.iter().copied());
    (0..space.n_cells()).flat_map(of_cell).filter(|(_, len)| *len > 0).collect()
}

/// Numbers entities by their class: those of class 0 and 1 are owned; of ghosts the last entities come first.
///
/// Returns the first row of class 1, and the number of owned ones, with the numbers.
fn numbers(space: &TensorSpace<'_>, class: impl Fn(u32) -> u32) -> (Vec<u32>, [usize; 2]) {
    let (mut of, mut next, mut begins) = (vec![0; space.n_dofs()], 0, [0; 2]);
    for wanted in 0..3 {
        let entities = entities(space);
        let mut those: Vec<_> = entities.into_iter().filter(|(first, _)| class(*first) == wanted).collect();
        if wanted > 0 {
            begins[wanted as usize - 1] = next as usize;
        }
        if wanted == 2 {
            those.reverse();
        }
        for (first, len) in those {
            for dof in first..first + len {
                of[dof as usize] = next;
                next += 1;
            }
        }
    }
    (of, begins)
}

fn hashed(first: u32) -> u32 {
    [0, 0, 1, 2, 0][(first.wrapping_mul(2_654_435_761) >> 20) as usize % 5]
}

/// The products of the rows of a rank are those of the whole operator.
fn rows_are_those_of_the_whole(
    space: &TensorSpace<'_>,
    constrained: &[u32],
    facets: &[FacetMatrix],
    components: usize,
    class: impl Fn(u32) -> u32,
) {
    let (one, wavy) =
        (Coefficient::Constant(1.0), Coefficient::Expression(Expression::parse("1 + x*x").unwrap()));
    let terms = Terms { sigma: Some(&wavy), lambda: Some(&one) };
    let (numbers, unknowns) = numbers(space, class);
    let n_owned = unknowns[1] * components;
    let config = MatrixFreeConfig { constrained, facets, components, ..MatrixFreeConfig::default() };
    let x = values(space.n_dofs() * components);
    let row_of = |row: usize| numbers[row / components] as usize * components + row % components;
    for level in SimdLevel::available() {
        let mut bits: Option<Vec<f64>> = None;
        for threads in [1, 3] {
            let cpu = Cpu::with_simd(threads, level).unwrap();
            let whole = MatrixFree::<f64>::new(&cpu, space, terms, config).unwrap();
            let mut expected = Buffer::from_vec(&cpu, vec![f64::NAN; x.len()]).unwrap();
            whole.apply(&mut expected, &Buffer::from_vec(&cpu, x.clone()).unwrap()).unwrap();
            let size = expected.as_slice().iter().fold(0.0_f64, |size, y| size.max(y.abs()));
            let part = MatrixFree::<f64>::local(&cpu, space, terms, config, (&numbers, unknowns)).unwrap();
            assert_eq!((part.n_owned(), GhostedOperator::n_ghosts(&part)), (n_owned, x.len() - n_owned));
            let mut mixed = vec![0.0; x.len()];
            x.iter().enumerate().for_each(|(row, &x)| mixed[row_of(row)] = x);
            let [owned, ghosts] =
                [&mixed[..n_owned], &mixed[n_owned..]].map(|x| Buffer::from_vec(&cpu, x.to_vec()).unwrap());
            let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; n_owned]).unwrap();
            let dot = DotHook::new(n_owned);
            part.apply_ghosted(&mut y, &owned, &ghosts, &dot).unwrap();
            let diagonals = (whole.diagonal(), part.diagonal());
            for (row, number) in (0..x.len()).map(|row| (row, row_of(row))).filter(|(_, row)| *row < n_owned)
            {
                let (found, expected) = (y.as_slice()[number], expected.as_slice()[row]);
                assert!((found - expected).abs() <= 1e-13 * size, "{row}: {found} and {expected}");
                let [found, expected] = [diagonals.1[number], diagonals.0[row]];
                assert!((found - expected).abs() <= 1e-13 * expected.abs(), "diagonal of {row}");
            }
            let sum: f64 = owned.as_slice().iter().zip(y.as_slice()).map(|(x, y)| x * y).sum();
            assert!((dot.sum() - sum).abs() <= 1e-12 * size * n_owned as f64);
            let first_exported = unknowns[0] * components;
            merged_products_are_the_same(&part, (owned.as_slice(), &ghosts), y.as_slice(), first_exported);
            let bits = bits.get_or_insert_with(|| y.as_slice().to_vec());
            assert!(bits == y.as_slice(), "bits differ with {threads} threads");
        }
    }
}

/// Sets x where the loop is about to read it.
struct Set<'a> {
    x: &'a [f64],
    begun: Mutex<Vec<Range<usize>>>,
    completed: Mutex<Vec<Range<usize>>>,
}

impl MergedHook<f64> for Set<'_> {
    fn pre(&self, rows: Range<usize>, x: &mut [f64], y: &[f64]) {
        assert!(y.iter().all(|y| *y == 7.0));
        x.copy_from_slice(&self.x[rows.clone()]);
        self.begun.lock().unwrap().push(rows);
    }

    fn post(&self, _: usize, rows: Range<usize>, _: &[f64], _: &[f64]) {
        self.completed.lock().unwrap().push(rows);
    }
}

/// Products with merged updates have the same bits, and what other ranks need is there before the second part.
fn merged_products_are_the_same(
    part: &MatrixFree<f64>,
    (x, ghosts): (&[f64], &Buffer<f64, Cpu>),
    expected: &[f64],
    first_exported: usize,
) {
    let (cpu, n) = (LinearOperator::device(part), x.len());
    let [mut y, mut given] = [7.0, f64::NAN].map(|value| Buffer::from_vec(cpu, vec![value; n]).unwrap());
    let set = Set { x, begun: Mutex::default(), completed: Mutex::default() };
    part.begin_merged(&mut y, &mut given, &set).unwrap();
    assert_eq!(given.as_slice()[first_exported..], x[first_exported..]);
    part.finish_merged(&mut y, &mut given, ghosts, &set).unwrap();
    assert!(y.as_slice() == expected && given.as_slice() == x);
    tiles_exactly(set.begun.into_inner().unwrap(), n);
    let completed = set.completed.into_inner().unwrap();
    assert_eq!(completed.len(), MergedRows::n_tiles(part));
    tiles_exactly(completed, n);
}

/// A matrix over some unknowns that lie apart.
fn facet(space: &TensorSpace<'_>) -> FacetMatrix {
    let n = space.n_dofs() as u32;
    FacetMatrix { dofs: vec![0, n / 3, n / 2, n - 1], entries: (0..16).map(f64::from).collect() }
}

#[test]
fn rows_of_a_rank_are_those_of_the_whole_operator() {
    let meshes =
        [cubes([4, 3, 5]), deformed(squares(7, 9), |[x, y, _]| [x + 0.01 * y * y, y, 0.0]), ring(9, 2)];
    for mesh in &meshes {
        for degree in [1, 2, 3, 5] {
            let space = TensorSpace::new(mesh, degree).unwrap();
            let corners: Vec<u32> = entities(&space).into_keys().step_by(7).collect();
            let lengths = entities(&space);
            let constrained: Vec<u32> =
                corners.into_iter().flat_map(|first| first..first + lengths[&first]).collect();
            for components in [1, 3] {
                rows_are_those_of_the_whole(&space, &constrained, &[facet(&space)], components, hashed);
            }
            // All of them, and a rank with fewer rows than an entity has.
            rows_are_those_of_the_whole(&space, &[], &[facet(&space)], 1, |_| 0);
            let (&one, _) = lengths.iter().find(|(_, len)| **len == 1).unwrap();
            for components in [1, 2] {
                let class = |first: u32| if first == one { 0 } else { 2 };
                rows_are_those_of_the_whole(&space, &[], &[], components, class);
            }
        }
    }
}

#[test]
fn numbers_and_vectors_that_do_not_fit_are_refused() {
    let mesh = cubes([2, 2, 2]);
    let space = TensorSpace::new(&mesh, 3).unwrap();
    let one = Coefficient::Constant(1.0);
    let terms = Terms { sigma: Some(&one), lambda: None };
    let cpu = Cpu::new(1).unwrap();
    let (mut numbers, [first_exported, n_owned]) = numbers(&space, hashed);
    let of = |numbers: &[u32], n_owned: usize| {
        let rows = [first_exported, n_owned];
        MatrixFree::<f64>::local(&cpu, &space, terms, MatrixFreeConfig::default(), (numbers, rows))
    };
    let part = of(&numbers, n_owned).unwrap();
    let zeros = |n| Buffer::<f64, Cpu>::zeros(&cpu, n).unwrap();
    let n_ghosts = space.n_dofs() - n_owned;
    let product = |y: usize, x: usize, ghosts: usize| {
        part.apply_ghosted(&mut zeros(y), &zeros(x), &zeros(ghosts), &NoHook)
    };
    assert!(product(n_owned, n_owned, n_ghosts).is_ok());
    for [y, x, ghosts] in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
        assert!(product(n_owned - y, n_owned - x, n_ghosts - ghosts).is_err());
    }
    // A product without ghosts would be another one.
    assert!(part.apply(&mut zeros(n_owned), &zeros(n_owned)).is_err());
    assert!(LinearOperator::merged(&part).is_none());
    assert!(of(&numbers[1..], n_owned).is_err());
    assert!(of(&numbers, space.n_dofs() + 1).is_err());
    let beyond = MatrixFree::<f64>::local(
        &cpu,
        &space,
        terms,
        MatrixFreeConfig::default(),
        (&numbers, [n_owned + 1, n_owned]),
    );
    assert!(beyond.is_err());
    // Two vertices in one place.
    let (mut vertices, mut twice) = (entities(&space), numbers.clone());
    vertices.retain(|_, len| *len == 1);
    let (&one, &other) = (vertices.keys().next().unwrap(), vertices.keys().nth(1).unwrap());
    twice[one as usize] = twice[other as usize];
    assert!(of(&twice, n_owned).is_err());
    let (last, before) = (numbers.len() - 1, numbers.len() - 2);
    numbers.swap(last, before);
    assert!(of(&numbers, n_owned).is_err());
}

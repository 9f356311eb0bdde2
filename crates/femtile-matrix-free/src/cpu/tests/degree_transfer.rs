//! Transfers between degrees: exact for polynomials, and transposes of each other.

use femtile_linalg::{LinalgError, Transfer};

use super::*;

/// Values of a function of degree `q` in every coordinate of space at the nodes of straight cells.
fn nodal<T: SumFactorization>(space: &TensorSpace<'_>, q: i32) -> Vec<T> {
    let (n, d, nodes) = (space.degree() + 1, space.dimension(), space.shapes().nodes().to_vec());
    let mut values = vec![T::from_f64(f64::NAN); space.n_dofs()];
    let mut dofs = vec![0; space.dofs_per_cell()];
    for position in 0..space.n_cells() {
        space.cell_dofs(position, &mut dofs);
        for (at, &dof) in dofs.iter().enumerate() {
            let t: Vec<f64> = (0..d).map(|a| nodes[at / n.pow(a as u32) % n]).collect();
            let mut point = [0.0; 3];
            for (bits, &node) in space.corners(position).iter().enumerate() {
                let weight: f64 =
                    (0..d).map(|a| if bits >> a & 1 == 1 { t[a] } else { 1.0 - t[a] }).product();
                (0..3).for_each(|a| point[a] += weight * space.mesh().points[node as usize][a]);
            }
            let [x, y, z] = point;
            values[dof as usize] =
                T::from_f64(x.powi(q) - 0.3 * y.powi(q) * x + 0.5 * z.powi(q - 1) * y + 0.1);
        }
    }
    values
}

/// Cells along the axes, so that what is a polynomial in space is one on every cell.
fn straight(dimension: usize) -> Mesh {
    if dimension == 2 { squares(3, 5) } else { cubes([3, 2, 2]) }
}

fn buffer<T: SumFactorization>(cpu: &Cpu, values: Vec<T>) -> Buffer<T, Cpu> {
    Buffer::from_vec(cpu, values).unwrap()
}

fn dot<T: SumFactorization>(x: &[T], y: &[T]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
}

fn check_polynomials<T: SumFactorization + Lanes>(dimension: usize, [low, high]: [usize; 2], tolerance: f64) {
    let mesh = straight(dimension);
    let [coarse, fine] = [low, high].map(|degree| TensorSpace::new(&mesh, degree).unwrap());
    let cpu = Cpu::new(2).unwrap();
    let transfer = DegreeTransfer::<T>::new(&cpu, (&coarse, &[]), (&fine, &[])).unwrap();
    assert_eq!((transfer.n_coarse(), transfer.n_fine()), (coarse.n_dofs(), fine.n_dofs()));
    // Corrections are added to what is there.
    let mut x = buffer(&cpu, vec![T::ONE; fine.n_dofs()]);
    transfer.prolongate(&mut x, &buffer(&cpu, nodal(&coarse, low as i32))).unwrap();
    let expected = nodal::<f64>(&fine, low as i32);
    let size = expected.iter().fold(1.0_f64, |size, x| size.max(x.abs()));
    for (found, expected) in x.as_slice().iter().zip(expected) {
        let error = (found.to_f64() - 1.0 - expected).abs() / size;
        assert!(error <= tolerance, "{dimension}-D, {low} to {high}: off by {error:e}");
    }
}

#[test]
fn polynomials_of_the_lower_degree_are_carried_over_exactly() {
    for dimension in [2, 3] {
        for degrees in [[1, 2], [1, 4], [2, 3], [2, 5], [3, 6], [4, 7], [1, 1]] {
            check_polynomials::<f64>(dimension, degrees, 1e-13);
            check_polynomials::<f32>(dimension, degrees, 1e-5);
        }
    }
}

/// Whole entities: everything on cells' sides where some corner coordinate is lowest.
fn constrained(space: &TensorSpace<'_>) -> Vec<u32> {
    let lowest = space.mesh().points.iter().fold(f64::INFINITY, |low, point| low.min(point[0]));
    let (n, mut dofs, mut found) = (space.degree() + 1, vec![0; space.dofs_per_cell()], Vec::new());
    for position in 0..space.n_cells() {
        space.cell_dofs(position, &mut dofs);
        for axis in 0..space.dimension() {
            for end in [0, 1] {
                let on_side = |bits: usize| bits >> axis & 1 == end;
                let corners = space.corners(position).iter().enumerate().filter(|(bits, _)| on_side(*bits));
                let is_low = |node: u32| space.mesh().points[node as usize][0] < lowest + 1e-9;
                if corners.into_iter().all(|(_, &node)| is_low(node)) {
                    let at_end = |at: &usize| at / n.pow(axis as u32) % n == end * (n - 1);
                    found.extend((0..dofs.len()).filter(at_end).map(|at| dofs[at]));
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn check_transpose<T: SumFactorization + Lanes>(mesh: &Mesh, [low, high]: [usize; 2], tolerance: f64) {
    let [coarse, fine] = [low, high].map(|degree| TensorSpace::new(mesh, degree).unwrap());
    let [given, given_above] = [&coarse, &fine].map(constrained);
    let random = |n: usize| values(n).into_iter().map(T::from_f64).collect::<Vec<_>>();
    for level in SimdLevel::available() {
        let mut first: Option<[Vec<T>; 2]> = None;
        for threads in [1, 2, 3] {
            let cpu = Cpu::with_simd(threads, level).unwrap();
            let transfer = DegreeTransfer::<T>::new(&cpu, (&coarse, &given), (&fine, &given_above)).unwrap();
            let (e, r) = (buffer(&cpu, random(coarse.n_dofs())), buffer(&cpu, random(fine.n_dofs())));
            let mut raised = Buffer::zeros(&cpu, fine.n_dofs()).unwrap();
            transfer.prolongate(&mut raised, &e).unwrap();
            let mut lowered = buffer(&cpu, vec![T::from_f64(f64::NAN); coarse.n_dofs()]);
            transfer.restrict(&mut lowered, &r).unwrap();
            let (there, back) = (dot(raised.as_slice(), r.as_slice()), dot(e.as_slice(), lowered.as_slice()));
            let size =
                dot(raised.as_slice(), raised.as_slice()).sqrt() * dot(r.as_slice(), r.as_slice()).sqrt();
            assert!((there - back).abs() <= tolerance * size, "{low} to {high}: {there} and {back}");
            assert!(given.iter().all(|&dof| lowered.as_slice()[dof as usize] == T::ZERO));
            assert!(given_above.iter().all(|&dof| raised.as_slice()[dof as usize] == T::ZERO));
            let found = [raised, lowered].map(|x| x.as_slice().to_vec());
            assert!(
                first.get_or_insert_with(|| found.clone()) == &found,
                "bits differ with {threads} threads"
            );
        }
    }
}

#[test]
fn restrictions_are_transposes_also_with_given_values_and_cells_in_disorder() {
    for mesh in [deformed(cubes([5, 3, 3]), bend), squares(7, 4), ring(9, 0), ring(9, 1), ring(7, 2)] {
        for degrees in [[1, 2], [2, 4], [1, 3], [3, 5]] {
            check_transpose::<f64>(&mesh, degrees, 1e-14);
            check_transpose::<f32>(&mesh, degrees, 1e-6);
        }
    }
}

#[test]
fn vectors_of_another_length_are_refused_by_name() {
    let mesh = squares(2, 2);
    let [coarse, fine] = [1, 2].map(|degree| TensorSpace::new(&mesh, degree).unwrap());
    let cpu = Cpu::new(1).unwrap();
    let transfer = DegreeTransfer::<f64>::new(&cpu, (&coarse, &[]), (&fine, &[])).unwrap();
    let zeros = |n: usize| buffer(&cpu, vec![0.0; n]);
    for (n_fine, n_coarse, name) in [(9, 9, "x"), (25, 25, "e")] {
        let error = transfer.prolongate(&mut zeros(n_fine), &zeros(n_coarse)).unwrap_err();
        assert!(matches!(error, LinalgError::Length { field, .. } if field == name), "{error}");
    }
    for (n_fine, n_coarse, name) in [(9, 9, "r"), (25, 25, "b")] {
        let error = transfer.restrict(&mut zeros(n_coarse), &zeros(n_fine)).unwrap_err();
        assert!(matches!(error, LinalgError::Length { field, .. } if field == name), "{error}");
    }
}

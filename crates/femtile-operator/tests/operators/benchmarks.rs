//! Benchmarks of solid mechanics with published results.

use femtile_form::{Argument, Coefficient, Equation};
use femtile_mesh::check::boundary_facets;
use femtile_mesh::{CellKind, Curved, Mesh};
use femtile_operator::DiscreteForm;
use femtile_space::{LinearRelation, PointMap, Space};

use crate::problems::{dofs_on, facets_where, given, nodes, solve};

/// Returns a mesh of quadrilaterals or hexahedra that are the images of the cells of a grid on the unit square or cube, with
/// cells of degree `order`.
fn mapped(n: &[usize], order: usize, map: impl Fn([f64; 3]) -> [f64; 3]) -> Mesh {
    let d = n.len();
    let count = |axis: usize, per_cell: usize| if axis < d { n[axis] * per_cell + 1 } else { 1 };
    let grid = |per_cell: usize| -> Vec<[f64; 3]> {
        let [nx, ny, nz] = [0, 1, 2].map(|axis| count(axis, per_cell));
        let place =
            |i: usize, axis: usize| if axis < d { i as f64 / (n[axis] * per_cell) as f64 } else { 0.0 };
        let at = |i: usize| [place(i % nx, 0), place(i / nx % ny, 1), place(i / (nx * ny), 2)];
        (0..nx * ny * nz).map(|i| map(at(i))).collect()
    };
    // The points of a cell in a grid, the first axis fastest.
    let of_cells = |per_cell: usize| -> Vec<Vec<u32>> {
        let [nx, ny, _] = [0, 1, 2].map(|axis| count(axis, per_cell));
        let cells = |axis: usize| if axis < d { n[axis] } else { 1 };
        let inner = |axis: usize| if axis < d { per_cell + 1 } else { 1 };
        let mut found = Vec::new();
        for cell in 0..cells(0) * cells(1) * cells(2) {
            let first = [cell % cells(0), cell / cells(0) % cells(1), cell / (cells(0) * cells(1))];
            let mut points = Vec::new();
            for k in 0..inner(2) {
                for j in 0..inner(1) {
                    for i in 0..inner(0) {
                        let at = [first[0] * per_cell + i, first[1] * per_cell + j, first[2] * per_cell + k];
                        points.push((at[0] + nx * (at[1] + ny * at[2])) as u32);
                    }
                }
            }
            found.push(points);
        }
        found
    };
    let kind = if d == 2 { CellKind::Quadrilateral } else { CellKind::Hexahedron };
    let vtk: &[usize] = if d == 2 { &[0, 1, 3, 2] } else { &[0, 1, 3, 2, 4, 5, 7, 6] };
    let cells = of_cells(1).iter().flat_map(|corners| vtk.iter().map(|&corner| corners[corner])).collect();
    let mut mesh = Mesh::new(grid(1), kind, cells).unwrap();
    mesh.curved = Some(Curved { order, points: grid(order), cells: of_cells(order).concat() });
    mesh
}

/// Returns the gradients of the components of u at a corner of the mesh, from the first of its cells.
fn gradient_at(space: &Space<'_>, u: &[f64], place: [f64; 3]) -> Vec<[f64; 3]> {
    let d = space.mesh().dimension();
    let (mut map, mut dofs) = (PointMap::default(), vec![0; space.element().n_dofs()]);
    for position in 0..space.n_cells() {
        let corners = space.corners(position);
        let is_it =
            |&node: &u32| (0..3).all(|a| (space.mesh().points[node as usize][a] - place[a]).abs() < 1e-9);
        let Some(corner) = corners.iter().position(is_it) else { continue };
        let at = std::array::from_fn(|axis| f64::from((corner >> axis & 1) as u8));
        space.map(position, &[at], &mut map).unwrap();
        space.cell_dofs(position, &mut dofs);
        let table = space.element().tabulate(&[at]);
        let inverse = femtile_space::geometry::inverse(&map.jacobians[0]);
        let of = |c: usize| {
            std::array::from_fn(|axis| {
                let slope =
                    |i: usize| (0..d).map(|a| inverse[a][axis] * table.gradients(0)[i][a]).sum::<f64>();
                dofs.iter().enumerate().map(|(i, &dof)| u[dof as usize * d + c] * slope(i)).sum()
            })
        };
        return (0..d).map(of).collect();
    }
    panic!("no corner at {place:?}");
}

fn ellipse(s: f64, angle: f64) -> [f64; 2] {
    let [x, y] = [angle.cos(), angle.sin()];
    [(1.0 - s) * 2.0 * x + s * 3.25 * x, (1.0 - s) * y + s * 2.75 * y]
}

/// NAFEMS LE1: an elliptic membrane under outward pressure on its outer edge; σ_yy at the inner end of the x axis is 92.7 MPa.
#[test]
fn the_elliptic_membrane_has_the_stress_of_nafems_le1() {
    let quarter = std::f64::consts::FRAC_PI_2;
    let mesh = mapped(&[3, 5], 4, |[s, t, _]| {
        let [x, y] = ellipse(s, quarter * t);
        [x, y, 0.0]
    });
    let (boundary, space) = (boundary_facets(&mesh), Space::new(&mesh, 6).unwrap());
    let is_outer = |[x, y, _]: [f64; 3]| ((x / 3.25).powi(2) + (y / 2.75).powi(2) - 1.0).abs() < 1e-9;
    let outer = facets_where(&mesh, &boundary, is_outer);
    assert_eq!(outer.len(), 5);
    let equation = Equation::named("elasticity").unwrap();
    let form = equation.form(2).with("young", 210e3).unwrap().with("poisson", 0.3).unwrap();
    let form = form.with("plane_stress", 1.0).unwrap();
    let form =
        form.on_boundary("pressure", &outer, &[("value", Argument::from(-10.0))]).unwrap().build().unwrap();
    let on =
        |axis: usize| dofs_on(&space, &boundary, &facets_where(&mesh, &boundary, |x| x[axis].abs() < 1e-9));
    let fixed = |axis: usize| -> Vec<LinearRelation> {
        on(axis).into_iter().map(|dof| given(2 * dof + axis as u32, 0.0)).collect()
    };
    let u = solve(DiscreteForm::new(&space, &form, &boundary).unwrap(), &[fixed(0), fixed(1)].concat());
    let gradient = gradient_at(&space, &u, [2.0, 0.0, 0.0]);
    let stress = 210e3 / (1.0 - 0.09) * (gradient[1][1] + 0.3 * gradient[0][0]);
    assert!((stress - 92.7).abs() < 0.1, "{stress}");
}

/// NAFEMS LE10: a thick elliptic plate under pressure on its upper face; σ_yy at the upper inner end of the x axis is
/// −5.38 MPa.
#[test]
fn the_thick_plate_has_the_stress_of_nafems_le10() {
    let quarter = std::f64::consts::FRAC_PI_2;
    let mesh = mapped(&[3, 4, 2], 3, |[s, t, z]| {
        let [x, y] = ellipse(s, quarter * t);
        [x, y, 0.6 * z]
    });
    let (boundary, space) = (boundary_facets(&mesh), Space::new(&mesh, 4).unwrap());
    let where_ = |is_in: &dyn Fn([f64; 3]) -> bool| facets_where(&mesh, &boundary, is_in);
    let upper = where_(&|x| (x[2] - 0.6).abs() < 1e-9);
    let equation = Equation::named("elasticity").unwrap();
    let form = equation.form(3).with("young", 210e3).unwrap().with("poisson", 0.3).unwrap();
    let form =
        form.on_boundary("pressure", &upper, &[("value", Argument::from(1.0))]).unwrap().build().unwrap();
    let mut relations = Vec::new();
    for axis in [0, 1] {
        let symmetry = dofs_on(&space, &boundary, &where_(&|x| x[axis].abs() < 1e-9));
        relations.extend(symmetry.into_iter().map(|dof| given(3 * dof + axis as u32, 0.0)));
    }
    let is_outer = |[x, y, _]: [f64; 3]| ((x / 3.25).powi(2) + (y / 2.75).powi(2) - 1.0).abs() < 1e-9;
    let places = nodes(&space);
    for dof in dofs_on(&space, &boundary, &where_(&is_outer)) {
        relations.extend([0, 1].map(|axis| given(3 * dof + axis, 0.0)));
        if (places[dof as usize][2] - 0.3).abs() < 1e-9 {
            relations.push(given(3 * dof + 2, 0.0));
        }
    }
    let u = solve(DiscreteForm::new(&space, &form, &boundary).unwrap(), &relations);
    let gradient = gradient_at(&space, &u, [2.0, 0.0, 0.6]);
    let (mu, lambda) = (210e3 / 2.6, 210e3 * 0.3 / (1.3 * 0.4));
    let trace = gradient[0][0] + gradient[1][1] + gradient[2][2];
    let stress = 2.0 * mu * gradient[1][1] + lambda * trace;
    assert!((stress + 5.38).abs() < 0.06, "{stress}");
}

/// Cook's membrane in plane stress: the middle of the loaded end rises by 23.96.
#[test]
fn cooks_membrane_rises_as_published() {
    let rise = |n: usize, degree: usize| {
        let mesh = mapped(&[n, n], 1, |[s, t, _]| [48.0 * s, 44.0 * s + t * (44.0 + (16.0 - 44.0) * s), 0.0]);
        let (boundary, space) = (boundary_facets(&mesh), Space::new(&mesh, degree).unwrap());
        let at = |x: f64| facets_where(&mesh, &boundary, |point| (point[0] - x).abs() < 1e-9);
        let equation = Equation::named("elasticity").unwrap();
        let form = equation.form(2).with("young", 1.0).unwrap().with("poisson", 1.0 / 3.0).unwrap();
        let traction = Argument::from(vec![Coefficient::Constant(0.0), Coefficient::Constant(1.0 / 16.0)]);
        let form = form.with("plane_stress", 1.0).unwrap();
        let form = form.on_boundary("traction", &at(48.0), &[("value", traction)]).unwrap().build().unwrap();
        let clamped = dofs_on(&space, &boundary, &at(0.0));
        let relations: Vec<LinearRelation> =
            clamped.into_iter().flat_map(|dof| [given(2 * dof, 0.0), given(2 * dof + 1, 0.0)]).collect();
        let u = solve(DiscreteForm::new(&space, &form, &boundary).unwrap(), &relations);
        let is_end = |place: &[f64; 3]| (place[0] - 48.0).abs() < 1e-9 && (place[1] - 52.0).abs() < 1e-9;
        let end = nodes(&space).iter().position(is_end).unwrap();
        u[2 * end + 1]
    };
    let (coarse, fine, finest) = (rise(2, 1), rise(8, 1), rise(8, 4));
    assert!(coarse < fine && fine < finest, "{coarse}, {fine}, {finest}");
    assert!((finest - 23.96).abs() < 0.03, "{finest}");
}

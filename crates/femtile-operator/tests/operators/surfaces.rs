//! Surfaces in space: moved planes, spheres, cones, sheets that meet.

use femtile_device::Cpu;
use femtile_form::{Coefficient, Equation, Form};
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{DeformConfig, SphereConfig, SquareSplit, sphere};
use femtile_mesh::{CellKind, Mesh};
use femtile_operator::{CpuOperator, DiscreteForm, State, reference};
use femtile_space::Space;

use crate::meshes::{into_space, mesh};
use crate::problems::{distance, errors, facets_where, formula, orders, solve};
use crate::random::numbers;

/// A rotation of space about an axis that is none of its own.
fn rotated([x, y, z]: [f64; 3]) -> [f64; 3] {
    let rows = [[2.0, -1.0, 2.0], [2.0, 2.0, -1.0], [-1.0, 2.0, 2.0]];
    rows.map(|row| (row[0] * x + row[1] * y + row[2] * z) / 3.0)
}

fn form_of(text: &str, mesh: &Mesh, facets: &[u32]) -> Form {
    let builder = Equation::from_toml("test", text).unwrap();
    let builder = builder.form(mesh.space_dimension());
    builder.on_boundary("side", facets, &[]).unwrap().build().unwrap()
}

#[test]
fn residual_and_matrix_of_a_moved_plane_are_those_of_the_plane() {
    // Two unknowns that meet in all their parts, with a flux and a Robin condition on some edges.
    let text = r#"
        unknown = { u = {}, v = {} }
        [cells]
        flux = { u = "(1 + v^2)*grad(u) + u*grad(v)", v = "exp(-u^2)*grad(v)" }
        source = { u = "t - u^3 + grad(u).grad(v)", v = "-v" }
        capacity = { u = "1 + u^2", v = "2" }
        [boundary.side]
        flux = { u = "3*(t - u)", v = "grad(v).normal*u" }
    "#;
    for kind in [CellKind::Triangle, CellKind::Quadrilateral] {
        for (degree, order) in [(1, 1), (2, 2), (3, 1)] {
            let order = if kind == CellKind::Triangle { 1 } else { order };
            let plane = mesh(kind, [4, 3, 1], Some(DeformConfig { amplitude: 0.05, order }));
            let moved = into_space(&plane, |point| rotated(point).map(|x| x + 0.5));
            let found = [&plane, &moved].map(|mesh| {
                let boundary = boundary_facets(mesh);
                let facets: Vec<u32> = (0..boundary.len() as u32).step_by(2).collect();
                let form = form_of(text, mesh, &facets);
                let space = Space::new(mesh, degree).unwrap();
                let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
                let n = discrete.n_unknowns();
                // The order of quadrilaterals depends on where they lie: unknowns by place.
                let nodes = crate::problems::nodes(&space);
                let place = |dof: usize| {
                    let [x, y, z] = nodes[dof].map(|x| x - 0.5);
                    match mesh.is_surface {
                        // The transpose of a rotation is its inverse.
                        true => [(2.0 * x + 2.0 * y - z) / 3.0, (-x + 2.0 * y + 2.0 * z) / 3.0],
                        false => [x + 0.5, y + 0.5],
                    }
                };
                let value = |unknown: usize, k: f64| {
                    let [x, y] = place(unknown / 2);
                    (k * x + unknown as f64 % 2.0).sin() + k * y * y
                };
                let u: Vec<f64> = (0..n).map(|i| value(i, 1.3)).collect();
                let rate: Vec<f64> = (0..n).map(|i| value(i, 0.7)).collect();
                let state = State { u: &u, rate: &rate, time: 0.4, shift: 1.5 };
                let mut r = vec![f64::NAN; n];
                reference::residual(&discrete, &state, &mut r).unwrap();
                let direction: Vec<f64> = (0..n).map(|i| value(i, -2.0)).collect();
                let mut y = vec![f64::NAN; n];
                reference::apply(&discrete, &state, &direction, &mut y).unwrap();
                let mut of_place: Vec<([i64; 3], f64, f64)> = (0..n)
                    .map(|i| {
                        let [x, z] = place(i / 2).map(|x| (x * 1e8).round() as i64);
                        ([x, z, i as i64 % 2], r[i], y[i])
                    })
                    .collect();
                of_place.sort_by_key(|(at, ..)| *at);
                of_place
            });
            assert_eq!(found[0].len(), found[1].len());
            for (plane, moved) in found[0].iter().zip(&found[1]) {
                let what = format!("{kind} of degree {degree}: {plane:?} {moved:?}");
                assert_eq!(plane.0, moved.0, "{what}");
                assert!((plane.1 - moved.1).abs() < 1e-13 && (plane.2 - moved.2).abs() < 1e-12, "{what}");
            }
        }
    }
}

/// Solves −Δu + u = 7xy on the unit sphere, where xy is an eigenfunction of −Δ with 6; returns the errors.
fn errors_on_sphere(degree: usize, cells: usize, split: SquareSplit, order: usize) -> [f64; 2] {
    let mesh = sphere(&SphereConfig { radius: 1.0, cells, split, order }).unwrap();
    let text = "unknown = { u = {} }\ncells = { flux = \"grad(u)\", source = \"7*x*y - u\" }";
    let form = Equation::from_toml("sphere", text).unwrap().form(3).build().unwrap();
    errors(&mesh, degree, &form, &[formula("x*y")])
}

#[test]
fn a_harmonic_of_the_sphere_converges_with_the_degree_on_curved_cells() {
    for (degree, cells) in [(1, [6, 12]), (2, [4, 8]), (3, [3, 6]), (4, [3, 6])] {
        let of = |cells| errors_on_sphere(degree, cells, SquareSplit::Quadrilateral, degree.max(2));
        let found = orders(of(cells[0]), of(cells[1]), 2.0);
        let expected = degree as f64;
        assert!(found[0] > expected + 0.8 && found[1] > expected - 0.2, "degree {degree}: {found:?}");
    }
}

#[test]
fn linear_triangles_and_straight_quadrilaterals_of_a_sphere_have_orders_two_and_one() {
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        let found = orders(errors_on_sphere(1, 6, split, 1), errors_on_sphere(1, 12, split, 1), 2.0);
        assert!((found[0] - 2.0).abs() < 0.15 && (found[1] - 1.0).abs() < 0.15, "{split:?}: {found:?}");
    }
}

#[test]
fn heat_flows_down_a_cone_as_the_logarithm_of_the_distance_from_its_tip() {
    // Slant distances 1 to e from the tip, the half angle of the cone arbitrary: u = ln s from 0 to 1, constant around it.
    let text = "unknown = { u = {} }\ncells = { flux = \"grad(u)\" }\nboundary.side = { flux = \"0*u\" }";
    let (sine, cosine) = (0.6, 0.8);
    let cone = |n: usize| {
        let config = Some(DeformConfig { amplitude: 0.0, order: 3 });
        into_space(&mesh(CellKind::Quadrilateral, [n, n, 1], config), |[x, y, _]| {
            let s = 1.0 + (1f64.exp() - 1.0) * x;
            [s * sine * y.cos(), s * sine * y.sin(), s * cosine]
        })
    };
    let exact = [formula("ln(sqrt(x^2 + y^2)/0.6)")];
    let error = |n: usize| {
        let mesh = cone(n);
        let boundary = boundary_facets(&mesh);
        let ends = facets_where(&mesh, &boundary, |[.., z]| z < 0.8 + 1e-9 || z > 0.8 * 1f64.exp() - 1e-9);
        let sides: Vec<u32> = (0..boundary.len() as u32).filter(|facet| !ends.contains(facet)).collect();
        let form = form_of(text, &mesh, &sides);
        let space = Space::new(&mesh, 2).unwrap();
        let nodes = crate::problems::nodes(&space);
        let held = crate::problems::dofs_on(&space, &boundary, &ends);
        let relations: Vec<_> = held
            .into_iter()
            .map(|dof| crate::problems::given(dof, exact[0].eval(nodes[dof as usize])))
            .collect();
        let u = solve(DiscreteForm::new(&space, &form, &boundary).unwrap(), &relations);
        distance(&space, &u, &exact)
    };
    let found = orders(error(3), error(6), 2.0);
    assert!(found[0] > 2.8 && found[1] > 1.8, "{found:?}");
}

#[test]
fn flat_parts_in_the_plane_of_a_surface_are_surfaces() {
    // A plane that is told to be a surface has the integrals of the plane, with three entries of the gradient.
    let text = "unknown = { u = {} }\ncells = { energy = \"grad(u).grad(u) + u^2\" }";
    let plane = mesh(CellKind::Quadrilateral, [3, 4, 1], Some(DeformConfig { amplitude: 0.05, order: 2 }));
    let surface = into_space(&plane, |point| point);
    let energies = [&plane, &surface].map(|mesh| {
        let form = Equation::from_toml("energy", text).unwrap().form(mesh.space_dimension()).build().unwrap();
        let (space, boundary) = (Space::new(mesh, 2).unwrap(), boundary_facets(mesh));
        let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
        let u = numbers(discrete.n_unknowns(), 3);
        let operator = CpuOperator::new(discrete, &Cpu::new(1).unwrap()).unwrap();
        let energy = operator.energy(&State::of(&u)).unwrap();
        let of_reference = reference::energy(&discrete, &State::of(&u)).unwrap();
        assert!((energy - of_reference).abs() < 1e-12 * energy);
        energy
    });
    assert!((energies[0] - energies[1]).abs() < 1e-12 * energies[0], "{energies:?}");
}

#[test]
fn three_sheets_that_meet_at_an_edge_share_the_flux() {
    // Sheets from the z axis along x, along y and back along −x: held at 1 and 0 at the ends of two, the third one hangs.
    let mut points = Vec::new();
    let n = 4usize;
    for i in 0..=n {
        points.push([0.0, 0.0, i as f64 / n as f64]);
    }
    let mut cells = Vec::new();
    for along in [[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]] {
        let first = points.len() as u32;
        for i in 0..=n {
            points.push([along[0], along[1], i as f64 / n as f64]);
        }
        for i in 0..n as u32 {
            cells.extend([i, first + i, first + i + 1, i + 1]);
        }
    }
    let mut sheets = Mesh::new(points, CellKind::Quadrilateral, cells).unwrap();
    femtile_mesh::check::check(&mut sheets, &Default::default()).unwrap();
    let text = "unknown = { u = {} }\ncoefficients = { k = {} }\ncells = { flux = \"k*grad(u)\" }";
    let equation = Equation::from_toml("sheets", text).unwrap();
    let form = equation.form(3).with("k", Coefficient::Constant(3.0)).unwrap().build().unwrap();
    let boundary = boundary_facets(&sheets);
    for degree in [1, 2] {
        let space = Space::new(&sheets, degree).unwrap();
        let nodes = crate::problems::nodes(&space);
        let held = |is_in: fn([f64; 3]) -> bool, value| {
            (0..space.n_dofs() as u32)
                .filter(|&dof| is_in(nodes[dof as usize]))
                .map(|dof| crate::problems::given(dof, value))
                .collect::<Vec<_>>()
        };
        let mut relations = held(|[x, ..]| x > 1.0 - 1e-9, 1.0);
        relations.extend(held(|[_, y, _]| y > 2.0 - 1e-9, 0.0));
        let u = solve(DiscreteForm::new(&space, &form, &boundary).unwrap(), &relations);
        // The way from one end to the other has the lengths 1 and 2.
        for (u, &[x, y, _]) in u.iter().zip(&nodes) {
            let expected = match () {
                () if x > 1e-9 => 2.0 / 3.0 + x / 3.0,
                () if x < -1e-9 => 2.0 / 3.0,
                () => 2.0 / 3.0 - y / 3.0,
            };
            assert!((u - expected).abs() < 1e-10, "degree {degree}: {u} at ({x}, {y})");
        }
    }
}

//! Recovered gradients, error estimates, values at many points.

use crate::common;

use common::curved::{blocks, solve_without_matrix, waves};
use common::manufactured::{IDENTITY, manufactured, parse};
use common::{Problem, Random, constant, disturbed, expression, unit_mesh};
use femtile_device::Cpu;
use femtile_element::Affine;
use femtile_expression::{Expression, Variable};
use femtile_fem::recovery::RecoveredGradient;
use femtile_fem::{Coefficient, Condition, Form, functionals};
use femtile_space::geometry::{CellMap, CellMaps, CellRule, inverse};
use femtile_space::{Space, TensorSpace};

const U2: &str = "sin(2*x + 1)*exp(y/2) + x*y^2";
const U3: &str = "sin(2*x + 1)*exp(y/2)*cos(z) + x*y*z";

fn cpu() -> Cpu {
    Cpu::new(2).unwrap()
}

fn exact_gradient(u: &str, dimension: usize) -> Vec<Expression> {
    [Variable::X, Variable::Y, Variable::Z][..dimension]
        .iter()
        .map(|&axis| parse(u).derivative(axis))
        .collect()
}

/// Returns the largest error of a gradient at nodes further than `margin` from the boundary of the unit box.
fn largest_error(points: &[[f64; 3]], found: &[f64], exact: &[Expression], margin: f64) -> f64 {
    let is_inside = |p: &[f64; 3]| p[..exact.len()].iter().all(|x| (margin..=1.0 - margin).contains(x));
    let pairs = points.iter().zip(found.as_chunks::<3>().0).filter(|(p, _)| is_inside(p));
    pairs.flat_map(|(p, g)| exact.iter().zip(g).map(|(e, g)| (e.eval(*p) - g).abs())).fold(0.0, f64::max)
}

#[test]
fn quadratic_functions_have_their_gradient_at_all_nodes_of_disturbed_meshes() {
    let mut random = Random(3);
    for (dimension, n, u) in
        [(2, 6, "1 + x - 2*y + x*y - 3*x^2 + y^2"), (3, 4, "x*y - 2*y*z + z^2 - x^2 + x - y")]
    {
        let mut problem = Problem::new(disturbed(unit_mesh(dimension, n), n, 0.4, &mut random));
        problem.sigma = expression("1 + x");
        let (exact, mesh) = (parse(u), &problem.mesh);
        let values: Vec<f64> = mesh.points.iter().map(|&p| exact.eval(p)).collect();
        let form = problem.form();
        let recovered = RecoveredGradient::new(problem.space(), &form, &values).unwrap();
        let gradient = recovered.at_nodes();
        let parts = exact_gradient(u, dimension);
        let error = largest_error(&mesh.points, &gradient, &parts, -1.0);
        assert!(error < 1e-11, "{dimension}-D: {error:e}");
        for ((p, g), q) in
            mesh.points.iter().zip(gradient.chunks(3)).zip(recovered.flux_density().unwrap().chunks(3))
        {
            assert!((0..3).all(|a| (q[a] + (1.0 + p[0]) * g[a]).abs() < 1e-13));
        }
    }
}

/// Returns the largest recovered flux density of linear elements, relative to the largest one of the cells around its node, with
/// σ at the node.
pub fn largest_excess(form: &Form<'_>, u: &[f64]) -> f64 {
    let mesh = form.mesh;
    let mut largest = vec![0.0_f64; mesh.n_nodes()];
    for cell in 0..mesh.n_cells() {
        let nodes = mesh.cell(cell);
        let points: Vec<[f64; 3]> = nodes.iter().map(|&node| mesh.points[node as usize]).collect();
        let values: Vec<f64> = nodes.iter().map(|&node| u[node as usize]).collect();
        let gradient = Affine::simplex(&points).gradient(&values);
        for (&node, &point) in nodes.iter().zip(&points) {
            let own = &mut largest[node as usize];
            *own = own.max(norm(&own_flux(form, cell, point, gradient)));
        }
    }
    let flux = RecoveredGradient::new(Space::new(mesh, 1).unwrap(), form, u).unwrap().flux_density().unwrap();
    excess(&flux, &largest)
}

/// Returns the largest recovered flux density of degree p, relative to the largest one of the cells around its node, at
/// $(p + 2)^d$ Gauss points of these.
fn largest_excess_of_any_degree<'a>(space: &'a TensorSpace<'a>, form: &Form<'a>, u: &'a [f64]) -> f64 {
    let (d, shapes) = (space.dimension(), space.shapes());
    let (points, _) = CellRule::Gauss { extra: 1 }.rule(space.degree());
    let (values, slopes) = (shapes.values(&points), shapes.slopes(&points));
    let (n, n_q) = (values.n_shapes, values.n_points);
    let maps = CellMaps::new(space, &points);
    let (mut map, mut dofs) = (CellMap::default(), vec![0; space.dofs_per_cell()]);
    let mut largest = vec![0.0_f64; space.n_dofs()];
    for position in 0..space.n_cells() {
        maps.of_cell(position, &mut map);
        space.cell_dofs(position, &mut dofs);
        let flux = |q: usize| {
            let slope = |sloped: usize, node: usize| -> f64 {
                let factor = |a: usize| {
                    let table = if a == sloped { &slopes } else { &values };
                    table.row(q / n_q.pow(a as u32) % n_q)[node / n.pow(a as u32) % n]
                };
                (0..d).map(factor).product()
            };
            let on_cube: Vec<f64> = (0..d)
                .map(|axis| {
                    dofs.iter().enumerate().map(|(node, &dof)| u[dof as usize] * slope(axis, node)).sum()
                })
                .collect();
            let back = inverse(&map.jacobians[q]);
            let gradient =
                std::array::from_fn(|i| on_cube.iter().zip(&back).map(|(slope, row)| slope * row[i]).sum());
            norm(&own_flux(form, space.order()[position] as usize, map.points[q], gradient))
        };
        let own = (0..n_q.pow(d as u32)).map(flux).fold(0.0, f64::max);
        dofs.iter().for_each(|&dof| largest[dof as usize] = largest[dof as usize].max(own));
    }
    let flux = RecoveredGradient::new(Space::from(space), form, u).unwrap().flux_density().unwrap();
    excess(&flux, &largest)
}

fn own_flux(form: &Form<'_>, cell: usize, point: [f64; 3], gradient: [f64; 3]) -> [f64; 3] {
    let tag = form.mesh.cell_tags.get(cell).copied().unwrap_or(0);
    form.sigma.tensor_at(cell, tag, point).map(|row| dot(row, gradient))
}

fn excess(flux: &[f64], largest: &[f64]) -> f64 {
    let pairs = flux.as_chunks::<3>().0.iter().zip(largest);
    pairs.filter(|(q, _)| norm(q) > 0.0).map(|(q, largest)| norm(q) / largest).fold(0.0, f64::max)
}

fn norm(x: &[f64; 3]) -> f64 {
    dot(*x, *x).sqrt()
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Returns conductivities with contrasts up to 10⁴ between directions, points and cells.
fn rough_sigmas(dimension: usize, n_cells: usize, random: &mut Random) -> Vec<Coefficient> {
    let (c, s) = (0.6, 0.8);
    // Eigenvalues 10⁴ and 1 across the axes.
    let turned = |scale: f64| {
        let [xx, xy, yy] = [1e4 * c * c + s * s, (1e4 - 1.0) * c * s, 1e4 * s * s + c * c].map(|x| scale * x);
        [[xx, xy, 0.0], [xy, yy, 0.0], [0.0, 0.0, 1.0]]
    };
    let varying = [["exp(4*x)", "0.5*x", "0"], ["0.5*x", "1 + 100*y^2", "0"], ["0", "0", "2 + z"]];
    let mut of_cells = |n_values: u64| {
        let values = (0..n_cells).flat_map(|_| {
            let number = random.next() % n_values;
            let tensor = turned(10_f64.powf(4.0 * number as f64 / n_values as f64 - 2.0));
            [tensor[0][0], tensor[1][1], tensor[2][2], 0.0, 0.0, tensor[0][1]]
        });
        Coefficient::CellField(femtile_mesh::Field { n_components: 6, values: values.collect() })
    };
    let mut sigmas = vec![
        constant(1.0),
        Coefficient::Tensor(turned(1.0)),
        Coefficient::TensorExpression(Box::new(varying.map(|row| row.map(parse)))),
        // Regions by themselves, and a field with too many values for regions.
        of_cells(5),
        of_cells(1000),
    ];
    if dimension == 3 {
        let mut across = turned(1.0);
        (across[2][2], across[1][1], across[0][1], across[1][0]) = (1e4, 3.0, 0.0, 0.0);
        sigmas.push(Coefficient::Tensor(across));
    }
    sigmas
}

/// Returns values with a kink, disturbed by random ones, at some of the points more.
fn rough(points: &[[f64; 3]], roughness: f64, random: &mut Random) -> Vec<f64> {
    let mut of_point = |p: &[f64; 3]| {
        let is_peak = random.next().is_multiple_of(31);
        (p[0] - 0.4).abs() + p[1] + roughness * if is_peak { 10.0 } else { 1.0 } * random.unit()
    };
    points.iter().map(&mut of_point).collect()
}

#[test]
fn recovered_fluxes_of_rough_functions_stay_near_those_of_the_cells() {
    let mut random = Random(5);
    for (dimension, n) in [(2, 12), (3, 6)] {
        for stretch in [1.0, 1e-3] {
            let mut mesh = disturbed(unit_mesh(dimension, n), n, 0.45, &mut random);
            mesh.points.iter_mut().for_each(|p| p[0] *= stretch);
            let mut problem = Problem::new(mesh);
            let mut worst = 0.0_f64;
            for sigma in rough_sigmas(dimension, problem.mesh.n_cells(), &mut random) {
                problem.sigma = sigma;
                for roughness in [0.0, 0.01, 1.0] {
                    let u = rough(&problem.mesh.points, roughness, &mut random);
                    worst = worst.max(largest_excess(&problem.form(), &u));
                }
            }
            assert!(worst <= 1.5 + 1e-12, "{dimension}-D, stretched by {stretch}: {worst}");
        }
    }
}

#[test]
fn recovered_fluxes_of_rough_functions_of_any_degree_stay_near_those_of_the_cells() {
    let mut random = Random(17);
    for (dimension, degree, n) in
        [(2, 1, 9), (2, 2, 7), (2, 3, 5), (2, 4, 4), (3, 1, 5), (3, 2, 3), (3, 3, 2)]
    {
        for stretch in [1.0, 1e-3] {
            let mut mesh = disturbed(blocks(dimension, n), n, 0.45, &mut random);
            mesh.points.iter_mut().for_each(|p| p[0] *= stretch);
            let mut problem = Problem::new(mesh);
            let mut worst = 0.0_f64;
            for sigma in rough_sigmas(dimension, problem.mesh.n_cells(), &mut random) {
                problem.sigma = sigma;
                let space = TensorSpace::new(&problem.mesh, degree).unwrap();
                let (points, _) = nodal(&space, &parse("0"));
                for roughness in [0.0, 0.01, 1.0] {
                    let u = rough(&points, roughness, &mut random);
                    worst = worst.max(largest_excess_of_any_degree(&space, &problem.form(), &u));
                }
            }
            assert!(
                worst <= 1.5 + 1e-12,
                "degree {degree} in {dimension}-D, stretched by {stretch}: {worst}"
            );
        }
    }
}

#[test]
fn linear_functions_have_their_gradient_on_slivers() {
    let mut random = Random(9);
    for (dimension, n) in [(2, 9), (3, 5)] {
        let mut mesh = disturbed(unit_mesh(dimension, n), n, 0.45, &mut random);
        mesh.points.iter_mut().for_each(|p| p[0] *= 1e-3);
        let problem = Problem::new(mesh);
        let u: Vec<f64> = problem.mesh.points.iter().map(|p| 3.0 - 2.0 * p[0] + p[1]).collect();
        let form = problem.form();
        let gradient = RecoveredGradient::new(problem.space(), &form, &u).unwrap().at_nodes();
        assert!(gradient.chunks(3).all(|g| (g[0] + 2.0).abs() < 1e-8 && (g[1] - 1.0).abs() < 1e-8));
    }
}

#[test]
fn linear_functions_of_any_degree_have_their_flux_on_slivers_for_any_tensor() {
    let mut random = Random(13);
    for (dimension, degree, n) in [(2, 1, 9), (2, 2, 6), (2, 4, 3), (3, 1, 5), (3, 2, 3)] {
        let mut mesh = disturbed(blocks(dimension, n), n, 0.45, &mut random);
        mesh.points.iter_mut().for_each(|p| p[0] *= 1e-3);
        let mut problem = Problem::new(mesh);
        problem.sigma = rough_sigmas(dimension, problem.mesh.n_cells(), &mut random).swap_remove(1);
        let space = TensorSpace::new(&problem.mesh, degree).unwrap();
        let (_, u) = nodal(&space, &parse("3 - 2*x + y"));
        let form = problem.form();
        let recovered = RecoveredGradient::new(Space::from(&space), &form, &u).unwrap();
        let expected = own_flux(&form, 0, [0.0; 3], [-2.0, 1.0, 0.0]);
        for (g, q) in recovered.at_nodes().chunks(3).zip(recovered.flux_density().unwrap().chunks(3)) {
            assert!((g[0] + 2.0).abs() < 1e-8 && (g[1] - 1.0).abs() < 1e-8, "degree {degree}: {g:?}");
            assert!((0..3).all(|a| (q[a] + expected[a]).abs() < 1e-4), "degree {degree}: {q:?}");
        }
    }
}

#[test]
fn polynomials_of_degree_p_plus_one_have_their_gradient_at_all_nodes() {
    let functions = [
        (2, 1, "x*y - x^2 + 2*y^2"),
        (2, 2, "x^3 - 2*x*y^2"),
        (2, 4, "x^5 - y^5 + x^2*y^3"),
        (3, 2, "x*y*z - z^3"),
    ];
    for (dimension, degree, u) in functions {
        let problem = Problem::new(waves(dimension, 3, 1));
        let space = TensorSpace::new(&problem.mesh, degree).unwrap();
        let exact = parse(u);
        let (points, values) = nodal(&space, &exact);
        let form = problem.form();
        let found = RecoveredGradient::new(Space::from(&space), &form, &values).unwrap().at_nodes();
        let error = largest_error(&points, &found, &exact_gradient(u, dimension), -1.0);
        assert!(error < 1e-9, "degree {degree} in {dimension}-D: {error:e}");
    }
}

#[test]
fn polynomials_of_degree_p_plus_one_have_their_gradient_on_simplices() {
    let mut random = Random(23);
    for (dimension, degree, n, u) in
        [(2, 2, 6, "x^3 - 2*x*y^2 + y"), (2, 3, 4, "x^4 - y^4 + x^2*y^2"), (3, 2, 3, "x*y*z - z^3 + x")]
    {
        let problem = Problem::new(disturbed(unit_mesh(dimension, n), n, 0.3, &mut random));
        let (space, exact, form) = (Space::new(&problem.mesh, degree).unwrap(), parse(u), problem.form());
        let points = space.node_points();
        let values: Vec<f64> = points.iter().map(|&point| exact.eval(point)).collect();
        let recovered = RecoveredGradient::new(space, &form, &values).unwrap();
        let error = largest_error(&points, &recovered.at_nodes(), &exact_gradient(u, dimension), -1.0);
        assert!(error < 1e-9, "degree {degree} in {dimension}-D: {error:e}");
    }
}

/// Returns the nodes of a space and the values of a function there.
fn nodal<'a>(space: &'a TensorSpace<'a>, f: &Expression) -> (Vec<[f64; 3]>, Vec<f64>) {
    let points = Space::from(space).node_points();
    let values = points.iter().map(|&point| f.eval(point)).collect();
    (points, values)
}

#[test]
fn gradients_of_linear_elements_are_recovered_with_order_two_and_estimates_become_exact() {
    for (dimension, u, levels) in [(2, U2, [8, 16, 32]), (3, U3, [4, 8, 16])] {
        let (mut errors, mut ratios) = (Vec::new(), Vec::new());
        for n in levels {
            let problem = manufactured(unit_mesh(dimension, n), u, &IDENTITY, "1", false);
            let found = problem.solve(&cpu());
            let form = problem.form();
            let recovered = RecoveredGradient::new(problem.space(), &form, &found).unwrap();
            let exact = exact_gradient(u, dimension);
            errors.push(largest_error(&problem.mesh.points, &recovered.at_nodes(), &exact, 0.2));
            let estimate = recovered.error_estimate().unwrap();
            assert_eq!(estimate.cells.len(), problem.mesh.n_cells());
            let sum = estimate.cells.iter().map(|cell| cell * cell).sum::<f64>().sqrt();
            assert!((sum - estimate.total).abs() < 1e-12 * sum);
            ratios.push(estimate.total / functionals::error_h1(&problem.space(), &found, &parse(u)).unwrap());
        }
        let order = (errors[1] / errors[2]).log2();
        assert!(order > 1.8, "{dimension}-D: order {order}, errors {errors:?}");
        assert!(ratios.iter().all(|ratio| (0.5..2.0).contains(ratio)), "{dimension}-D: {ratios:?}");
        let distance = |ratio: f64| (ratio - 1.0).abs();
        assert!(
            distance(ratios[2]) < 0.05 && distance(ratios[2]) < distance(ratios[0]),
            "{dimension}-D: {ratios:?}"
        );
    }
}

#[test]
fn gradients_of_any_degree_are_recovered_with_order_p_plus_one_and_estimates_become_exact() {
    let cases = [
        (2, U2, 1, [8, 16]),
        (2, U2, 2, [8, 16]),
        (2, U2, 3, [6, 12]),
        (2, U2, 4, [12, 24]),
        (3, U3, 1, [5, 10]),
        (3, U3, 2, [4, 8]),
    ];
    for (dimension, u, degree, levels) in cases {
        let (mut errors, mut ratios) = (Vec::new(), Vec::new());
        for n in levels {
            let problem = manufactured(blocks(dimension, n), u, &IDENTITY, "1", false);
            let space = TensorSpace::new(&problem.mesh, degree).unwrap();
            let found = solve_without_matrix(&problem, &space, &cpu());
            let form = problem.form();
            let recovered = RecoveredGradient::new(Space::from(&space), &form, &found).unwrap();
            let (points, _) = nodal(&space, &parse(u));
            errors.push(largest_error(&points, &recovered.at_nodes(), &exact_gradient(u, dimension), 0.2));
            let exact = functionals::error_h1(&Space::from(&space), &found, &parse(u)).unwrap();
            ratios.push(recovered.error_estimate().unwrap().total / exact);
        }
        let order = (errors[0] / errors[1]).log2();
        assert!(
            order > degree as f64 + 0.6,
            "degree {degree} in {dimension}-D: order {order}, errors {errors:?}"
        );
        assert!(
            ratios.iter().all(|ratio| (0.5..2.0).contains(ratio)),
            "degree {degree} in {dimension}-D: {ratios:?}"
        );
        assert!((ratios[1] - 1.0).abs() < 0.25, "degree {degree} in {dimension}-D: {ratios:?}");
    }
}

#[test]
fn gradients_keep_their_order_where_they_vanish() {
    // ∇u vanishes at corners, at the centre, and across every side.
    for (dimension, u) in [(2, "cos(pi*x)*cos(pi*y)"), (3, "cos(pi*x)*cos(pi*y)*cos(pi*z)")] {
        let exact = exact_gradient(u, dimension);
        for (degree, n) in [(1, 8), (2, 4), (3, 4)].into_iter().take(5 - dimension) {
            let of_cells = |n: usize| {
                let mesh = waves(dimension, n, degree);
                let problem = manufactured(mesh, u, &IDENTITY, "0", false);
                let space = TensorSpace::new(&problem.mesh, degree).unwrap();
                let (points, values) = nodal(&space, &parse(u));
                let form = problem.form();
                let found = RecoveredGradient::new(Space::from(&space), &form, &values).unwrap().at_nodes();
                largest_error(&points, &found, &exact, -1.0)
            };
            let order = (of_cells(n) / of_cells(2 * n)).log2();
            assert!(order > degree as f64 + 0.25, "degree {degree} in {dimension}-D: order {order}");
        }
    }
}

#[test]
fn estimates_on_bent_cells_are_within_a_factor_of_two() {
    for (dimension, u, degree) in [(2, U2, 1), (2, U2, 2), (2, U2, 3), (3, U3, 2)] {
        let problem = manufactured(waves(dimension, 6, degree), u, &IDENTITY, "1", true);
        let space = TensorSpace::new(&problem.mesh, degree).unwrap();
        let found = solve_without_matrix(&problem, &space, &cpu());
        let form = problem.form();
        let estimate =
            RecoveredGradient::new(Space::from(&space), &form, &found).unwrap().error_estimate().unwrap();
        let ratio = estimate.total / functionals::error_h1(&Space::from(&space), &found, &parse(u)).unwrap();
        assert!((0.5..2.0).contains(&ratio), "degree {degree} in {dimension}-D: {ratio}");
    }
}

/// Returns two halves with conductivities 1 and 4 and flux 4 along x: u has a kink at x = 1/2.
fn kinked(mut mesh: femtile_mesh::Mesh, by_field: bool) -> Problem {
    let centre = |mesh: &femtile_mesh::Mesh, cell: usize| {
        mesh.cell(cell).iter().map(|&node| mesh.points[node as usize][0]).sum::<f64>()
            / mesh.kind.n_nodes() as f64
    };
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| i32::from(centre(&mesh, cell) > 0.5)).collect();
    let mut problem = Problem::new(mesh);
    let values = problem.mesh.cell_tags.iter().map(|&tag| if tag == 0 { 1.0 } else { 4.0 }).collect();
    problem.sigma = match by_field {
        true => Coefficient::CellField(femtile_mesh::Field { n_components: 1, values }),
        false => Coefficient::ByTag([(0, constant(1.0)), (1, constant(4.0))].into()),
    };
    problem.source = constant(0.0);
    problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(constant(0.0)));
    problem.on(|p| p[0] > 1.0 - 1e-9, Condition::Neumann(constant(4.0)));
    problem
}

#[test]
fn kinks_at_jumps_of_sigma_are_kept_and_cause_no_estimated_error() {
    for by_field in [false, true] {
        let problem = kinked(unit_mesh(2, 8), by_field);
        let (u, form) = (problem.solve_to(1e-14, &cpu()), problem.form());
        let recovered = RecoveredGradient::new(problem.space(), &form, &u).unwrap();
        assert!(recovered.error_estimate().unwrap().total < 1e-10);
        let flux = recovered.flux_density().unwrap();
        assert!(flux.chunks(3).all(|q| (q[0] + 4.0).abs() < 1e-10 && q[1].abs() < 1e-10 && q[2] == 0.0));

        let problem = kinked(blocks(2, 4), by_field);
        let space = TensorSpace::new(&problem.mesh, 3).unwrap();
        let (u, form) = (solve_without_matrix(&problem, &space, &cpu()), problem.form());
        let recovered = RecoveredGradient::new(Space::from(&space), &form, &u).unwrap();
        assert!(recovered.error_estimate().unwrap().total < 1e-9);
        assert!(recovered.flux_density().unwrap().chunks(3).all(|q| (q[0] + 4.0).abs() < 1e-9));
    }
}

#[test]
fn recovered_gradients_have_the_same_bits_at_any_number_of_threads() {
    let problem = manufactured(unit_mesh(3, 6), U3, &IDENTITY, "1", true);
    let u = problem.solve(&cpu());
    let runs = [1, 3].map(|threads| {
        Cpu::new(threads).unwrap().install(|| {
            let form = problem.form();
            let recovered = RecoveredGradient::new(problem.space(), &form, &u).unwrap();
            let fluxes = functionals::facet_fluxes(&problem.space(), &form, CellRule::default(), &u).unwrap();
            let all = [recovered.at_nodes(), recovered.error_estimate().unwrap().cells, fluxes].concat();
            all.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
        })
    });
    assert!(runs[0] == runs[1]);
}

#[test]
fn values_at_many_points_are_those_of_one_point_at_a_time() {
    let mut random = Random(11);
    for dimension in [2, 3] {
        let mesh = disturbed(unit_mesh(dimension, 7), 7, 0.4, &mut random);
        let u: Vec<f64> = mesh.points.iter().map(|_| random.unit()).collect();
        let point = |random: &mut Random| {
            [0, 1, 2].map(|a| if a < dimension { 1.2 * random.unit() - 0.1 } else { 0.0 })
        };
        let points: Vec<[f64; 3]> =
            (0..300).map(|_| point(&mut random)).chain(mesh.points.iter().copied()).collect();
        let found = functionals::values_at(&Space::new(&mesh, 1).unwrap(), &u, &points).unwrap();
        let expected: Vec<Option<f64>> = points
            .iter()
            .map(|&point| functionals::value_at(&Space::new(&mesh, 1).unwrap(), &u, point).ok())
            .collect();
        assert_eq!(found, expected);
        assert!(found.contains(&None) && found[300..].iter().all(Option::is_some));

        let mesh = waves(dimension, 3, 2);
        let space = TensorSpace::new(&mesh, 2).unwrap();
        let u: Vec<f64> = (0..space.n_dofs()).map(|_| random.unit()).collect();
        let found = functionals::values_at(&Space::from(&space), &u, &points[..60]).unwrap();
        let one = |&point: &[f64; 3]| functionals::value_at(&Space::from(&space), &u, point).ok();
        assert_eq!(found, points[..60].iter().map(one).collect::<Vec<_>>());
    }
}

#[test]
fn means_and_values_along_a_line_are_those_of_a_linear_function() {
    let u = parse("1 + x - 2*y");
    let (from, to) = ([-0.25, 0.5, 0.0], [1.0, 0.5, 0.0]);
    let mesh = unit_mesh(2, 5);
    let values: Vec<f64> = mesh.points.iter().map(|&p| u.eval(p)).collect();
    let space_mesh = waves(2, 3, 2);
    let space = TensorSpace::new(&space_mesh, 2).unwrap();
    let (_, of_space) = nodal(&space, &u);
    assert!((functionals::mean(&Space::new(&mesh, 1).unwrap(), &values).unwrap() - 0.5).abs() < 1e-14);
    assert!((functionals::mean(&Space::from(&space), &of_space).unwrap() - 0.5).abs() < 1e-13);
    for line in [
        functionals::along(&Space::new(&mesh, 1).unwrap(), &values, from, to, 6).unwrap(),
        functionals::along(&Space::from(&space), &of_space, from, to, 6).unwrap(),
    ] {
        assert_eq!(line.arc_lengths, [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]);
        assert_eq!(line.values[0], None);
        for (value, point) in line.values[1..].iter().zip(&line.points[1..]) {
            assert!((value.unwrap() - point[0]).abs() < 1e-12, "{point:?}: {value:?}");
        }
    }
}

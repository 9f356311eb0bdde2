//! Solutions of problems with Dirichlet values.

use femtile_device::{Buffer, Cpu};
use femtile_expression::{Expression, Variable};
use femtile_form::Form;
use femtile_linalg::comm::SingleRank;
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile_linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile_linalg::precondition::Jacobi;
use femtile_mesh::Mesh;
use femtile_mesh::check::{BoundaryFacets, boundary_facets};
use femtile_operator::{CpuOperator, DiscreteForm, State};
use femtile_space::{LinearConstraints, LinearRelation, PointMap, Space};

pub const AXES: [Variable; 3] = [Variable::X, Variable::Y, Variable::Z];

pub fn formula(text: &str) -> Expression {
    Expression::parse(text).unwrap()
}

/// Returns the place of each degree of freedom.
pub fn nodes(space: &Space<'_>) -> Vec<[f64; 3]> {
    let mut nodes = vec![[f64::NAN; 3]; space.n_dofs()];
    let mapping = space.mapping(space.element().nodes());
    let (mut map, mut dofs) = (PointMap::default(), vec![0; space.element().n_dofs()]);
    for position in 0..space.n_cells() {
        mapping.of_cell(position, &mut map).unwrap();
        space.cell_dofs(position, &mut dofs);
        dofs.iter().zip(&map.points).for_each(|(&dof, point)| nodes[dof as usize] = *point);
    }
    nodes
}

/// Returns the degrees of freedom on some boundary facets.
pub fn dofs_on(space: &Space<'_>, boundary: &BoundaryFacets, facets: &[u32]) -> Vec<u32> {
    let sides = space.boundary_facets(boundary);
    let mut dofs = vec![0; space.element().n_dofs()];
    let mut found = Vec::new();
    for &facet in facets {
        let side = sides[facet as usize];
        space.cell_dofs(side.position, &mut dofs);
        found.extend(space.element().facets()[side.facet].dofs.iter().map(|&local| dofs[local]));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the boundary facets whose corners all satisfy a condition.
pub fn facets_where(mesh: &Mesh, boundary: &BoundaryFacets, is_in: impl Fn([f64; 3]) -> bool) -> Vec<u32> {
    let all =
        |facet: &u32| boundary.facet(*facet as usize).iter().all(|&node| is_in(mesh.points[node as usize]));
    (0..boundary.len() as u32).filter(all).collect()
}

/// Returns a relation that gives an unknown its value.
pub fn given(unknown: u32, constant: f64) -> LinearRelation {
    LinearRelation { dof: unknown, terms: Vec::new(), constant }
}

/// Solves a linear form with constraints.
pub fn solve(discrete: DiscreteForm<'_>, relations: &[LinearRelation]) -> Vec<f64> {
    let n = discrete.n_unknowns();
    let cpu = Cpu::new(2).unwrap();
    let constraints = LinearConstraints::new(n, relations).unwrap();
    let operator = CpuOperator::new(discrete, &cpu).unwrap();
    let mut u = vec![0.0; n];
    constraints.impose(&mut u);
    let mut r = vec![f64::NAN; n];
    operator.residual(&State::of(&u), &mut r).unwrap();
    constraints.distribute_transpose(&mut r);
    r.iter_mut().for_each(|r| *r = -*r);
    let matrix = operator.assemble(&State::of(&u), operator.pattern(&constraints).unwrap()).unwrap();
    let b = Buffer::from_vec(&cpu, r).unwrap();
    let mut w = Buffer::from_vec(&cpu, vec![0.0; n]).unwrap();
    let jacobi = Jacobi::new(&matrix).unwrap();
    let krylov = KrylovConfig { tolerance: 1e-12, ..KrylovConfig::default() };
    let stop = if discrete.form().is_symmetric() {
        ConjugateGradient::new(krylov).solve(&mut w, &matrix, &jacobi, &b, &SingleRank, &mut ()).unwrap().stop
    } else {
        let gmres = Gmres::new(GmresConfig { cg: krylov, restart: 200 });
        gmres.solve(&mut w, &matrix, &jacobi, &b, &SingleRank, &mut ()).unwrap().stop
    };
    assert!(matches!(stop, Stop::Converged), "{stop:?}");
    let mut w = w.to_host().unwrap();
    constraints.distribute(&mut w);
    u.iter_mut().zip(w).for_each(|(u, w)| *u += w);
    u
}

/// Solves with the values of an exact solution on the whole boundary, and returns its errors in L² and in the seminorm of H¹.
pub fn errors(mesh: &Mesh, degree: usize, form: &Form, exact: &[Expression]) -> [f64; 2] {
    let boundary = boundary_facets(mesh);
    let space = Space::new(mesh, degree).unwrap();
    let discrete = DiscreteForm::new(&space, form, &boundary).unwrap();
    let nodes = nodes(&space);
    let all: Vec<u32> = (0..boundary.len() as u32).collect();
    let n = exact.len();
    let of_dof = |dof: u32| -> Vec<LinearRelation> {
        (0..n).map(|c| given(dof * n as u32 + c as u32, exact[c].eval(nodes[dof as usize]))).collect()
    };
    let relations: Vec<LinearRelation> =
        dofs_on(&space, &boundary, &all).into_iter().flat_map(of_dof).collect();
    let u = solve(discrete, &relations);
    distance(&space, &u, exact)
}

/// Returns the distance of a discrete function from an exact one in L² and in the seminorm of H¹, on surfaces with the gradients within
/// them.
pub fn distance(space: &Space<'_>, u: &[f64], exact: &[Expression]) -> [f64; 2] {
    let (n, d) = (exact.len(), space.mesh().space_dimension());
    let rule = space.element().quadrature(2 * space.element().degree() + 4);
    let table = space.element().tabulate(&rule.points);
    let mapping = space.mapping(&rule.points);
    let slopes: Vec<Vec<Expression>> =
        exact.iter().map(|exact| AXES[..d].iter().map(|&axis| exact.derivative(axis)).collect()).collect();
    let (mut map, mut dofs) = (PointMap::default(), vec![0; space.element().n_dofs()]);
    let mut sums = [0.0; 2];
    for position in 0..space.n_cells() {
        mapping.of_cell(position, &mut map).unwrap();
        space.cell_dofs(position, &mut dofs);
        for (q, weight) in rule.weights.iter().enumerate() {
            let weight = weight * map.determinants[q].abs();
            let inverse = femtile_space::geometry::inverse(&map.jacobians[q]);
            for c in 0..n {
                let (mut value, mut along) = (0.0, [0.0; 3]);
                for (i, &dof) in dofs.iter().enumerate() {
                    let coefficient = u[dof as usize * n + c];
                    value += coefficient * table.values(q)[i];
                    for a in 0..d {
                        along[a] += coefficient * table.gradients(q)[i][a];
                    }
                }
                let point = map.points[q];
                sums[0] += weight * (value - exact[c].eval(point)).powi(2);
                let slope = |axis: usize| (0..d).map(|a| inverse[a][axis] * along[a]).sum::<f64>();
                let mut gap: Vec<f64> =
                    (0..d).map(|axis| slope(axis) - slopes[c][axis].eval(point)).collect();
                if space.mesh().is_surface {
                    let normal = [0, 1, 2].map(|i| map.jacobians[q][i][2]);
                    let across: f64 = gap.iter().zip(normal).map(|(gap, n)| gap * n).sum();
                    gap.iter_mut().zip(normal).for_each(|(gap, n)| *gap -= across * n);
                }
                sums[1] += weight * gap.iter().map(|gap| gap * gap).sum::<f64>();
            }
        }
    }
    sums.map(f64::sqrt)
}

/// Returns the orders between two errors on meshes of which the second has cells smaller by `ratio`.
pub fn orders(coarse: [f64; 2], fine: [f64; 2], ratio: f64) -> [f64; 2] {
    [0, 1].map(|i| (coarse[i] / fine[i]).ln() / ratio.ln())
}

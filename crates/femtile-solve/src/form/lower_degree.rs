//! The space of degree 1 below one of a higher degree: the second level of multigrid.

use std::sync::Arc;

use femtile_amg::{CoarseSpace, Smoother};
use femtile_device::Cpu;
use femtile_form::{Domain, Form, Integral};
use femtile_space::{Element, LinearConstraints, Space};
use femtile_sparse::csr::Csr;

use super::kernel::Motions;
use super::solve::takes_motions;
use crate::{PreconditionerConfig, SolveError, SolverConfig};

/// Basis functions of degree 1 that are smaller at a node are zero there.
const ZERO: f64 = 1e-12;

/// Gives multigrid of displacements the functions of degree 1 as its second level, if the degree is higher: aggregates of nodes with many
/// neighbours would make matrices with long rows.
///
/// Not for several ranks, for relations to unknowns that are not at vertices, and for interfaces: where these are stiff, functions that are
/// alike on both sides have little energy beside the diagonal, and only strength of connection sees them. Scalar equations keep
/// aggregates for the same reason, as they follow anisotropy, and the rows of their matrices are a third as long.
pub(super) fn with_lower_degree(
    config: &mut SolverConfig,
    (space, form): (&Space<'_>, &Form),
    motions: &Motions,
    constraints: &LinearConstraints,
) -> Result<(), SolveError> {
    let is_interface = |own: &Integral| matches!(own.domain, Domain::Interface(_));
    let is_suited = space.element().degree() > 1
        && form.takes_conjugate_gradients()
        && takes_motions(config, form, motions)
        && config.ranks.n() == 1
        && !form.integrals().iter().any(is_interface);
    if let PreconditionerConfig::Amg(options) = &mut config.preconditioner
        && is_suited
        && !matches!(options.config.smoother, Smoother::Patch { .. })
        && let Some(Interpolation { prolongation, rows }) =
            interpolation(space, form.n_components(), constraints)?
    {
        options.config.coarse_space = Some(Arc::new(CoarseSpace::new(&prolongation, rows)?));
    }
    Ok(())
}

/// The interpolation from functions of degree 1, and the rows of its columns.
struct Interpolation {
    prolongation: Csr<f64, Cpu>,
    rows: Vec<u32>,
}

/// Returns the interpolation P from functions of degree 1, with their values at node i in row i, and the rows of the vertices.
/// Constrained unknowns are not interpolated, and those at vertices remain unknowns of their own; others are interpolated from what a
/// constrained vertex follows. None if that is not at a vertex.
///
/// # Cost
/// A pass over the nodes of all cells; P has as many entries as nodes have vertices of their vertex, edge, face or cell, for each
/// component.
fn interpolation(
    space: &Space<'_>,
    n_components: usize,
    constraints: &LinearConstraints,
) -> Result<Option<Interpolation>, SolveError> {
    let element = space.element();
    let linear = Element::new(element.kind(), 1)?.tabulate(element.nodes());
    let n_local = element.n_dofs();
    let n_vertices = linear.values(0).len();
    // The node at each vertex.
    let at_vertex = |vertex: usize| {
        let nearest = |a: &usize, b: &usize| linear.values(*a)[vertex].total_cmp(&linear.values(*b)[vertex]);
        (0..n_local).max_by(nearest).unwrap_or(0)
    };
    let vertices: Vec<usize> = (0..n_vertices).map(at_vertex).collect();

    let (first, mut number) = (space.first_cells(), vec![u32::MAX; space.n_dofs()]);
    let mut dofs = vec![0; n_local];
    for position in 0..space.n_cells() {
        space.cell_dofs(position, &mut dofs);
        vertices.iter().for_each(|&node| number[dofs[node] as usize] = 0);
    }
    let mut rows = Vec::new();
    for dof in 0..number.len() as u32 {
        if number[dof as usize] == 0 {
            number[dof as usize] = (rows.len() / n_components) as u32;
            rows.extend((0..n_components as u32).map(|component| dof * n_components as u32 + component));
        }
    }

    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let (mut entries, mut of_row) = (Vec::<(usize, f64)>::new(), Vec::<(u32, f64)>::new());
    for (dof, &[position, node]) in first.iter().enumerate() {
        entries.clear();
        // A node of the mesh that no cell has is not interpolated.
        if position != u32::MAX {
            space.cell_dofs(position as usize, &mut dofs);
            let of_node = vertices.iter().zip(linear.values(node as usize));
            let of_node = of_node.filter(|(_, value)| value.abs() > ZERO);
            entries.extend(of_node.map(|(&vertex, &value)| (dofs[vertex] as usize, value)));
            entries.sort_unstable_by_key(|(vertex, _)| *vertex);
        }
        for component in 0..n_components {
            let unknown = |dof: usize| (dof * n_components + component) as u32;
            of_row.clear();
            if constraints.contains(unknown(dof)) {
                of_row.extend((number[dof] != u32::MAX).then_some((unknown(dof), 1.0)));
            } else {
                for &(vertex, value) in &entries {
                    match constraints.terms(unknown(vertex)) {
                        Some(terms) => of_row.extend(terms.iter().map(|&(other, c)| (other, c * value))),
                        None => of_row.push((unknown(vertex), value)),
                    }
                }
            }
            of_row.sort_unstable_by_key(|(unknown, _)| *unknown);
            of_row.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0.0 };
                is_same
            });
            for &(unknown, value) in &of_row {
                let (dof, component) = (unknown as usize / n_components, unknown as usize % n_components);
                if number[dof] == u32::MAX {
                    return Ok(None);
                }
                columns.push(number[dof] as usize * n_components + component);
                values.push(value);
            }
            offsets.push(columns.len());
        }
    }
    let prolongation = Csr::from_arrays(&Cpu::new(1)?, rows.len(), &offsets, &columns, values)?;
    Ok(Some(Interpolation { prolongation, rows }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
    use femtile_space::LinearRelation;

    use super::*;

    #[test]
    fn linear_functions_are_interpolated_exactly_and_constrained_vertices_replaced() {
        let plane =
            |split| square(&SquareConfig { cells: [3, 2], split, ..SquareConfig::default() }).unwrap();
        let space = |split| box_mesh(&BoxConfig { cells: [2, 1, 2], split, ..BoxConfig::default() }).unwrap();
        let meshes = [
            plane(SquareSplit::Triangles),
            plane(SquareSplit::Quadrilateral),
            space(BoxSplit::Kuhn),
            space(BoxSplit::Hexahedron),
        ];
        for (mesh, degree) in meshes.iter().flat_map(|mesh| (2..=4).map(move |degree| (mesh, degree))) {
            let (space, n) = (Space::new(mesh, degree).unwrap(), 2);
            let n_unknowns = space.n_dofs() * n;
            let name = format!("{:?}, degree {degree}", space.element().kind());
            let none = LinearConstraints::none(n_unknowns);
            let Interpolation { prolongation: p, rows } = interpolation(&space, n, &none).unwrap().unwrap();
            assert_eq!([p.n_rows(), p.n_cols()], [n_unknowns, mesh.n_nodes() * n], "{name}");
            let places = space.node_points();
            let value = |row: usize| {
                let [x, y, z] = places[row / n];
                (1 + row % n) as f64 + 2.0 * x - 3.0 * y + z
            };
            for row in 0..n_unknowns {
                let found: f64 =
                    p.row(row).map(|(column, factor)| factor * value(rows[column] as usize)).sum();
                assert!((found - value(row)).abs() < 1e-12, "{name}, row {row}");
            }

            // A Dirichlet value, and a vertex that is half of another component of a third.
            let (held, [follower, leader]) = (rows[1], [4, 7]);
            let constrain = |terms: Vec<(u32, f64)>| {
                let of_follower = LinearRelation { dof: rows[follower], terms, constant: 0.0 };
                let relations = [LinearRelation { dof: held, ..LinearRelation::default() }, of_follower];
                let constraints = LinearConstraints::new(n_unknowns, &relations).unwrap();
                interpolation(&space, n, &constraints).unwrap()
            };
            let constrained = constrain(vec![(rows[leader], 0.5)]).unwrap().prolongation;
            for row in 0..n_unknowns {
                let mut expected = BTreeMap::new();
                let is_constrained = [held, rows[follower]].contains(&(row as u32));
                for (column, factor) in p.row(row).filter(|_| !is_constrained) {
                    match rows[column] {
                        dof if dof == held => {}
                        dof if dof == rows[follower] => {
                            *expected.entry(leader).or_insert(0.0) += 0.5 * factor
                        }
                        _ => *expected.entry(column).or_insert(0.0) += factor,
                    }
                }
                if is_constrained {
                    expected.extend(p.row(row));
                }
                let found: Vec<(usize, f64)> = constrained.row(row).collect();
                assert_eq!(found.len(), expected.len(), "{name}, row {row}");
                let is_same = |(found, expected): (&(usize, f64), (&usize, &f64))| {
                    found.0 == *expected.0 && (found.1 - expected.1).abs() < 1e-12
                };
                assert!(found.iter().zip(&expected).all(is_same), "{name}, row {row}");
            }
            let elsewhere = (0..n_unknowns as u32).find(|row| !rows.contains(row)).unwrap();
            assert!(constrain(vec![(elsewhere, 0.5)]).is_none(), "{name}");
        }
    }
}

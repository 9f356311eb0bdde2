//! The quadrature rule of the operator, and the check that it is exact enough.

use femtile_matrix_free::CellRule;
use femtile_space::TensorSpace;

use crate::Quadrature;

/// Returns the rule of a name.
pub(crate) fn rule(name: Quadrature) -> CellRule {
    match name {
        Quadrature::Gauss => CellRule::Gauss { extra: 0 },
        Quadrature::GaussFine => CellRule::Gauss { extra: 1 },
        Quadrature::GaussLobatto => CellRule::GaussLobatto,
    }
}

/// Returns the message about a rule that is too weak for the degree or the curvature of the cells.
pub(crate) fn warnings(name: Quadrature, space: &TensorSpace<'_>) -> Vec<String> {
    let (degree, order) = (space.degree(), space.mesh().curved.as_ref().map_or(1, |curved| curved.order));
    let is_inexact = name == Quadrature::GaussLobatto;
    let n_points = rule(name).n_points(degree);
    let of_degree = is_inexact.then(|| {
        format!(
            "quadrature = \"gauss-lobatto\" is too weak for degree {degree}: {n_points} points are exact up to degree {} \
             along an axis, and products of two elements have {}; \"gauss\" is enough on straight cells",
            2 * degree - 1,
            2 * degree
        )
    });
    let of_cells = (n_points <= order).then(|| {
        let enough = if order == degree + 1 {
            "quadrature = \"gauss-fine\"".into()
        } else {
            format!("degree = {order}, or a mesh of lower order")
        };
        format!(
            "quadrature = \"{}\" is too weak for the cells: {n_points} points along an axis do not see all of a map of \
             order {order}; take {enough}",
            name.name()
        )
    });
    // A row of the adjugate of the Jacobian has degree 2k along an axis in three dimensions, a slope p - 1.
    let of_map = |n: usize| 2 * n >= 2 * order + degree;
    let is_general = space.dimension() == 3 && order >= 3 && of_cells.is_none() && !is_inexact;
    let of_linear = (is_general && !of_map(n_points)).then(|| {
        let enough = match of_map(n_points + 1) && name == Quadrature::Gauss {
            true => "\"gauss-fine\" does",
            false => "a mesh of lower order does",
        };
        format!(
            "quadrature = \"{}\" does not integrate all terms of cells of order {order} with {n_points} points along an axis: \
             even linear functions may have an error, which falls under refinement; {enough}",
            name.name()
        )
    });
    of_degree.into_iter().chain(of_cells).chain(of_linear).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, DeformConfig, box_mesh, deform};

    fn said(name: Quadrature, degree: usize, order: usize) -> Vec<String> {
        let config = BoxConfig { cells: [1, 1, 1], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config).unwrap();
        deform(&mut mesh, &DeformConfig { amplitude: 0.1, order }).unwrap();
        warnings(name, &TensorSpace::new(&mesh, degree).unwrap())
    }

    #[test]
    fn rules_that_are_too_weak_are_named_with_what_is_enough() {
        for (name, degree, order) in
            [(Quadrature::Gauss, 1, 1), (Quadrature::Gauss, 2, 2), (Quadrature::GaussFine, 4, 4)]
        {
            assert_eq!(said(name, degree, order), Vec::<String>::new());
        }
        let lobatto = said(Quadrature::GaussLobatto, 4, 2);
        assert!(lobatto.len() == 1 && lobatto[0].contains("up to degree 7"), "{lobatto:?}");
        let bent = said(Quadrature::Gauss, 2, 3);
        assert!(bent.len() == 1 && bent[0].contains("\"gauss-fine\""), "{bent:?}");
        let far = said(Quadrature::Gauss, 2, 4);
        assert!(far.len() == 1 && far[0].contains("degree = 4"), "{far:?}");
        assert_eq!(said(Quadrature::GaussLobatto, 2, 4).len(), 2);
        for (degree, order) in [(3, 3), (4, 4), (5, 4)] {
            let linear = said(Quadrature::Gauss, degree, order);
            assert!(linear.len() == 1 && linear[0].contains("\"gauss-fine\" does"), "{linear:?}");
        }
    }
}

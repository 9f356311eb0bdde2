use femtile_element::quadrature::gauss_lobatto;

use super::*;

const KINDS: [CellKind; 4] =
    [CellKind::Triangle, CellKind::Quadrilateral, CellKind::Tetrahedron, CellKind::Hexahedron];

/// All elements up to the highest degrees that are tested.
fn elements() -> Vec<Element> {
    let degrees = |kind: CellKind| 1..=if kind.is_simplex() { MAX_SIMPLEX_DEGREE } else { 8 };
    let of_kind = |kind: CellKind| degrees(kind).map(move |degree| Element::new(kind, degree).unwrap());
    KINDS.into_iter().flat_map(of_kind).collect()
}

/// Points inside a cell, the corners among them.
fn samples(element: &Element) -> Vec<[f64; 3]> {
    let d = element.dimension();
    let corners = Element::new(element.kind(), 1).unwrap().nodes().to_vec();
    let inside = |i: usize| {
        let mut point = [0.0; 3];
        (0..d).for_each(|axis| point[axis] = ((i * (7 + 4 * axis) + 3) % 23) as f64 / 23.0 / d as f64);
        point
    };
    [corners, (0..11).map(inside).collect()].concat()
}

/// A polynomial of the degree of an element that has all its monomials, and its gradient: a power of a linear function, or
/// a product of them.
fn polynomial(element: &Element, x: [f64; 3]) -> (f64, [f64; 3]) {
    let (d, p) = (element.dimension(), element.degree() as i32);
    let slopes = [0.7, -0.4, 0.5];
    if element.kind().is_simplex() {
        let linear = 0.3 + (0..d).map(|axis| slopes[axis] * x[axis]).sum::<f64>();
        let gradient =
            |axis: usize| if axis < d { f64::from(p) * slopes[axis] * linear.powi(p - 1) } else { 0.0 };
        return (linear.powi(p), [0, 1, 2].map(gradient));
    }
    let factor = |axis: usize| (0.3 + slopes[axis] * x[axis]).powi(p);
    let slope = |axis: usize| f64::from(p) * slopes[axis] * (0.3 + slopes[axis] * x[axis]).powi(p - 1);
    let product = |sloped: usize| -> f64 {
        (0..d).map(|axis| if axis == sloped { slope(axis) } else { factor(axis) }).product()
    };
    (product(3), [0, 1, 2].map(|axis| if axis < d { product(axis) } else { 0.0 }))
}

#[test]
fn shapes_are_one_at_their_node_and_zero_at_others() {
    for element in elements() {
        let table = element.tabulate(element.nodes());
        assert_eq!((table.n_points(), table.n_dofs), (element.n_dofs(), element.n_dofs()));
        for point in 0..element.n_dofs() {
            for (dof, value) in table.values(point).iter().enumerate() {
                let error = (value - f64::from(dof == point)).abs();
                assert!(error < 1e-12, "{} of degree {}: {error:e}", element.kind(), element.degree());
            }
        }
    }
}

#[test]
fn shapes_sum_to_one_and_gradients_to_zero() {
    for element in elements() {
        let points = samples(&element);
        let table = element.tabulate(&points);
        for point in 0..points.len() {
            assert!((table.values(point).iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for axis in 0..3 {
                let sum: f64 = table.gradients(point).iter().map(|gradient| gradient[axis]).sum();
                assert!(sum.abs() < 1e-10, "{} of degree {}: {sum:e}", element.kind(), element.degree());
            }
        }
    }
}

#[test]
fn polynomials_of_the_degree_are_reproduced_with_their_gradients() {
    for element in elements() {
        let nodal: Vec<f64> = element.nodes().iter().map(|&node| polynomial(&element, node).0).collect();
        let points = samples(&element);
        let table = element.tabulate(&points);
        for (point, &at) in points.iter().enumerate() {
            let (value, gradient) = polynomial(&element, at);
            let found: f64 = table.values(point).iter().zip(&nodal).map(|(shape, u)| shape * u).sum();
            assert!((found - value).abs() < 1e-12, "{} of degree {}", element.kind(), element.degree());
            for axis in 0..3 {
                let slopes = table.gradients(point).iter().zip(&nodal);
                let found: f64 = slopes.map(|(shape, u)| shape[axis] * u).sum();
                let error = (found - gradient[axis]).abs();
                assert!(error < 1e-10, "{} of degree {}: {error:e}", element.kind(), element.degree());
            }
        }
    }
}

#[test]
fn nodes_on_edges_are_gauss_lobatto_points_and_counts_are_those_of_the_textbook() {
    for element in elements() {
        let (d, p) = (element.dimension(), element.degree());
        let expected = match element.kind() {
            CellKind::Triangle => (p + 1) * (p + 2) / 2,
            CellKind::Tetrahedron => (p + 1) * (p + 2) * (p + 3) / 6,
            _ => (p + 1).pow(d as u32),
        };
        assert_eq!(element.n_dofs(), expected);
        let (points, _) = gauss_lobatto(p + 1);
        for axis in 0..d {
            let is_on_edge = |node: &&[f64; 3]| (0..3).all(|other| other == axis || node[other] == 0.0);
            let mut found: Vec<f64> =
                element.nodes().iter().filter(is_on_edge).map(|node| node[axis]).collect();
            found.sort_unstable_by(f64::total_cmp);
            assert_eq!(found.len(), p + 1);
            assert!(found.iter().zip(&points).all(|(a, b)| (a - b).abs() < 1e-15));
        }
    }
}

#[test]
fn evenly_spaced_nodes_lie_on_the_entities_of_the_others_with_the_same_polynomials() {
    for other in elements() {
        let (kind, degree) = (other.kind(), other.degree());
        let element = Element::evenly_spaced(kind, degree).unwrap();
        let table = element.tabulate(element.nodes());
        for (dof, (node, near)) in element.nodes().iter().zip(other.nodes()).enumerate() {
            for axis in 0..3 {
                let index = node[axis] * degree as f64;
                assert!((index - index.round()).abs() < 1e-12, "{kind} of degree {degree}: {node:?}");
                assert_eq!([node[axis] == 0.0, node[axis] == 1.0], [near[axis] == 0.0, near[axis] == 1.0]);
            }
            if kind.is_simplex() {
                let is_on_last = |node: &[f64; 3]| (node.iter().sum::<f64>() - 1.0).abs() < 1e-12;
                assert_eq!(is_on_last(node), is_on_last(near));
            }
            assert!((table.values(dof)[dof] - 1.0).abs() < 1e-10);
        }
        let nodal: Vec<f64> = element.nodes().iter().map(|&node| polynomial(&element, node).0).collect();
        let points = samples(&element);
        let table = element.tabulate(&points);
        for (point, &at) in points.iter().enumerate() {
            let found: f64 = table.values(point).iter().zip(&nodal).map(|(shape, u)| shape * u).sum();
            assert!((found - polynomial(&element, at).0).abs() < 1e-11, "{kind} of degree {degree}");
        }
    }
}

#[test]
fn nodes_of_simplices_keep_their_places_under_renumbering_of_corners() {
    for kind in [CellKind::Triangle, CellKind::Tetrahedron] {
        for degree in 1..=MAX_SIMPLEX_DEGREE {
            let element = Element::new(kind, degree).unwrap();
            // The first and the last corner change places.
            let d = kind.dimension();
            for node in element.nodes() {
                let mut other = *node;
                other[d - 1] = 1.0 - node.iter().sum::<f64>();
                let is_it = |node: &[f64; 3]| (0..3).all(|axis| (node[axis] - other[axis]).abs() < 1e-14);
                assert!(element.nodes().iter().any(is_it));
            }
        }
    }
}

#[test]
fn nodes_of_a_facet_are_those_of_its_own_element() {
    for (kind, of_facet) in
        [(CellKind::Tetrahedron, CellKind::Triangle), (CellKind::Hexahedron, CellKind::Quadrilateral)]
    {
        for degree in 1..=MAX_SIMPLEX_DEGREE {
            let (element, own) =
                (Element::new(kind, degree).unwrap(), Element::new(of_facet, degree).unwrap());
            for facet in element.facets() {
                assert_eq!(facet.dofs.len(), own.n_dofs());
                for &dof in &facet.dofs {
                    let node = element.nodes()[dof];
                    let is_it = |point: [f64; 3]| (0..3).all(|axis| (point[axis] - node[axis]).abs() < 1e-15);
                    assert!(
                        own.nodes().iter().any(|&node| is_it(facet.point(node))),
                        "{kind}, degree {degree}"
                    );
                }
            }
        }
    }
}

#[test]
fn facets_have_the_dofs_of_their_closure_and_normals_of_a_closed_surface() {
    for element in elements() {
        let (d, p) = (element.dimension(), element.degree());
        let (per_facet, measure) = match element.kind() {
            CellKind::Tetrahedron => ((p + 1) * (p + 2) / 2, 0.5),
            _ => ((p + 1).pow(d as u32 - 1), 1.0),
        };
        let centre = [1.0 / (d + 1) as f64; 3];
        for facet in element.facets() {
            assert_eq!(facet.dofs.len(), per_facet);
            let middle = facet.point(element.facet_quadrature(1).points[0]);
            let outwards: f64 = (0..d).map(|axis| facet.normal[axis] * (middle[axis] - centre[axis])).sum();
            assert!(outwards > 0.0);
        }
        for axis in 0..3 {
            let total: f64 = element.facets().iter().map(|facet| facet.normal[axis] * measure).sum();
            assert!(total.abs() < 1e-15);
        }
    }
}

#[test]
fn a_function_that_vanishes_at_the_nodes_of_a_facet_vanishes_on_it() {
    for element in elements() {
        for facet in element.facets() {
            let rule = element.facet_quadrature(5);
            let points: Vec<[f64; 3]> = rule.points.iter().map(|&point| facet.point(point)).collect();
            let table = element.tabulate(&points);
            for point in 0..points.len() {
                for (dof, value) in table.values(point).iter().enumerate() {
                    assert!(facet.dofs.contains(&dof) || value.abs() < 1e-12);
                }
            }
        }
    }
}

#[test]
fn quadrature_integrates_polynomials_over_cell_and_facets() {
    // The divergence theorem for x^k along the first axis: the integral of k x^(k - 1) is that of x^k n_0 over the facets.
    for kind in KINDS {
        let element = Element::new(kind, 1).unwrap();
        for degree in 1..=13 {
            let (cell, facet_rule) = (element.quadrature(degree - 1), element.facet_quadrature(degree));
            let measure = if kind == CellKind::Tetrahedron {
                1.0 / 6.0
            } else if kind.is_simplex() {
                0.5
            } else {
                1.0
            };
            assert!((cell.weights.iter().sum::<f64>() - measure).abs() < 1e-14);
            let k = degree as i32;
            let slope = |point: &[f64; 3]| f64::from(k) * point[0].powi(k - 1);
            let inside: f64 = cell.points.iter().zip(&cell.weights).map(|(point, w)| w * slope(point)).sum();
            let of_facet = |facet: &ElementFacet| -> f64 {
                let powers = facet_rule.points.iter().map(|&point| facet.point(point)[0].powi(k));
                facet.normal[0] * powers.zip(&facet_rule.weights).map(|(power, w)| w * power).sum::<f64>()
            };
            let across: f64 = element.facets().iter().map(of_facet).sum();
            assert!((inside - across).abs() < 1e-14, "{kind}, degree {degree}: {inside} {across}");
        }
    }
}

#[test]
fn other_cells_and_degrees_are_refused() {
    let kind = CellKind::Segment;
    assert_eq!(Element::new(kind, 1).unwrap_err(), SpaceError::NoElement { kind });
    for (kind, highest) in [(CellKind::Tetrahedron, MAX_SIMPLEX_DEGREE), (CellKind::Hexahedron, MAX_DEGREE)] {
        for degree in [0, highest + 1] {
            assert_eq!(Element::new(kind, degree).unwrap_err(), SpaceError::Degree { degree, kind, highest });
        }
    }
}

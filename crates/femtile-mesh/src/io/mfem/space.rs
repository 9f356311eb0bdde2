//! `FiniteElementSpace`: the polynomials of the nodes of a mesh and the order of their values in the file.

use femtile_element::quadrature::{gauss_legendre, gauss_lobatto};

use crate::io::scanner::{Scanner, show};
use crate::tensor::ticks;
use crate::{Curved, MeshError};

/// The space of the nodes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Space {
    /// Degree in each coordinate.
    pub order: usize,
    /// Interpolation points of the polynomials, on [0, 1].
    pub points: Vec<f64>,
    /// True if cells share the values on their common sides.
    pub is_continuous: bool,
    /// True if the interior of a cube is numbered around its middle, as in `Cubic`, instead of row by row.
    pub goes_around: bool,
    /// Number of coordinates.
    pub n_components: usize,
    /// True if the coordinates of a point are consecutive; else all of x come first.
    pub is_interleaved: bool,
}

impl Space {
    /// Reads the header that follows `nodes`.
    pub(super) fn read(scanner: &mut Scanner<'_>) -> Result<Self, MeshError> {
        expect(scanner, b"FiniteElementSpace")?;
        expect(scanner, b"FiniteElementCollection:")?;
        let name = show(scanner.expect("the name of a collection")?);
        expect(scanner, b"VDim:")?;
        let n_components = scanner.integer("the number of coordinates")?;
        expect(scanner, b"Ordering:")?;
        let ordering: usize = scanner.integer("the ordering")?;
        if !(2..=3).contains(&n_components) || ordering > 1 {
            let message = format!("nodes of {n_components} coordinates with ordering {ordering}");
            return Err(scanner.error(message));
        }
        let Some((order, points, is_continuous)) = collection(&name) else {
            let advice = "H1 and L2 collections of order 1 to 9 on Gauss-Lobatto, Gauss-Legendre or evenly spaced \
                          points and Linear, Quadratic, Cubic can be read";
            return Err(scanner.unsupported(format!("a mesh with nodes in `{name}`"), advice));
        };
        Ok(Self {
            order,
            points,
            is_continuous,
            goes_around: name == "Cubic",
            n_components,
            is_interleaved: ordering == 1,
        })
    }
}

fn expect(scanner: &mut Scanner<'_>, word: &[u8]) -> Result<(), MeshError> {
    let found = scanner.expect(&format!("`{}`", show(word)))?;
    if found == word {
        return Ok(());
    }
    Err(scanner.error(format!("`{}` should stand here, not `{}`", show(word), show(found))))
}

/// Order, points and continuity of a collection by its name, such as `H1_3D_P2`, `H1@U_2D_P4` or `L2_T1_3D_P3`.
fn collection(name: &str) -> Option<(usize, Vec<f64>, bool)> {
    match name {
        "Linear" => return Some((1, ticks(1), true)),
        "Quadratic" => return Some((2, ticks(2), true)),
        "Cubic" => return Some((3, ticks(3), true)),
        _ => {}
    }
    let mut parts = name.split('_');
    let (family, mut next) = (parts.next()?, parts.next()?);
    let basis = match family {
        "H1" | "H1@G" => 1,
        "H1@U" => 4,
        "L2" => match next.strip_prefix('T') {
            Some(basis) => {
                next = parts.next()?;
                basis.parse().ok()?
            }
            None => 0,
        },
        _ => return None,
    };
    if !matches!(next, "2D" | "3D") {
        return None;
    }
    let order = parts.next()?.strip_prefix('P')?.parse().ok()?;
    if parts.next().is_some() || !(1..=Curved::MAX_ORDER).contains(&order) {
        return None;
    }
    Some((order, points(basis, order)?, family != "L2"))
}

/// Points of a basis type by MFEM's number.
fn points(basis: usize, order: usize) -> Option<Vec<f64>> {
    let n = order + 1;
    let spaced = |shift: f64, parts: f64| (0..n).map(|i| (i as f64 + shift) / parts).collect();
    match basis {
        0 => Some(gauss_legendre(n).0),
        1 => Some(gauss_lobatto(n).0),
        3 => Some(spaced(1.0, n as f64 + 1.0)),
        4 => Some(ticks(order)),
        5 => Some(spaced(0.5, n as f64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_collections_say_order_points_and_continuity() {
        let order = |name| collection(name).map(|(order, _, is_continuous)| (order, is_continuous));
        assert_eq!(order("H1_3D_P2"), Some((2, true)));
        assert_eq!(order("L2_T1_3D_P3"), Some((3, false)));
        assert_eq!(order("L2_2D_P4"), Some((4, false)));
        assert_eq!(collection("H1@U_2D_P4"), Some((4, ticks(4), true)));
        assert_eq!(collection("L2_T5_2D_P1"), Some((1, vec![0.25, 0.75], false)));
        for name in ["H1_3D_P10", "H1_3D_P0", "H1Pos_3D_P2", "NURBS2", "L2_T2_3D_P2", "H1_1D_P2", "H1_3D", ""]
        {
            assert_eq!(order(name), None, "{name}");
        }
    }
}

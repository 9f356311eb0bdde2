//! −∇·(σ∇u) + u on the box with natural sides, where σ is 1 outside of some spheres and another number inside.
//!
//! It replaces the Blobs mesh of `[fu2014]`, which is not published; its blobs, too, fill about a fifth of the
//! domain. The spheres do not follow the cells.

use femtile::fem::{AssembledSystem, AssemblyKernels, Coefficient, Form, assemble};
use femtile::mesh::Mesh;
use femtile::mesh::check::BoundaryFacets;

use super::by_cell;
use crate::BenchError;

/// Centres and radii, apart from each other and from the sides of a box of side 4.
const SPHERES: [([f64; 3], f64); 9] = [
    ([1.95, 2.05, 1.90], 0.95),
    ([0.80, 0.85, 0.90], 0.65),
    ([3.20, 0.75, 0.85], 0.60),
    ([0.85, 3.15, 0.75], 0.70),
    ([3.10, 3.20, 0.80], 0.65),
    ([0.75, 0.90, 3.20], 0.60),
    ([3.15, 0.80, 3.05], 0.70),
    ([0.90, 3.05, 3.20], 0.65),
    ([3.20, 3.15, 3.15], 0.60),
];

/// Coefficients inside the blobs, Table 4 of the paper.
pub const INSIDE: [f64; 3] = [1.0, 10.0, 100.0];

fn is_inside(point: [f64; 3]) -> bool {
    SPHERES.iter().any(|(centre, radius)| {
        let square: f64 = point.iter().zip(centre).map(|(x, c)| (x - c) * (x - c)).sum();
        square < radius * radius
    })
}

/// Matrix and right side of the source 1 on a mesh of the box; σ is `inside` in cells whose centroid is in a sphere.
///
/// # Errors
/// [`BenchError::Fem`] when the device has not enough memory, or `inside` is not positive.
/// # Source
/// `[fu2014]`, sections 6.1 and 6.2.4.
pub fn system<D: AssemblyKernels<f64>>(
    device: &D,
    mesh: &Mesh,
    inside: f64,
) -> Result<AssembledSystem<f64, D>, BenchError> {
    let (one, boundary) = (Coefficient::Constant(1.0), BoundaryFacets::default());
    let sigma = &by_cell(mesh, |centroid| if is_inside(centroid) { inside } else { 1.0 });
    let form = Form { mesh, boundary: &boundary, sigma, lambda: &one, source: &one, conditions: &[] };
    Ok(assemble(device, &form, &|_| ())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::kuhn_box;

    #[test]
    fn spheres_are_apart_and_fill_a_fifth_of_the_box() -> Result<(), BenchError> {
        for (i, (a, radius)) in SPHERES.iter().enumerate() {
            assert!(a.iter().all(|x| x - radius > 0.04 && x + radius < 3.96), "{i}");
            for (b, other) in &SPHERES[..i] {
                let distance: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
                assert!(distance.sqrt() > radius + other + 0.1, "{i}");
            }
        }
        let mesh = kuhn_box::mesh(33)?;
        let Coefficient::CellField(field) = by_cell(&mesh, |point| f64::from(u8::from(is_inside(point))))
        else {
            panic!("not by cell")
        };
        let share = field.values.iter().sum::<f64>() / mesh.n_cells() as f64;
        assert!((0.18..0.22).contains(&share), "{share}");
        Ok(())
    }
}

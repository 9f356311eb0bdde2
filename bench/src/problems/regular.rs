//! The problem of [`super::kuhn_box`] on the Regular mesh of `[fu2014]`: 512 cubes of six tetrahedra, refined by the
//! midpoints of edges.

use femtile::mesh::Mesh;
use femtile::mesh::refine::uniform;

use super::kuhn_box;
use crate::BenchError;

/// Nodes along a side before any refinement.
const COARSE: usize = 9;
/// Refinements at most: the last has 17 million nodes.
const MOST: usize = 5;

/// Returns the mesh refined `refinements` times; the paper's is refined three times.
///
/// # Errors
/// [`BenchError::Mesh`] when nodes or cells are too many to number.
/// # Source
/// `[fu2014]`, section 6.1.
pub fn mesh(refinements: usize) -> Result<Mesh, BenchError> {
    (0..refinements).try_fold(kuhn_box::mesh(COARSE)?, |mesh, _| Ok(uniform(&mesh)?))
}

/// Returns the number of refinements that gives `nodes` nodes along a side.
///
/// # Errors
/// [`BenchError::Setting`] with the numbers there are.
pub fn refinements(nodes: usize) -> Result<usize, BenchError> {
    let nodes_after = |times: &usize| ((COARSE - 1) << times) + 1;
    (0..=MOST).find(|times| nodes_after(times) == nodes).ok_or_else(|| {
        let all: Vec<_> = (0..=MOST).map(|times| nodes_after(&times).to_string()).collect();
        let message =
            format!("refinement does not lead to {nodes} nodes a side; choose one of {}", all.join(", "));
        BenchError::Setting { field: "nodes", message }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_nodes_and_cells_of_the_paper() -> Result<(), BenchError> {
        for (times, n_nodes, n_cells) in [(0, 729, 3_072), (1, 4_913, 24_576)] {
            let mesh = mesh(times)?;
            assert_eq!((mesh.n_nodes(), mesh.n_cells()), (n_nodes, n_cells));
            assert_eq!(refinements((n_nodes as f64).cbrt().round() as usize)?, times);
        }
        // By these steps table 1 is reached: 65³ = 274,625 nodes and 1,572,864 cells.
        assert_eq!((refinements(65)?, 65 * 65 * 65, 3_072 << 9), (3, 274_625, 1_572_864));
        assert!(refinements(64).is_err_and(|error| error.to_string().contains("9, 17, 33, 65, 129")));
        Ok(())
    }
}

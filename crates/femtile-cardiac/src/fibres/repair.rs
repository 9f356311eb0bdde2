//! Directions of cells for which the coordinates give none.

use femtile::Mesh;

use super::frame::{any_across, dot, orthonormal};

/// Gives each cell without directions the directions of cells that share nodes with it, ring by ring. A
/// connected part of the mesh without any directions gets arbitrary ones.
pub(super) fn from_neighbours(mesh: &Mesh, directions: &mut [Option<[[f64; 3]; 2]>]) {
    loop {
        let missing: Vec<usize> = (0..directions.len()).filter(|&cell| directions[cell].is_none()).collect();
        if missing.is_empty() {
            return;
        }
        // Sums at the nodes of these cells, in the order of the mesh.
        let mut sums: Vec<Option<[[f64; 3]; 2]>> = vec![None; mesh.n_nodes()];
        let mut is_wanted = vec![false; mesh.n_nodes()];
        missing.iter().flat_map(|&cell| mesh.cell(cell)).for_each(|&node| is_wanted[node as usize] = true);
        for (cell, own) in directions.iter().enumerate() {
            let Some(own) = own else { continue };
            for &node in mesh.cell(cell).iter().filter(|&&node| is_wanted[node as usize]) {
                add(&mut sums[node as usize], own);
            }
        }
        let mut is_changed = false;
        for &cell in &missing {
            let mut sum = None;
            mesh.cell(cell)
                .iter()
                .filter_map(|&node| sums[node as usize])
                .for_each(|own| add(&mut sum, &own));
            let Some([fibre, sheet]) = sum else { continue };
            // Directions that cancel, as around an apex, leave the choice open.
            let found = orthonormal(fibre, sheet).unwrap_or([[1.0, 0.0, 0.0], any_across([1.0, 0.0, 0.0])]);
            directions[cell] = Some(found);
            is_changed = true;
        }
        if !is_changed {
            let any = [[1.0, 0.0, 0.0], any_across([1.0, 0.0, 0.0])];
            missing.iter().for_each(|&cell| directions[cell] = Some(any));
        }
    }
}

/// Adds directions with the signs that fit the sum.
fn add(sum: &mut Option<[[f64; 3]; 2]>, own: &[[f64; 3]; 2]) {
    let Some(sum) = sum else {
        *sum = Some(*own);
        return;
    };
    for (sum, own) in sum.iter_mut().zip(own) {
        let sign = if dot(*sum, *own) < 0.0 { -1.0 } else { 1.0 };
        sum.iter_mut().zip(own).for_each(|(sum, x)| *sum += sign * x);
    }
}

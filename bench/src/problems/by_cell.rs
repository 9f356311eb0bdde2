use femtile::fem::Coefficient;
use femtile::mesh::{Field, Mesh};

/// The coefficient that has in each cell its value at the cell's centroid.
pub fn by_cell(mesh: &Mesh, value: impl Fn([f64; 3]) -> f64) -> Coefficient {
    let of_cell = |cell: usize| {
        let nodes = mesh.cell(cell);
        let mean = |d: usize| nodes.iter().map(|&node| mesh.points[node as usize][d]).sum::<f64>();
        value(std::array::from_fn(|d| mean(d) / nodes.len() as f64))
    };
    Coefficient::CellField(Field { n_components: 1, values: (0..mesh.n_cells()).map(of_cell).collect() })
}

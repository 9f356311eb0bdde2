//! Where the unknowns of each entity stand in the tensor of a cell.

/// Entries of the tensors of a cell, `[components][(p + 1)^d]`, entity by entity.
#[derive(Debug)]
pub(super) struct Layout {
    /// Entries of each entity in the order of its rows, one entity after another.
    pub places: Vec<u32>,
    /// Where those of each entity begin: `[3^d + 1]`.
    begins: Vec<usize>,
    /// Components of the field: a tensor each, and consecutive rows of a node.
    pub components: usize,
}

impl Layout {
    pub fn new(degree: usize, d: usize, components: usize) -> Self {
        let n = degree + 1;
        let mut layout = Self { places: Vec::new(), begins: vec![0], components };
        for entity in 0..3usize.pow(d as u32) {
            let range = |axis: usize| match (axis < d, entity / 3usize.pow(axis as u32) % 3) {
                (false, _) | (true, 0) => 0..1,
                (true, 1) => 1..degree,
                _ => degree..n,
            };
            for z in range(2) {
                for y in range(1) {
                    let nodes = range(0).map(|x| x + n * (y + n * z));
                    layout.places.extend(nodes.flat_map(|node| {
                        (0..components).map(move |component| (component * n.pow(d as u32) + node) as u32)
                    }));
                }
            }
            layout.begins.push(layout.places.len());
        }
        layout
    }

    /// Number of entities.
    pub fn n_entities(&self) -> usize {
        self.begins.len() - 1
    }

    /// Number of rows of an entity.
    pub fn len(&self, entity: usize) -> usize {
        self.begins[entity + 1] - self.begins[entity]
    }

    /// Entries of an entity.
    pub fn places(&self, entity: usize) -> &[u32] {
        &self.places[self.begins[entity]..self.begins[entity + 1]]
    }
}

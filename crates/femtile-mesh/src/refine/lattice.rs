//! Points halfway between those of quadrilaterals and hexahedra, numbered so that neighbours share them.

use std::collections::HashMap;

use crate::interrupt::Interrupt;

/// Each cell's points with those halfway between them.
pub(super) struct Lattice {
    /// Points of each cell in lexicographic order: `[n_cells × (2 order + 1)^dimension]`.
    pub cells: Vec<u32>,
    /// The points of the coarse lattice around each new point; repeated points occur equally often.
    pub parents: Vec<[u32; 8]>,
    /// New points on edges and faces of coarse lattices, by the points at the ends or corners.
    between: HashMap<[u32; 4], u32>,
    n_old: usize,
}

const NONE: u32 = u32::MAX;

/// Cells between two questions whether to continue.
const CELLS_PER_BLOCK: usize = 1 << 14;

impl Lattice {
    /// Refines lattices of `order` in lexicographic order over `n_old` points: old points keep their numbers,
    /// new ones follow in the order of the cells. After an interrupt cells are missing.
    pub(super) fn new(
        dimension: usize,
        order: usize,
        cells: &[u32],
        n_old: usize,
        interrupt: Interrupt<'_>,
    ) -> Self {
        let (row, fine) = (order + 1, 2 * order + 1);
        let (n, n_fine) = (row.pow(dimension as u32), fine.pow(dimension as u32));
        let mut lattice = Self {
            cells: Vec::with_capacity(cells.len() / n * n_fine),
            parents: Vec::new(),
            between: HashMap::new(),
            n_old,
        };
        let blocks = cells.chunks(n * CELLS_PER_BLOCK).take_while(|_| !interrupt.is_set());
        for cell in blocks.flat_map(|block| block.chunks_exact(n)) {
            for place in 0..n_fine {
                let at = [place % fine, place / fine % fine, place / (fine * fine)];
                let parents = std::array::from_fn(|corner| {
                    let [i, j, k] = std::array::from_fn(|d| (at[d] + (corner >> d & 1)) / 2);
                    cell[i + row * (j + row * k)]
                });
                let is_odd = |d: usize| at[d] % 2 == 1;
                let number = match (0..dimension).filter(|&d| is_odd(d)).count() {
                    0 => parents[0],
                    n_odd if n_odd == dimension => lattice.add(parents),
                    _ => lattice.find_or_add(parents),
                };
                lattice.cells.push(number);
            }
        }
        lattice
    }

    fn add(&mut self, parents: [u32; 8]) -> u32 {
        self.parents.push(parents);
        (self.n_old + self.parents.len() - 1) as u32
    }

    fn find_or_add(&mut self, parents: [u32; 8]) -> u32 {
        let key = key(&parents);
        match self.between.get(&key) {
            Some(&number) => number,
            None => {
                let number = self.add(parents);
                self.between.insert(key, number);
                number
            }
        }
    }

    /// The point in the middle of an edge or a face.
    pub(super) fn middle(&self, points: &[u32]) -> Option<u32> {
        self.between.get(&key(points)).copied()
    }

    /// Number of old and new points.
    pub(super) fn len(&self) -> usize {
        self.n_old + self.parents.len()
    }

    /// Values at old and new points; the latter are the mean of the values around them.
    pub(super) fn interpolate(&self, n_components: usize, values: &[f64]) -> Vec<f64> {
        let mut all = Vec::with_capacity(n_components * self.len());
        all.extend_from_slice(values);
        for parents in &self.parents {
            all.extend((0..n_components).map(|c| {
                parents.iter().map(|&point| values[point as usize * n_components + c]).sum::<f64>() / 8.0
            }));
        }
        all
    }
}

/// The different ones among at most four points, ascending.
fn key(points: &[u32]) -> [u32; 4] {
    let mut key = [NONE; 4];
    let mut n = 0;
    for &point in points {
        if n < 4 && !key[..n].contains(&point) {
            key[n] = point;
            n += 1;
        }
    }
    key.sort_unstable();
    key
}

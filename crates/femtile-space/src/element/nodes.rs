//! Nodes of elements on simplices.

use femtile_element::quadrature::gauss_lobatto;

/// A point of the lattice of a simplex: a non-negative index for each corner, with the degree as their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lattice {
    /// The indices; those beyond the corners are zero.
    pub indices: [usize; 4],
}

impl Lattice {
    /// Returns the corners of the vertex, edge, face or cell in whose interior the point lies, ascending.
    pub fn corners(&self) -> impl Iterator<Item = usize> {
        let indices = self.indices;
        (0..4).filter(move |&corner| indices[corner] > 0)
    }
}

/// Returns the lattice of a simplex of dimension `d`: points of vertices, edges, faces, then the interior. Entities of one
/// dimension follow each other by their corners, points of an entity by their indices.
pub(crate) fn lattice(d: usize, degree: usize) -> Vec<Lattice> {
    let mut found = Vec::new();
    for i in 0..=degree {
        for j in 0..=(degree - i) * usize::from(d > 1) {
            for k in 0..=(degree - i - j) * usize::from(d > 2) {
                let mut indices = [0; 4];
                indices[0] = degree - i - j - k;
                [indices[1], indices[2], indices[3]] = [i, j, k];
                found.push(Lattice { indices });
            }
        }
    }
    let key = |at: &Lattice| {
        let corners: Vec<usize> = at.corners().collect();
        (corners.len(), corners, at.indices)
    };
    found.sort_by_key(key);
    found
}

/// Returns the reference coordinates of a point of the lattice, given by its index for each corner.
///
/// With the Gauss–Lobatto points $t_0 < … < t_n$ of [0, 1] for the sum n of the indices $\alpha$, barycentric coordinates
/// are a mean of points of the facets,
/// $$ x_\alpha = \frac{\sum_i t_{n - \alpha_i}\, x_{\alpha \setminus i}}{\sum_i t_{n - \alpha_i}}. $$
/// Points of a facet are those of its own lattice, so neighbours share them whatever their orientation.
///
/// # Source
/// `[isaac2020]`, section 1.
pub(super) fn recursive(indices: &[usize]) -> [f64; 3] {
    let barycentric = barycentric(indices);
    std::array::from_fn(|axis| barycentric.get(axis + 1).copied().unwrap_or(0.0))
}

/// Returns the reference coordinates of a point of the evenly spaced lattice, given by its index for each corner.
pub(super) fn evenly_spaced(indices: &[usize]) -> [f64; 3] {
    let n: usize = indices.iter().sum();
    std::array::from_fn(|axis| indices.get(axis + 1).map_or(0.0, |&index| index as f64 / n as f64))
}

fn barycentric(indices: &[usize]) -> Vec<f64> {
    let n: usize = indices.iter().sum();
    if indices.len() == 1 || n == 0 {
        return vec![1.0; indices.len()];
    }
    let ticks = gauss_lobatto(n + 1).0;
    let (mut mean, mut total) = (vec![0.0; indices.len()], 0.0);
    // A facet without weight may have no lattice point to contribute.
    for (left_out, &index) in indices.iter().enumerate().filter(|(_, index)| **index < n) {
        let mut rest = indices.to_vec();
        rest.remove(left_out);
        let weight = ticks[n - index];
        total += weight;
        let corners = (0..indices.len()).filter(|&corner| corner != left_out);
        corners.zip(barycentric(&rest)).for_each(|(corner, x)| mean[corner] += weight * x);
    }
    mean.iter().map(|x| x / total).collect()
}

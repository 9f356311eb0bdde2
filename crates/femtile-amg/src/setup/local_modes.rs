//! Modes of a few nodes that neither aggregates nor a diagonal smoother can reduce, such as those of slivers.
//!
//! A flat tetrahedron adds $K s s^\mathsf{T}$ with a large K to the rows of its four nodes. The smoother
//! divides by a diagonal of the size of K, so it hardly changes vectors orthogonal to s. Of these, aggregates
//! represent only the constant. The modes are the other vectors on these nodes with $s^\mathsf{T} u = 0$.

use femtile_device::{Scalar, parallel};

use super::rows::{RowAccess, Rows};

/// Nodes belong to one cluster where $|a_{ij}| > \tau \sqrt{a_{ii} a_{jj}}$ with the first of these, or with
/// the next one if that makes clusters too large.
const JOINED: [f64; 3] = [0.3, 0.5, 0.7];
/// A cluster has modes only if one of its entries exceeds this positively, which neither well-shaped cells nor flat
/// hexahedra reach.
pub(crate) const OPPOSED: f64 = 0.5;
/// The most nodes of a cluster.
const MOST_NODES: usize = 32;
/// Nodes are free, not determined by others, if elimination leaves at most this share of their diagonal.
const FREE: f64 = 0.2;
/// The fewest rows of the matrix per mode.
const ROWS_OF_A_MODE: usize = 4;

/// Returns the modes of all clusters as rows. On each cluster of nodes connected by large entries of both
/// signs, they are the vectors of low energy except one: aggregates represent the constant.
///
/// Elimination by the largest pivot leaves the free nodes. A mode is one at a free node, zero at the others,
/// and minimizes the energy elsewhere. Rows in which the near-nullspace b is zero, modes of the level above,
/// are left out.
///
/// # Cost
/// A pass over the non-zeros, and $O(m^3)$ per cluster of m nodes.
pub(crate) fn modes_of_clusters<T: Scalar>(a: &Rows<T>, diagonal: &[T], b: &[f64]) -> Rows<T> {
    let mut modes = Rows { n_cols: a.n_rows(), offsets: vec![0], columns: Vec::new(), values: Vec::new() };
    for nodes in clusters(a, diagonal, b) {
        of_cluster(a, &nodes, &mut modes);
    }
    modes
}

/// Returns whether there are modes, and few enough that the next level remains small.
pub(crate) fn are_few(n_modes: usize, n_rows: usize) -> bool {
    n_modes > 0 && n_modes * ROWS_OF_A_MODE <= n_rows
}

/// An entry below the diagonal, relative to the diagonal entries of its row and its column.
struct Joint {
    nodes: [u32; 2],
    share: f64,
}

/// Calls `found` for entries of a row below the diagonal, or in columns behind those of the rows, whose squares exceed a
/// share of the diagonal.
fn for_large<T: Scalar>(
    a: &Rows<T>,
    diagonal: &[T],
    b: &[f64],
    least: f64,
    row: usize,
    mut found: impl FnMut(u32, T),
) {
    let (columns, values) = a.row(row);
    let least = T::from_f64(least * least) * diagonal[row];
    for (&column, &value) in columns.iter().zip(values) {
        let (other, is_free) = (column as usize, b[row] != 0.0);
        let is_first = other < row || other >= a.n_rows();
        if is_first && value * value > least * diagonal[other] && is_free && b[other] != 0.0 {
            found(column, value);
        }
    }
}

/// Returns whether a cluster may have modes. Columns after the owned ones are ghosts, and the diagonal and b
/// have entries for them as well.
pub(crate) fn has_opposed<T: Scalar>(a: &Rows<T>, diagonal: &[T], b: &[f64]) -> bool {
    !parallel::all(a.n_rows(), 4096, |row| {
        let mut is_opposed = false;
        for_large(a, diagonal, b, OPPOSED, row, |_, value| is_opposed |= value > T::ZERO);
        !is_opposed
    })
}

/// Marks the rows of a rank that ghosts may share a cluster with; columns are as in [`has_opposed`].
pub(crate) fn joined_to_ghosts<T: Scalar>(a: &Rows<T>, diagonal: &[T], b: &[f64]) -> Vec<bool> {
    let mut is_joined = vec![false; a.n_rows()];
    for nodes in small_components(a.n_cols, &joints(a, diagonal, b)) {
        let (own, ghosts) = nodes.split_at(nodes.partition_point(|&node| (node as usize) < a.n_rows()));
        own.iter().for_each(|&node| is_joined[node as usize] = !ghosts.is_empty());
    }
    is_joined
}

/// The nodes of each cluster, ascending.
fn clusters<T: Scalar>(a: &Rows<T>, diagonal: &[T], b: &[f64]) -> Vec<Vec<u32>> {
    let joints = joints(a, diagonal, b);
    let mut is_opposed = vec![false; a.n_rows()];
    let opposed = joints.iter().filter(|joint| joint.share > OPPOSED);
    opposed.flat_map(|joint| joint.nodes).for_each(|node| is_opposed[node as usize] = true);
    let mut clusters = small_components(a.n_rows(), &joints);
    clusters.retain(|nodes| nodes.iter().any(|&node| is_opposed[node as usize]));
    clusters
}

/// The entries that join nodes.
fn joints<T: Scalar>(a: &Rows<T>, diagonal: &[T], b: &[f64]) -> Vec<Joint> {
    let mut joints = Vec::new();
    for row in 0..a.n_rows() {
        for_large(a, diagonal, b, JOINED[0], row, |column, value| {
            let size = (diagonal[row].to_f64() * diagonal[column as usize].to_f64()).sqrt();
            joints.push(Joint { nodes: [column, row as u32], share: value.to_f64() / size });
        });
    }
    joints
}

/// The nodes of the components that are small enough, each by the first of the thresholds for which it is.
fn small_components(n: usize, joints: &[Joint]) -> Vec<Vec<u32>> {
    let (mut is_taken, mut small) = (vec![false; n], Vec::new());
    for least in JOINED {
        for nodes in components(n, joints.iter().filter(|joint| joint.share.abs() > least)) {
            // A component is a part of one of the threshold before: all of its nodes are taken, or none.
            if nodes.len() <= MOST_NODES && !is_taken[nodes[0] as usize] {
                nodes.iter().for_each(|&node| is_taken[node as usize] = true);
                small.push(nodes);
            }
        }
    }
    small
}

/// The connected components of more than one node, by their smallest nodes; the nodes of each ascend.
fn components<'a>(n: usize, joints: impl Iterator<Item = &'a Joint>) -> Vec<Vec<u32>> {
    let mut parents: Vec<u32> = (0..n as u32).collect();
    for joint in joints {
        let [one, other] = joint.nodes.map(|node| root(&mut parents, node));
        parents[one.max(other) as usize] = one.min(other);
    }
    let mut components: Vec<Vec<u32>> = Vec::new();
    let mut number = vec![u32::MAX; n];
    for node in 0..n as u32 {
        let first = root(&mut parents, node);
        if first == node {
            continue;
        }
        if number[first as usize] == u32::MAX {
            number[first as usize] = components.len() as u32;
            components.push(vec![first]);
        }
        components[number[first as usize] as usize].push(node);
    }
    components
}

/// Returns the smallest node of a component, with path compression.
fn root(parents: &mut [u32], mut node: u32) -> u32 {
    while parents[node as usize] != node {
        parents[node as usize] = parents[parents[node as usize] as usize];
        node = parents[node as usize];
    }
    node
}

/// Appends the modes of a cluster as rows, except that of its first free node.
fn of_cluster<T: Scalar>(a: &Rows<T>, nodes: &[u32], modes: &mut Rows<T>) {
    let n = nodes.len();
    let mut block = dense(a, nodes);
    let own: Vec<f64> = (0..n).map(|i| block[n * i + i]).collect();
    let is_determined = eliminate(&mut block, &own);
    // Below this a rounded matrix does not say whether the energy of a mode is positive.
    let least = FREE.min(64.0 * T::EPSILON.to_f64());
    let free: Vec<usize> = (0..n).filter(|&i| !is_determined[i]).collect();
    for &mode in free.iter().skip(1).filter(|&&i| block[n * i + i] > least * own[i]) {
        for (i, &node) in nodes.iter().enumerate() {
            let value = match (i == mode, is_determined[i]) {
                (true, _) => 1.0,
                (false, true) => -block[n * i + mode],
                (false, false) => 0.0,
            };
            if value != 0.0 {
                modes.columns.push(node);
                modes.values.push(T::from_f64(value));
            }
        }
        modes.offsets.push(modes.columns.len());
    }
}

/// The rows and columns of some nodes.
fn dense<T: Scalar>(a: &Rows<T>, nodes: &[u32]) -> Vec<f64> {
    let mut block = vec![0.0; nodes.len() * nodes.len()];
    for (to, &node) in block.chunks_mut(nodes.len()).zip(nodes) {
        let (columns, values) = a.row(node as usize);
        for (column, value) in columns.iter().zip(values) {
            if let Ok(at) = nodes.binary_search(column) {
                to[at] = value.to_f64();
            }
        }
    }
    block
}

/// Eliminates nodes by the largest pivot relative to their diagonal entries `own`, and says which. Rows of these then give
/// them by the others, with the sign turned, and the rest is the Schur complement.
///
/// # Source
/// Gauss–Jordan elimination with diagonal pivoting, `[golub2013]`, section 4.2.
fn eliminate(block: &mut [f64], own: &[f64]) -> Vec<bool> {
    let n = own.len();
    let mut is_determined = vec![false; n];
    for _ in 0..n {
        let share = |i: usize, block: &[f64]| block[n * i + i] / own[i];
        let open = (0..n).filter(|&i| !is_determined[i]);
        let Some(p) = open.max_by(|&i, &j| share(i, block).total_cmp(&share(j, block))) else { break };
        if share(p, block) <= FREE {
            break;
        }
        is_determined[p] = true;
        let pivot = block[n * p + p];
        block[n * p..n * (p + 1)].iter_mut().for_each(|value| *value /= pivot);
        let row = block[n * p..n * (p + 1)].to_vec();
        for i in (0..n).filter(|&i| i != p) {
            let factor = block[n * i + p];
            block[n * i..n * (i + 1)].iter_mut().zip(&row).for_each(|(value, p)| *value -= factor * p);
        }
    }
    is_determined
}

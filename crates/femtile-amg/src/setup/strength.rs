//! Strength of connection between the nodes of a matrix.

use femtile_device::{Scalar, parallel};

use super::evolution::Evolution;
use super::graph::Graph;
use super::rows::{PIECE, Pieces, Row, RowAccess, Rows};

/// The graph of strong connections, and the entries that smooth prolongators.
#[derive(Debug)]
pub(crate) struct Strength {
    pub graph: Graph,
    /// For each entry of the matrix whether it counts in smoothing; those within a node do.
    pub is_strong: Vec<bool>,
    /// As [`Evolution::is_doubtful`]; empty if no row is.
    pub is_doubtful: Vec<bool>,
}

impl Strength {
    /// Entries count if $\|A_{ij}\|_F > \theta \sqrt{\|A_{ii}\|_F \|A_{jj}\|_F}$ and $A_{ij}$ is not zero,
    /// for nodes of `block` rows each. The graph and the smoothing have different thresholds.
    ///
    /// # Source
    /// `[vanek1996]`, eq. (6), has this measure for scalars. Differs: one threshold serves both there.
    pub fn new<T: Scalar>(
        a: &Rows<T>,
        diagonal: &[T],
        block: usize,
        [of_graph, of_smoothing]: [f64; 2],
    ) -> Self {
        let graph = graph_of(a, &flags_of(a, diagonal, block, of_graph), block);
        Self { graph, is_strong: flags_of(a, diagonal, block, of_smoothing), is_doubtful: Vec::new() }
    }

    /// As [`Strength::new`] for nodes of one row with a near-nullspace b of one vector. If positive entries
    /// may hide the direction of strong coupling, [`Evolution`] must agree, except in rows with `modes`. On
    /// coarser levels, which have `inherited`, rows in which b is zero, modes of the level above, have no
    /// connections.
    pub fn of_scalars<T: Scalar>(
        a: &Rows<T>,
        diagonal: &[T],
        b: &[f64],
        modes: Option<&Rows<T>>,
        inherited: Option<&[bool]>,
        thresholds: [f64; 2],
    ) -> Self {
        let has_modes = |row: usize| modes.is_some_and(|modes| !modes.row(row).0.is_empty());
        let mut flags = thresholds.map(|theta| flags_of(a, diagonal, 1, theta));
        if inherited.is_some() && b.contains(&0.0) {
            flags.iter_mut().for_each(|flags| isolate_zeros(a, b, flags));
        }
        let mut is_doubtful = Vec::new();
        if let Some(evolution) = Evolution::new(a, diagonal, b, &flags[0], inherited, has_modes) {
            flags.iter_mut().for_each(|flags| evolution.restrict(a, flags));
            is_doubtful = evolution.is_doubtful;
        }
        let [of_graph, is_strong] = flags;
        Self { graph: graph_of(a, &of_graph, 1), is_strong, is_doubtful }
    }

    /// Uses a given graph without the connections of nodes that are isolated in the matrix, such as those
    /// with Dirichlet values.
    pub fn on<T: Scalar>(
        graph: &Graph,
        a: &Rows<T>,
        diagonal: &[T],
        block: usize,
        of_smoothing: f64,
    ) -> Self {
        Self {
            graph: graph.without(|node| is_alone(a, node, block)),
            is_strong: flags_of(a, diagonal, block, of_smoothing),
            is_doubtful: Vec::new(),
        }
    }
}

impl Strength {
    /// Removes the connections of nodes, also from smoothing.
    pub fn without<T: Scalar>(mut self, a: &Rows<T>, block: usize, is_removed: &[bool]) -> Self {
        for row in 0..a.n_rows() {
            for at in a.offsets[row]..a.offsets[row + 1] {
                let (node, other) = (row / block, a.columns[at] as usize / block);
                self.is_strong[at] &= node == other || !(is_removed[node] || is_removed[other]);
            }
        }
        self.graph = self.graph.without(|node| is_removed[node]);
        self
    }
}

/// Returns whether no non-zero entry connects a node to others.
fn is_alone<T: Scalar>(a: &Rows<T>, node: usize, block: usize) -> bool {
    (block * node..block * (node + 1)).all(|row| {
        let (columns, values) = a.row(row);
        columns
            .iter()
            .zip(values)
            .all(|(&column, &value)| column as usize / block == node || value == T::ZERO)
    })
}

/// Flags the entries above a threshold and those within a node.
fn flags_of<T: Scalar>(a: &Rows<T>, diagonal: &[T], block: usize, theta: f64) -> Vec<bool> {
    if block == 1 { of_scalars(a, diagonal, T::from_f64(theta * theta)) } else { of_blocks(a, block, theta) }
}

/// Clears the flags of rows and columns in which the near-nullspace is zero.
fn isolate_zeros<T: Scalar>(a: &Rows<T>, b: &[f64], flags: &mut [bool]) {
    for row in 0..a.n_rows() {
        for at in a.offsets[row]..a.offsets[row + 1] {
            flags[at] &= b[row] != 0.0 && b[a.columns[at] as usize] != 0.0;
        }
    }
}

/// Returns the flags of entries that `work` sets for pieces of rows.
pub(crate) fn flags<T: Scalar>(
    a: &Rows<T>,
    work: impl Fn(std::ops::Range<usize>, &mut [bool]) + Sync,
) -> Vec<bool> {
    let mut is_strong = vec![false; a.columns.len()];
    let (mut rest, mut pieces) = (is_strong.as_mut_slice(), Vec::new());
    for begin in (0..a.n_rows()).step_by(PIECE) {
        let rows = begin..(begin + PIECE).min(a.n_rows());
        let (piece, more) = rest.split_at_mut(a.offsets[rows.end] - a.offsets[rows.start]);
        pieces.push((rows, piece));
        rest = more;
    }
    parallel::for_each_item(pieces, 1, |(rows, flags)| work(rows, flags));
    is_strong
}

fn of_scalars<T: Scalar>(a: &Rows<T>, diagonal: &[T], square: T) -> Vec<bool> {
    flags(a, |rows, flags| {
        let begin = a.offsets[rows.start];
        for row in rows {
            let least = square * diagonal[row];
            let flags = &mut flags[a.offsets[row] - begin..a.offsets[row + 1] - begin];
            let (columns, values) = a.row(row);
            for ((flag, &column), &value) in flags.iter_mut().zip(columns).zip(values) {
                let size = value * value;
                *flag = size > least * diagonal[column as usize] && size > T::ZERO;
            }
        }
    })
}

fn of_blocks<T: Scalar>(a: &Rows<T>, block: usize, theta: f64) -> Vec<bool> {
    let n = a.n_rows() / block;
    let squares = Pieces::<f64>::build(
        [n, n],
        || Row::new(n),
        |sums, node, out| {
            let rows = block * node..block * (node + 1);
            sums.start(a.offsets[rows.end] - a.offsets[rows.start]);
            for row in rows {
                let (columns, values) = a.row(row);
                for (&column, &value) in columns.iter().zip(values) {
                    sums.add(&[column / block as u32], &[value.to_f64()], value.to_f64());
                }
            }
            let (columns, values) = sums.entries();
            out.extend(columns, values);
        },
    );
    let square_of = |node: usize, other: u32| {
        let (columns, values) = squares.row(node);
        columns.iter().position(|&column| column == other).map_or(0.0, |at| values[at])
    };
    let own: Vec<f64> = (0..n).map(|node| square_of(node, node as u32).sqrt()).collect();
    flags(a, |rows, flags| {
        let begin = a.offsets[rows.start];
        for row in rows {
            let node = row / block;
            let flags = &mut flags[a.offsets[row] - begin..a.offsets[row + 1] - begin];
            for (flag, &column) in flags.iter_mut().zip(a.row(row).0) {
                let other = column / block as u32;
                let square = square_of(node, other);
                let least = theta * theta * own[node] * own[other as usize];
                *flag = other as usize == node || (square > least && square > 0.0);
            }
        }
    })
}

fn graph_of<T: Scalar>(a: &Rows<T>, is_strong: &[bool], block: usize) -> Graph {
    let n = a.n_rows() / block;
    let pieces = Pieces::<f32>::build([n, n], Vec::new, |others: &mut Vec<u32>, node, out| {
        for row in block * node..block * (node + 1) {
            let flags = &is_strong[a.offsets[row]..a.offsets[row + 1]];
            let strong = a.row(row).0.iter().zip(flags).filter(|(_, flag)| **flag);
            if block == 1 {
                strong
                    .filter(|(column, _)| **column as usize != row)
                    .for_each(|(&column, _)| out.push(column, 0.0));
            } else {
                others.extend(strong.map(|(&column, _)| column / block as u32));
            }
        }
        others.sort_unstable();
        others.dedup();
        others.drain(..).filter(|&other| other as usize != node).for_each(|other| out.push(other, 0.0));
    });
    let Rows { offsets, columns, .. } = pieces.join();
    Graph { offsets, neighbours: columns }
}

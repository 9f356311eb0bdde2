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
    /// for nodes of `block` rows each. The graph and the smoothing have different thresholds. Nodes of several rows
    /// have a second threshold, [`RELATIVE`], which `factor` weakens as it weakens the first ones. A node without strong blocks is
    /// connected to the one it is coupled to most: in thin bodies the stiffest motions of a node make its diagonal block larger than all
    /// others, and the smoother does not reduce its other motions.
    ///
    /// # Source
    /// `[vanek1996]`, eq. (6), has this measure for scalars. Differs: one threshold serves both there.
    pub fn new<T: Scalar>(
        a: &Rows<T>,
        diagonal: &[T],
        block: usize,
        [of_graph, of_smoothing]: [f64; 2],
        factor: f64,
    ) -> Self {
        let is_doubtful = Vec::new();
        if block == 1 {
            let [flags, is_strong] =
                [of_graph, of_smoothing].map(|theta| flags_of(a, diagonal, block, theta));
            return Self { graph: graph_of(a, &flags, block), is_strong, is_doubtful };
        }
        let norms = BlockNorms::new(a, block);
        let mut flags = norms.flags(a, Thresholds { least: of_graph, relative: factor * RELATIVE });
        norms.join_isolated(a, &mut flags);
        let is_strong = norms.flags(a, Thresholds { least: of_smoothing, relative: 0.0 });
        Self { graph: graph_of(a, &flags, block), is_strong, is_doubtful }
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
    match block {
        1 => of_scalars(a, diagonal, T::from_f64(theta * theta)),
        _ => BlockNorms::new(a, block).flags(a, Thresholds { least: theta, relative: 0.0 }),
    }
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

/// Strong blocks are above this share of the largest scaled norm of a block of one of their nodes. Thin bodies then coarsen across their
/// thickness first, as smoothed prolongators along a plate or a beam represent its bending badly.
pub(crate) const RELATIVE: f64 = 0.5;

/// Thresholds of the norms of strong blocks.
#[derive(Debug, Clone, Copy)]
struct Thresholds {
    /// Relative to the diagonal blocks.
    least: f64,
    /// Relative to the largest block beside the diagonal of either node, the smaller one of both.
    relative: f64,
}

/// The squares of the Frobenius norms of the blocks of a matrix.
struct BlockNorms {
    /// One row and one column a node.
    squares: Rows<f64>,
    /// The norm of the diagonal block of each node.
    own: Vec<f64>,
    /// The largest square of a scaled norm of each node.
    largest: Vec<f64>,
    block: usize,
}

impl BlockNorms {
    fn new<T: Scalar>(a: &Rows<T>, block: usize) -> Self {
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
        let squares = squares.join();
        let own = parallel::map(n, PIECE, |node| {
            let (columns, values) = squares.row(node);
            let own = columns.iter().position(|&column| column as usize == node);
            own.map_or(0.0, |at| values[at].sqrt())
        });
        let mut norms = Self { squares, own, largest: Vec::new(), block };
        norms.largest = parallel::map(n, PIECE, |node| {
            let (columns, squares) = norms.squares.row(node);
            let others = columns.iter().zip(squares).filter(|(other, _)| **other as usize != node);
            others.map(|(&other, &square)| norms.coupling(node, other, square)).fold(0.0, f64::max)
        });
        norms
    }

    /// Returns the square of the norm of a block relative to those of the diagonal blocks of its nodes; 0 for blocks of zeros.
    fn coupling(&self, node: usize, other: u32, square: f64) -> f64 {
        if square > 0.0 { square / (self.own[node] * self.own[other as usize]) } else { 0.0 }
    }

    /// Returns whether a coupling is strong: above the threshold, and among the larger ones of one of its nodes.
    fn is_strong(&self, [node, other]: [usize; 2], coupling: f64, thresholds: Thresholds) -> bool {
        let Thresholds { least, relative } = thresholds;
        let most = self.largest[node].min(self.largest[other]);
        coupling > least * least && coupling > relative * relative * most
    }

    /// Flags the entries of strong blocks and those within a node.
    fn flags<T: Scalar>(&self, a: &Rows<T>, thresholds: Thresholds) -> Vec<bool> {
        let block = self.block;
        flags(a, |rows, flags| {
            let begin = a.offsets[rows.start];
            let (mut node, mut strong) = (usize::MAX, Vec::new());
            for row in rows {
                if row / block != node {
                    node = row / block;
                    let (columns, squares) = self.squares.row(node);
                    let others = columns.iter().zip(squares).filter(|&(&other, &square)| {
                        let coupling = self.coupling(node, other, square);
                        other as usize == node || self.is_strong([node, other as usize], coupling, thresholds)
                    });
                    strong.clear();
                    strong.extend(others.map(|(&other, _)| other));
                    strong.sort_unstable();
                }
                let flags = &mut flags[a.offsets[row] - begin..a.offsets[row + 1] - begin];
                for (flag, &column) in flags.iter_mut().zip(a.row(row).0) {
                    *flag = strong.binary_search(&(column / block as u32)).is_ok();
                }
            }
        })
    }

    /// Flags the largest block of each node that has no strong one, and the block of the same nodes across the diagonal.
    fn join_isolated<T: Scalar>(&self, a: &Rows<T>, flags: &mut [bool]) {
        let block = self.block;
        let largest = parallel::map(self.own.len(), PIECE, |node| {
            let mut entries = a.offsets[block * node]..a.offsets[block * (node + 1)];
            if entries.any(|at| flags[at] && a.columns[at] as usize / block != node) {
                return None;
            }
            let (columns, squares) = self.squares.row(node);
            let others = columns.iter().zip(squares).filter(|(other, _)| **other as usize != node);
            let couplings = others.map(|(&other, &square)| (other, self.coupling(node, other, square)));
            let coupled = couplings.filter(|(_, coupling)| *coupling > 0.0);
            let most = coupled.max_by(|x, y| x.1.total_cmp(&y.1).then(y.0.cmp(&x.0)));
            most.map(|(other, _)| other as usize)
        });
        let mut join = |from: usize, to: usize| {
            let entries = a.offsets[block * from]..a.offsets[block * (from + 1)];
            for (flag, &column) in flags[entries.clone()].iter_mut().zip(&a.columns[entries]) {
                *flag |= column as usize / block == to;
            }
        };
        for (node, other) in largest.into_iter().enumerate() {
            if let Some(other) = other {
                join(node, other);
                join(other, node);
            }
        }
    }
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

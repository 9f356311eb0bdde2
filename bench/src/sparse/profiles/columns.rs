//! Models of the columns of a row.

use super::random::Random;

/// A model of the columns of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColumnModel {
    /// Runs of three columns around the diagonal, as of three unknowns per node; the rows of a node share their runs.
    Banded {
        /// Half bandwidth in columns.
        half_width: usize,
    },
    /// Most columns near the diagonal, with log-uniform distances; the others uniform.
    Scattered {
        /// Share of the uniform columns.
        share: f64,
    },
    /// Half near the diagonal, half with a power-law distribution that favours the first columns.
    Web,
    /// Neighbours in a two-dimensional grid.
    Grid,
    /// Neighbours in a periodic four-dimensional lattice with 4 × 3 unknowns per site.
    Lattice,
}

/// Length of the runs of columns that the rows of a node share.
const RUN: usize = 3;
/// Unknowns of a lattice site, in runs.
const SPINS: usize = 4;

/// Chooses the columns of consecutive rows.
pub(super) struct Columns {
    model: ColumnModel,
    n: usize,
    /// Last row, counted from 1, that contains each column.
    taken: Vec<u32>,
    chosen: Vec<u32>,
    row: usize,
}

impl Columns {
    pub(super) fn new(model: ColumnModel, n: usize) -> Self {
        Self { model, n, taken: vec![0; n], chosen: Vec::new(), row: 0 }
    }

    /// Returns `length` columns of `row` in ascending order, including the diagonal; `length <= n`.
    pub(super) fn of_row(&mut self, row: usize, length: usize) -> &[u32] {
        self.chosen.clear();
        self.row = row;
        if length > 0 {
            self.take(row as isize);
            self.choose(length);
            self.fill(length);
        }
        self.chosen.sort_unstable();
        &self.chosen
    }

    /// Adds a column if it is valid and not yet in the row.
    fn take(&mut self, column: isize) {
        let Some(taken) = usize::try_from(column).ok().and_then(|column| self.taken.get_mut(column)) else {
            return;
        };
        let mark = self.row as u32 + 1;
        if std::mem::replace(taken, mark) != mark {
            self.chosen.push(column as u32);
        }
    }

    fn choose(&mut self, length: usize) {
        match self.model {
            ColumnModel::Banded { half_width } => self.choose_band(length, half_width),
            ColumnModel::Scattered { share } => self.choose_at_random(length, |random, row, n| {
                if random.unit() < share { random.below(n) as isize } else { near(random, row, n / 8) }
            }),
            ColumnModel::Web => self.choose_at_random(length, |random, row, n| {
                if random.unit() < 0.5 {
                    (n as f64 * random.unit().powi(3)) as isize
                } else {
                    near(random, row, 1000)
                }
            }),
            ColumnModel::Grid => self.choose_grid(length),
            ColumnModel::Lattice => self.choose_lattice(length),
        }
    }

    fn choose_at_random(&mut self, length: usize, column: impl Fn(&mut Random, usize, usize) -> isize) {
        let mut random = Random::new(self.row as u64);
        for _ in 0..4 * length {
            if self.chosen.len() == length {
                return;
            }
            self.take(column(&mut random, self.row, self.n));
        }
    }

    fn choose_band(&mut self, length: usize, half_width: usize) {
        let node = self.row / RUN;
        let reach = half_width.min(self.n / 2) as f64 / RUN as f64;
        let mut random = Random::new(node as u64);
        self.take_run(node as isize, length);
        for _ in 0..2 * length {
            // The sum of two uniform numbers favours the diagonal.
            let offset = reach * (random.unit() + random.unit() - 1.0);
            self.take_run(node as isize + offset.round() as isize, length);
        }
    }

    /// Adds the columns of a run until the row has `length`.
    fn take_run(&mut self, run: isize, length: usize) {
        for column in (0..RUN as isize).map(|k| run * RUN as isize + k) {
            if self.chosen.len() < length {
                self.take(column);
            }
        }
    }

    fn choose_grid(&mut self, length: usize) {
        let (row, width) = (self.row as isize, (self.n as f64).sqrt().ceil() as isize);
        for column in [row - 1, row + width, row + 1, row - width] {
            if self.chosen.len() < length {
                self.take(column);
            }
        }
    }

    fn choose_lattice(&mut self, length: usize) {
        let (run, n_runs) = ((self.row / RUN) as isize, (self.n / RUN).max(1) as isize);
        let side = ((n_runs as f64 / SPINS as f64).powf(0.25).round() as isize).max(1);
        let strides = [1, side, side * side, side * side * side].map(|stride| stride * SPINS as isize);
        self.take_run(run, length);
        for stride in strides {
            // Two neighbours along an axis, the first with another spin.
            for offset in [stride, -stride, stride + 1] {
                self.take_run((run + offset).rem_euclid(n_runs), length);
            }
        }
    }

    /// Adds the free columns nearest to the diagonal until the row has `length`.
    fn fill(&mut self, length: usize) {
        let row = self.row as isize;
        for distance in 1..self.n as isize {
            for column in [row - distance, row + distance] {
                if self.chosen.len() == length {
                    return;
                }
                self.take(column);
            }
        }
    }
}

/// Returns a column at a log-uniform distance of at most `reach` from the diagonal.
fn near(random: &mut Random, row: usize, reach: usize) -> isize {
    let distance = (reach.max(2) as f64).powf(random.unit()).round() as isize;
    if random.unit() < 0.5 { row as isize - distance } else { row as isize + distance }
}

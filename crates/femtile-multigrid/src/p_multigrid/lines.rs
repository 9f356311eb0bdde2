//! Line smoother: exact solves on lines of nodes across flat cells.

use std::ops::Range;

use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::precondition::inverse_diagonal;
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, Preconditioner, need};

use super::cpu::each_line;
use crate::axis::matrices;
use crate::grid::all;
use crate::smoother::Cholesky;

/// Ratio of the largest directional stiffness of a cell to the next one from which it is flat: side lengths of 2 : 1.
const FLAT: f64 = 4.0;
/// Largest ratio between diagonal entries of an operator and of its surrogate.
const NEAR: f64 = 4.0;
/// Marks no row.
const NONE: u32 = u32::MAX;

/// A cell matrix as a sum of tensor products:
/// $\sum_a g_a\, K_a \otimes M_b \otimes M_c + m\, M_a \otimes M_b \otimes M_c$ with the stiffness K and the mass M of a
/// unit line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineCell {
    /// $g_a$: the diagonal of $\det J\, J^{-1} \sigma J^{-\mathsf{T}}$ at the centre of the cell.
    pub stiffness: [f64; 3],
    /// $m$: λ times the volume.
    pub mass: f64,
}

impl LineCell {
    /// Returns the axis along which the cell is much stiffer than along the others, the one across a flat cell.
    pub fn stiff_axis(&self, dimension: usize) -> Option<usize> {
        let stiffest = (0..dimension).max_by(|&a, &b| self.stiffness[a].total_cmp(&self.stiffness[b]))?;
        let is_stiffer = |axis: usize| self.stiffness[stiffest] >= FLAT * self.stiffness[axis];
        (0..dimension).all(|axis| axis == stiffest || is_stiffer(axis)).then_some(stiffest)
    }
}

/// The cells of a finite-element space, with their unknowns, the first axis fastest.
pub struct LineCells<'a> {
    /// The polynomial degree.
    pub degree: usize,
    /// The dimension, 2 or 3.
    pub dimension: usize,
    /// The number of cells.
    pub n_cells: usize,
    /// Writes the unknowns of a cell and returns its coefficients.
    pub cell: &'a dyn Fn(usize, &mut [u32]) -> LineCell,
}

impl LineCells<'_> {
    fn n_local(&self) -> usize {
        (self.degree + 1).pow(self.dimension as u32)
    }

    /// Calls `visit` with the unknowns of each cell.
    fn each(&self, mut visit: impl FnMut(LineCell, &[u32])) {
        let mut unknowns = vec![0; self.n_local()];
        for number in 0..self.n_cells {
            let cell = (self.cell)(number, &mut unknowns);
            visit(cell, &unknowns);
        }
    }

    /// Returns the lines of nodes along an axis: the first local node and its index across the axis; and the stride along
    /// it.
    fn lines(&self, axis: usize) -> (impl Iterator<Item = (usize, [usize; 3])> + use<>, usize) {
        let n = self.degree + 1;
        let along = [0, 1, 2].map(|other| if other == axis || other >= self.dimension { 1 } else { n });
        (all(along).map(move |[x, y, z]| ((z * n + y) * n + x, [x, y, z])), n.pow(axis as u32))
    }
}

/// Line smoother, additive Schwarz with lines as subdomains: exact solves of a separable surrogate on lines across flat
/// cells, and the inverse diagonal on all other rows, $M^{-1} = \sum_l R_l^\mathsf{T} A_l^{-1} R_l + D^{-1}$.
///
/// Unknowns are strongly coupled across a flat cell, so a point smoother leaves error that is smooth across it and
/// oscillates along it; a line solve removes it.
///
/// # Cost
/// $2 p + 1$ multiplications and as many numbers per row.
/// # Source
/// `[saad2003]`, section 4.1.1.
#[derive(Debug)]
pub struct LineSolves<T: Scalar> {
    device: Cpu,
    inverse_diagonal: Buffer<T, Cpu>,
    /// The rows of all lines, one line after another.
    rows: Vec<u32>,
    lines: Vec<Line<T>>,
}

/// A line, by its range in the rows of all lines.
#[derive(Debug)]
struct Line<T> {
    range: Range<usize>,
    factor: Cholesky<T>,
}

impl<T: Scalar> LineSolves<T> {
    /// Creates line solves for the flat cells; none if there are no flat cells. Lines on which the surrogate
    /// differs too much from the operator, on curved cells or at coefficient jumps, are left to the diagonal.
    /// `diagonal` is that of the operator, `constrained` the Dirichlet rows, `added` the diagonal of terms
    /// other than cells.
    ///
    /// # Errors
    /// As [`inverse_diagonal`].
    pub fn new(
        device: &Cpu,
        cells: &LineCells<'_>,
        diagonal: &[T],
        constrained: &[u32],
        added: impl Iterator<Item = (u32, f64)>,
    ) -> Result<Option<Self>, LinalgError> {
        let mut paths = Paths::new(diagonal.len());
        constrained.iter().for_each(|&row| paths.close(row));
        cells.each(|cell, unknowns| {
            let Some(axis) = cell.stiff_axis(cells.dimension) else { return };
            let (lines, stride) = cells.lines(axis);
            for (first, _) in lines {
                let line = (0..=cells.degree).map(|i| unknowns[first + i * stride]);
                line.clone().zip(line.skip(1)).for_each(|(one, other)| paths.join(one, other));
            }
        });
        let lines = paths.lines();
        if lines.is_empty() {
            return Ok(None);
        }
        let bands = Bands::new(cells, &lines, diagonal.len(), added);
        let (mut begin, mut rows, mut solves) = (0, Vec::new(), Vec::new());
        for line in &lines {
            let own = begin..begin + line.len();
            begin = own.end;
            let entries = line.iter().map(|&row| diagonal[row as usize].to_f64());
            if bands.are_near(own.clone(), entries) {
                let range = rows.len()..rows.len() + line.len();
                solves.push(Line { range, factor: bands.factor(own).to() });
                rows.extend(line);
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            device: device.clone(),
            inverse_diagonal: inverse_diagonal(device, diagonal.to_vec())?,
            lines: solves,
            rows,
        }))
    }
}

impl<T: Scalar> Preconditioner<T, Cpu> for LineSolves<T> {
    fn apply(&self, z: &mut Buffer<T, Cpu>, r: &Buffer<T, Cpu>) -> Result<(), LinalgError> {
        let n = self.inverse_diagonal.len();
        need("z", n, z.len())?;
        need("r", n, r.len())?;
        self.device.scale_by(z, &self.inverse_diagonal, r)?;
        let rows = |line: usize| &self.rows[self.lines[line].range.clone()];
        each_line(&self.device, z.as_mut_slice(), r.as_slice(), (self.lines.len(), rows), |line, values| {
            self.lines[line].factor.solve(values);
        });
        Ok(())
    }
}

/// Rows joined into paths: no row has more than two neighbours, and no path is closed.
struct Paths {
    neighbours: Vec<[u32; 2]>,
    /// Union-find parent of each row; none for rows in no path.
    above: Vec<u32>,
}

impl Paths {
    fn new(n_rows: usize) -> Self {
        Self { neighbours: vec![[NONE; 2]; n_rows], above: (0..n_rows as u32).collect() }
    }

    /// Excludes a row.
    fn close(&mut self, row: u32) {
        self.above[row as usize] = NONE;
    }

    fn root(&mut self, mut row: u32) -> u32 {
        while self.above[row as usize] != row {
            let above = self.above[row as usize];
            self.above[row as usize] = self.above[above as usize];
            row = above;
        }
        row
    }

    /// Joins two rows if the result is a path.
    fn join(&mut self, one: u32, other: u32) {
        let pair = [(one, other), (other, one)];
        let is_free = |&(row, _): &(u32, u32)| {
            self.above[row as usize] != NONE && self.neighbours[row as usize].contains(&NONE)
        };
        if !pair.iter().all(is_free) {
            return;
        }
        let roots = [one, other].map(|row| self.root(row));
        if roots[0] == roots[1] {
            return;
        }
        self.above[roots[0] as usize] = roots[1];
        for (row, neighbour) in pair {
            let [first, second] = &mut self.neighbours[row as usize];
            *(if *first == NONE { first } else { second }) = neighbour;
        }
    }

    /// Returns the rows of each path from one end to the other.
    fn lines(&self) -> Vec<Vec<u32>> {
        let next = |before: u32, row: u32| {
            self.neighbours[row as usize].into_iter().find(|&next| next != NONE && next != before)
        };
        let walk = |end: u32| {
            let step = |&(before, row): &(u32, u32)| next(before, row).map(|next| (row, next));
            std::iter::successors(Some((NONE, end)), step).map(|(_, row)| row).collect::<Vec<u32>>()
        };
        let is_end = |row: &u32| matches!(self.neighbours[*row as usize], [first, NONE] if first != NONE);
        let ends = (0..self.neighbours.len() as u32).filter(is_end);
        ends.map(walk).filter(|line| line[0] < line[line.len() - 1]).collect()
    }
}

/// The band matrices of all lines: for each row its entries up to the diagonal.
struct Bands {
    width: usize,
    /// `[n][width]`.
    entries: Vec<f64>,
}

impl Bands {
    fn new(
        cells: &LineCells<'_>,
        lines: &[Vec<u32>],
        n_rows: usize,
        added: impl Iterator<Item = (u32, f64)>,
    ) -> Self {
        let mut places = vec![(NONE, 0); n_rows];
        let all_rows =
            lines.iter().enumerate().flat_map(|(line, rows)| rows.iter().map(move |&row| (line, row)));
        for (place, (line, row)) in all_rows.enumerate() {
            places[row as usize] = (line as u32, place);
        }
        let n: usize = lines.iter().map(Vec::len).sum();
        let width = cells.degree + 1;
        let mut bands = Self { width, entries: vec![0.0; n * width] };
        for (row, entry) in added {
            bands.add(places[row as usize], places[row as usize], entry);
        }
        let [mass, stiffness] = matrices(cells.degree, &[1.0]);
        let product = |cell: &LineCell, axis: usize, at: [usize; 3], i: usize, j: usize| {
            let [of_mass, of_stiffness] = [&mass, &stiffness].map(|table| table.row(i)[j]);
            let mut entry = cell.stiffness[axis] * of_stiffness + cell.mass * of_mass;
            let mut across = 1.0;
            for other in (0..cells.dimension).filter(|&other| other != axis) {
                let [m, k] = [&mass, &stiffness].map(|table| table.row(at[other])[at[other]]);
                across *= m;
                entry += cell.stiffness[other] * k / m * of_mass;
            }
            across * entry
        };
        cells.each(|cell, unknowns| {
            let places: Vec<(u32, usize)> = unknowns.iter().map(|&row| places[row as usize]).collect();
            if places.iter().all(|&(line, _)| line == NONE) {
                return;
            }
            for axis in 0..cells.dimension {
                let (starts, stride) = cells.lines(axis);
                for (first, at) in starts {
                    for i in 0..=cells.degree {
                        // The diagonal part is the same for all axes.
                        let others = if axis == 0 { 0..i + 1 } else { 0..i };
                        for j in others {
                            let [one, other] = [i, j].map(|at| places[first + at * stride]);
                            bands.add(one, other, product(&cell, axis, at, i, j));
                        }
                    }
                }
            }
        });
        bands
    }

    /// Adds to the entry of two rows if they are within the band of one line.
    fn add(&mut self, one: (u32, usize), other: (u32, usize), entry: f64) {
        let (low, high) = (one.1.min(other.1), one.1.max(other.1));
        if one.0 != NONE && one.0 == other.0 && high - low < self.width {
            self.entries[high * self.width + self.width - 1 + low - high] += entry;
        }
    }

    /// Returns whether the diagonal of a line is close to that of the operator.
    fn are_near(&self, rows: Range<usize>, diagonal: impl Iterator<Item = f64>) -> bool {
        let own = rows.map(|row| self.entries[(row + 1) * self.width - 1]);
        own.zip(diagonal).all(|(own, entry)| own <= NEAR * entry && entry <= NEAR * own)
    }

    /// Factors a line. If omitted entries make it indefinite, only its diagonal is used.
    fn factor(&self, rows: Range<usize>) -> Cholesky<f64> {
        let own = &self.entries[rows.start * self.width..rows.end * self.width];
        Cholesky::try_new(self.width, own.to_vec()).unwrap_or_else(|| {
            Cholesky::new(1, own.iter().skip(self.width - 1).step_by(self.width).copied().collect())
        })
    }
}

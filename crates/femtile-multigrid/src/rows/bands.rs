use std::ops::Range;

use femtile_device::Scalar;

use crate::axis::matrices;

/// Mass and stiffness of an axis, row by row; 1 and 0 for an absent axis.
#[derive(Debug, Clone)]
pub(super) struct Bands<T> {
    /// The columns of each row.
    columns: Vec<Range<u32>>,
    /// Offset of the entries of each row.
    begins: Vec<u32>,
    mass: Vec<T>,
    stiffness: Vec<T>,
}

/// A row of the matrices of an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band<'a, T> {
    /// The first column.
    pub first: usize,
    pub mass: &'a [T],
    pub stiffness: &'a [T],
    /// The position of the diagonal among the entries.
    pub diagonal: usize,
}

impl<T: Scalar> Bands<T> {
    /// Assembles the matrices for cells of these widths.
    pub fn new(degree: usize, widths: &[f64]) -> Self {
        if widths.is_empty() {
            return Self {
                columns: std::iter::once(0..1).collect(),
                begins: vec![0],
                mass: vec![T::ONE],
                stiffness: vec![T::ZERO],
            };
        }
        let unit = matrices(degree, &[1.0]);
        let n = degree * widths.len() + 1;
        let cells = |i: usize| i.saturating_sub(1) / degree..(i / degree + 1).min(widths.len());
        let columns: Vec<Range<u32>> = (0..n)
            .map(|i| {
                let cells = cells(i);
                (degree * cells.start) as u32..(degree * cells.end + 1) as u32
            })
            .collect();
        let begins = columns.iter().scan(0, |end, columns| {
            let begin = *end;
            *end += columns.len() as u32;
            Some(begin)
        });
        let entry = |which: usize, i: usize, j: usize| {
            let both = cells(i).filter(|&cell| (degree * cell..=degree * (cell + 1)).contains(&j));
            let of_cell = |cell: usize| {
                let scale = if which == 0 { widths[cell] } else { 1.0 / widths[cell] };
                scale * unit[which].row(i - degree * cell)[j - degree * cell]
            };
            T::from_f64(both.map(of_cell).sum())
        };
        let entries = |which: usize| {
            let row = |(i, columns): (usize, &Range<u32>)| {
                columns.clone().map(|j| entry(which, i, j as usize)).collect::<Vec<T>>()
            };
            columns.iter().enumerate().flat_map(row).collect()
        };
        Self { begins: begins.collect(), mass: entries(0), stiffness: entries(1), columns }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns a row.
    #[inline(always)]
    pub fn row(&self, i: usize) -> Band<'_, T> {
        let (columns, begin) = (&self.columns[i], self.begins[i] as usize);
        let entries = begin..begin + columns.len();
        Band {
            first: columns.start as usize,
            mass: &self.mass[entries.clone()],
            stiffness: &self.stiffness[entries],
            diagonal: i - columns.start as usize,
        }
    }

    /// Returns the entries of mass and stiffness by diagonals, the lowest first: `[2k + 1][len]`, zero outside of the matrix.
    pub fn diagonals(&self, degree: usize, len: usize) -> [Vec<T>; 2] {
        let mut diagonals = [(); 2].map(|()| vec![T::ZERO; (2 * degree + 1) * len]);
        for i in 0..self.len() {
            let band = self.row(i);
            for (j, entries) in band.mass.iter().zip(band.stiffness).enumerate() {
                let at = (band.first + j + degree - i) * len + i;
                (diagonals[0][at], diagonals[1][at]) = (*entries.0, *entries.1);
            }
        }
        diagonals
    }
}

impl<T: Scalar> Band<'_, T> {
    /// Returns the diagonal entries of mass and stiffness.
    pub fn own(&self) -> [T; 2] {
        [self.mass[self.diagonal], self.stiffness[self.diagonal]]
    }
}

//! Spans of cells along an axis, from which patches are formed.

use std::ops::Range;

use crate::grid::BoxGrid;

/// Consecutive cells along an axis, and whether the lower and the upper end are open (have unknowns); no cells for an
/// absent axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub cells: Range<usize>,
    pub open: [bool; 2],
}

/// Spans along each axis; patches are their products.
pub(crate) type Spans = [Vec<Span>; 3];

impl Span {
    fn new(cells: Range<usize>, open: [bool; 2]) -> Self {
        Self { cells, open }
    }

    /// Returns the index of the vertex at the centre of a vertex patch; 0 on an absent axis.
    pub fn vertex(&self) -> usize {
        self.cells.start + usize::from(!self.open[0] && !self.cells.is_empty())
    }
}

/// Returns one span per cell.
pub(crate) fn cells(grid: &BoxGrid) -> Spans {
    by_axis(grid, |_, n| (0..n).map(|cell| Span::new(cell..cell + 1, [false; 2])).collect())
}

/// Returns the spans around every vertex with an unknown. A `thin` axis, or one without such a vertex, has
/// one span of all cells.
pub(crate) fn vertex_patches(grid: &BoxGrid, thin: [bool; 3]) -> Spans {
    let free = grid.free_sides();
    by_axis(grid, |axis, n| {
        let [low, high] = free[axis];
        if thin[axis] {
            return vec![Span::new(0..n, free[axis])];
        }
        let around = |vertex: usize| {
            let cells = vertex.saturating_sub(1)..(vertex + 1).min(n);
            Span::new(cells, [vertex == 0, vertex == n])
        };
        let spans: Vec<Span> = (usize::from(!low)..n + usize::from(high)).map(around).collect();
        if spans.is_empty() { vec![Span::new(0..n, [false; 2])] } else { spans }
    })
}

/// Returns one span of all cells.
pub(crate) fn whole(grid: &BoxGrid) -> Spans {
    by_axis(grid, |axis, n| vec![Span::new(0..n, grid.free_sides()[axis])])
}

fn by_axis(grid: &BoxGrid, spans: impl Fn(usize, usize) -> Vec<Span>) -> Spans {
    [0, 1, 2].map(|axis| match grid.widths(axis).len() {
        0 => vec![Span::new(0..0, [false; 2])],
        n => spans(axis, n),
    })
}

/// Data by which ends of a patch are open.
#[derive(Debug, Clone)]
pub(crate) struct ByOpen<L>(Vec<Option<L>>);

impl<L> ByOpen<L> {
    /// Calls `make` for each combination of open ends. Spans with the same open ends must have the same number of cells.
    pub fn new(spans: &Spans, make: impl Fn([&Span; 3]) -> L) -> Self {
        let mut of: Vec<Option<L>> = (0..64).map(|_| None).collect();
        for z in distinct(&spans[2]) {
            for y in distinct(&spans[1]) {
                for x in distinct(&spans[0]) {
                    of[number([x.open, y.open, z.open])] = Some(make([x, y, z]));
                }
            }
        }
        Self(of)
    }

    /// Returns the data for these open ends.
    ///
    /// # Panics
    /// When no patch has them.
    pub fn of(&self, open: [[bool; 2]; 3]) -> &L {
        self.0[number(open)].as_ref().expect("made for the ends of all patches")
    }
}

/// Returns one span for each combination of open ends.
fn distinct(spans: &[Span]) -> impl Iterator<Item = &Span> {
    let is_first = |at: usize| spans[..at].iter().all(|before| before.open != spans[at].open);
    (0..spans.len()).filter(move |at| is_first(*at)).map(|at| &spans[at])
}

fn number(open: [[bool; 2]; 3]) -> usize {
    open.as_flattened().iter().fold(0, |number, is_open| 2 * number + usize::from(*is_open))
}

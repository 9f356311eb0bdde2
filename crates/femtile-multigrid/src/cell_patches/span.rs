//! Which neighbouring cells patches have along an axis.

use std::ops::Range;

use crate::grid::BoxGrid;

/// Neighbouring cells along an axis, and whether they have the unknowns at their lower and upper end; no cells where there is no
/// such axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub cells: Range<usize>,
    pub open: [bool; 2],
}

/// Spans along each axis, from which patches are made.
pub(crate) type Spans = [Vec<Span>; 3];

impl Span {
    fn new(cells: Range<usize>, open: [bool; 2]) -> Self {
        Self { cells, open }
    }

    /// The corner that a patch is around.
    pub fn vertex(&self) -> usize {
        self.cells.start + usize::from(!self.open[0])
    }
}

/// Every cell by itself.
pub(crate) fn cells(grid: &BoxGrid) -> Spans {
    by_axis(grid, |_, n| (0..n).map(|cell| Span::new(cell..cell + 1, [false; 2])).collect())
}

/// Every cell by itself without its last nodes, but for those on free sides.
pub(crate) fn cells_apart(grid: &BoxGrid) -> Spans {
    let free = grid.free_sides();
    by_axis(grid, |axis, n| {
        let has_last = |cell: usize| cell + 1 == n && free[axis][1];
        (0..n).map(|cell| Span::new(cell..cell + 1, [false, has_last(cell)])).collect()
    })
}

/// The cells around every vertex with an unknown, or all of an axis that has none, or is one of the `thin` ones.
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

/// All cells as one.
pub(crate) fn whole(grid: &BoxGrid) -> Spans {
    by_axis(grid, |axis, n| vec![Span::new(0..n, grid.free_sides()[axis])])
}

fn by_axis(grid: &BoxGrid, spans: impl Fn(usize, usize) -> Vec<Span>) -> Spans {
    [0, 1, 2].map(|axis| match grid.widths(axis).len() {
        0 => vec![Span::new(0..0, [false; 2])],
        n => spans(axis, n),
    })
}

/// What patches have by which of their ends are open.
#[derive(Debug, Clone)]
pub(crate) struct ByOpen<L>(Vec<Option<L>>);

impl<L> ByOpen<L> {
    /// Made for the ends of all patches of these spans, of which those with the same ends have as many cells.
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

    /// Of patches with these ends.
    ///
    /// # Panics
    /// When there are none.
    pub fn of(&self, open: [[bool; 2]; 3]) -> &L {
        self.0[number(open)].as_ref().expect("made for the ends of all patches")
    }
}

/// One span of each kind.
fn distinct(spans: &[Span]) -> impl Iterator<Item = &Span> {
    let is_first = |at: usize| spans[..at].iter().all(|before| before.open != spans[at].open);
    (0..spans.len()).filter(move |at| is_first(*at)).map(|at| &spans[at])
}

fn number(open: [[bool; 2]; 3]) -> usize {
    open.as_flattened().iter().fold(0, |number, is_open| 2 * number + usize::from(*is_open))
}

//! Memory accesses of iterations, in order, through a simulated cache: a model of the memory traffic.

use std::ops::Range;

use femtile::matrix_free::{CellLoop, Visit};

use super::cache::{Cache, LINE};
use femtile_bench::problems::bake_off::Method;

/// Steps of s-step methods.
pub(super) const STEPS: usize = Method::STEPS;

/// Vectors, in memory one after another.
#[derive(Clone, Copy)]
enum Of {
    X,
    /// The residual, or the right side of methods that keep no residual.
    R,
    P,
    V,
    Diagonal,
    /// w, s, z and D⁻¹w of pipelined methods.
    W,
    S,
    Z,
    M,
    /// Powers of the operator, the residual first, of s-step methods.
    Power(usize),
    /// Their directions.
    Direction(usize),
}

impl Of {
    /// Places that vectors may take.
    const PLACES: usize = 6 + 2 * STEPS;

    /// Returns its place; no method has vectors of both pipelined and s-step CG.
    fn place(self) -> usize {
        match self {
            Self::X => 0,
            Self::R => 1,
            Self::P => 2,
            Self::V => 3,
            Self::Diagonal => 4,
            Self::W => 5,
            Self::S => 6,
            Self::Z => 7,
            Self::M => 8,
            Self::Power(j) => 5 + j,
            Self::Direction(j) => 6 + STEPS + j,
        }
    }
}

/// The repeated work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// y = A x.
    Product,
    /// Conjugate gradients in two passes besides the product.
    Plain,
    /// All updates in one pass.
    Pipelined,
    /// [`STEPS`] steps at once.
    SStep,
    /// The merged method with its updates before the product and its sums after it.
    Apart,
    /// The same within the loop over cells.
    Merged,
}

/// A cache before the vectors of a solve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    /// Components of the field; each entry of the diagonal serves as many rows.
    pub components: usize,
    /// Room of the cache.
    pub cache_bytes: usize,
    /// True if there is a diagonal preconditioner.
    pub has_diagonal: bool,
}

impl Model {
    /// Values read and written for a row and step, in the mean over two rounds after one that fills the cache.
    pub fn moved(self, cells: &CellLoop<f64>, work: Work) -> [f64; 2] {
        let mut memory = Memory::new(cells.n_rows(), self);
        memory.round(cells, work, true);
        (memory.cache.reads, memory.cache.writes) = (0, 0);
        memory.round(cells, work, false);
        memory.round(cells, work, true);
        let steps = if work == Work::SStep { 2 * STEPS } else { 2 };
        [memory.cache.reads, memory.cache.writes]
            .map(|lines| (LINE * lines) as f64 / (steps * memory.n_rows) as f64)
    }
}

/// The vectors of a solve and the cache before them.
struct Memory {
    cache: Cache,
    n_rows: usize,
    model: Model,
}

impl Memory {
    fn new(n_rows: usize, model: Model) -> Self {
        let n_lines = Of::PLACES * (n_rows.div_ceil(LINE) + 1);
        Self { cache: Cache::new(n_lines, model.cache_bytes / (8 * LINE)), n_rows, model }
    }

    fn touch(&mut self, vectors: &[Of], rows: &Range<usize>, is_written: bool) {
        let Model { components, has_diagonal, .. } = self.model;
        for &vector in vectors {
            let rows = match vector {
                Of::Diagonal if !has_diagonal => continue,
                Of::Diagonal => rows.start / components..rows.end.div_ceil(components),
                _ => rows.clone(),
            };
            let begin = vector.place() * (self.n_rows.div_ceil(LINE) + 1);
            for line in rows.start / LINE..rows.end.div_ceil(LINE) {
                self.cache.touch(begin + line, is_written);
            }
        }
    }

    /// y = A x.
    fn product(&mut self, cells: &CellLoop<f64>, y: Of, x: Of) {
        cells.visits(&mut |visit| match visit {
            Visit::Before(rows) | Visit::Add(rows) => self.touch(&[y], &rows, true),
            Visit::Read(rows) => self.touch(&[x], &rows, false),
            Visit::After(_) => {}
        });
    }

    /// A pass over whole vectors, some thousand rows at a time.
    fn pass(&mut self, read: &[Of], written: &[Of]) {
        const BLOCK: usize = 4096;
        for begin in (0..self.n_rows).step_by(BLOCK) {
            let rows = begin..(begin + BLOCK).min(self.n_rows);
            self.touch(read, &rows, false);
            self.touch(written, &rows, true);
        }
    }

    /// An iteration, or a block of them; merged ones move x in every other.
    fn round(&mut self, cells: &CellLoop<f64>, work: Work, moves_x: bool) {
        match work {
            Work::Product => self.product(cells, Of::V, Of::P),
            Work::Plain => self.plain(cells),
            Work::Pipelined => self.pipelined(cells),
            Work::SStep => self.s_step(cells),
            Work::Apart => self.apart(cells, moves_x),
            Work::Merged => self.merged(cells, moves_x),
        }
    }

    fn plain(&mut self, cells: &CellLoop<f64>) {
        self.product(cells, Of::V, Of::P);
        self.pass(&[Of::P, Of::V], &[]);
        self.pass(&[Of::V, Of::Diagonal], &[Of::R]);
        self.pass(&[Of::R, Of::Diagonal], &[Of::X, Of::P]);
    }

    fn pipelined(&mut self, cells: &CellLoop<f64>) {
        let (from, more): (Of, &[Of]) =
            if self.model.has_diagonal { (Of::M, &[Of::M]) } else { (Of::W, &[]) };
        self.product(cells, Of::V, from);
        let written = [&[Of::X, Of::R, Of::P, Of::S, Of::Z, Of::W][..], more].concat();
        self.pass(&[Of::V, Of::Diagonal], &written);
    }

    fn s_step(&mut self, cells: &CellLoop<f64>) {
        for j in 0..STEPS {
            if self.model.has_diagonal {
                self.product(cells, Of::V, Of::Power(j));
                self.pass(&[Of::V, Of::Diagonal], &[Of::Power(j + 1)]);
            } else {
                self.product(cells, Of::Power(j + 1), Of::Power(j));
            }
        }
        let powers: [Of; STEPS + 1] = std::array::from_fn(Of::Power);
        let directions: [Of; STEPS] = std::array::from_fn(Of::Direction);
        let diagonal = [Of::Diagonal];
        self.pass(&[&directions[..], &powers[..], &diagonal[..]].concat(), &[]);
        self.pass(&powers[..STEPS], &[&directions[..], &[Of::X][..]].concat());
        self.product(cells, Of::V, Of::X);
        self.pass(&[Of::R, Of::V, Of::Diagonal], &[Of::Power(0)]);
    }

    fn apart(&mut self, cells: &CellLoop<f64>, moves_x: bool) {
        let written: &[Of] = if moves_x { &[Of::R, Of::P, Of::X] } else { &[Of::R, Of::P] };
        self.pass(&[Of::V, Of::Diagonal], written);
        self.product(cells, Of::V, Of::P);
        self.pass(&[Of::R, Of::P, Of::V, Of::Diagonal], &[]);
    }

    fn merged(&mut self, cells: &CellLoop<f64>, moves_x: bool) {
        cells.visits(&mut |visit| match visit {
            Visit::Before(rows) => {
                self.touch(&[Of::Diagonal], &rows, false);
                self.touch(&[Of::R, Of::P, Of::V], &rows, true);
                if moves_x {
                    self.touch(&[Of::X], &rows, true);
                }
            }
            Visit::Read(rows) => self.touch(&[Of::P], &rows, false),
            Visit::Add(rows) => self.touch(&[Of::V], &rows, true),
            Visit::After(rows) => self.touch(&[Of::R, Of::P, Of::V, Of::Diagonal], &rows, false),
        });
    }
}

//! The steps of each method, counted from its algorithm.

use super::{Iteration, Level, Step, Work};

/// Bytes of a value in f64 and in f32.
const DOUBLE: f64 = 8.0;
const SINGLE: f64 = 4.0;

/// Kernels that a GPU starts for a product with its exchange, and for the vectors and the sum of an iteration.
const PRODUCT_LAUNCHES: f64 = 6.0;
const PASS_LAUNCHES: f64 = 6.0;
const SUM_LAUNCHES: f64 = 3.0;

/// The operator of a problem: bytes that products move, with a matrix or without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Degree of the elements.
    pub degree: usize,
    /// Non-zeros of a row, of the finest level or of degree 1.
    pub nonzeros: f64,
    /// Whether the product of the finest level has a matrix.
    pub is_assembled: bool,
    /// Bytes of a product without a matrix that only several ranks move: vectors brought into the order of the loop and back.
    pub reordered: f64,
    /// Bytes of merged vector passes that on several ranks are not part of the loop over cells.
    pub unmerged: f64,
    /// Factor of all other work, which a run on one rank may determine.
    pub scale: f64,
}

impl Problem {
    /// Linear tetrahedra of a box with its matrix: 15 non-zeros a row.
    pub const TETRAHEDRA: Self =
        Self { degree: 1, nonzeros: 15.0, is_assembled: true, reordered: 0.0, unmerged: 0.0, scale: 1.0 };

    /// Returns cubes of some degree without a matrix on processors, whose ranks read and write the argument and the result of
    /// a product once more each to change their order, and read and write six values more beside the loop.
    pub const fn hexahedra(degree: usize) -> Self {
        Self { degree, nonzeros: 27.0, is_assembled: false, reordered: 48.0, unmerged: 48.0, scale: 1.0 }
    }

    /// The same on GPUs, whose ranks keep the order and never merge passes with the loop.
    pub const fn hexahedra_on_gpus(degree: usize) -> Self {
        Self { reordered: 0.0, unmerged: 0.0, ..Self::hexahedra(degree) }
    }

    /// Bytes of a product with an assembled matrix, an unknown: values and columns, the row, its argument and result.
    fn matrix_bytes(&self, bytes: f64) -> f64 {
        self.nonzeros * (bytes + 4.0) + 4.0 + 2.0 * bytes
    }

    fn unknowns_per_cell(&self) -> f64 {
        (self.degree as f64).powi(3)
    }
}

/// Methods whose iterations are modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Plain conjugate gradients, two sums an iteration.
    Cg,
    /// One pass over all vectors and one sum of seven values.
    MergedCg,
    /// One sum that goes on during the next product.
    PipelinedCg,
    /// The same recurrences with a sum that is waited for at once, as between threads of one process.
    PipelinedCgWaiting,
    /// So many steps at once: one product more and one sum.
    SStepCg(usize),
    /// Conjugate gradients with a V cycle of smoothed aggregation.
    Amg,
    /// Conjugate gradients with falling degrees, then `Amg`.
    Pmg,
    /// Conjugate gradients with geometric multigrid that smooths on vertex patches of a box, whose layers of cells are divided
    /// among ranks.
    VertexPatches,
    /// The same with a box for each rank, and with levels of fewer cells on fewer ranks, as Femtile does not have it.
    VertexPatchesOfBoxes,
}

impl Method {
    /// Returns the name in records.
    pub fn name(self) -> String {
        match self {
            Self::Cg => "cg".into(),
            Self::MergedCg => "merged-cg".into(),
            Self::PipelinedCg => "pipelined-cg".into(),
            Self::PipelinedCgWaiting => "pipelined-cg, waiting".into(),
            Self::SStepCg(steps) => format!("s-step-cg, s = {steps}"),
            Self::Amg => "cg, amg".into(),
            Self::Pmg => "cg, pmg".into(),
            Self::VertexPatches => "cg, vertex patches, layers".into(),
            Self::VertexPatchesOfBoxes => "cg, vertex patches, boxes".into(),
        }
    }

    /// Returns the steps of an iteration for `n` unknowns in all.
    pub fn iteration(self, problem: &Problem, n: f64, n_ranks: usize) -> Iteration {
        let mut list = Steps { problem, n_ranks, steps: Vec::new(), levels: vec![Level::FINEST] };
        let mut n_iterations = 1.0;
        match self {
            Self::Cg => list.conjugate_gradients(),
            Self::MergedCg => {
                list.product();
                list.pass(if problem.is_assembled { 88.0 } else { 40.0 });
                list.on_several(problem.unmerged);
                list.sum(7.0);
            }
            Self::PipelinedCg => {
                list.steps.push(Step::BeginSum { bytes: 3.0 * DOUBLE });
                list.product();
                list.steps.push(Step::EndSum);
                list.pass(120.0);
            }
            Self::PipelinedCgWaiting => {
                list.product();
                list.pass(120.0);
                list.sum(3.0);
            }
            Self::SStepCg(steps) => {
                let s = steps as f64;
                (0..=steps).for_each(|_| list.product());
                list.pass(DOUBLE * (8.0 * s + 8.0));
                // Directions before with the basis, half of the basis with itself, and r·r.
                list.sum(1.5 * s * (s + 1.0) + 2.0);
                n_iterations = s;
            }
            Self::Amg => {
                list.conjugate_gradients();
                list.aggregates(0, n);
            }
            Self::Pmg => {
                list.conjugate_gradients();
                list.degrees(n);
            }
            Self::VertexPatches => {
                list.conjugate_gradients();
                list.layers_of_patches(n);
            }
            Self::VertexPatchesOfBoxes => {
                list.conjugate_gradients();
                list.boxes_of_patches(n);
            }
        }
        Iteration { levels: list.levels, steps: list.steps, n_iterations }
    }
}

/// Coarsening by aggregates: rows a coarse row stands for, and work of a row of any coarser level over one of the finest, whose
/// rows are shorter; from the operator complexity of 1.185 of `bench/results/amg-xeon-avx512-16-cores.json`.
const ROWS_PER_AGGREGATE: f64 = 20.0;
const COARSE_DENSITY: f64 = 3.5;

/// When levels are collected, as `DistributedAmg` and `DistributedMultigrid` decide it.
const FEW_ROWS: f64 = 10_000.0;
const SHARE: f64 = 0.15;
const LEAST_GAIN: f64 = 0.8;

/// The degree of the Chebyshev polynomials of aggregation and of p-multigrid.
const AMG_DEGREE: usize = 2;
const PMG_DEGREE: usize = 3;

/// Bytes of a cycle for each unknown of a level smoothed on vertex patches: `gmg` of degree 3 takes 24.5 ms an iteration for
/// 3.05 million unknowns on 16 threads (`bench/results/threads-xeon-avx512-16-cores.json`), of which conjugate gradients
/// take a tenth and the finest level seven eighths of the rest; that record smooths by rows, which takes 0.7 of the time.
const PATCH_BYTES: f64 = 1230.0;

/// Layers of cells of others that a rank works on, and the share of all layers up to which it does so.
const LAYERS_OF_OTHERS: f64 = 4.0;
const PART: f64 = 0.8;

/// Cells along a side of the smallest box that a rank keeps: smaller ones go to fewer ranks.
const LEAST_CELLS: f64 = 2.0;

struct Steps<'a> {
    problem: &'a Problem,
    n_ranks: usize,
    steps: Vec<Step>,
    levels: Vec<Level>,
}

impl Steps<'_> {
    fn conjugate_gradients(&mut self) {
        self.product();
        self.pass(40.0);
        self.sum(1.0);
        self.pass(40.0);
        self.sum(2.0);
    }

    /// A product of the finest level in f64.
    fn product(&mut self) {
        if self.problem.is_assembled {
            self.matrix(0, DOUBLE, self.problem.matrix_bytes(DOUBLE));
        } else {
            // Argument, result with its read for ownership, numbers of unknowns.
            self.cells(0, DOUBLE, 29.0);
        }
    }

    /// A product with a matrix, during which ghosts arrive.
    fn matrix(&mut self, level: usize, value: f64, bytes: f64) {
        let bytes = bytes * self.problem.scale;
        let meanwhile = Work { level, bytes, is_by_cell: false, launches: PRODUCT_LAUNCHES };
        self.steps.push(Step::Exchange { level, bytes: value, meanwhile });
    }

    /// A product over cells, before which ghosts arrive.
    fn cells(&mut self, level: usize, value: f64, bytes: f64) {
        let bytes = bytes * self.problem.scale;
        self.steps.push(Step::Exchange { level, bytes: value, meanwhile: Work { level, ..Work::default() } });
        self.steps.push(Step::Work(Work { level, bytes, is_by_cell: true, launches: PRODUCT_LAUNCHES }));
        if self.n_ranks > 1 && self.problem.reordered > 0.0 {
            let bytes = self.problem.reordered * value / DOUBLE;
            self.steps.push(Step::Work(Work { level, bytes, ..Work::default() }));
        }
    }

    /// A pass over vectors of the finest level.
    fn pass(&mut self, bytes: f64) {
        let bytes = bytes * self.problem.scale;
        self.steps.push(Step::Work(Work { level: 0, bytes, is_by_cell: false, launches: PASS_LAUNCHES }));
    }

    fn on_several(&mut self, bytes: f64) {
        if self.n_ranks > 1 && bytes > 0.0 {
            self.steps.push(Step::Work(Work { bytes, ..Work::default() }));
        }
    }

    fn sum(&mut self, n: f64) {
        let launches = SUM_LAUNCHES;
        self.steps.push(Step::Work(Work { launches, ..Work::default() }));
        self.steps.push(Step::Sum { bytes: n * DOUBLE });
    }

    /// Restriction to or prolongation from a level, whose ghosts are exchanged.
    fn transfer(&mut self, coarse: usize, fine: usize, bytes: f64) {
        let bytes = bytes * self.problem.scale;
        let meanwhile = Work { level: fine, bytes, is_by_cell: false, launches: PASS_LAUNCHES };
        self.steps.push(Step::Exchange { level: coarse, bytes: SINGLE, meanwhile });
    }

    /// A cycle of smoothed aggregation below `first`, whose level has `n` rows.
    fn aggregates(&mut self, first: usize, n: f64) {
        let ranks = self.n_ranks as f64;
        let product = self.problem.matrix_bytes(SINGLE);
        // 27 values of a cycle in f32, by the products.
        let vectors = 27.0 * SINGLE / (2 * AMG_DEGREE) as f64;
        // Prolongators have a quarter of the non-zeros.
        let transfer = 0.25 * self.problem.nonzeros * (SINGLE + 4.0);
        let density = |level: usize| if level == first { 1.0 } else { COARSE_DENSITY };
        let (mut level, mut rows) = (first, n);
        let mut divided = Vec::new();
        loop {
            let is_small = rows <= FEW_ROWS || rows * ranks <= SHARE * n;
            if is_small && level > first {
                break;
            }
            // Aggregates stay within a rank, so each keeps a row at least.
            let next = (rows / ROWS_PER_AGGREGATE).max(ranks);
            if next > LEAST_GAIN * rows {
                break;
            }
            divided.push(level);
            let share = self.levels[level].share / ROWS_PER_AGGREGATE;
            self.levels.push(Level { share, least: 1.0, ..Level::FINEST });
            (level, rows) = (level + 1, next);
        }
        let cost = |level: usize| (product + vectors) * density(level);
        for &level in &divided {
            (0..AMG_DEGREE).for_each(|_| self.matrix(level, SINGLE, cost(level)));
            self.transfer(level + 1, level, transfer * density(level));
        }
        // Levels below what is collected are a tenth of its work.
        let cycle = (2 * AMG_DEGREE) as f64 * cost(level) + 2.0 * transfer * density(level);
        self.collected(rows, 1.1 * cycle);
        for &level in divided.iter().rev() {
            self.transfer(level + 1, level, transfer * density(level));
            (0..AMG_DEGREE).for_each(|_| self.matrix(level, SINGLE, cost(level)));
        }
    }

    /// A level of `rows` that every rank collects and solves.
    fn collected(&mut self, rows: f64, bytes: f64) {
        if self.n_ranks > 1 {
            self.steps.push(Step::Gather { bytes: rows * SINGLE });
        }
        let bytes = rows * bytes * self.problem.scale;
        self.steps.push(Step::Whole { bytes, launches: 16.0 });
    }

    /// A cycle of p-multigrid: each degree is half of the one above, rounded up, down to 1, which has a matrix.
    fn degrees(&mut self, n: f64) {
        let p = self.problem.degree;
        let mut degrees = vec![p];
        while let Some(&degree) = degrees.last().filter(|degree| **degree > 1) {
            degrees.push(degree.div_ceil(2));
        }
        let finest = self.problem.unknowns_per_cell();
        let share = |degree: usize| (degree as f64).powi(3) / finest;
        self.levels
            .extend(degrees[1..].iter().map(|&degree| Level { share: share(degree), ..Level::FINEST }));
        let n_smoothed = degrees.len() - 1;
        for level in 0..n_smoothed {
            (0..PMG_DEGREE).for_each(|_| self.cells(level, SINGLE, 35.0));
            self.transfer(level + 1, level, 3.0 * SINGLE);
        }
        self.aggregates(n_smoothed, n * share(1));
        for level in (0..n_smoothed).rev() {
            self.transfer(level + 1, level, 3.0 * SINGLE);
            (0..PMG_DEGREE).for_each(|_| self.cells(level, SINGLE, 35.0));
        }
    }

    /// A cycle of geometric multigrid on a box whose layers are divided among ranks, with those of others beside them.
    fn layers_of_patches(&mut self, n: f64) {
        let ranks = self.n_ranks as f64;
        let (first, mut unknowns) = (self.levels.len(), n);
        let mut n_layers = n.cbrt() / self.problem.degree as f64;
        let divides = |unknowns: f64, n_layers: f64, is_first: bool| {
            let is_small = unknowns <= FEW_ROWS || unknowns * ranks <= SHARE * n && !is_first;
            let is_thin = n_layers < ranks || n_layers / ranks + LAYERS_OF_OTHERS > PART * n_layers;
            !is_small && (self.n_ranks == 1 || !is_thin)
        };
        while divides(unknowns, n_layers, unknowns == n) {
            let layers = if self.n_ranks > 1 { LAYERS_OF_OTHERS } else { 0.0 };
            let (share, unit) = (unknowns / n, unknowns / n_layers);
            self.levels.push(Level { share, least: 0.0, unit, axes: 1, layers });
            (unknowns, n_layers) = (unknowns / 8.0, n_layers / 2.0);
        }
        self.patches(first, unknowns);
    }

    /// A cycle of geometric multigrid on boxes, each of which two planes of cells are exchanged around.
    fn boxes_of_patches(&mut self, n: f64) {
        let unit = self.problem.unknowns_per_cell();
        let (first, mut unknowns) = (self.levels.len(), n);
        let is_divided = self.n_ranks > 1;
        let (layers, least) = if is_divided { (2.0, LEAST_CELLS.powi(3) * unit) } else { (0.0, 0.0) };
        while unknowns > FEW_ROWS {
            self.levels.push(Level { share: unknowns / n, least, unit, axes: 3, layers });
            unknowns /= 8.0;
        }
        self.patches(first, unknowns);
    }

    /// Two smoothing steps on each level from `first` on, the residual and the correction, with values of others before each,
    /// and a collected level of `unknowns` below.
    fn patches(&mut self, first: usize, unknowns: f64) {
        let smoothed = first..self.levels.len();
        for level in smoothed.clone() {
            (0..2).for_each(|_| self.patch_step(level));
        }
        // Levels below what is collected are a seventh of its work.
        self.collected(unknowns, PATCH_BYTES * 8.0 / 7.0);
        for level in smoothed.rev() {
            (0..2).for_each(|_| self.patch_step(level));
        }
    }

    fn patch_step(&mut self, level: usize) {
        let bytes = 0.25 * PATCH_BYTES * self.problem.scale;
        let nothing = Work { level, ..Work::default() };
        self.steps.push(Step::Exchange { level, bytes: 2.0 * SINGLE, meanwhile: nothing });
        self.steps.push(Step::Work(Work { level, bytes, is_by_cell: false, launches: PRODUCT_LAUNCHES }));
    }
}

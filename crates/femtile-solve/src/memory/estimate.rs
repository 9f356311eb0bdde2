//! Bytes from counts, within a factor of about two. `docs/case-files.md` says what is counted.

use std::fmt;

use femtile_mesh::CellKind;
use femtile_mesh::generate::Counts;
use femtile_sparse::LEAST_SLICED_ROWS;

use crate::plan::Plan;
use crate::tensor::{self, degrees::below};
use crate::{
    FieldConfig, GmgOptions, GmgStart, MatrixFormat, Method, PreconditionerConfig, SolverConfig, SpaceConfig,
    Value,
};

/// Bytes of the program before it has read anything.
const PROGRAM: f64 = 20e6;
/// Peak bytes of the check per node.
const CHECK_PER_NODE: f64 = 24.0;
/// Bytes of the check for the sides of cells: at most, and per side.
const SIDES: f64 = 67e6;
const PER_SIDE: f64 = 24.0;
/// Bytes per unknown of the vectors of conjugate gradients, and of output.
const VECTORS: f64 = 64.0;
const OUTPUT: f64 = 46.0;
/// Bytes per entry of a sparse matrix, and per row.
const PER_ENTRY: f64 = 12.0;
const PER_ROW: f64 = 8.0;
/// Bytes per entry of a conversion to slices besides the matrix: value, column as a number and as a distance, padding.
/// Levels in slices take no more than those in rows, which are converted after the setup has freed its memory.
const PER_CONVERTED: f64 = 14.5;
/// Levels of algebraic multigrid: bytes per byte of the matrix, and bytes per row.
const AMG_SHARE: f64 = 0.9;
const AMG_PER_ROW: f64 = 110.0;
/// Bytes per unknown of matrix-free levels.
const GMG_PER_ROW: f64 = 30.0;
const PMG_PER_ROW: f64 = 20.0;
/// Bytes per cell of a conductivity from fibres: two copies of a symmetric tensor.
const FIBRES: f64 = 96.0;
/// Recovered gradients: bytes of a vector, and of a fitted polynomial besides its coefficients.
const VECTOR: f64 = 24.0;
const POLYNOMIAL: f64 = 160.0;
/// Recovered gradients: bytes of what limits a vector.
const LIMIT: f64 = 40.0;
/// Parts that are divided among ranks, and those that each has of the cells of its part as well.
const DIVIDED: [&str; 5] = ["vectors", "matrix", "conversion", "metrics of cells", "preconditioner"];
/// Memory of all parts of a mesh over that of the whole, with copies of cells of others.
const PARTS: f64 = 1.15;
const OF_CELLS: [&str; 2] = ["mesh", "space"];

/// Bytes of the stages of a run, each by parts: the most demanding one counts.
#[derive(Debug, Clone)]
pub struct Estimate(Vec<Stage>);

/// Bytes of a stage, by parts.
type Stage = Vec<(&'static str, f64)>;

fn total(stage: &Stage) -> f64 {
    stage.iter().map(|(_, bytes)| bytes).sum()
}

impl Estimate {
    /// Returns the estimate of a program that holds these parts, with the program itself.
    pub fn of_parts(parts: &[(&'static str, f64)]) -> Self {
        Self(vec![[("program", PROGRAM)].iter().chain(parts).copied().collect()])
    }

    /// Returns the memory of all ranks on one host, if there are several. Each process has the whole mesh,
    /// its space and the results; all processes together have a share of the rest, with copies of cells at
    /// interfaces.
    pub fn replicated_on_host(self, processes_and_share: Option<(usize, f64)>) -> Self {
        let Some((n_processes, share)) = processes_and_share else { return self };
        let of_stage = |stage: Stage| {
            let cells: f64 =
                stage.iter().filter(|(what, _)| OF_CELLS.contains(what)).map(|(_, bytes)| bytes).sum();
            let has_parts = stage.iter().any(|(what, _)| DIVIDED.contains(what));
            let on_host = |(what, bytes): (&'static str, f64)| {
                (what, bytes * if DIVIDED.contains(&what) { share } else { n_processes as f64 })
            };
            let parts = has_parts.then_some(("parts of ranks", share * cells));
            stage.into_iter().map(on_host).chain(parts).collect()
        };
        Self(self.0.into_iter().map(of_stage).collect())
    }

    /// As [`Estimate::replicated_on_host`], if each process has only its part of the mesh.
    pub fn distributed_on_host(self, processes_and_share: Option<(usize, f64)>) -> Self {
        let (n_processes, share) = processes_and_share.unwrap_or((1, 1.0));
        let on_host = |(what, bytes): (&'static str, f64)| {
            (what, bytes * if what == "program" { n_processes as f64 } else { PARTS * share })
        };
        let of_stage = |stage: Stage| stage.into_iter().map(on_host).collect();
        Self(self.0.into_iter().map(of_stage).collect())
    }

    /// Returns what is held before and after the solve, without its vectors, operators and preconditioner.
    pub fn without_solve(self) -> Self {
        let is_kept = |(what, _): &(&'static str, f64)| !DIVIDED.contains(what);
        Self(self.0.into_iter().map(|stage| stage.into_iter().filter(is_kept).collect()).collect())
    }

    /// Returns the bytes of the mesh and its space, in the stage that needs most of them.
    pub fn of_cells(&self) -> f64 {
        let of_stage = |stage: &Stage| {
            stage.iter().filter(|(what, _)| OF_CELLS.contains(what)).map(|(_, bytes)| bytes).sum::<f64>()
        };
        self.0.iter().map(of_stage).fold(0.0, f64::max)
    }

    /// Adds a part to each stage, if it has any bytes.
    pub fn with(mut self, what: &'static str, bytes: f64) -> Self {
        if bytes > 0.0 {
            self.0.iter_mut().for_each(|stage| stage.push((what, bytes)));
        }
        self
    }

    fn largest(&self) -> Option<&Stage> {
        self.0.iter().max_by(|one, other| total(one).total_cmp(&total(other)))
    }

    /// Returns the bytes of the most demanding stage.
    pub fn total(&self) -> f64 {
        self.largest().map_or(0.0, total)
    }

    /// Returns the estimate of a program with the stages of both.
    pub fn larger(self, other: Self) -> Self {
        Self(self.0.into_iter().chain(other.0).collect())
    }

    /// Estimates making a mesh and refining it `refine` times.
    pub fn of_mesh(counts: Counts, refine: u32) -> Self {
        let made = Self::of_parts(&[("mesh", mesh(counts)), ("curving", curving(counts))]);
        let Some(before) = refine.checked_sub(1) else { return made };
        let (coarse, fine) = (counts.refined(before), counts.refined(refine));
        let work = mesh(coarse) + refining(coarse);
        made.larger(Self::of_parts(&[("mesh", mesh(fine)), ("refinement", work)]))
    }

    /// Estimates making, checking and solving on a mesh that is still to be refined `refine` times; `on_gpu` without
    /// what a GPU holds.
    pub fn of_run(
        config: &SolverConfig,
        space: &SpaceConfig,
        (counts, refine): (Counts, u32),
        on_gpu: bool,
    ) -> Self {
        let making = Self::of_mesh(counts, refine);
        let fine = counts.refined(refine);
        let n_sides = fine.n_cells * fine.kind.facets().len() as f64;
        let check = CHECK_PER_NODE * fine.n_nodes + (PER_SIDE * n_sides).min(SIDES);
        let checking = Self::of_parts(&[("mesh", mesh(fine)), ("check", check)]);
        making.larger(checking).larger(Self::of_solve(config, space, fine, on_gpu))
    }

    /// Estimates a solve on a mesh that has been made.
    pub fn of_solve(config: &SolverConfig, space: &SpaceConfig, counts: Counts, on_gpu: bool) -> Self {
        let Plan { config, has_matrix, .. } = Plan::before_mesh(config, space, counts.kind, false);
        let Sizes { d, p, n, components } = Sizes::of(space, counts);
        let n_all = n * components;
        let directions = match config.method {
            Method::Gmres { restart } => 8 * restart.min(config.max_iterations),
            _ => 0,
        };
        let mut parts = vec![
            ("program", PROGRAM),
            ("mesh", mesh(counts)),
            ("space", space_of_cells(counts)),
            ("vectors", (VECTORS + directions as f64) * n_all),
            ("output", OUTPUT * n_all),
        ];
        if on_gpu {
            return Self(vec![parts]);
        }
        let matrix = n * (PER_ENTRY * entries_per_row(counts.kind, p) + PER_ROW);
        if has_matrix {
            parts.push(("matrix", matrix));
            if may_be_in_slices(&config, n) {
                // Before vectors and output are there.
                let converted = PER_CONVERTED * entries_per_row(counts.kind, p) - VECTORS - OUTPUT;
                parts.push(("conversion", n * converted.max(0.0)));
            }
        } else if counts.order > 1 {
            let metric = 8.0 * f64::from(d * (d + 1) / 2 + 1);
            parts.push(("metrics of cells", metric * (p + 1.0).powi(d) * counts.n_cells));
        }
        parts.push((
            "preconditioner",
            match &config.preconditioner {
                PreconditionerConfig::Amg(_) => AMG_SHARE * matrix + AMG_PER_ROW * n,
                PreconditionerConfig::Gmg(options) => GMG_PER_ROW * n_all + full_start(options, counts),
                PreconditionerConfig::Pmg(_) => p_multigrid(counts, space.degree) + PMG_PER_ROW * n_all,
                _ => 0.0,
            },
        ));
        Self(vec![parts])
    }

    /// Returns the estimate with the tensors of cells where the conductivity is that of fibres.
    pub fn with_conductivity(mut self, sigma: &Value, counts: Counts) -> Self {
        if sigma.has_fibres() {
            let of_cells = ("conductivity", FIBRES * counts.n_cells);
            self.0.iter_mut().for_each(|stage| stage.push(of_cells));
        }
        self
    }

    /// Returns the larger one of the estimate and that of computing fields after a solve on a mesh.
    pub fn with_fields(self, fields: FieldConfig, space: &SpaceConfig, counts: Counts) -> Self {
        let FieldConfig { gradient, flux, stress, strain, error: _ } = fields;
        // Seven numbers of stress and six of strain.
        let n_vectors = [gradient, flux].map(|is_wanted| f64::from(u8::from(is_wanted))).iter().sum::<f64>()
            + f64::from(7 * u8::from(stress) + 6 * u8::from(strain)) / 3.0;
        if n_vectors == 0.0 && !fields.error {
            return self;
        }
        let is_tensor = tensor::is_for(counts.kind);
        let Sizes { d, p, n, components } = Sizes::of(space, counts);
        // Polynomials of degree p + 1 around vertices; of simplices their gradients alone are kept.
        let n_terms = (1..=d).map(|k| (p + 1.0 + f64::from(k)) / f64::from(k)).product::<f64>();
        let fits =
            if is_tensor { (POLYNOMIAL + 8.0 * n_terms) * counts.n_nodes + VECTOR * n } else { VECTOR * n };
        let incidence = 4.0 * counts.kind.n_nodes() as f64 * counts.n_cells + 16.0 * counts.n_nodes;
        let of_errors = if fields.error { 24.0 * counts.n_cells } else { 0.0 };
        // Limits of the gradient and of the flux in cells, and of tensor elements what is gathered at nodes.
        let limits = match is_tensor {
            true => (2.0 * LIMIT + 8.0 * (p + 1.0).powi(d)) * counts.n_cells + 8.0 * n,
            false => LIMIT * counts.n_cells,
        };
        let made = 2.0 * VECTOR * n + of_errors + limits;
        self.larger(Self::of_parts(&[
            ("mesh", mesh(counts)),
            ("space", space_of_cells(counts)),
            ("output", OUTPUT * n * components),
            ("recovery", fits + incidence + made),
            ("fields", VECTOR * n_vectors * n * components),
        ]))
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = self.largest().into_iter().flatten();
        let parts = stage.filter(|(_, bytes)| *bytes >= 0.01 * self.total());
        let parts: Vec<String> = parts.map(|(what, bytes)| format!("{what} {}", amount(*bytes))).collect();
        f.write_str(&parts.join(", "))
    }
}

/// Numbers of a space.
struct Sizes {
    /// The dimension.
    d: i32,
    /// The degree.
    p: f64,
    /// Unknowns of a component.
    n: f64,
    components: f64,
}

impl Sizes {
    fn of(space: &SpaceConfig, counts: Counts) -> Self {
        let (d, components) = (counts.kind.dimension() as i32, space.components as f64);
        if !tensor::is_for(counts.kind) {
            return Self { d, p: 1.0, n: counts.n_nodes, components };
        }
        let p = space.degree as f64;
        Self { d, p, n: (counts.n_cells * p.powi(d)).max(counts.n_nodes), components }
    }
}

/// Returns whether a matrix of `n` rows may be put into slices on a CPU.
fn may_be_in_slices(config: &SolverConfig, n: f64) -> bool {
    match config.format {
        MatrixFormat::Csr => false,
        MatrixFormat::EllWarp => true,
        MatrixFormat::Auto => config.preconditioner.is_diagonal() && n >= LEAST_SLICED_ROWS[1] as f64,
    }
}

/// Returns bytes with a unit.
pub fn amount(bytes: f64) -> String {
    let units = [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes:.0} B"),
    }
}

/// Points and nodes of cells.
fn mesh(counts: Counts) -> f64 {
    let Counts { kind, n_nodes, n_cells, order } = counts;
    let (d, order) = (kind.dimension() as i32, order as f64);
    let shapes = if order > 1.0 { 24.0 * order.powi(d) + 4.0 * (order + 1.0).powi(d) } else { 0.0 };
    24.0 * n_nodes + (4.0 * kind.n_nodes() as f64 + shapes) * n_cells
}

/// Numbering the points of curved cells.
fn curving(counts: Counts) -> f64 {
    let points = (counts.order as f64 + 1.0).powi(counts.kind.dimension() as i32);
    if counts.order > 1 { 45.0 * points * counts.n_cells } else { 0.0 }
}

/// Edges of simplices, points between those of other cells.
fn refining(coarse: Counts) -> f64 {
    match coarse.kind {
        CellKind::Hexahedron => 530.0 * coarse.n_cells,
        CellKind::Quadrilateral => 150.0 * coarse.n_cells,
        CellKind::Tetrahedron => 84.0 * coarse.n_nodes,
        CellKind::Triangle | CellKind::Segment => 36.0 * coarse.n_nodes,
    }
}

/// Returns the bytes of numbers of unknowns, constraints and cell data of matrix-free operators; none of linear elements.
fn space_of_cells(counts: Counts) -> f64 {
    match counts.kind {
        CellKind::Hexahedron => 550.0 * counts.n_cells,
        CellKind::Quadrilateral => 160.0 * counts.n_cells,
        CellKind::Segment | CellKind::Triangle | CellKind::Tetrahedron => 0.0,
    }
}

/// Returns the bytes of the lattice with its corners, and of spaces and operators on coarser cells.
fn full_start(options: &GmgOptions, counts: Counts) -> f64 {
    let coarser = space_of_cells(counts) / (2.0_f64.powi(counts.kind.dimension() as i32) - 1.0);
    match options.start {
        GmgStart::None | GmgStart::Levels => 0.0,
        GmgStart::Full => 40.0 * counts.n_cells + 36.0 * counts.n_nodes + coarser,
    }
}

/// Returns the average number of entries of a row of the matrix.
fn entries_per_row(kind: CellKind, p: f64) -> f64 {
    match kind {
        CellKind::Segment => 3.0,
        CellKind::Triangle => 7.0,
        CellKind::Tetrahedron => 15.0,
        CellKind::Quadrilateral | CellKind::Hexahedron => (p + 2.0).powi(kind.dimension() as i32),
    }
}

/// Returns the bytes of spaces of lower degree, and of the matrix of degree 1 with its levels.
fn p_multigrid(counts: Counts, degree: usize) -> f64 {
    let n_levels = below(degree).len() as f64;
    let lowest = counts.n_nodes * (PER_ENTRY * entries_per_row(counts.kind, 1.0) + PER_ROW);
    n_levels * space_of_cells(counts) + (1.0 + AMG_SHARE) * lowest + AMG_PER_ROW * counts.n_nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_divide_what_a_solve_adds_to_the_mesh() {
        let counts = Counts { kind: CellKind::Tetrahedron, n_nodes: 1e6, n_cells: 6e6, order: 1 };
        let config = SolverConfig { preconditioner: PreconditionerConfig::Jacobi, ..SolverConfig::default() };
        let one = Estimate::of_solve(&config, &SpaceConfig::default(), counts, false);
        let output = OUTPUT * 1e6;
        let whole = PROGRAM + mesh(counts) + output;
        let rest = one.total() - whole;
        // Threads of a process; two of eight processes.
        for (n_processes, share) in [(1, 1.0), (2, 0.25)] {
            let expected = n_processes as f64 * whole + share * (rest + mesh(counts));
            let found = one.clone().replicated_on_host(Some((n_processes, share))).total();
            assert!((found - expected).abs() < 1.0, "{found} is not {expected}");
        }
        // Each process computes fields on the whole mesh, so that many need more for these than for the solve.
        let fields = FieldConfig { gradient: true, ..FieldConfig::default() };
        let with_fields = one.clone().with_fields(fields, &SpaceConfig::default(), counts);
        assert!(with_fields.total() > one.total() && with_fields.total() < 1.2 * one.total());
        let on_64 = |estimate: Estimate| estimate.replicated_on_host(Some((64, 1.0))).total();
        assert!(on_64(with_fields) > 1.2 * on_64(one));
    }

    #[test]
    fn fields_count_where_fits_hold_more_than_the_solve() {
        let counts = Counts { kind: CellKind::Hexahedron, n_nodes: 1e6, n_cells: 1e6, order: 1 };
        let config = SolverConfig { preconditioner: PreconditionerConfig::Jacobi, ..SolverConfig::default() };
        let total = |degree: usize, fields: FieldConfig| {
            let space = SpaceConfig { degree, ..SpaceConfig::default() };
            let solve = Estimate::of_solve(&config, &space, counts, false);
            (solve.total(), solve.with_fields(fields, &space, counts).total())
        };
        let all = FieldConfig { gradient: true, flux: true, error: true, ..FieldConfig::default() };
        let (solve, with_none) = total(2, FieldConfig::default());
        assert_eq!(solve, with_none);
        // Degree 2: 8 unknowns a vertex of 46 for output, 80 while computed and 48 kept, polynomials of 20 terms; cells with
        // incidence, errors, limits and what is gathered at their 27 nodes.
        let (solve, with_all) = total(2, all);
        let expected = 20e6
            + mesh(counts)
            + space_of_cells(counts)
            + 8e6 * (46.0 + 80.0 + 48.0)
            + 1e6 * 320.0
            + 1e6 * (32.0 + 16.0 + 24.0 + 80.0 + 8.0 * 27.0);
        assert!((with_all - expected).abs() < 1.0 && with_all > solve, "{with_all} is not {expected}");
        let error = FieldConfig { error: true, ..FieldConfig::default() };
        assert!(total(2, error).1 < with_all);
    }
}

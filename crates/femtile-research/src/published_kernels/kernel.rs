use femtile::device::Scalar;
use femtile::multigrid::PatchShape;

/// Threads of a warp.
const WARP: usize = 32;
/// Largest number of threads of a block.
const MAX_THREADS: usize = 1024;
/// Shared memory per multiprocessor, and threads per multiprocessor with enough registers, from which resident blocks are
/// derived: the fastest values on an H200.
const MEMORY: usize = 224 << 10;
const DOUBLE_THREADS: usize = 768;
const SINGLE_THREADS: usize = 1024;
/// The highest degree of a dense inverse, whose size grows with the sixth power.
const DENSE_DEGREE: usize = 4;

/// Passes of a smoothing step over vectors of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// For each colour the residual on the whole grid, then the local solves.
    Global,
    /// For each colour the residual inside its patches, then the local solves.
    Separate,
    /// Residual and local solve of a patch in one kernel.
    Fused,
}

/// Layout of threads and values of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A thread per column of all nodes; threads at the edge are masked in products on inner nodes.
    Basic,
    /// As [`Layout::Basic`] with a thread per node: up to 1024 nodes.
    ThreadPerNode,
    /// Threads numbered consecutively through the columns with work.
    LinearIndexing,
    /// As [`Layout::LinearIndexing`], with inner values packed and threads along x and y in all products: no bank
    /// conflicts.
    ConflictFree,
    /// As [`Layout::ConflictFree`], with the residual of the surface only.
    Boundary,
    /// Packed values, products by tensor cores, f64.
    TensorCore,
    /// Packed values, the dense inverse of a patch, up to degree 4.
    InverseMatrix,
}

/// A published kernel of `[cui2024]`, for comparison with [`PatchKernel`](femtile::multigrid::PatchKernel).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedKernel {
    /// Passes over vectors.
    pub passes: Passes,
    /// Layout of a patch.
    pub layout: Layout,
}

/// The work of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchPass {
    /// The residual inside patches, written to global memory.
    Residual,
    /// The local solve, with a residual from global memory.
    Solve,
    /// Both.
    Fused,
}

impl PublishedKernel {
    /// Returns all variants: fused ones from the plainest on, then the others.
    pub fn all() -> impl Iterator<Item = Self> {
        use Layout::{
            Basic, Boundary, ConflictFree, InverseMatrix, LinearIndexing, TensorCore, ThreadPerNode,
        };
        let fused = [Basic, ThreadPerNode, LinearIndexing, ConflictFree, Boundary, TensorCore, InverseMatrix]
            .map(|layout| (Passes::Fused, layout));
        let apart = [Passes::Global, Passes::Separate]
            .into_iter()
            .flat_map(|passes| [Basic, ConflictFree].map(|layout| (passes, layout)));
        fused.into_iter().chain(apart).map(|(passes, layout)| Self { passes, layout })
    }

    /// Returns the name, such as `separate-conflict-free`; fused kernels are named by their layout.
    pub fn name(self) -> String {
        let layout = match self.layout {
            Layout::Basic => "basic",
            Layout::ThreadPerNode => "thread-per-node",
            Layout::LinearIndexing => "linear-indexing",
            Layout::ConflictFree => "conflict-free",
            Layout::Boundary => "boundary",
            Layout::TensorCore => "tensor-core",
            Layout::InverseMatrix => "inverse-matrix",
        };
        match self.passes {
            Passes::Global => format!("global-{layout}"),
            Passes::Separate => format!("separate-{layout}"),
            Passes::Fused => layout.into(),
        }
    }

    /// Returns why there is no kernel for a degree and precision; none where there is one.
    pub fn lack<T: Scalar>(self, degree: usize) -> Option<String> {
        let nodes = (2 * degree + 1).pow(3);
        match self.layout {
            Layout::ThreadPerNode if nodes > MAX_THREADS => {
                Some(format!("{nodes} nodes of a patch: a block has {MAX_THREADS} threads"))
            }
            Layout::TensorCore if size_of::<T>() != 8 => {
                Some(format!("{}: products by tensor cores are in double precision", T::C_NAME))
            }
            Layout::InverseMatrix if degree > DENSE_DEGREE => {
                Some(format!("degree {degree}: dense inverses are for 1 to {DENSE_DEGREE}"))
            }
            Layout::Boundary if self.passes != Passes::Fused => {
                Some("the residual of the surface: it is formed where the solve is".into())
            }
            _ => None,
        }
    }

    /// Returns the launches of a colour, without the residual of the whole grid.
    pub(super) fn passes(self) -> &'static [PatchPass] {
        match self.passes {
            Passes::Global => &[PatchPass::Solve],
            Passes::Separate => &[PatchPass::Residual, PatchPass::Solve],
            Passes::Fused => &[PatchPass::Fused],
        }
    }

    /// Returns whether inner values are packed.
    pub(super) fn is_packed(self) -> bool {
        !matches!(self.layout, Layout::Basic | Layout::ThreadPerNode | Layout::LinearIndexing)
    }

    /// Returns the default launch shape of a pass.
    pub fn shape<T: Scalar>(self, degree: usize, pass: PatchPass) -> PatchShape {
        let team = self.team::<T>(degree, pass);
        let teams = (128 / team).max(1);
        let of_memory = MEMORY / self.shared_bytes::<T>(degree, pass, teams);
        let threads = if size_of::<T>() == 8 { DOUBLE_THREADS } else { SINGLE_THREADS };
        let of_registers = threads / (team * teams);
        PatchShape { team, teams, blocks: of_memory.min(of_registers).max(1) }
    }

    /// Returns the fewest threads of a team; a multiple of a half or whole warp where its accesses must not mix with
    /// those of other teams.
    pub(super) fn team<T: Scalar>(self, degree: usize, pass: PatchPass) -> usize {
        let (n, m) = (2 * degree - 1, 2 * degree + 1);
        let edge = if pass == PatchPass::Solve { n } else { m };
        match self.layout {
            Layout::Basic | Layout::LinearIndexing => edge * edge,
            Layout::ThreadPerNode => edge.pow(3),
            Layout::TensorCore => (edge * edge).next_multiple_of(WARP),
            _ => (n * edge).next_multiple_of(128 / size_of::<T>()),
        }
    }

    /// Returns the shared memory of a block of `teams` teams in bytes.
    pub fn shared_bytes<T: Scalar>(self, degree: usize, pass: PatchPass, teams: usize) -> usize {
        let (n, m) = (2 * degree - 1, 2 * degree + 1);
        let tables = n * (2 * m + n + 1);
        let of_team = match (pass, self.is_packed()) {
            (PatchPass::Solve, _) => 2 * n * n * n,
            (_, true) => m * m * m + n * (n * n + m * m + n * m),
            (_, false) => 4 * m * m * m,
        };
        (tables + teams * of_team) * size_of::<T>()
    }
}

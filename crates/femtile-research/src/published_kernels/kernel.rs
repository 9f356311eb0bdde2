use femtile::device::Scalar;
use femtile::multigrid::PatchShape;

/// Lanes of a warp.
const WARP: usize = 32;
/// The most threads of a block.
const MAX_THREADS: usize = 1024;
/// Shared memory of a multiprocessor that blocks are thought to share, and threads that there are to be registers for: the
/// fastest on an H200 of those whose registers suffice.
const MEMORY: usize = 224 << 10;
const DOUBLE_THREADS: usize = 768;
const SINGLE_THREADS: usize = 1024;
/// The highest degree of a dense inverse, whose size grows with the sixth power.
const DENSE_DEGREE: usize = 4;

/// How a step goes over vectors of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// The residual on the whole grid for each colour, then the solves of the colour.
    Global,
    /// For each colour the residual inside its patches, then the solves.
    Separate,
    /// Residual and solve of a patch at once.
    Fused,
}

/// Where threads and values of a patch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A thread for each column of all nodes; those at the edge are masked where only what is inside is computed.
    Basic,
    /// As [`Layout::Basic`] with a thread for each node in place of each column: up to 1024 nodes.
    ThreadPerNode,
    /// Threads numbered through those that compute.
    LinearIndexing,
    /// Besides, values inside are packed, and threads lie along x and y in all products: those that read or write at once
    /// meet in no bank.
    ConflictFree,
    /// Besides, the residual of the surface alone.
    Boundary,
    /// The packed values, with products by tensor cores: double precision.
    TensorCore,
    /// The packed values, with the dense inverse of a patch: up to degree 4.
    InverseMatrix,
}

/// A kernel of `[cui2024]`, to compare with [`PatchKernel`](femtile::multigrid::PatchKernel).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedKernel {
    /// How it goes over vectors.
    pub passes: Passes,
    /// How it goes over a patch.
    pub layout: Layout,
}

/// What a launch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchPass {
    /// The residual inside patches, to memory.
    Residual,
    /// The solve with a residual from memory.
    Solve,
    /// Both.
    Fused,
}

impl PublishedKernel {
    /// Every one: those with all in one launch from the plainest on, then the others.
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

    /// Its name, such as `separate-conflict-free`; fused ones go by their layout.
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

    /// Why there is none for a degree and precision; nothing where there is one.
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

    /// The launches of a colour; the residual of the whole grid is none of them.
    pub(super) fn passes(self) -> &'static [PatchPass] {
        match self.passes {
            Passes::Global => &[PatchPass::Solve],
            Passes::Separate => &[PatchPass::Residual, PatchPass::Solve],
            Passes::Fused => &[PatchPass::Fused],
        }
    }

    /// Whether values inside stand without gaps.
    pub(super) fn is_packed(self) -> bool {
        !matches!(self.layout, Layout::Basic | Layout::ThreadPerNode | Layout::LinearIndexing)
    }

    /// The teams and blocks that a pass is launched with, unless others are asked for.
    pub fn shape<T: Scalar>(self, degree: usize, pass: PatchPass) -> PatchShape {
        let team = self.team::<T>(degree, pass);
        let teams = (128 / team).max(1);
        let of_memory = MEMORY / self.shared_bytes::<T>(degree, pass, teams);
        let threads = if size_of::<T>() == 8 { DOUBLE_THREADS } else { SINGLE_THREADS };
        let of_registers = threads / (team * teams);
        PatchShape { team, teams, blocks: of_memory.min(of_registers).max(1) }
    }

    /// The fewest threads of a team, which has whole parts of a warp where what it reads at once is to be its own.
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

    /// Shared memory of a block of so many teams.
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

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use femtile::fem::matrix_free::Geometry;
use femtile::mesh::check::Finding;
use femtile_bench::problems::Elliptic;
use femtile_bench::problems::bake_off::{Method, Shape};

/// Finite-element solves that keep their data in small tiles of fast memory.
#[derive(Debug, Parser)]
#[command(
    name = "femtile",
    version,
    about,
    after_help = "Exit codes: 0 converged, 1 not converged, or systems that cannot be solved \
    (results are written), 2 bad input, or output that cannot be written, 3 device trouble, 130 interrupted (a solve \
    writes what it has reached)."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Solve the problem of a case file and write the solution, a report and a plot.
    Solve(SolveOptions),
    /// Solve linear systems with a sparse matrix from a file.
    SolveMatrix(SolveMatrixOptions),
    /// Check that the files in a folder of results are those of one run; exit code 1 when not.
    Verify {
        /// The folder that `femtile solve` has written to.
        folder: PathBuf,
    },
    /// Solve batches of tridiagonal systems held in NumPy files.
    Tridiagonal(TridiagonalOptions),
    /// Time products with a sparse matrix in the formats that suit it.
    Spmv(SpmvOptions),
    /// Search for the fastest format of a sparse matrix, and keep what was found.
    Tune(TuneOptions),
    /// Print the JSON schema of case files, with every key and default.
    Schema,
    /// Look at, check, convert, refine or generate meshes.
    #[command(subcommand)]
    Mesh(MeshCommand),
    /// Show what this machine offers: cores, SIMD level, GPUs, measured bandwidth, the cache of kernels.
    Devices(DevicesOptions),
    /// Look after the cache of compiled GPU kernels.
    #[command(subcommand)]
    Cache(CacheCommand),
    /// List the benchmarks, or run one.
    Bench(BenchOptions),
    /// Regenerate a table or figure of a paper, theirs beside ours.
    Reproduce(ReproduceOptions),
    /// Print a script that completes commands in a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile solve examples/02-ventricle/case.toml\n  \
    femtile solve case.toml --threads 4 --output results --json - --quiet\n  \
    femtile solve case.toml --mesh fine.msh --set solver.preconditioner=amg --set 'equation.source=sin(x)'")]
pub struct SolveOptions {
    /// The case file (TOML); `femtile schema` describes it. `-` reads it from standard input, with paths relative to the
    /// current folder.
    pub case: PathBuf,
    /// Set a value of the case: any key, such as `solver.tolerance=1e-8` or `boundary[0].dirichlet=2`, with a value as it stands
    /// in a case file; bare words are strings. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The mesh file, in place of the mesh of the case.
    #[arg(long, value_name = "FILE")]
    pub mesh: Option<PathBuf>,
    /// Folder for the results, in place of `output.directory`.
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Device, in place of `solver.device`: auto, cpu, cuda, cuda:N.
    #[arg(long)]
    pub device: Option<String>,
    /// Threads of the CPU, in place of `solver.threads`; 0 for all.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Relative residual to reach, in place of `solver.tolerance`.
    #[arg(long)]
    pub tolerance: Option<f64>,
    /// Limit of iterations, in place of `solver.max_iterations`.
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<usize>,
    /// Write the report as JSON to this file too; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Merge nodes that coincide, which closes cracks.
    #[arg(long)]
    pub merge: bool,
    /// Say nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile solve-matrix A.mtx b.npy -o x.npy\n  \
    femtile solve-matrix stiffness.npz loads.npy -o u.npy --block-size 3 --near-nullspace motions.npy\n  \
    femtile solve-matrix A.mtx -o x.mtx --method gmres --preconditioner jacobi")]
pub struct SolveMatrixOptions {
    /// The matrix: a Matrix Market file, plain or compressed with gzip, or .npz as scipy.sparse.save_npz writes it.
    pub matrix: PathBuf,
    /// The right sides: .npy of shape (N,) or (N, K), Matrix Market, or `ones`, which is the default.
    #[arg(value_name = "RHS")]
    pub rhs: Option<PathBuf>,
    /// The file to write the solutions to, in the shape of the right sides: .npy or .mtx.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The device: auto, cpu, cuda, cuda:N.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Threads of the CPU; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Relative residual to reach.
    #[arg(long, default_value_t = 1e-10)]
    pub tolerance: f64,
    /// Limit of iterations for each right side.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub max_iterations: usize,
    /// The iterative method; gmres for matrices that are not symmetric.
    #[arg(long, default_value = "cg", value_parser = ["cg", "merged-cg", "pipelined-cg", "s-step-cg", "gmres"])]
    pub method: String,
    /// The preconditioner; auto is amg for cg and pipelined-cg, jacobi for the other methods.
    #[arg(long, default_value = "auto", value_parser = ["auto", "amg", "jacobi", "none"])]
    pub preconditioner: String,
    /// Vectors on which the matrix is small, such as rigid motions, as columns of a .npy file; for amg.
    #[arg(long, value_name = "FILE")]
    pub near_nullspace: Option<PathBuf>,
    /// Rows of a node, such as 3 for displacements in space; for amg.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub block_size: Option<u32>,
    /// Write the report as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Say nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile tridiagonal systems.npz --output u.npz\n  \
    femtile tridiagonal lower.npy diagonal.npy upper.npy rhs.npy --axis 0 --output u.npy\n  \
    femtile tridiagonal -1 2.5 -1 rhs.npy --periodic --output u.npy\n  \
    femtile tridiagonal blocks.npz --block --output u.npz\n  \
    femtile tridiagonal -1 2.5 -1 rhs.npy --factored --output u.npy")]
pub struct TridiagonalOptions {
    /// One .npz file with the members lower, diagonal, upper and rhs (or a, b, c and d), or four .npy files in this
    /// order, in which numbers may stand for constant bands. Shapes are broadcast as NumPy does.
    #[arg(required = true, num_args = 1..=4, value_name = "FILE", allow_negative_numbers = true)]
    pub files: Vec<String>,
    /// The file to write: .npy for the solution, .npz for the solution `u` and the flags `failed`.
    #[arg(short, long, value_name = "FILE", required_unless_present = "check", conflicts_with = "check")]
    pub output: Option<PathBuf>,
    /// Solve nothing; report how dominant the diagonals are, with exit code 1 where rows are not.
    #[arg(long)]
    pub check: bool,
    /// The axis along which systems lie; negative ones count from the last.
    #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
    pub axis: isize,
    /// The algorithm: auto, thomas, thomas-grid, thomas-shared, thomas-shuffle, pcr, cr, hybrid.
    #[arg(long, default_value = "auto")]
    pub algorithm: String,
    /// The systems are cyclic: the first row's lower entry couples to the last unknown, the last row's upper entry to
    /// the first.
    #[arg(long)]
    pub periodic: bool,
    /// Entries are blocks of 2 to 10 rows: bands have the shape (…, N, M, M), the right side (…, N, M).
    #[arg(long, conflicts_with_all = ["check", "periodic", "axis", "factored"])]
    pub block: bool,
    /// Eliminate once for all right sides: the bands are one matrix.
    #[arg(long, conflicts_with_all = ["check", "pivoting", "algorithm"])]
    pub factored: bool,
    /// Exchange rows where pivots are small: for matrices that are not diagonally dominant.
    #[arg(long)]
    pub pivoting: bool,
    /// The device: auto, cpu, cuda, cuda:N.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Threads of the CPU; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// f32 or f64; by default the wider one of the files.
    #[arg(long, value_parser = ["f32", "f64"])]
    pub precision: Option<String>,
    /// Write the report as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Say nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile spmv matrix.mtx.gz --all\n  \
    femtile spmv --profile cant --device cpu --threads 2 --histogram rows.svg")]
pub struct SpmvOptions {
    /// The Matrix Market file, plain or compressed with gzip.
    #[arg(required_unless_present = "profile", conflicts_with = "profile")]
    pub file: Option<PathBuf>,
    /// Time all formats, in place of CSR and the one that is chosen.
    #[arg(long)]
    pub all: bool,
    /// Draw how many rows are how long, as SVG into this file.
    #[arg(long, value_name = "FILE")]
    pub histogram: Option<PathBuf>,
    /// Time MKL (CPU) and cuSPARSE (GPU) beside.
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub products: ProductOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile tune matrix.mtx --device cuda\n  femtile tune --forget")]
pub struct TuneOptions {
    /// The Matrix Market file, plain or compressed with gzip.
    #[arg(required_unless_present_any = ["profile", "forget"], conflicts_with = "profile")]
    pub file: Option<PathBuf>,
    /// Search for nothing; remove what all searches have found.
    #[arg(long, conflicts_with_all = ["file", "profile"])]
    pub forget: bool,
    #[command(flatten)]
    pub products: ProductOptions,
}

/// What `spmv` and `tune` have in common.
#[derive(Debug, Args)]
pub struct ProductOptions {
    /// In place of a file, a made-up matrix with the row lengths of a known one, such as cant or webbase-1M.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Make the profile with so many times fewer rows.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "profile")]
    pub scale: usize,
    /// The device: auto (the CPU, and a GPU where there is one), cpu, cuda, cuda:N.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Threads of the CPU; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// How often each product is timed.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Write the report as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Say nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub enum MeshCommand {
    /// Show counts, sizes, tags and fields of a mesh file.
    Info {
        /// The mesh file.
        file: PathBuf,
        /// Print JSON in place of text.
        #[arg(long)]
        json: bool,
    },
    /// Check whether a mesh can be solved on; exit code 2 when not.
    Check {
        /// The mesh file.
        file: PathBuf,
        /// Merge nodes that coincide first.
        #[arg(long)]
        merge: bool,
        /// Findings that become warnings where the mesh would be refused for them, with commas between.
        #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = Finding::ALL.map(Finding::name))]
        accept: Vec<String>,
        /// Write the repaired mesh here.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Write a mesh in another format, chosen by the extension.
    Convert {
        /// The mesh file.
        file: PathBuf,
        /// The file to write: .vtu, .msh, .mesh, .node.
        output: PathBuf,
        /// Compress with zlib; .vtu alone.
        #[arg(long)]
        compress: bool,
    },
    /// Split every cell into four (triangles, quadrilaterals) or eight (tetrahedra, hexahedra); segments are refused.
    Refine {
        /// The mesh file.
        file: PathBuf,
        /// The file to write.
        output: PathBuf,
        /// How many times.
        #[arg(short = 'n', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
        times: u32,
    },
    /// Make a mesh by formula.
    #[command(
        after_help = "Examples:\n  femtile mesh generate 'kind = \"ventricle\", h_mm = 1.0' heart.vtu\n  \
        femtile mesh generate 'kind = \"box\", cells = [32, 32, 32]' box.msh"
    )]
    Generate {
        /// What stands between the braces of `generate = { … }` in a case file.
        generator: String,
        /// The file to write.
        output: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct DevicesOptions {
    /// Print JSON in place of a table.
    #[arg(long)]
    pub json: bool,
    /// Show which algorithm is the default for which tridiagonal systems, in place of the devices.
    #[arg(long)]
    pub kernels: bool,
    /// Threads to measure with; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Remove all kernels that are kept; they are compiled again when they are needed.
    Clear,
}

#[derive(Debug, Args)]
pub struct BenchOptions {
    /// The benchmark to run; without it all are listed.
    pub name: Option<String>,
    /// Threads of the CPU; by default one, then all.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Nodes along a side of the box; each benchmark states its default in its records.
    #[arg(long)]
    pub nodes: Option<usize>,
    /// Degree of the elements of `laplace` and `bp1` to `bp6`; by default 3 to 8.
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(1..=10))]
    pub degree: Option<u8>,
    /// Shape of the cells of `laplace` and `bp1` to `bp6`; by default both.
    #[arg(long, value_name = "NAME", value_parser = Shape::ALL.map(Shape::name))]
    pub geometry: Option<String>,
    /// How metrics of the cells of `laplace` and `bp1` to `bp6` are come by; by default as it is cheapest.
    #[arg(long, value_name = "NAME", value_parser = Geometry::ALL.map(Geometry::name))]
    pub metric: Option<String>,
    /// Methods of which `laplace` and `bp1` to `bp6` time an iteration, with commas between; without it the product.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = Method::ALL.map(Method::name))]
    pub method: Vec<String>,
    /// What `amg` solves.
    #[arg(long, value_name = "NAME", value_parser = Elliptic::ALL.map(Elliptic::name))]
    pub problem: Option<String>,
    /// Let other libraries solve the same in `amg`.
    #[arg(long)]
    pub peers: bool,
    /// Device of `defaults`: auto, cpu, cuda or cuda:N.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Unknowns of the largest problems of `defaults`; by default 3,000,000.
    #[arg(long, value_name = "N")]
    pub unknowns: Option<usize>,
    /// Systems of a batch; by default as many as a benchmark states in its records.
    #[arg(long)]
    pub systems: Option<usize>,
    /// How often the work is timed.
    #[arg(long)]
    pub repeats: Option<usize>,
    /// Write the records as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile reproduce laszlo2016 figure-11 --threads 1\n  \
    femtile reproduce laszlo2016 --step 4 --output figures")]
pub struct ReproduceOptions {
    /// Key of the paper, as in references.bib; without it the papers and what can be reproduced are listed.
    pub key: Option<String>,
    /// The table or figure, such as figure-10; without it all of the paper.
    pub item: Option<String>,
    /// Folder for each figure as text, JSON and SVG.
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Write all figures as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// A size that is done in seconds, to see that everything runs: its figures mean nothing.
    #[arg(long)]
    pub small: bool,
    /// Systems in a batch, as the paper's; blocks of 7 and 8 rows have half of them.
    #[arg(long, default_value_t = 65_536, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub systems: u32,
    /// From one length of systems to the next; the paper's is 4.
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub step: usize,
    /// The most sparse products that are timed in a row, as the paper's.
    #[arg(long, default_value_t = 1200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub products: u32,
    /// The most unknowns of operators without a matrix; the paper's are 100 million.
    #[arg(long, default_value_t = 4_000_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1000..))]
    pub unknowns: u32,
    /// The finest level of multigrid, if its unknowns are not too many; level L has 2^(L − 1) cells a side.
    #[arg(long, default_value_t = 12, value_name = "L", value_parser = clap::value_parser!(u32).range(4..=20))]
    pub max_level: u32,
    /// Threads of the CPU, of ours and of other libraries; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// How often each solve is timed.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub repeats: usize,
    /// Leave out other libraries.
    #[arg(long)]
    pub no_peers: bool,
    /// Leave out the GPU.
    #[arg(long)]
    pub no_gpu: bool,
}

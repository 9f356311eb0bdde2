use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use femtile::mesh::check::Finding;

/// Solves heat conduction, diffusion and other scalar problems on meshes by finite elements.
#[derive(Debug, Parser)]
#[command(
    name = "femtile",
    version,
    after_help = "Begin with `femtile solve CASE.toml`; a case file names the mesh, the material, the conditions and the \
    results.\n\nExit codes:\n  0    converged\n  1    not converged, or systems that cannot be solved; results are \
    written\n  2    bad input, or output that cannot be written\n  3    an error of the GPU or of threads\n  130  \
    interrupted by the user; a solve writes what it has reached"
)]
pub struct Arguments {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Solve the problem that a case file describes; write the solution for ParaView, a report and a plot.
    Solve(SolveOptions),
    /// Solve a case for all combinations of some of its values; write a table, with observed orders where meshes or steps in
    /// time are refined. Exit code 1 when a run failed or did not converge.
    Study(StudyOptions),
    /// Solve linear systems with a sparse matrix from a file.
    SolveMatrix(SolveMatrixOptions),
    /// Check that the files in a folder of results are complete, unchanged and of one run; with `--exact` that the equation of a
    /// case is solved right. Exit code 1 when not.
    Verify(VerifyOptions),
    /// Print the papers behind the methods that a run used, in BibTeX.
    Cite {
        /// The `report.json` of `femtile solve`.
        report: PathBuf,
    },
    /// Solve batches of tridiagonal systems held in NumPy files.
    Tridiagonal(TridiagonalOptions),
    /// Measure how long products with a sparse matrix take in several storage formats, with the program femtile-bench.
    #[command(disable_help_flag = true)]
    Spmv(Passed),
    /// Find the storage format in which products with a sparse matrix are fastest here, and remember it, with the program
    /// femtile-bench.
    #[command(disable_help_flag = true)]
    Tune(Passed),
    /// Print all keys of case files with their meaning and default, as a JSON schema for editors.
    Schema,
    /// Inspect, check, convert, refine or generate meshes.
    #[command(subcommand)]
    Mesh(MeshCommand),
    /// Show the processor and the GPUs of this machine, their measured memory bandwidth, and the cache of GPU programs.
    Devices(DevicesOptions),
    /// Compile the GPU programs (kernels) of a case ahead of its run, or remove compiled ones.
    #[command(subcommand)]
    Cache(CacheCommand),
    /// List or run benchmarks, with the program femtile-bench.
    #[command(disable_help_flag = true)]
    Bench(Passed),
    /// Reproduce a table or figure of a paper, with the program femtile-research.
    #[command(disable_help_flag = true)]
    Reproduce(Passed),
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

/// Options of `femtile solve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile solve examples/02-ventricle/case.toml\n  \
    femtile solve case.toml --threads 4 --output results --json - --quiet\n  \
    femtile solve case.toml --mesh fine.msh --set solver.preconditioner=amg --set 'equation.source=sin(x)'")]
pub struct SolveOptions {
    /// The case file (TOML): mesh, equation, conditions, results. `femtile schema` lists its keys. `-` reads it from standard input, with paths relative to the
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
    /// Where to compute, in place of `solver.device`: auto, cpu, cuda (a GPU), cuda:N (the GPU with this number); of several GPUs,
    /// such as cuda:0-3 or cuda:0,2, each one solves a part of the problem.
    #[arg(long, visible_alias = "devices")]
    pub device: Option<String>,
    /// Threads of the processor, in place of `solver.threads`; 0 for one a core.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Divide the mesh into N parts that are solved side by side, by threads of this program, in place of `solver.ranks`; with MPI
    /// each of its ranks has a part.
    #[arg(long, value_name = "N")]
    pub ranks: Option<usize>,
    /// When the solve ends: the residual relative to the right side, such as 1e-8, in place of `solver.tolerance`.
    #[arg(long)]
    pub tolerance: Option<f64>,
    /// The most iterations that are made, in place of `solver.max_iterations`.
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<usize>,
    /// Also write the report as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write where the time of the run goes to this file, for the viewer of ui.perfetto.dev or chrome://tracing; `-` is standard
    /// output.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Also draw the solution as a PNG file: the boundary and a cut of bodies, plane meshes from above. Of the field that
    /// `output.picture` names, or the main one.
    #[arg(long, value_name = "FILE.png")]
    pub picture: Option<PathBuf>,
    /// Also write a page for a browser, which needs no network: a view of the solution that turns, convergence, times,
    /// conditions, references.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Join nodes that lie at the same place, which closes cracks between parts that were meshed apart.
    #[arg(long)]
    pub merge: bool,
    /// Print errors only, no progress and no summary.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `femtile study`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile study case.toml --vary mesh.refine=0..3\n  \
    femtile study case.toml --vary solver.tolerance=1e-6,1e-8 --vary solver.preconditioner=amg,jacobi\n  \
    femtile study case.toml --vary equation.lambda=1e-3:1e3:7 --output lambdas --jobs 4 --report lambdas.html")]
pub struct StudyOptions {
    /// The case file, or the folder of a case.toml.
    pub case: PathBuf,
    /// A key of the case and its values, with commas between them: `1e-6,1e-8`; `0..3` for whole numbers with both ends;
    /// `1e-3:1e3:7` for seven numbers with a constant ratio. Several of these give all combinations.
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub vary: Vec<String>,
    /// Set a value of the case in all runs, as for `femtile solve`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder of the study, in place of `study` in `output.directory`: study.csv, and a folder for each run.
    #[arg(short, long, visible_alias = "out", value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Run all combinations, also those whose results are complete.
    #[arg(long)]
    pub again: bool,
    /// Runs at a time on the CPU, which share the threads; the table is the same.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// Also write a page for a browser, which needs no network: orders, plot and table.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Also write the table as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print errors only, no progress and no rows.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `femtile verify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile verify out\n  \
    femtile verify case.toml --exact 'u = sin(pi*x)*y'\n  \
    femtile verify examples/33-minimal-surface --exact 'u = sin(2*x)*y' --set 'mesh.generate.cells=[8,8]'")]
pub struct VerifyOptions {
    /// The output folder of `femtile solve`; with `--exact` a case file, or the folder of a case.toml.
    #[arg(value_name = "FOLDER")]
    pub path: PathBuf,
    /// Make this function the solution of a steady case, refine its mesh, and compare the orders at which the errors fall with
    /// those of theory: `u = sin(pi*x)*y`, `u = [x*y, x^2]` for a vector. Once for each unknown.
    #[arg(long, value_name = "NAME = FORMULA")]
    pub exact: Vec<String>,
    /// Meshes of `--exact`: that of the case, and each one refined uniformly.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "exact")]
    pub levels: u32,
    /// Set a value of the case, as for `femtile solve`.
    #[arg(long, value_name = "KEY=VALUE", requires = "exact")]
    pub set: Vec<String>,
    /// Also write the errors and orders as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE", requires = "exact")]
    pub json: Option<PathBuf>,
    /// Print errors only, no progress and no table.
    #[arg(short, long, requires = "exact")]
    pub quiet: bool,
}

/// Options of `femtile solve-matrix`.
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
    /// Threads of the processor; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// When a solve ends: the residual relative to the right side.
    #[arg(long, default_value_t = 1e-10)]
    pub tolerance: f64,
    /// The most iterations for each right side.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub max_iterations: usize,
    /// The iterative method; gmres for matrices that are not symmetric or not definite.
    #[arg(long, default_value = "cg", value_parser = ["cg", "merged-cg", "pipelined-cg", "s-step-cg", "gmres"])]
    pub method: String,
    /// Directions that gmres keeps before it restarts; 30 when absent. More of them take fewer iterations and more memory.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub restart: Option<u32>,
    /// The preconditioner; auto is amg for cg and pipelined-cg, jacobi for the other methods.
    #[arg(long, default_value = "auto", value_parser = ["auto", "amg", "jacobi", "none"])]
    pub preconditioner: String,
    /// Vectors on which the matrix is small, such as rigid motions, as columns of a .npy file; for amg.
    #[arg(long, value_name = "FILE")]
    pub near_nullspace: Option<PathBuf>,
    /// Rows of a node, such as 3 for displacements in space; for amg.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub block_size: Option<u32>,
    /// Strength of connection, below which entries join no aggregates; 0.04 when absent, 0.08 with a block size; for amg.
    #[arg(long, value_name = "THETA")]
    pub strength: Option<f64>,
    /// The smoother of the levels, chebyshev when absent; gauss-seidel on CPUs; for amg.
    #[arg(long, value_name = "NAME", value_parser = ["chebyshev", "jacobi", "gauss-seidel", "patch"])]
    pub smoother: Option<String>,
    /// The cycle, v when absent; k on CPUs; for amg.
    #[arg(long, value_name = "NAME", value_parser = ["v", "w", "k"])]
    pub cycle: Option<String>,
    /// Precision of the levels, f32 when absent; the solve is in f64; for amg.
    #[arg(long, value_name = "NAME", value_parser = ["f32", "f64"])]
    pub precision: Option<String>,
    /// Write the report as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print errors only, no progress and no summary.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `femtile tridiagonal`.
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
    /// Threads of the processor; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// f32 or f64; by default the wider one of the files.
    #[arg(long, value_parser = ["f32", "f64"])]
    pub precision: Option<String>,
    /// Write the report as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print errors only, no progress and no summary.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Commands of `femtile mesh`.
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
    /// Check that a mesh can be solved on: gaps, folded or repeated cells, cracks; exit code 2 when not.
    Check {
        /// The mesh file.
        file: PathBuf,
        /// Join nodes that lie at the same place first.
        #[arg(long)]
        merge: bool,
        /// Findings that are accepted, with a warning instead of an error; separated by commas.
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
        /// The file to write: .vtu, .msh, .mesh, .node, .pts.
        output: PathBuf,
        /// Multiply all coordinates: 0.001 makes metres of millimetres.
        #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
        scale: f64,
        /// Compress the file with zlib; .vtu only.
        #[arg(long)]
        compress: bool,
        /// Write numbers in binary; .msh only.
        #[arg(long, conflicts_with = "compress")]
        binary: bool,
    },
    /// Halve the size of all cells: each becomes four (triangles, quadrilaterals) or eight (tetrahedra, hexahedra).
    Refine {
        /// The mesh file.
        file: PathBuf,
        /// The file to write.
        output: PathBuf,
        /// How often all cells are halved.
        #[arg(short = 'n', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
        times: u32,
    },
    /// Give the cells of ventricles the directions of muscle fibres and sheets, from the shape of the wall.
    #[command(
        after_help = "Example:\n  femtile mesh fibres heart.msh --endocardium endo --epicardium epi --base base -o heart.vtu"
    )]
    Fibres(FibresOptions),
    /// Make the mesh of a simple shape: box, square, cylinder, ball, shell, L-shape or ventricle.
    #[command(
        after_help = "Examples:\n  femtile mesh generate 'kind = \"ventricle\", h_mm = 1.0' heart.vtu\n  \
        femtile mesh generate 'kind = \"box\", cells = [32, 32, 32]' box.msh"
    )]
    Generate {
        /// The content of `generate = { … }` in a case file.
        generator: String,
        /// The file to write.
        output: PathBuf,
    },
}

/// Options of `femtile mesh fibres`. A part of the boundary is the name or number of a tag, or a comparison.
#[derive(Debug, Args)]
pub struct FibresOptions {
    /// The mesh file, of tetrahedra or hexahedra.
    pub file: PathBuf,
    /// The endocardium; of two ventricles the left one.
    #[arg(long, value_name = "PART")]
    pub endocardium: String,
    /// The endocardium of the right ventricle.
    #[arg(long, value_name = "PART")]
    pub right_endocardium: Option<String>,
    /// The epicardium.
    #[arg(long, value_name = "PART")]
    pub epicardium: String,
    /// The plane that cuts the ventricles off.
    #[arg(long, value_name = "PART")]
    pub base: String,
    /// The apex; found where it is not given.
    #[arg(long, value_name = "PART")]
    pub apex: Option<String>,
    /// Angles of fibres to the circumference at endocardium and epicardium, in degrees.
    #[arg(long, value_name = "ENDO,EPI", default_value = "60,-60", allow_hyphen_values = true, value_parser = pair)]
    pub angles: [f64; 2],
    /// Angles of sheets to the direction through the wall, in degrees.
    #[arg(long, value_name = "ENDO,EPI", default_value = "-65,25", allow_hyphen_values = true, value_parser = pair)]
    pub sheet_angles: [f64; 2],
    /// Findings of the mesh check that are accepted, with a warning instead of an error; separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = Finding::ALL.map(Finding::name))]
    pub accept: Vec<String>,
    /// Write the mesh with the cell fields fibre, sheet, transmural and apicobasal here.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Parses two numbers with a comma between them.
fn pair(text: &str) -> Result<[f64; 2], String> {
    let numbers: Vec<f64> = text.split(',').map_while(|number| number.trim().parse().ok()).collect();
    match numbers[..] {
        [first, second] if text.split(',').count() == 2 => Ok([first, second]),
        _ => Err("two numbers with a comma between them are needed".into()),
    }
}

/// Options of `femtile devices`.
#[derive(Debug, Args)]
pub struct DevicesOptions {
    /// Print JSON in place of a table.
    #[arg(long)]
    pub json: bool,
    /// Show the default algorithms for tridiagonal systems instead of the hardware.
    #[arg(long)]
    pub kernels: bool,
    /// Threads of the bandwidth measurement; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

/// Commands of `femtile cache`.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Compile the GPU programs that a case needs, so that its first run does not wait for it; needs no GPU with `--sm`.
    Warm(WarmOptions),
    /// Remove all compiled GPU programs; they are compiled again when needed.
    Clear,
    /// Compile kernels that another process of this program sends.
    #[command(hide = true)]
    Compile,
}

/// Options of `femtile cache warm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  femtile cache warm examples/02-ventricle/case.toml\n  \
    FEMTILE_CACHE=/shared/kernels femtile cache warm case.toml --sm 90")]
pub struct WarmOptions {
    /// The case file (TOML); its mesh is not generated, a mesh file is read.
    pub case: PathBuf,
    /// Set a value of the case, as for `femtile solve`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The compute capability of the GPU without its point, 90 for 9.0; that of this machine's GPU by default.
    #[arg(long, value_name = "NUMBER")]
    pub sm: Option<u32>,
}

/// Arguments of another program.
#[derive(Debug, Args)]
pub struct Passed {
    /// Arguments of that program; --help shows them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

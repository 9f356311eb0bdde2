//! The program `femtile-mpi`: `femtile solve` on the ranks of MPI.
#![deny(unsafe_code)]

mod check;
#[allow(unsafe_code)]
mod transport;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use femtile_cli::{Failure, SolveOptions, solve_on};
use femtile_comm::Comm;
use mpi::Threading;
use mpi::traits::Communicator;

use transport::Mpi;

#[global_allocator]
static ALLOCATOR: femtile::device::cpu::LargePages = femtile::device::cpu::LargePages;

/// How long a rank after the first waits before it tells its error and ends the run: most errors are those of all ranks, and
/// the first tells them.
const AFTER_FIRST: Duration = Duration::from_secs(1);

/// The exit code of Rust's programs that panic.
const PANICKED: i32 = 101;

/// Femtile on the ranks of MPI, such as `mpirun -n 4 femtile-mpi solve case.toml`.
#[derive(Debug, Parser)]
#[command(name = "femtile-mpi", version, about, after_help = "Other commands are those of `femtile`.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Solve the problem of a case file, divided among all ranks; the first writes the results.
    Solve(Box<SolveOptions>),
    /// Check sums and messages between all ranks, and measure how long they take.
    Check {
        /// Write the times as JSON to this file; `-` is standard output.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    // Solves call MPI from a thread of their pool, one at a time.
    let Some((universe, provided)) = mpi::initialize_with_threading(Threading::Serialized) else {
        return Failure::message("MPI was initialized before").report();
    };
    let world = universe.world();
    let rank = world.rank();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(1);
            if rank == 0 {
                // Nothing to do about a closed terminal.
                let _ = error.print();
            }
            return ExitCode::from(code);
        }
    };
    let result = match provided >= Threading::Serialized {
        true => {
            match catch_unwind(AssertUnwindSafe(|| run(&arguments.command, &Comm::new(Mpi::new(&world))))) {
                Ok(result) => result,
                // The message has been printed. The others would wait for this rank for ever.
                Err(_) => world.abort(PANICKED),
            }
        }
        false => Err(Failure::message(
            "this MPI serves the first thread of a process alone: Femtile needs one that was built with MPI_THREAD_SERIALIZED",
        )),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            if rank > 0 {
                std::thread::sleep(AFTER_FIRST);
            }
            let code = failure.code();
            let failure = if world.size() > 1 { failure.of_rank(rank as usize) } else { failure };
            failure.report();
            world.abort(i32::from(code))
        }
    }
}

fn run(command: &Command, comm: &Comm) -> Result<ExitCode, Failure> {
    match command {
        Command::Solve(options) => solve_on(options, comm),
        Command::Check { json } => check::run(comm, json.as_deref()),
    }
}

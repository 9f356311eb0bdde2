//! The program `femtile`, and what `femtile-mpi` shares with it.
#![forbid(unsafe_code)]

mod arguments;
mod arrays;
mod bars;
mod cache;
mod cite;
mod companion;
mod devices;
mod failure;
mod interrupt;
mod mesh;
mod mesh_info;
mod remembered;
mod solve;
mod solve_matrix;
mod study;
mod tridiagonal;
mod verify;

use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, Parser};
use femtile::device::cpu::{default_threads, start_shared_threads};

pub use arguments::SolveOptions;
use arguments::{Arguments, Command};
pub use failure::Failure;
use femtile_comm::Comm;
use femtile_terminal::{escape, print, say};

/// Solves the case of these options on the ranks of a communicator, each of which calls it; the first writes the results.
///
/// # Errors
/// Those of the case; on a rank alone, or on all of them.
pub fn solve_on(options: &SolveOptions, comm: &Comm) -> Result<ExitCode, Failure> {
    default_threads()?;
    interrupt::hear_size_limit()?;
    solve::run(options, Some(comm), Instant::now())
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let begun = Instant::now();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    match run(arguments, begun) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// Prints the error of the arguments, control characters escaped, or the help.
fn refuse(error: &clap::Error) -> ExitCode {
    let has_control = |argument: std::ffi::OsString| argument.to_string_lossy().contains(char::is_control);
    if std::env::args_os().any(has_control) {
        say(&escape(&error.render().to_string()));
        return ExitCode::from(failure::BAD_INPUT);
    }
    error.exit()
}

fn run(arguments: Arguments, begun: Instant) -> Result<ExitCode, Failure> {
    default_threads()?;
    interrupt::hear_size_limit()?;
    cache::compile_in_processes();
    match &arguments.command {
        // A solve works in a pool of its own, and these need no threads.
        Command::Solve(_)
        | Command::Study(_)
        | Command::Schema
        | Command::Cite { .. }
        | Command::Bench(_) => {}
        Command::Spmv(_) | Command::Tune(_) | Command::Reproduce(_) => {}
        Command::Completions { .. } | Command::Man => {}
        _ => start_shared_threads()?,
    }
    match arguments.command {
        Command::Solve(options) => solve::run(&options, None, begun),
        Command::Study(options) => study::run(&options),
        Command::SolveMatrix(options) => solve_matrix::run(&options),
        Command::Verify(options) => verify::run(&options),
        Command::Cite { report } => cite::run(&report),
        Command::Tridiagonal(options) => tridiagonal::run(&options),
        Command::Spmv(options) => companion::SPMV.run(&options.arguments),
        Command::Tune(options) => companion::TUNE.run(&options.arguments),
        Command::Schema => Ok(print(&format!("{:#}\n", femtile_case::schema()))?),
        Command::Mesh(command) => mesh::run(&command),
        Command::Devices(options) => devices::run(&options),
        Command::Cache(command) => cache::run(&command),
        Command::Bench(options) => companion::BENCH.run(&options.arguments),
        Command::Reproduce(options) => companion::REPRODUCE.run(&options.arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "femtile", &mut script);
            Ok(print(&String::from_utf8_lossy(&script))?)
        }
        Command::Man => Ok(print(&manual()?)?),
    }
}

/// Returns the manual page, followed by those of all commands.
fn manual() -> Result<String, Failure> {
    let mut command = Arguments::command();
    command.build();
    let mut pages = Vec::new();
    let mut render = |command: &clap::Command| clap_mangen::Man::new(command.clone()).render(&mut pages);
    render(&command)?;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        render(inner)?;
        for leaf in inner.get_subcommands().filter(|leaf| leaf.get_name() != "help" && !leaf.is_hide_set()) {
            render(leaf)?;
        }
    }
    Ok(String::from_utf8_lossy(&pages).into_owned())
}

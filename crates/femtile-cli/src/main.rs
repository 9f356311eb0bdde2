//! `femtile`: from a case file and a mesh to a checked solution and pictures.

mod arguments;
mod arrays;
mod bars;
mod bench;
mod devices;
mod failure;
mod interrupt;
mod mesh;
mod output;
mod reproduce;
mod solve;
mod solve_matrix;
mod spmv;
mod tridiagonal;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use femtile::device::cpu::default_threads;

use arguments::{Arguments, CacheCommand, Command};
use failure::Failure;
use output::print;

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    // Threads start with whatever uses them first: their number is settled before.
    default_threads()?;
    match arguments.command {
        Command::Solve(options) => solve::run(&options),
        Command::SolveMatrix(options) => solve_matrix::run(&options),
        Command::Verify { folder } => verify::run(&folder),
        Command::Tridiagonal(options) => tridiagonal::run(&options),
        Command::Spmv(options) => spmv::run(&options),
        Command::Tune(options) => spmv::tune(&options),
        Command::Schema => print(&format!("{:#}\n", femtile_case::schema())),
        Command::Mesh(command) => mesh::run(&command),
        Command::Devices(options) => devices::run(&options),
        Command::Cache(CacheCommand::Clear) => clear_cache(),
        Command::Bench(options) => bench::run(&options),
        Command::Reproduce(options) => reproduce::run(&options),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "femtile", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
        Command::Man => manual().and_then(|page| print(&page)),
    }
}

/// `femtile cache clear`.
fn clear_cache() -> Result<ExitCode, Failure> {
    let removed = femtile::device::cuda::clear_cache()?;
    match removed.folder {
        Some(folder) => print(&format!("removed {} programs from {}\n", removed.n_entries, folder.display())),
        None => print("there is no cache\n"),
    }
}

/// The manual page, and after it those of all commands.
fn manual() -> Result<String, Failure> {
    let mut command = Arguments::command();
    command.build();
    let mut pages = Vec::new();
    let mut render = |command: &clap::Command| clap_mangen::Man::new(command.clone()).render(&mut pages);
    render(&command)?;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        render(inner)?;
        for leaf in inner.get_subcommands().filter(|leaf| leaf.get_name() != "help") {
            render(leaf)?;
        }
    }
    Ok(String::from_utf8_lossy(&pages).into_owned())
}

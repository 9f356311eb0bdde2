//! `femtile`: from a case file and a mesh to a checked solution and pictures.

mod arguments;
mod bars;
mod bench;
mod devices;
mod failure;
mod mesh;
mod reproduce;
mod solve;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Solve(options) => solve::run(&options),
        Command::Schema => print(&format!("{:#}\n", femtile::case::schema())),
        Command::Mesh(command) => mesh::run(&command),
        Command::Devices(options) => devices::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Reproduce(options) => reproduce::run(&options),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "femtile", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
        Command::Man => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut page);
            rendered.map_err(Failure::from).and_then(|()| print(&String::from_utf8_lossy(&page)))
        }
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// Writes text to standard output; a reader that has gone away is no error.
fn print(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

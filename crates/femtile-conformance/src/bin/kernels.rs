//! Compiles GPU kernels with NVRTC and shows what they take; fails where registers spill.
//!
//! `cargo run -p femtile-conformance --bin kernels [-- --all] [TEXT]`; `cargo xtask kernels` calls it. A text restricts them to programs
//! whose name or definitions contain it.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use femtile::device::cuda::{Compiler, Specialisation, nvrtc};

/// Architectures that are checked, the oldest first.
const ARCHITECTURES: [(u32, u32); 2] = [(8, 0), (9, 0)];

fn main() -> ExitCode {
    let all = std::env::args().any(|argument| argument == "--all");
    let compiler = match nvrtc() {
        Ok(compiler) => compiler,
        Err(error) => {
            println!("SKIPPED: kernels: {error}");
            return ExitCode::SUCCESS;
        }
    };
    println!("{}", compiler.version());
    println!("{:<6} {:>5} {:>7} {:>6}  kernel, program", "arch", "regs", "shared", "spills");
    let mut programs = femtile_conformance::specialisations(all);
    if let Some(text) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) {
        programs.retain(|program| program.to_string().contains(&text));
    }
    // Of some kernels, each is compiled for one architecture, in turn.
    let is_wanted = |number: usize, place: usize| all || number % ARCHITECTURES.len() == place;
    let jobs: Vec<_> = programs
        .iter()
        .enumerate()
        .flat_map(|(number, program)| {
            let wanted =
                ARCHITECTURES.into_iter().enumerate().filter(move |(place, _)| is_wanted(number, *place));
            wanted.map(move |(_, architecture)| (program, architecture))
        })
        .collect();
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(Counts::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(program, architecture)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    compile(&*compiler, program, architecture, &counts);
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} kernels, {} that spill, {} that do not compile",
        counts.kernels, counts.spill, counts.broken
    );
    if counts.kernels > 0 && counts.spill + counts.broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[derive(Default)]
struct Counts {
    kernels: usize,
    spill: usize,
    broken: usize,
}

fn compile(
    compiler: &dyn Compiler,
    program: &Specialisation,
    architecture: (u32, u32),
    counts: &Mutex<Counts>,
) {
    let compiled = compiler.compile(program, architecture);
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let binary = match compiled {
        Ok(binary) => binary,
        Err(error) => {
            println!("{error}");
            counts.broken += 1;
            return;
        }
    };
    let (major, minor) = architecture;
    for kernel in binary.resources() {
        counts.kernels += 1;
        counts.spill += usize::from(kernel.spill_bytes > 0);
        println!(
            "sm_{major}{minor}  {:>5} {:>7} {:>6}  {}, {program}",
            kernel.registers, kernel.shared_bytes, kernel.spill_bytes, kernel.kernel
        );
    }
}

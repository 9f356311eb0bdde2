use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use femtile::device::DeviceError;
use femtile::device::cuda::{self, gpus};
use femtile::solve::DeviceChoice;
use femtile_case::{Case, Override, gpu_programs};
use femtile_terminal::print;

use crate::arguments::{CacheCommand, WarmOptions};
use crate::failure::Failure;

/// `femtile cache`.
pub fn run(command: &CacheCommand) -> Result<ExitCode, Failure> {
    let text = match command {
        CacheCommand::Warm(options) => warm(options)?,
        CacheCommand::Clear => clear()?,
        CacheCommand::Compile => {
            cuda::serve_compiler(io::stdin().lock(), io::stdout().lock())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    Ok(print(&text)?)
}

/// Lets threads that compile kernels start this program for it.
pub fn compile_in_processes() {
    if let Ok(program) = std::env::current_exe() {
        cuda::set_compile_command(program, ["cache", "compile"].map(OsString::from).into());
    }
}

fn clear() -> Result<String, Failure> {
    let removed = cuda::clear_cache()?;
    Ok(match removed.folder {
        Some(folder) => format!("removed {} programs from {}\n", removed.n_entries, folder.display()),
        None => "there is no cache\n".into(),
    })
}

fn warm(options: &WarmOptions) -> Result<String, Failure> {
    let overrides = options.set.iter().map(|text| Override::parse("--set", text));
    let case = Case::load_with(&options.case, overrides.collect::<Result<Vec<_>, _>>()?)?;
    let (major, minor) = match options.sm {
        Some(number) => (number / 10, number % 10),
        None => capability(&case)?,
    };
    let programs = gpu_programs(&case)?;
    let begun = Instant::now();
    let warmed = cuda::warm_cache(&programs, (major, minor))?;
    let seconds = begun.elapsed().as_secs_f64();
    let note = match warmed.n_programs {
        0 => "the kernels of equations in time are compiled when they are needed\n",
        _ => "",
    };
    Ok(format!(
        "{} programs with {} kernels for sm_{major}{minor}, {} of them compiled in {seconds:.1} s, in {}\n{note}",
        warmed.n_programs,
        warmed.n_kernels,
        warmed.n_compiled,
        warmed.folder.display()
    ))
}

/// Returns the compute capability of the GPU of a case, the first one where it names none.
fn capability(case: &Case) -> Result<(u32, u32), Failure> {
    let ordinal = match case.file.solver.device.parse() {
        Ok(DeviceChoice::Cuda(ordinal)) => ordinal,
        _ => 0,
    };
    let gpus =
        gpus().map_err(|error| Failure::message(format!("{error}; or give `--sm`, such as `--sm 90`")))?;
    let found = gpus.get(ordinal).map(|gpu| gpu.compute_capability);
    let absent = || DeviceError::Absent {
        requested: format!("cuda:{ordinal}"),
        reason: format!("this machine has {} GPU(s)", gpus.len()),
    };
    Ok(found.ok_or_else(absent)?)
}

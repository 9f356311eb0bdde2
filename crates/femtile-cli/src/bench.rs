use std::process::ExitCode;

use crate::arguments::BenchOptions;
use crate::failure::Failure;
use crate::print;

/// `femtile bench`.
pub fn run(options: &BenchOptions) -> Result<ExitCode, Failure> {
    let _ = options;
    print("")
}

use std::path::Path;
use std::process::ExitCode;

use femtile_case::verify;

use crate::failure::Failure;
use crate::output::print;

/// `femtile verify`.
pub fn run(folder: &Path) -> Result<ExitCode, Failure> {
    let misfits = verify(folder)?;
    if misfits.is_empty() {
        return print(&format!(
            "{}: all files are those of the run that report.json tells of\n",
            folder.display()
        ));
    }
    let lines = misfits.iter().map(|misfit| format!("{}/{misfit}\n", folder.display()));
    print(&lines.collect::<String>())?;
    Ok(ExitCode::from(1))
}

use std::path::Path;
use std::process::ExitCode;

use femtile_case::verify;

use crate::failure::Failure;
use femtile_terminal::print;

/// `femtile verify`.
pub fn run(folder: &Path) -> Result<ExitCode, Failure> {
    let misfits = verify(folder)?;
    if misfits.is_empty() {
        let folder = folder.display();
        let text = format!("{folder}: all files are those of the run that report.json tells of\n");
        return Ok(print(&text)?);
    }
    let lines = misfits.iter().map(|misfit| format!("{}/{misfit}\n", folder.display()));
    print(&lines.collect::<String>())?;
    Ok(ExitCode::from(1))
}

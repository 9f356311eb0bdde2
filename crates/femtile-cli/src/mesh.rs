use std::path::Path;
use std::process::ExitCode;

use femtile::SolverConfig;
use femtile::mesh::check::{CheckConfig, CheckReport, Finding, check};
use femtile::mesh::{Mesh, io};
use femtile_cardiac::RuleBasedFibres;
use femtile_case::file::Generator;
use femtile_case::{generate, refined};

use crate::arguments::{FibresOptions, MeshCommand};
use crate::failure::Failure;
use crate::mesh_info::{Info, division, notes};
use femtile_terminal::{print, print_data, to_json};

/// `femtile mesh …`.
pub fn run(command: &MeshCommand) -> Result<ExitCode, Failure> {
    match command {
        MeshCommand::Info { file, json } => {
            let info = Info::new(file, &io::read(file)?);
            Ok(if *json { print_data(&format!("{}\n", to_json(&info)?)) } else { print(&info.text()) }?)
        }
        MeshCommand::Check { file, merge, accept, output } => {
            let mut mesh = io::read(file)?;
            let config = CheckConfig {
                merge_duplicates: *merge,
                accept: accept.iter().filter_map(|name| finding(name)).collect(),
                ..CheckConfig::default()
            };
            let report = check(&mut mesh, &config)?;
            if let Some(output) = output {
                io::write(output, &mesh)?;
            }
            Ok(print(&findings(&report))?)
        }
        MeshCommand::Convert { file, output, scale, compress, binary } => {
            let mut mesh = io::read(file)?;
            mesh.scale(*scale)?;
            match (compress, binary) {
                (true, _) => io::write_compressed(output, &mesh)?,
                (_, true) => io::write_binary(output, &mesh)?,
                _ => return write(output, &mesh),
            }
            written(output, &mesh)
        }
        MeshCommand::Fibres(options) => fibres(options),
        MeshCommand::Refine { file, output, times } => write(output, &refined(io::read(file)?, *times)?),
        MeshCommand::Generate { generator, output } => write(output, &generate(&parse(generator)?)?),
    }
}

/// Writes a mesh with directions of fibres.
fn fibres(options: &FibresOptions) -> Result<ExitCode, Failure> {
    let mut mesh = io::read(&options.file)?;
    let accept = options.accept.iter().filter_map(|name| finding(name)).collect();
    let report = check(&mut mesh, &CheckConfig { accept, ..CheckConfig::default() })?;
    let [endo, epi] = options.angles;
    let [sheet_endo, sheet_epi] = options.sheet_angles;
    let mut rule = RuleBasedFibres::new(
        options.endocardium.as_str(),
        options.epicardium.as_str(),
        options.base.as_str(),
    )
    .helix_angles(endo, epi)
    .sheet_angles(sheet_endo, sheet_epi);
    if let Some(part) = &options.right_endocardium {
        rule = rule.right_endocardium(part.as_str());
    }
    if let Some(part) = &options.apex {
        rule = rule.apex(part.as_str());
    }
    let found = rule.compute(&mesh, &SolverConfig::default())?;
    let warnings = [report.warnings, found.warnings.clone()].concat();
    found.insert_into(&mut mesh);
    io::write(&options.output, &mesh)?;
    let text = format!("{}: {} nodes, {} cells\n", options.output.display(), mesh.n_nodes(), mesh.n_cells());
    Ok(print(&(text + &notes(&warnings)))?)
}

/// Returns the finding of a name that the arguments accept.
fn finding(name: &str) -> Option<Finding> {
    Finding::ALL.into_iter().find(|finding| finding.name() == name)
}

fn parse(text: &str) -> Result<Generator, Failure> {
    let advised = |message| {
        Failure::message(format!("generator: {message}; for example: kind = \"box\", cells = [8, 8, 8]"))
    };
    Generator::parse(text).map_err(advised)
}

fn write(path: &Path, mesh: &Mesh) -> Result<ExitCode, Failure> {
    io::write(path, mesh)?;
    written(path, mesh)
}

/// Prints the size of the written mesh and the notes of its reader.
fn written(path: &Path, mesh: &Mesh) -> Result<ExitCode, Failure> {
    let text = format!("{}: {} nodes, {} cells\n", path.display(), mesh.n_nodes(), mesh.n_cells());
    Ok(print(&(text + &division(mesh) + &notes(&mesh.notes)))?)
}

fn findings(report: &CheckReport) -> String {
    let mut text = format!(
        "nodes     {} ({} orphans dropped, {} merged)\ncells     {} ({} turned over)\nvolume    {}\nparts     {}\n\
         boundary  {} facets in {} parts\nquality   {:.3e} at worst, cell {} near {:?}\n",
        report.n_nodes,
        report.n_orphans,
        report.n_merged,
        report.n_cells,
        report.n_flipped,
        report.volume,
        report.n_components,
        report.boundary.len(),
        report.n_boundary_components,
        report.worst_quality,
        report.worst_cell,
        report.worst_at
    );
    if let Some(division) = &report.division {
        text += &format!("file      {division}\n");
    }
    for warning in &report.warnings {
        text += &format!("warning   {warning}\n");
    }
    text
}

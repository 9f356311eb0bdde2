use std::path::Path;
use std::process::ExitCode;

use femtile::mesh::check::{CheckConfig, CheckReport, Finding, check};
use femtile::mesh::{Mesh, io};
use femtile_case::file::Generator;
use femtile_case::{generate, refined};

use crate::arguments::MeshCommand;
use crate::failure::Failure;
use crate::output::print;

/// `femtile mesh …`.
pub fn run(command: &MeshCommand) -> Result<ExitCode, Failure> {
    match command {
        MeshCommand::Info { file } => print(&info(&io::read(file)?)),
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
            print(&findings(&report))
        }
        MeshCommand::Convert { file, output } => write(output, &io::read(file)?),
        MeshCommand::Refine { file, output, times } => write(output, &refined(io::read(file)?, *times)?),
        MeshCommand::Generate { generator, output } => write(output, &generate(&parse(generator)?)?),
    }
}

/// The finding of a name that the arguments allow.
fn finding(name: &str) -> Option<Finding> {
    Finding::ALL.into_iter().find(|finding| finding.name() == name)
}

fn parse(text: &str) -> Result<Generator, Failure> {
    #[derive(serde::Deserialize)]
    struct Wrapper {
        generate: Generator,
    }
    let text = text.trim();
    let inner = text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(text);
    let parsed: Result<Wrapper, _> = toml::from_str(&format!("generate = {{ {inner} }}"));
    parsed.map(|wrapper| wrapper.generate).map_err(|error| {
        Failure::message(format!(
            "generator: {}; for example: kind = \"box\", cells = [8, 8, 8]",
            femtile_case::in_words(error.message())
        ))
    })
}

fn write(path: &Path, mesh: &Mesh) -> Result<ExitCode, Failure> {
    io::write(path, mesh)?;
    print(&format!("{}: {} nodes, {} cells\n", path.display(), mesh.n_nodes(), mesh.n_cells()))
}

fn info(mesh: &Mesh) -> String {
    let mut lower = [f64::INFINITY; 3];
    let mut upper = [f64::NEG_INFINITY; 3];
    for point in &mesh.points {
        for axis in 0..3 {
            lower[axis] = lower[axis].min(point[axis]);
            upper[axis] = upper[axis].max(point[axis]);
        }
    }
    let mut text = format!(
        "nodes     {}\ncells     {} of kind {}\nfrom      {lower:?}\nto        {upper:?}\n",
        mesh.n_nodes(),
        mesh.n_cells(),
        mesh.kind
    );
    if let Some(curved) = &mesh.curved {
        text += &format!("shapes    of order {}, {} points\n", curved.order, curved.points.len());
    }
    text += &tags("regions", &mesh.cell_tags, mesh, mesh.dimension());
    text += &tags("boundary", &mesh.facets.tags, mesh, mesh.dimension() - 1);
    for (what, fields) in [("cell", &mesh.cell_fields), ("node", &mesh.node_fields)] {
        for (name, field) in fields {
            text += &format!("field     {name}, {} numbers a {what}\n", field.n_components);
        }
    }
    text
}

fn tags(label: &str, tags: &[i32], mesh: &Mesh, dimension: usize) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for tag in tags {
        *counts.entry(*tag).or_insert(0usize) += 1;
    }
    let line = |(tag, n): (&i32, &usize)| {
        let name = mesh.tag_names.get(&(dimension, *tag)).map(|name| format!(" {name}")).unwrap_or_default();
        format!("{label:<9} {tag}{name}: {n}\n")
    };
    counts.iter().map(line).collect()
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
        report.n_boundary_facets,
        report.n_boundary_components,
        report.worst_quality,
        report.worst_cell,
        report.worst_at
    );
    for warning in &report.warnings {
        text += &format!("warning   {warning}\n");
    }
    text
}

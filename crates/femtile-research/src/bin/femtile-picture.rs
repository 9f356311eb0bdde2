//! `femtile-picture`: draws a field of meshes as a PNG file; the pictures of the documents are made by it.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use femtile::mesh::io::{read, write_atomically};
use femtile_bench::{BenchError, Failure};
use femtile_report::{Body, Panel, PictureConfig, ReportError, picture};

/// Draw a field of plane meshes, or of the surface of others, in panels side by side.
#[derive(Debug, Parser)]
#[command(name = "femtile-picture", version)]
struct Options {
    /// The picture.
    #[arg(short, long, value_name = "FILE.png")]
    output: PathBuf,
    /// The field of the nodes.
    #[arg(long, default_value = "V")]
    field: String,
    /// The values at both ends of the scale of colours.
    #[arg(long, num_args = 2, default_values_t = [0.0, 1.0], allow_negative_numbers = true)]
    range: Vec<f64>,
    /// The unit above the scale.
    #[arg(long, default_value = "V")]
    unit: String,
    /// The direction in which the eye looks.
    #[arg(long, num_args = 3, default_values_t = [0.0, 0.0, -1.0], allow_negative_numbers = true)]
    towards: Vec<f64>,
    /// Side of a panel, in pixels.
    #[arg(long, default_value_t = 230, value_parser = clap::value_parser!(u32).range(16..=4096))]
    panel: u32,
    /// Panels: a caption and a mesh file with the field, such as `t = 5:frames/u_0010.vtu`.
    #[arg(required = true, value_name = "CAPTION:FILE")]
    panels: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    Failure::exit_code(|| run(&options))
}

fn run(options: &Options) -> Result<ExitCode, Failure> {
    let mut panels = Vec::new();
    for text in &options.panels {
        let Some((caption, file)) = text.split_once(':') else {
            return Err(Failure::Argument(format!(
                "`{text}` is no CAPTION:FILE, such as \"t = 5:u_0010.vtu\""
            )));
        };
        panels.push(read_panel(caption, file, &options.field)?);
    }
    let config = PictureConfig {
        label: options.unit.clone(),
        range: Some([options.range[0], options.range[1]]),
        towards: [options.towards[0], options.towards[1], options.towards[2]],
        panel: options.panel as usize,
        axes: false,
        ..PictureConfig::of_dimension(2)
    };
    let png = picture(&panels, &config).map_err(refused)?;
    write_atomically(&options.output, |out| out.write_all(&png))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a mesh with its field.
fn read_panel(caption: &str, file: &str, field: &str) -> Result<Panel, Failure> {
    let mesh = read(file.as_ref())?;
    let Some(of_field) = mesh.node_fields.get(field).filter(|of| of.n_components == 1) else {
        let names: Vec<_> = mesh.node_fields.keys().map(String::as_str).collect();
        return Err(Failure::Argument(format!(
            "{file} has no `{field}` with one number a node; it has: {}",
            names.join(", ")
        )));
    };
    let surface = Body::of_mesh(&mesh).and_then(|body| body.surface(&of_field.values)).map_err(refused)?;
    Ok(Panel { caption: caption.into(), surface })
}

fn refused(error: ReportError) -> Failure {
    BenchError::Setting { field: "picture", message: error.to_string() }.into()
}

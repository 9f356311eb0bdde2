//! Checkpoints from which a case is restarted.

use std::fs::File;
use std::io::BufReader;

use femtile_mesh::{Curved, Mesh};
use femtile_time::implicit::CheckpointError;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::series::checkpoint_path;
use crate::{Case, CaseError};

/// Returns hashes of what a checkpoint depends on: the version, the mesh with its tags and fields, the problem and the method.
pub(crate) fn fingerprint(mesh: &Mesh, problem: &impl Serialize, method: &impl Serialize) -> [u8; 32] {
    let parts = [
        hash(|sum| sum.update(env!("CARGO_PKG_VERSION"))),
        hash(|sum| add_mesh(sum, mesh)),
        hash(|sum| sum.update(serde_json::to_vec(problem).unwrap_or_default())),
        hash(|sum| sum.update(serde_json::to_vec(method).unwrap_or_default())),
    ];
    std::array::from_fn(|i| parts[i / 8][i % 8])
}

/// Returns the first bytes of a hash.
fn hash(add: impl FnOnce(&mut Sha256)) -> [u8; 8] {
    let mut sum = Sha256::new();
    add(&mut sum);
    let whole = sum.finalize();
    std::array::from_fn(|i| whole[i])
}

/// Adds all of a mesh that a problem can depend on; lengths keep arrays apart.
fn add_mesh(sum: &mut Sha256, mesh: &Mesh) {
    let Mesh { points, kind, cells, curved, cell_tags, facets, tag_names, cell_fields, node_fields, .. } =
        mesh;
    sum.update(kind.to_string());
    add_points(sum, points);
    add_numbers(sum, cells, |node| node.to_le_bytes());
    if let Some(Curved { order, points, cells }) = curved {
        sum.update((*order as u64).to_le_bytes());
        add_points(sum, points);
        add_numbers(sum, cells, |point| point.to_le_bytes());
    }
    add_numbers(sum, cell_tags, |tag| tag.to_le_bytes());
    add_numbers(sum, &facets.nodes, |node| node.to_le_bytes());
    add_numbers(sum, &facets.tags, |tag| tag.to_le_bytes());
    for ((dimension, tag), name) in tag_names {
        sum.update((*dimension as u64).to_le_bytes());
        sum.update(tag.to_le_bytes());
        add_name(sum, name);
    }
    for (name, field) in cell_fields.iter().chain(node_fields) {
        add_name(sum, name);
        sum.update((field.n_components as u64).to_le_bytes());
        add_numbers(sum, &field.values, |value| value.to_le_bytes());
    }
}

fn add_points(sum: &mut Sha256, points: &[[f64; 3]]) {
    add_numbers(sum, points.as_flattened(), |x| x.to_le_bytes());
}

fn add_name(sum: &mut Sha256, name: &str) {
    add_numbers(sum, name.as_bytes(), |byte| [byte]);
}

fn add_numbers<T: Copy, const N: usize>(sum: &mut Sha256, numbers: &[T], bytes: impl Fn(T) -> [u8; N]) {
    sum.update((numbers.len() as u64).to_le_bytes());
    for piece in numbers.chunks(4096) {
        let piece: Vec<[u8; N]> = piece.iter().map(|&number| bytes(number)).collect();
        sum.update(piece.as_flattened());
    }
}

/// Reads the checkpoint of a restarted case. `read` returns it with its fingerprint; `others` names problem
/// and method in the error if they differ.
///
/// # Errors
/// [`CaseError::Input`] at `time.restart` if there is none, or one of another version, mesh, problem or
/// method.
pub(crate) fn checkpoint<C>(
    case: &Case,
    expected: [u8; 32],
    [problem, method]: [&'static str; 2],
    read: impl FnOnce(&mut BufReader<File>) -> Result<(C, [u8; 32]), CheckpointError>,
) -> Result<Option<C>, CaseError> {
    if !case.file.time.as_ref().is_some_and(|time| time.restart) {
        return Ok(None);
    }
    let path = checkpoint_path(case);
    let wrong = |message: String| {
        case.wrong(&["time".into(), "restart".into()], format!("{}: {message}", path.display()))
    };
    let file =
        File::open(&path).map_err(|error| wrong(format!("{error}; run the case without `restart` first")))?;
    let (checkpoint, found) = read(&mut BufReader::new(file)).map_err(|error| wrong(error.to_string()))?;
    let parts = [
        "another version of femtile",
        "another mesh, or one with other tags, names or fields",
        problem,
        method,
    ];
    let mut pairs = found.chunks(8).zip(expected.chunks(8)).zip(parts);
    match pairs.find(|((found, expected), _)| found != expected) {
        None => Ok(Some(checkpoint)),
        Some((_, part)) => Err(wrong(CheckpointError::Other(part).to_string())),
    }
}

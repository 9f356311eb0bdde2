//! The meshes at hand: Regular, boxes for those that are not published, and samples.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use femtile::mesh::check::{CheckConfig, check};
use femtile::mesh::{CellKind, Mesh, io};

use super::once;
use super::solves::Measured;
use super::theirs::{MESHES, Theirs};
use crate::reproduce::Absent;
use femtile_bench::BenchError;
use femtile_bench::problems::{irregular_box, kuhn_box, regular};

/// Source of a mesh.
#[derive(Debug)]
enum Source {
    /// The Regular mesh after a number of refinements.
    Regular(usize),
    /// A bent box with a number of nodes a side, refined once.
    BentBox(usize),
    /// A box with a number of nodes a side.
    Box(usize),
    /// A sample, or neither published nor stood in for.
    Given,
}

/// A mesh and what has been measured with it.
#[derive(Debug)]
pub(super) struct Case {
    pub name: String,
    /// Published figures; none for samples.
    pub theirs: Option<&'static Theirs>,
    source: Source,
    mesh: OnceCell<Option<Mesh>>,
    pub(super) measured: OnceCell<Measured>,
}

/// The longest side of a mesh; the paper's boxes are as long.
const SIDE: f64 = 4.0;
/// Samples that are measured at a small size.
const FEW_SAMPLES: usize = 2;

impl Case {
    fn new(name: String, theirs: Option<&'static Theirs>, source: Source) -> Self {
        Self { name, theirs, source, mesh: OnceCell::new(), measured: OnceCell::new() }
    }

    fn of_sample(path: &Path) -> Option<Self> {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        let mesh = OnceCell::from(Some(read(path)?));
        Some(Self { mesh, ..Self::new(name, None, Source::Given) })
    }

    /// Returns the mesh; none if there is none.
    pub fn mesh(&self) -> Result<Option<&Mesh>, BenchError> {
        let made = once(&self.mesh, || {
            Ok(Some(match &self.source {
                Source::Regular(refinements) => regular::mesh(*refinements)?,
                Source::BentBox(coarse) => irregular_box::mesh(*coarse, 1)?,
                Source::Box(nodes) => kuhn_box::mesh(*nodes)?,
                Source::Given => return Ok(None),
            }))
        })?;
        Ok(made.as_ref())
    }
}

/// Returns a usable mesh of tetrahedra, scaled; none if the file has none.
fn read(path: &Path) -> Option<Mesh> {
    let mut mesh = io::read(path).ok().filter(|mesh| mesh.kind == CellKind::Tetrahedron)?;
    check(&mut mesh, &CheckConfig::default()).ok()?;
    let extent = |d: usize| {
        let along = mesh.points.iter().map(|point| point[d]);
        along.clone().fold(f64::MIN, f64::max) - along.fold(f64::MAX, f64::min)
    };
    let scale = SIDE / (0..3).map(extent).fold(f64::MIN_POSITIVE, f64::max);
    mesh.points.iter_mut().flatten().for_each(|x| *x *= scale);
    Some(mesh)
}

/// The paper's five, then samples by name, but for those that the check refuses.
pub(super) fn cases(is_small: bool) -> Vec<Case> {
    let of_paper = |theirs: &'static Theirs| {
        let (source, stands_in) = match (theirs.name, is_small) {
            ("Regular", false) => (Source::Regular(3), ""),
            ("Regular", true) => (Source::Regular(1), ""),
            ("Irregular", false) => (Source::BentBox(30), " (bent box)"),
            ("Irregular", true) => (Source::BentBox(8), " (bent box)"),
            ("Blobs", false) => (Source::Box(65), " (box)"),
            ("Blobs", true) => (Source::Box(17), " (box)"),
            _ => (Source::Given, " (not published)"),
        };
        Case::new(format!("{}{stands_in}", theirs.name), Some(theirs), source)
    };
    let mut cases: Vec<Case> = MESHES.iter().map(of_paper).collect();
    let most = if is_small { FEW_SAMPLES } else { usize::MAX };
    let readable = samples().into_iter().flatten().filter_map(|path| Case::of_sample(&path));
    cases.extend(readable.take(most));
    cases
}

/// Files of the sample folder, by name; none without such a folder.
fn samples() -> Option<Vec<PathBuf>> {
    let folder = Path::new(&std::env::var_os("FEMTILE_SAMPLES")?).join("meshes/tet");
    let entries = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let has_mesh = |path: &PathBuf| {
        path.extension()
            .is_some_and(|ending| ["node", "msh", "mesh", "vtk"].iter().any(|known| ending == *known))
    };
    let mut files: Vec<_> = entries.filter(has_mesh).collect();
    files.sort();
    Some(files)
}

/// Returns the message for missing samples.
pub(super) fn no_samples() -> Option<Absent> {
    samples().is_none().then(|| Absent {
        peer: "sample meshes",
        reason: "FEMTILE_SAMPLES names no folder with meshes/tet".into(),
        install: "put meshes of tetrahedra there, as Gmsh, TetGen, Medit or VTK files",
    })
}

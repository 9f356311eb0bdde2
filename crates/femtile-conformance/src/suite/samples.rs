//! Sample meshes and matrices; assembly on the former, held to plain assembly.

use std::path::{Path, PathBuf};

use femtile::device::{Cuda, Reference};
use femtile::fem::{AssembledSystem, Assembly, FemError};
use femtile::mesh::Mesh;
use femtile_research::patch_assembly::PatchAssembly;

use super::assembly::{AssemblyDevice, OnHost, close, to_host};
use super::forms::{Problem, formula};
use super::patch_assembly;

/// A sample mesh with coefficients that vary.
#[derive(Debug)]
pub struct Sample {
    /// The name of its file.
    pub name: String,
    /// A problem on it without conditions.
    pub problem: Problem,
}

impl Sample {
    /// The mesh of a file.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn read(file: &Path) -> Self {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mesh = femtile::mesh::io::read(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let [sigma, source] = ["2 + sin(x)", "cos(y) + z"].map(formula);
        Self { name, problem: Problem { sigma, lambda: 0.5.into(), source, ..Problem::new(mesh) } }
    }

    /// Holds what an assembly fills in, and fills in again, to plain assembly; gives the bits of values and
    /// right side, or none where both refuse the mesh with the same words.
    ///
    /// # Panics
    /// When they differ.
    pub fn refill_agrees<D: AssemblyDevice>(&self, device: &D) -> Option<Vec<u64>> {
        let (name, form) = (&self.name, self.problem.form());
        let filled = || -> Result<_, FemError> {
            let mut assembly = Assembly::<f64, D>::new(device, &self.problem.mesh)?;
            let mut system = assembly.system(&form)?;
            let first = to_host(&system);
            assembly.refill(&mut system, &form)?;
            Ok((first, to_host(&system)))
        };
        let expected: AssembledSystem<f64, Reference> = match self.problem.assemble(&Reference) {
            Ok(system) => system,
            Err(refused) => {
                let also = filled().err().map(|error| error.to_string());
                assert_eq!(also, Some(refused.to_string()), "{name}");
                return None;
            }
        };
        let expected = to_host(&expected);
        let (first, again) = filled().unwrap_or_else(|error| panic!("{name}: {error}"));
        agree(&expected, &first, &slack_of_rows(&self.problem.mesh), name);
        let bits = |values: &[f64], rhs: &[f64]| values.iter().chain(rhs).map(|v| v.to_bits()).collect();
        let (first, again): (Vec<u64>, _) =
            (bits(&first.values, &first.rhs), bits(&again.values, &again.rhs));
        assert!(first == again, "{name}: filled in again it has other bits");
        Some(first)
    }

    /// Holds assembly by patches to the upper half of plain assembly; both may refuse the mesh with the same
    /// words.
    ///
    /// # Panics
    /// When they differ.
    pub fn patches_agree(&self, device: &Cuda) {
        let name = &self.name;
        let refused = self.problem.assemble::<f64, _>(&Reference).err().map(|error| error.to_string());
        let assembled = PatchAssembly::<f64>::new(device, &self.problem.mesh).and_then(|mut assembly| {
            assembly.assemble(&self.problem.form())?;
            Ok(assembly)
        });
        match assembled {
            Err(error) => assert_eq!(Some(error.to_string()), refused, "{name}"),
            Ok(assembly) => {
                assert_eq!(refused, None, "{name}");
                let expected = patch_assembly::upper_of_reference(&self.problem, assembly.order());
                let slack = slack_of_rows(&self.problem.mesh);
                let slack: Vec<f64> = assembly.order().iter().map(|&node| slack[node as usize]).collect();
                agree(&expected, &patch_assembly::to_host(&assembly), &slack, name);
            }
        }
    }
}

/// Bounds the effect of rounding in each row, because volumes of flat cells are differences of much larger
/// numbers.
///
/// With the longest edge $h$ an entry of a cell is at most about $h^4 / 48|T|$, and $|T|$ is known to
/// $\epsilon h^3 / 6$.
fn slack_of_rows(mesh: &Mesh) -> Vec<f64> {
    let mut slack = vec![0.0; mesh.n_nodes()];
    for cell in 0..mesh.n_cells() {
        let nodes = mesh.cell(cell);
        let point = |node: u32| mesh.points[node as usize];
        let squared = |p: [f64; 3], q: [f64; 3]| (0..3).map(|k| (p[k] - q[k]).powi(2)).sum::<f64>();
        let edges = nodes.iter().flat_map(|&a| nodes.iter().map(move |&b| (a, b)));
        let h = edges.map(|(a, b)| squared(point(a), point(b))).fold(0.0, f64::max).sqrt();
        let measure = mesh.signed_measure(cell).abs();
        let change = f64::EPSILON * (h.powi(3) / (6.0 * measure)) * (h.powi(4) / (48.0 * measure));
        // The conductivity is three at most.
        nodes.iter().for_each(|&node| slack[node as usize] += 3.0 * change);
    }
    slack
}

/// Holds a matrix to another one to 1e-13 of its largest entry and what rounding may change in a row.
fn agree(expected: &OnHost, found: &OnHost, slack: &[f64], name: &str) {
    assert_eq!(expected.offsets, found.offsets, "{name}");
    assert_eq!(expected.columns, found.columns, "{name}");
    close(&expected.rhs, &found.rhs, 1e-13, &format!("{name}: right side"));
    let largest = expected.values.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    for (row, ends) in expected.offsets.windows(2).enumerate() {
        for i in ends[0] as usize..ends[1] as usize {
            let (e, f) = (expected.values[i], found.values[i]);
            let difference = (e - f).abs();
            assert!(difference <= 1e-13 * largest + slack[row], "{name}, row {row}: {e} and {f}");
        }
    }
}

/// The folder of samples, whether or not there is one.
fn folder() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    std::env::var_os("FEMTILE_SAMPLES").map_or_else(beside, PathBuf::from)
}

/// The sample matrices that are positive definite, with rows of a node each where the problem has several; none where
/// there are no samples, with a message that `test` is skipped.
pub fn definite_matrices(test: &str) -> Vec<(PathBuf, usize)> {
    const DEFINITE: [(&str, usize); 9] = [
        ("airfoil.mtx", 1),
        ("ani4.mtx", 1),
        ("bar.mtx", 1),
        ("bcsstk13.mtx", 1),
        ("beam_hex_dof459_np2.mtx", 3),
        ("beam_tet_dof2475_np4.mtx", 3),
        ("knot.mtx", 1),
        ("local_disc_galerkin_diffusion.mtx", 1),
        ("unit_cube.mtx", 1),
    ];
    let folder = folder().join("matrices");
    if !folder.is_dir() {
        eprintln!("SKIPPED: {test}: no samples (set FEMTILE_SAMPLES)");
        return Vec::new();
    }
    DEFINITE.map(|(name, block_size)| (folder.join(name), block_size)).to_vec()
}

/// The sample meshes of tetrahedra, sorted by name; none where there are no samples, with a message that
/// `test` is skipped.
pub fn tetrahedra(test: &str) -> Vec<PathBuf> {
    meshes("meshes/tet", test)
}

/// All sample meshes, sorted by name; none where there are no samples, with a message that `test` is skipped.
pub fn all_meshes(test: &str) -> Vec<PathBuf> {
    let mut files = meshes("meshes/tet", test);
    if !files.is_empty() {
        files.extend(meshes("meshes/hex", test));
    }
    files
}

fn meshes(kind: &str, test: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder().join(kind)) else {
        eprintln!("SKIPPED: {test}: no samples (set FEMTILE_SAMPLES)");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e != "node" && e != "face"));
    files.sort();
    files
}

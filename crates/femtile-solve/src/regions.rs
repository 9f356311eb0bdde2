//! Regions of cells by comparisons.

use std::collections::BTreeSet;

use femtile_comm::Comm;
use femtile_device::parallel;
use femtile_expression::Condition as Comparison;
use femtile_mesh::Mesh;
use femtile_mesh::partition::DistributedMesh;

use crate::overlap::{Overlap, overlaps, overlaps_of_ranks};
use crate::ranks::{MeshOnRanks, OnMesh};
use crate::setting::Key;
use crate::{SolveError, below};

/// Gives cells of a mesh new tags, so that [`crate::Value::by_tag`] takes the names: each region is a name and a comparison
/// such as `x^2 + y^2 < 0.25`, and has the cells in whose middle, the mean of their corners, it holds.
///
/// A cell of several regions has the tag of the last; the overlaps are returned. A cell of none keeps its tag.
///
/// ```
/// use femtile_mesh::generate::{SquareConfig, square};
/// use femtile_solve::{Poisson, SolverConfig, Value, tag_regions};
///
/// let mut mesh = square(&SquareConfig { cells: [16, 16], ..SquareConfig::default() })?;
/// tag_regions(&mut mesh, &[("core", "hypot(x - 0.5, y - 0.5) < 0.3")])?;
/// let problem = Poisson::new(&mesh)
///     .sigma(Value::by_tag([("core", 100.0)]).otherwise(1.0))
///     .source(Value::by_tag([("core", 1.0)]).otherwise(0.0))
///     .dirichlet("all", 0.0)?;
/// assert!(problem.solve(&SolverConfig::default())?.has_converged());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`SolveError::Setting`] if a region has no cell, with the extents of the mesh, or a name is taken or is a
/// number.
pub fn tag_regions<N: AsRef<str>, C: AsRef<str>>(
    mesh: &mut Mesh,
    regions: &[(N, C)],
) -> Result<Vec<Overlap>, SolveError> {
    let holds = cells_of(OnMesh::whole(mesh), regions)?;
    for (i, ((name, _), cells)) in regions.iter().zip(&holds).enumerate() {
        check_name(mesh, name.as_ref(), &place(i, "name"))?;
        mesh.tag_cells(name.as_ref(), cells)?;
    }
    Ok(overlaps(&holds, mesh.n_cells(), |_| false))
}

/// As [`tag_regions`], on a distributed mesh. Collective.
///
/// # Errors
/// As [`tag_regions`], if a region has no cell on any rank; another rank failed.
pub fn tag_regions_of_ranks<N: AsRef<str>, C: AsRef<str>>(
    mesh: &mut DistributedMesh,
    comm: &Comm,
    regions: &[(N, C)],
) -> Result<Vec<Overlap>, SolveError> {
    let divided = MeshOnRanks { mesh, comm: comm.clone() };
    let part = &divided.mesh.part.mesh;
    let holds = cells_of(OnMesh { mesh: part, divided: Some(&divided) }, regions)?;
    let of = (&holds[..], part.n_cells());
    let overlaps = overlaps_of_ranks(comm, of, |cell| divided.mesh.owns_cell(cell), |_| false)?;
    for (i, ((name, _), cells)) in regions.iter().zip(&holds).enumerate() {
        check_name(&mesh.part.mesh, name.as_ref(), &place(i, "name"))?;
        mesh.tag_cells(name.as_ref(), cells)?;
    }
    // Ranks without cells outside all regions know of those of others by a name.
    let own = &mut mesh.part.mesh;
    let [has_rest] = comm.any([!regions.is_empty() && own.cell_tags.contains(&0)])?;
    if has_rest {
        own.tag_names.entry((own.kind.dimension(), 0)).or_insert_with(|| "0".into());
    }
    if !regions.is_empty() {
        drop_names_of_no_cell(own, comm)?;
    }
    Ok(overlaps)
}

/// Drops the names of tags of cells to which regions have left no cell on any rank. Collective.
fn drop_names_of_no_cell(own: &mut Mesh, comm: &Comm) -> Result<(), SolveError> {
    let dimension = own.dimension();
    let names: Vec<_> = own.tag_names.keys().copied().filter(|(d, _)| *d == dimension).collect();
    let held: BTreeSet<i32> = own.cell_tags.chunk_by(|a, b| a == b).map(|alike| alike[0]).collect();
    let is_held = |(_, tag): &(usize, i32)| f64::from(u8::from(held.contains(tag)));
    let mut n_ranks: Vec<f64> = names.iter().map(is_held).collect();
    comm.sum_values(&mut n_ranks)?;
    let is_empty = |name: &(usize, i32)| names.iter().zip(&n_ranks).any(|(of, &n)| of == name && n == 0.0);
    own.tag_names.retain(|name, _| !is_empty(name));
    Ok(())
}

fn place(i: usize, key: &str) -> Vec<Key> {
    below(&["region".into(), i.into()], key)
}

/// The cells of each region.
fn cells_of<N: AsRef<str>, C: AsRef<str>>(
    on: OnMesh<'_>,
    regions: &[(N, C)],
) -> Result<Vec<Vec<u32>>, SolveError> {
    let of = |(i, (_, comparison)): (usize, &(N, C))| {
        on.found(cells_where(on, comparison.as_ref(), &place(i, "where")))
    };
    regions.iter().enumerate().map(of).collect()
}

/// Refuses a name that cells of a mesh have, or that is none.
fn check_name(mesh: &Mesh, name: &str, path: &[Key]) -> Result<(), SolveError> {
    if name.is_empty() || name.parse::<i64>().is_ok() {
        let message = "a region needs a name; numbers stand for the tags of the mesh";
        return Err(SolveError::setting(path, message));
    }
    let known = mesh.tag_names.iter().find(|((d, _), known)| *d == mesh.dimension() && *known == name);
    if known.is_some() {
        let message = format!("cells have a tag `{name}` already: choose another name");
        return Err(SolveError::setting(path, message));
    }
    Ok(())
}

/// Returns the cells at whose centre a comparison holds, ascending; `path` is its setting.
fn cells_where(on: OnMesh<'_>, text: &str, path: &[Key]) -> Result<Vec<u32>, SolveError> {
    let mesh = on.mesh;
    let comparison = Comparison::parse(text).map_err(|error| SolveError::Setting {
        path: path.to_vec(),
        within: Some(error.span.clone()),
        message: format!("`{text}` is no comparison such as \"x^2 + y^2 < 0.25\" ({error})"),
    })?;
    let cells = parallel::filter(mesh.n_cells(), |cell| comparison.holds(mesh.middle(cell)));
    if cells.is_empty() {
        let message = format!(
            "this holds in the middle of no cell; the mesh reaches {}: compare the unit of length (mm against m?) and the \
             width of cells",
            on.extents()
        );
        return Err(SolveError::setting(path, message));
    }
    Ok(cells)
}

//! Parts of the boundary, as conditions name them.

use std::collections::BTreeSet;

use femtile_expression::Condition as Comparison;
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use rayon::prelude::*;

use crate::SolveError;
use crate::ranks::OnMesh;
use crate::setting::Key;

/// A part of the boundary of a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// `all`, the name or the number of a tag, or a comparison such as `x < 1e-9` that all nodes of a facet satisfy.
    Named(String),
    /// Positions in the list that [`femtile_mesh::check::boundary_facets`] gives, or in that of the part of a rank.
    Facets(Vec<u32>),
}

impl From<&str> for Region {
    fn from(name: &str) -> Self {
        Self::Named(name.into())
    }
}

impl From<&String> for Region {
    fn from(name: &String) -> Self {
        Self::Named(name.clone())
    }
}

impl From<Vec<u32>> for Region {
    fn from(facets: Vec<u32>) -> Self {
        Self::Facets(facets)
    }
}

impl Region {
    /// Returns whether it is the whole boundary by name.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self, Self::Named(name) if name == "all")
    }

    /// Returns the name, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Facets(_) => None,
        }
    }

    /// Returns the positions of its facets in `boundary`, sorted; `path` is the setting that names it. All ranks call it where
    /// none has the whole mesh.
    ///
    /// # Errors
    /// [`SolveError::Setting`] where it is no facet, with the tags or the extents of the mesh.
    pub(crate) fn facets(
        &self,
        on: OnMesh<'_>,
        boundary: &BoundaryFacets,
        path: &[Key],
    ) -> Result<Vec<u32>, SolveError> {
        match self {
            Self::Named(name) => on.found(facets_named(on, boundary, name, path)),
            // A rank may have none of those that all ranks list.
            Self::Facets(facets) if facets.is_empty() && on.divided.is_some() => Ok(Vec::new()),
            Self::Facets(facets) => listed(boundary, facets, path),
        }
    }
}

/// Checks a list of facets and sorts it.
fn listed(boundary: &BoundaryFacets, facets: &[u32], path: &[Key]) -> Result<Vec<u32>, SolveError> {
    let n = boundary.len();
    if let Some(&far) = facets.iter().find(|&&facet| facet as usize >= n) {
        return Err(SolveError::setting(path, format!("there is no facet {far}: the boundary has {n}")));
    }
    if facets.is_empty() {
        return Err(SolveError::setting(path, "the list of facets is empty: leave the condition out"));
    }
    let mut facets = facets.to_vec();
    facets.sort_unstable();
    facets.dedup();
    Ok(facets)
}

/// Returns positions in `boundary`: for `all`, else the name of a tag, else its number, else a comparison.
fn facets_named(
    on: OnMesh<'_>,
    boundary: &BoundaryFacets,
    selection: &str,
    path: &[Key],
) -> Result<Vec<u32>, SolveError> {
    let mesh = on.mesh;
    if selection == "all" {
        return Ok((0..boundary.len() as u32).collect());
    }
    let tags = tags_called(mesh, selection);
    if !tags.is_empty() {
        let facets = tagged(mesh, boundary, &tags);
        if facets.is_empty() {
            let message = format!("the tag `{selection}` is on no facet of the boundary; {}", known_tags(on));
            return Err(SolveError::setting(path, message));
        }
        return Ok(facets);
    }
    let comparison = Comparison::parse(selection).map_err(|error| {
        let message =
            format!("`{selection}` is neither a tag nor a comparison ({error}); {}", known_tags(on));
        let is_word = selection.chars().all(|c| c.is_alphanumeric() || "_- ".contains(c));
        if is_word {
            SolveError::setting(path, format!("there is no tag `{selection}`; {}", known_tags(on)))
        } else {
            SolveError::Setting { path: path.to_vec(), within: Some(error.span.clone()), message }
        }
    })?;
    let holds_at = |&node: &u32| comparison.holds(mesh.points[node as usize]);
    let all_hold = |facet: &u32| boundary.facet(*facet as usize).iter().all(holds_at);
    let facets: Vec<u32> = (0..boundary.len() as u32).into_par_iter().filter(all_hold).collect();
    if facets.is_empty() {
        let n_holds = mesh.points.par_iter().filter(|&&point| comparison.holds(point)).count();
        let mut message = holds_nowhere(on, n_holds);
        if path.first() == Some(&"boundary".into()) && n_holds > 0 {
            message += "; `dirichlet` takes `nodes = \"…\"` in place of `where` to hold at nodes alone";
        }
        return Err(SolveError::setting(path, message));
    }
    Ok(facets)
}

/// Returns the message about a comparison that holds on no facet and at `n_holds` nodes.
fn holds_nowhere(on: OnMesh<'_>, n_holds: usize) -> String {
    let nodes = match (n_holds, on.divided) {
        // The nodes of this rank alone are known.
        (_, Some(_)) => String::new(),
        (0, None) => " (on no node either)".into(),
        (n, None) => format!(" ({n} nodes satisfy it, but no facet with all of its nodes does)"),
    };
    format!(
        "this holds on no facet of the boundary{nodes}; the mesh reaches {}: compare the unit of length (mm against m?) \
         and leave room for rounding, as in \"x < 1e-9\"",
        on.extents()
    )
}

fn tags_called(mesh: &Mesh, selection: &str) -> BTreeSet<i32> {
    let dimension = mesh.dimension() - 1;
    let named = mesh.tag_names.iter().filter(|((d, _), name)| *d == dimension && *name == selection);
    let mut tags: BTreeSet<i32> = named.map(|((_, tag), _)| *tag).collect();
    if tags.is_empty()
        && let Ok(tag) = selection.parse()
        && mesh.facets.tags.contains(&tag)
    {
        tags.insert(tag);
    }
    tags
}

fn tagged(mesh: &Mesh, boundary: &BoundaryFacets, tags: &BTreeSet<i32>) -> Vec<u32> {
    let sorted = |nodes: &[u32]| {
        let mut key = [u32::MAX; 4];
        key[..nodes.len()].copy_from_slice(nodes);
        key.sort_unstable();
        key
    };
    let is_tagged = |&facet: &usize| tags.contains(&mesh.facets.tags[facet]);
    let tagged = (0..mesh.facets.tags.len()).into_par_iter().filter(is_tagged);
    let mut wanted: Vec<[u32; 4]> = tagged.map(|facet| sorted(mesh.facet(facet))).collect();
    wanted.par_sort_unstable();
    let is_wanted = |&facet: &u32| wanted.binary_search(&sorted(boundary.facet(facet as usize))).is_ok();
    (0..boundary.len() as u32).into_par_iter().filter(is_wanted).collect()
}

fn known_tags(on: OnMesh<'_>) -> String {
    let mesh = on.mesh;
    let dimension = mesh.dimension() - 1;
    let mut tags: BTreeSet<i32> = mesh.facets.tags.iter().copied().collect();
    if on.divided.is_some() {
        // Other ranks have facets of these.
        let names = mesh.tag_names.keys().filter(|(d, _)| *d == dimension);
        tags.extend(names.map(|(_, tag)| *tag));
    }
    if tags.is_empty() {
        return "the mesh has no tagged boundary: use \"all\" or a comparison such as \"x < 1e-9\"".into();
    }
    let name = |tag: &i32| match mesh.tag_names.get(&(dimension, *tag)) {
        Some(name) if *name != tag.to_string() => format!("{name} ({tag})"),
        _ => tag.to_string(),
    };
    format!("tags of the boundary: {}", tags.iter().map(name).collect::<Vec<_>>().join(", "))
}

//! Parts of the boundary, as conditions name them.

use std::collections::BTreeSet;

use femtile_device::parallel;
use femtile_expression::Condition as Comparison;
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

use crate::SolveError;
use crate::ranks::OnMesh;
use crate::setting::{Key, below};

/// A part of the boundary of a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// `all`, the name or the number of a tag, or a comparison such as `x < 1e-9` that all nodes of a facet satisfy.
    Named(String),
    /// Positions in the list that [`femtile_mesh::check::boundary_facets`] gives, or in that of the part of a rank.
    Facets(Vec<u32>),
    /// Those of a region at cells with a tag, named or numbered. Of facets inside the mesh they are the sides of these cells, out of
    /// which the normal points; see [`crate::FormProblem`].
    Side {
        /// The region.
        of: Box<Region>,
        /// The tag of the cells.
        cells: String,
    },
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

/// The facets with the tag of this number.
impl From<i32> for Region {
    fn from(tag: i32) -> Self {
        Self::Named(tag.to_string())
    }
}

impl From<Vec<u32>> for Region {
    fn from(facets: Vec<u32>) -> Self {
        Self::Facets(facets)
    }
}

/// The facets of a region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selected {
    /// Positions in the list of boundary facets, sorted.
    pub facets: Vec<u32>,
    /// Number of facets of its tag that lie inside the mesh, to which neither conditions nor fluxes apply; on
    /// all ranks together.
    pub n_inside: usize,
}

impl Selected {
    /// Returns the warning that part of a tag is left out; none if all of it lies on the boundary.
    pub fn warning(&self, name: impl Fn() -> String) -> Option<String> {
        (self.n_inside > 0).then(|| warning_of_inner_facets(&name(), self.n_inside))
    }
}

/// Facets of a condition's tag that lie inside the mesh, to which the condition does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InnerFacets {
    /// The number of the condition.
    pub condition: usize,
    /// Number of the facets.
    pub n: usize,
}

impl InnerFacets {
    /// Returns the warning, with the name of the condition.
    pub fn warning(&self, name: impl Fn(usize) -> String) -> String {
        warning_of_inner_facets(&name(self.condition), self.n)
    }
}

fn warning_of_inner_facets(name: &str, n: usize) -> String {
    let (facets, lie) = if n == 1 { ("facet", "lies") } else { ("facets", "lie") };
    format!(
        "{name} leaves out {n} {facets} of its tag that {lie} inside the mesh: facets of the boundary alone are supported"
    )
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
            Self::Facets(_) | Self::Side { .. } => None,
        }
    }

    /// Returns the facets of this region at cells with a tag.
    #[must_use]
    pub fn side(self, cells: &str) -> Self {
        Self::Side { of: Box::new(self), cells: cells.to_owned() }
    }

    /// Returns whether it names a tag of facets, which may lie inside the mesh.
    pub(crate) fn is_tag(&self, mesh: &Mesh) -> bool {
        self.name().is_some_and(|name| name != "all" && !tags_called(mesh, name).is_empty())
    }

    /// Returns whether one of the regions names a tag that facets between cells have.
    ///
    /// # Cost
    /// One pass over the cells for all regions, none if no region names a tag.
    pub fn any_inside(regions: impl IntoIterator<Item = Self>, mesh: &Mesh) -> bool {
        let names =
            regions.into_iter().filter_map(|region| region.name().map(|name| tags_called(mesh, name)));
        let tags: BTreeSet<i32> = names.flatten().collect();
        !tags.is_empty() && !mesh.tagged_inner_facets(|tag| tags.contains(&tag)).is_empty()
    }

    /// Returns its facets by their positions in `boundary`; `path` is the setting that names it. Collective
    /// if the mesh is distributed.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if it is no facet, with the tags or the extents of the mesh.
    pub(crate) fn facets(
        &self,
        on: OnMesh<'_>,
        boundary: &BoundaryFacets,
        path: &[Key],
    ) -> Result<Selected, SolveError> {
        let facets = match self {
            Self::Named(name) => return named(on, boundary, name, path),
            // A rank may have none of those that all ranks list.
            Self::Facets(facets) if facets.is_empty() && on.divided.is_some() => Vec::new(),
            Self::Facets(facets) => listed(boundary, facets, path)?,
            Self::Side { .. } => {
                let message = "a side of facets is for equations that are solved as a form: leave this out";
                return Err(SolveError::setting(&of_side(path), message));
            }
        };
        Ok(Selected { facets, n_inside: 0 })
    }
}

/// Returns the path of the cells of a side, beside that of its region.
pub(crate) fn of_side(path: &[Key]) -> Vec<Key> {
    below(path.split_last().map_or(&[][..], |(_, section)| section), "from")
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

/// Returns the facets of `all`, else of the name of a tag, else of its number, else of a comparison.
/// Collective if the mesh is distributed.
fn named(
    on: OnMesh<'_>,
    boundary: &BoundaryFacets,
    selection: &str,
    path: &[Key],
) -> Result<Selected, SolveError> {
    if selection == "all" {
        return Ok(Selected { facets: (0..boundary.len() as u32).collect(), n_inside: 0 });
    }
    let tags = tags_called(on.mesh, selection);
    let Selected { facets, n_inside } = tagged(on, boundary, &tags);
    let n_inside = on.sum(n_inside)?;
    let here = match (tags.is_empty(), facets.is_empty()) {
        (true, _) => satisfying(on, boundary, selection, path),
        (false, true) => Err(SolveError::setting(path, holds_inside(on, (selection, &tags), n_inside, path))),
        (false, false) => Ok(facets),
    };
    Ok(Selected { facets: on.found(here)?, n_inside })
}

/// Returns the message about tags that no facet of the boundary has, and `n_inside` facets inside.
fn holds_inside(
    on: OnMesh<'_>,
    (selection, tags): (&str, &BTreeSet<i32>),
    n_inside: usize,
    path: &[Key],
) -> String {
    if n_inside == 0 {
        return format!("the tag `{selection}` is on no facet of the boundary; {}", known_tags(on, tags));
    }
    let facets = if n_inside == 1 { "facet" } else { "facets" };
    let what = if is_condition(path) { "conditions" } else { "fluxes" };
    let mut message = format!(
        "the tag `{selection}` is on {n_inside} {facets} inside the mesh and on none of its boundary; {what} on inner \
         facets are not supported"
    );
    if is_condition(path) {
        message +=
            "; `dirichlet` takes `nodes = \"…\"`, a comparison, in place of `where` to hold inside too";
    }
    message
}

/// Returns whether a setting is one of a condition.
fn is_condition(path: &[Key]) -> bool {
    path.first() == Some(&"boundary".into())
}

/// Returns positions in `boundary` of the facets whose nodes all satisfy a comparison.
fn satisfying(
    on: OnMesh<'_>,
    boundary: &BoundaryFacets,
    selection: &str,
    path: &[Key],
) -> Result<Vec<u32>, SolveError> {
    let mesh = on.mesh;
    let known_tags = |on| known_tags(on, &BTreeSet::new());
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
    let facets = parallel::filter(boundary.len(), |facet| boundary.facet(facet).iter().all(holds_at));
    if facets.is_empty() {
        let n_holds = mesh.points.iter().filter(|&&point| comparison.holds(point)).count();
        let mut message = holds_nowhere(on, n_holds);
        if is_condition(path) && n_holds > 0 {
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

pub(crate) fn tags_called(mesh: &Mesh, selection: &str) -> BTreeSet<i32> {
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

/// Returns the facets of the boundary with any of some tags, and how many of these tags are inside; of a part, those with a first
/// node that this rank owns.
fn tagged(on: OnMesh<'_>, boundary: &BoundaryFacets, tags: &BTreeSet<i32>) -> Selected {
    let mesh = on.mesh;
    if tags.is_empty() {
        return Selected::default();
    }
    let sorted = |nodes: &[u32]| {
        let mut key = [u32::MAX; 4];
        key[..nodes.len()].copy_from_slice(nodes);
        key.sort_unstable();
        key.into_iter().fold(0, |key, node| key << 32 | u128::from(node))
    };
    let tagged = parallel::filter(mesh.facets.tags.len(), |facet| tags.contains(&mesh.facets.tags[facet]));
    let mut wanted = parallel::map(tagged.len(), 256, |i| sorted(mesh.facet(tagged[i] as usize)));
    parallel::sort(&mut wanted);
    wanted.dedup();
    let key_of = |facet: u32| sorted(boundary.facet(facet as usize));
    let facets =
        parallel::filter(boundary.len(), |facet| wanted.binary_search(&key_of(facet as u32)).is_ok());
    let nodes = |key: u128| [96, 64, 32, 0].map(|shift| (key >> shift) as u32);
    let is_own = |key: &u128| on.owns(nodes(*key).into_iter().filter(|&node| node != u32::MAX));
    let n_wanted = wanted.iter().filter(|key| is_own(key)).count();
    // Both sides of a facet inside have its nodes.
    let mut found: Vec<u128> = facets.iter().map(|&facet| key_of(facet)).filter(is_own).collect();
    parallel::sort(&mut found);
    found.dedup();
    Selected { n_inside: n_wanted.saturating_sub(found.len()), facets }
}

/// Returns the tags of the boundary, without some that are on none of its facets.
fn known_tags(on: OnMesh<'_>, others: &BTreeSet<i32>) -> String {
    let mesh = on.mesh;
    let dimension = mesh.dimension() - 1;
    let mut tags: BTreeSet<i32> = mesh.facets.tags.iter().copied().collect();
    if on.divided.is_some() {
        // Other ranks have facets of these.
        let names = mesh.tag_names.keys().filter(|(d, _)| *d == dimension);
        tags.extend(names.map(|(_, tag)| *tag));
    }
    tags.retain(|tag| !others.contains(tag));
    if tags.is_empty() {
        return "the mesh has no tagged boundary: use \"all\" or a comparison such as \"x < 1e-9\"".into();
    }
    let name = |tag: &i32| match mesh.tag_names.get(&(dimension, *tag)) {
        Some(name) if *name != tag.to_string() => format!("{name} ({tag})"),
        _ => tag.to_string(),
    };
    format!("tags of the boundary: {}", tags.iter().map(name).collect::<Vec<_>>().join(", "))
}

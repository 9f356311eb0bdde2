//! Which boundary facets the `where` of a condition names.

use std::collections::{BTreeSet, HashMap};

use femtile_expression::Condition as Comparison;
use femtile_fem::{BoundaryCondition, Condition};
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

use crate::coefficient::{below, of_component, scalar};
use crate::file::BoundarySection;
use crate::place::Key;
use crate::{Case, CaseError};

/// The conditions of a case, for each component of u, and warnings about those that hold nowhere.
pub(crate) fn conditions(
    case: &Case,
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    warnings: &mut Vec<String>,
) -> Result<Vec<Vec<BoundaryCondition>>, CaseError> {
    let mut found: Vec<Vec<BoundaryCondition>> =
        (0..case.file.space.components).map(|_| Vec::new()).collect();
    for (i, section) in case.file.boundary.iter().enumerate() {
        let path: [Key; 2] = ["boundary".into(), i.into()];
        let facets = facets_of(case, mesh, boundary, &section.r#where, &below(&path, "where"))?;
        if facets.is_empty() {
            warnings.push(format!(
                "boundary[{i}] (where = \"{}\") holds on no facet of the boundary",
                section.r#where
            ));
        }
        for (component, found) in found.iter_mut().enumerate() {
            let condition = condition(case, mesh, section, component, &path)?;
            found.push(BoundaryCondition { facets: facets.clone(), condition });
        }
    }
    Ok(found)
}

fn condition(
    case: &Case,
    mesh: &Mesh,
    section: &BoundarySection,
    component: usize,
    path: &[Key],
) -> Result<Condition, CaseError> {
    let own = |value, path: &[Key]| of_component(case, mesh, value, component, path);
    Ok(match (&section.dirichlet, &section.neumann, &section.robin) {
        (Some(value), ..) => Condition::Dirichlet(own(value, &below(path, "dirichlet"))?),
        (_, Some(value), _) => Condition::Neumann(own(value, &below(path, "neumann"))?),
        (.., Some(robin)) => {
            let path = below(path, "robin");
            let transfer = scalar(case, mesh, &robin.coefficient, &below(&path, "coefficient"))?;
            Condition::Robin { coefficient: transfer, value: own(&robin.value, &below(&path, "value"))? }
        }
        _ => {
            return Err(
                case.wrong(path, "give exactly one of `dirichlet`, `neumann`, `robin` and `periodic`")
            );
        }
    })
}

/// Positions in `boundary`: `all`, else a tag's name, else its number, else a comparison.
fn facets_of(
    case: &Case,
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    selection: &str,
    path: &[Key],
) -> Result<Vec<u32>, CaseError> {
    if selection == "all" {
        return Ok((0..boundary.len() as u32).collect());
    }
    let tags = tags_called(mesh, selection);
    if !tags.is_empty() {
        return Ok(tagged(mesh, boundary, &tags));
    }
    let comparison = Comparison::parse(selection).map_err(|error| {
        let message =
            format!("`{selection}` is neither a tag nor a comparison ({error}); {}", known_tags(mesh));
        let is_word = selection.chars().all(|c| c.is_alphanumeric() || "_- ".contains(c));
        if is_word {
            case.wrong(path, format!("there is no tag `{selection}`; {}", known_tags(mesh)))
        } else {
            case.wrong_inside(path, &error.span, message)
        }
    })?;
    let holds: Vec<bool> = mesh.points.iter().map(|&point| comparison.holds(point)).collect();
    let all_hold = |facet: &u32| boundary.facet(*facet as usize).iter().all(|&node| holds[node as usize]);
    Ok((0..boundary.len() as u32).filter(all_hold).collect())
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
    let numbers: HashMap<[u32; 4], u32> =
        (0..boundary.len()).map(|facet| (sorted(boundary.facet(facet)), facet as u32)).collect();
    let wanted = (0..mesh.facets.tags.len()).filter(|&facet| tags.contains(&mesh.facets.tags[facet]));
    let mut facets: Vec<u32> =
        wanted.filter_map(|facet| numbers.get(&sorted(mesh.facet(facet))).copied()).collect();
    facets.sort_unstable();
    facets.dedup();
    facets
}

fn known_tags(mesh: &Mesh) -> String {
    let tags: BTreeSet<i32> = mesh.facets.tags.iter().copied().collect();
    if tags.is_empty() {
        return "the mesh has no tagged boundary: use \"all\" or a comparison such as \"x < 1e-9\"".into();
    }
    let dimension = mesh.dimension() - 1;
    let name = |tag: &i32| match mesh.tag_names.get(&(dimension, *tag)) {
        Some(name) => format!("{name} ({tag})"),
        None => tag.to_string(),
    };
    format!("tags of the boundary: {}", tags.iter().map(name).collect::<Vec<_>>().join(", "))
}

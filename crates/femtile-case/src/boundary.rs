//! Which boundary facets the `where` of a condition names.

use std::collections::{BTreeSet, HashMap};

use femtile_expression::Condition as Comparison;
use femtile_fem::{BoundaryCondition, Condition};
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

use crate::coefficient::{below, of_component, scalar};
use crate::file::{BoundarySection, Entry, Value};
use crate::place::Key;
use crate::{Case, CaseError, overlap};

/// Refuses a case without anything that determines u, and warns of one in which u can only be zero.
pub(crate) fn check_data(case: &Case, warnings: &mut Vec<String>) -> Result<(), CaseError> {
    let (equation, boundary) = (&case.file.equation, &case.file.boundary);
    if !is_zero(&equation.source) {
        return Ok(());
    }
    if boundary.is_empty() && is_zero(&equation.lambda) {
        let message = "nothing determines u: give a `source`, a `lambda`, or a condition in [[boundary]]";
        return Err(case.wrong(&["equation".into()], message));
    }
    let given = |section: &BoundarySection| {
        let robin = section.robin.as_ref().map(|robin| &robin.value);
        [section.dirichlet.as_ref(), section.neumann.as_ref(), robin]
            .into_iter()
            .flatten()
            .any(|value| !is_zero(value))
    };
    if !boundary.iter().any(given) {
        warnings.push("source and all values on the boundary are zero, and so is u".into());
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Number(number) => *number == 0.0,
        Value::Components(entries) => entries.iter().all(|entry| *entry == Entry::Number(0.0)),
        _ => false,
    }
}

/// The conditions of a case, for each component of u, and warnings about those that overlap.
pub(crate) fn conditions(
    case: &Case,
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    warnings: &mut Vec<String>,
) -> Result<Vec<Vec<BoundaryCondition>>, CaseError> {
    let mut found: Vec<Vec<BoundaryCondition>> =
        (0..case.file.space.components).map(|_| Vec::new()).collect();
    let mut holds = Vec::new();
    for (i, section) in case.file.boundary.iter().enumerate() {
        let path: [Key; 2] = ["boundary".into(), i.into()];
        let facets = facets_of(case, mesh, boundary, &section.r#where, &below(&path, "where"))?;
        holds.push(facets.clone());
        for (component, found) in found.iter_mut().enumerate() {
            let condition = condition(case, mesh, section, component, &path)?;
            found.push(BoundaryCondition { facets: facets.clone(), condition });
        }
    }
    warnings.extend(overlap::warnings(case, &holds, boundary.len(), "facets"));
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
        let facets = tagged(mesh, boundary, &tags);
        if facets.is_empty() {
            let message =
                format!("the tag `{selection}` is on no facet of the boundary; {}", known_tags(mesh));
            return Err(case.wrong(path, message));
        }
        return Ok(facets);
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
    let facets: Vec<u32> = (0..boundary.len() as u32).filter(all_hold).collect();
    if facets.is_empty() {
        return Err(case.wrong(path, holds_nowhere(mesh, &holds)));
    }
    Ok(facets)
}

/// What to say of a comparison that holds on no facet.
fn holds_nowhere(mesh: &Mesh, holds: &[bool]) -> String {
    let range = |axis: usize| {
        let values = || mesh.points.iter().map(|point| point[axis]);
        let (lower, upper) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        format!("{} from {lower} to {upper}", ["x", "y", "z"][axis])
    };
    let extents: Vec<String> = (0..mesh.dimension()).map(range).collect();
    let nodes = match holds.iter().filter(|&&holds| holds).count() {
        0 => "on no node either".into(),
        n => format!("{n} nodes satisfy it, but no facet with all of its nodes does"),
    };
    format!(
        "this holds on no facet of the boundary ({nodes}); the mesh reaches {}: compare the unit of length (mm against m?) \
         and leave room for rounding, as in \"x < 1e-9\"",
        extents.join(", ")
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

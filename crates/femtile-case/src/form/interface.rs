//! Interfaces of a case: the mesh is cut along their facets.

use std::sync::Arc;

use femtile_expression::Expression;
use femtile_mesh::check::{BoundaryFacets, CheckReport};
use femtile_mesh::{CellSide, Mesh};
use femtile_solve::{FormProblem, InterfacePlace, Key, below};

use crate::file::{Entry, InterfaceSection, OfUnknowns};
use crate::{Case, CaseError};

/// The facets of an interface, the side of u first.
pub(super) type Pairs = Vec<[CellSide; 2]>;

impl InterfaceSection {
    /// Returns the place of an interface that was checked.
    fn place(&self) -> InterfacePlace<'_> {
        match &self.between {
            Some([first, second]) => InterfacePlace::Between([first, second]),
            None => InterfacePlace::Tagged {
                tag: self.r#where.as_deref().unwrap_or_default(),
                from: self.from.as_deref(),
            },
        }
    }
}

/// Cuts the mesh of a case along its interfaces; returns the facets of each. The boundary of the check stays that of the whole body.
pub(super) fn cut(case: &Case, mesh: &mut Mesh, checked: &mut CheckReport) -> Result<Vec<Pairs>, CaseError> {
    let mut all: Vec<Pairs> = Vec::new();
    if case.file.interface.is_empty() {
        return Ok(all);
    }
    for (i, section) in case.file.interface.iter().enumerate() {
        let path: [Key; 2] = ["interface".into(), i.into()];
        let pairs = section.place().facets(mesh, &path)?;
        let mut taken: Vec<[CellSide; 2]> = all.concat();
        taken.iter_mut().for_each(|pair| pair.sort_unstable());
        taken.sort_unstable();
        let sorted = |[a, b]: [CellSide; 2]| [a.min(b), a.max(b)];
        if let Some(pair) = pairs.iter().find(|pair| taken.binary_search(&sorted(**pair)).is_ok()) {
            let [x, y, z] = mesh.middle_of_side(pair[0]);
            let message = format!("the facet at ({x}, {y}, {z}) is one of an earlier interface too");
            return Err(case.wrong(&path, message));
        }
        if let Some(name) = &section.name {
            let (dimension, names) = (mesh.dimension() - 1, &mesh.tag_names);
            if names.iter().any(|((d, _), own)| *d == dimension && own == name) {
                let message = "facets of the mesh have a tag of this name: choose another one";
                return Err(case.wrong(&below(&path, "name"), message));
            }
            let of_names = names.keys().filter(|(d, _)| *d == dimension).map(|(_, tag)| *tag);
            let tag = of_names.chain(mesh.facets.tags.iter().copied()).fold(0, i32::max) + 1;
            mesh.tag_names.insert((dimension, tag), name.clone());
            for pair in &pairs {
                let nodes: Vec<u32> = mesh.side(pair[0]).collect();
                mesh.facets.nodes.extend(nodes);
                mesh.facets.tags.push(tag);
            }
        }
        check_sign(case, section, (mesh, &pairs), &path)?;
        all.push(pairs);
    }
    mesh.split(&all.concat()).map_err(|error| case.wrong(&["interface".into()], error.to_string()))?;
    let whole = Arc::clone(&checked.boundary);
    let mut boundary = BoundaryFacets::default();
    for (&cell, &local) in whole.cells.iter().zip(&whole.local) {
        boundary.push(mesh, CellSide { cell, local });
    }
    checked.boundary = Arc::new(boundary);
    Ok(all)
}

/// Refuses a conductance of the place alone that is negative or not finite at the middle of a facet.
fn check_sign(
    case: &Case,
    section: &InterfaceSection,
    (mesh, pairs): (&Mesh, &Pairs),
    path: &[Key],
) -> Result<(), CaseError> {
    for (path, value) in values(section, path) {
        let Entry::Text(text) = value else { continue };
        // Formulas of constants and of u have no value yet.
        let Ok(expression) = Expression::parse(text) else { continue };
        for pair in pairs {
            let point @ [x, y, z] = mesh.middle_of_side(pair[0]);
            let found = expression.eval(point);
            if !(found.is_finite() && found >= 0.0) {
                let message = format!("is {found} at ({x}, {y}, {z}); it must be finite and not negative");
                return Err(case.wrong(&path, message));
            }
        }
    }
    Ok(())
}

/// Returns the conductances of an interface with their settings.
pub(crate) fn values<'s>(section: &'s InterfaceSection, path: &[Key]) -> Vec<(Vec<Key>, &'s Entry)> {
    let conductance = below(path, "conductance");
    let stiffness = section.stiffness.iter().map(|value| (below(path, "stiffness"), value));
    let conductances = match &section.conductance {
        None => Vec::new(),
        Some(OfUnknowns::One(value)) => vec![(conductance, value)],
        Some(OfUnknowns::Each(values)) => {
            values.iter().map(|(name, value)| (below(&conductance, name.as_str()), value)).collect()
        }
    };
    stiffness.chain(conductances).collect()
}

/// Adds the interfaces of a case to its problem.
pub(super) fn add(case: &Case, problem: &mut FormProblem<'_>, cuts: &[Pairs]) -> Result<(), CaseError> {
    let unknowns: Vec<String> = problem.unknowns().into_iter().map(|(name, _)| name.to_owned()).collect();
    for (i, (section, pairs)) in case.file.interface.iter().zip(cuts).enumerate() {
        let text = |entry: &Entry| match entry {
            Entry::Number(number) => format!("{number:e}"),
            Entry::Text(text) => text.clone(),
        };
        let path: [Key; 3] = ["interface".into(), i.into(), "conductance".into()];
        let mut formulas: Vec<(&str, String)> = Vec::new();
        for name in &unknowns {
            let value = match (&section.stiffness, &section.conductance) {
                (Some(value), _) | (_, Some(OfUnknowns::One(value))) if unknowns.len() == 1 => Some(value),
                (_, Some(OfUnknowns::Each(values))) => values.get(name),
                _ => None,
            };
            let Some(value) = value else {
                let message = format!(
                    "there is none of `{name}`, and each unknown has two values at an interface: give a table, {{ {} }}, with 0 where nothing flows",
                    unknowns.iter().map(|name| format!("{name} = …")).collect::<Vec<_>>().join(", ")
                );
                return Err(case.wrong(&path, message));
            };
            formulas.push((name, text(value)));
        }
        if let Some(OfUnknowns::Each(values)) = &section.conductance
            && let Some(name) = values.keys().find(|name| !unknowns.contains(name))
        {
            return Err(case.wrong(&below(&path, name.as_str()), format!("there is no unknown `{name}`")));
        }
        let formulas: Vec<(&str, &str)> =
            formulas.iter().map(|(name, text)| (*name, text.as_str())).collect();
        problem.interface(pairs, &formulas, section.place().has_side());
    }
    Ok(())
}

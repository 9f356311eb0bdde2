//! Interfaces of a case: the mesh is cut along their facets.

use std::sync::Arc;

use femtile_expression::Expression;
use femtile_mesh::check::{BoundaryFacets, CheckReport};
use femtile_mesh::{CellSide, Mesh};
use femtile_solve::{FormProblem, InterfaceFlux, InterfacePlace, Key, below};

use crate::file::{Entry, InterfaceSection, OfUnknowns, Stiffness, StiffnessByDirection};
use crate::{Case, CaseError};

/// The facets of an interface, the side of u first.
pub(super) type Pairs = Vec<[CellSide; 2]>;

impl InterfaceSection {
    /// Returns the place of an interface that was checked.
    fn place(&self) -> InterfacePlace<'_> {
        match (&self.between, &self.sides) {
            (Some([first, second]), _) => InterfacePlace::Between([first, second]),
            (None, Some([first, second])) => InterfacePlace::Sides([first, second]),
            (None, None) => InterfacePlace::Tagged {
                tag: self.r#where.as_deref().unwrap_or_default(),
                from: self.from.as_deref(),
            },
        }
    }
}

/// Cuts the mesh of a case along its interfaces; returns the facets of each. The boundary of the check stays, or becomes, that of the
/// whole body.
pub(super) fn cut(case: &Case, mesh: &mut Mesh, checked: &mut CheckReport) -> Result<Vec<Pairs>, CaseError> {
    let mut all: Vec<Pairs> = Vec::new();
    if case.file.interface.is_empty() {
        return Ok(all);
    }
    for (i, section) in case.file.interface.iter().enumerate() {
        let path: [Key; 2] = ["interface".into(), i.into()];
        let pairs = section.place().facets(mesh, &checked.boundary, &path)?;
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
    let (mut cut, mut touching): (Vec<[CellSide; 2]>, Vec<CellSide>) = Default::default();
    for (section, pairs) in case.file.interface.iter().zip(&all) {
        match section.sides {
            None => cut.extend(pairs),
            Some(_) => touching.extend(pairs.as_flattened()),
        }
    }
    touching.sort_unstable();
    mesh.split(&cut).map_err(|error| case.wrong(&["interface".into()], error.to_string()))?;
    let whole = Arc::clone(&checked.boundary);
    let mut boundary = BoundaryFacets::default();
    for (&cell, &local) in whole.cells.iter().zip(&whole.local) {
        let side = CellSide { cell, local };
        if touching.binary_search(&side).is_err() {
            boundary.push(mesh, side);
        }
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

/// Returns the formulas of the flux of an interface.
pub(crate) fn fluxes(section: &InterfaceSection) -> impl Iterator<Item = &String> {
    let (one, each) = match &section.flux {
        None => (None, None),
        Some(OfUnknowns::One(flux)) => (Some(flux), None),
        Some(OfUnknowns::Each(fluxes)) => (None, Some(fluxes)),
    };
    one.into_iter().chain(each.into_iter().flat_map(|fluxes| fluxes.values()))
}

/// Returns the conductances of an interface, or its stiffness, with their settings.
pub(crate) fn values<'s>(section: &'s InterfaceSection, path: &[Key]) -> Vec<(Vec<Key>, &'s Entry)> {
    let conductance = below(path, "conductance");
    let of_stiffness = below(path, "stiffness");
    let stiffness = match &section.stiffness {
        None => Vec::new(),
        Some(Stiffness::All(value)) => vec![(of_stiffness, value)],
        Some(Stiffness::Directions(StiffnessByDirection { normal, tangential })) => {
            vec![(below(&of_stiffness, "normal"), normal), (below(&of_stiffness, "tangential"), tangential)]
        }
    };
    let conductances = match &section.conductance {
        None => Vec::new(),
        Some(OfUnknowns::One(value)) => vec![(conductance, value)],
        Some(OfUnknowns::Each(values)) => {
            values.iter().map(|(name, value)| (below(&conductance, name.as_str()), value)).collect()
        }
    };
    stiffness.into_iter().chain(conductances).collect()
}

/// Adds the interfaces of a case to its problem.
pub(super) fn add(case: &Case, problem: &mut FormProblem<'_>, cuts: &[Pairs]) -> Result<(), CaseError> {
    let unknowns: Vec<String> = problem.unknowns().into_iter().map(|(name, _)| name.to_owned()).collect();
    for (i, (section, pairs)) in case.file.interface.iter().zip(cuts).enumerate() {
        let text = |entry: &Entry| match entry {
            Entry::Number(number) => format!("{number:e}"),
            Entry::Text(text) => text.clone(),
        };
        let mut fluxes: Vec<(&str, InterfaceFlux)> = Vec::new();
        for name in &unknowns {
            let conductance = |value: &Entry| InterfaceFlux::Conductance(text(value));
            let is_one = unknowns.len() == 1;
            let flux = match section {
                InterfaceSection { stiffness: Some(Stiffness::All(value)), .. } => Some(conductance(value)),
                InterfaceSection { stiffness: Some(Stiffness::Directions(own)), .. } => {
                    let (normal, tangential) = (text(&own.normal), text(&own.tangential));
                    Some(InterfaceFlux::Stiffness { normal, tangential })
                }
                InterfaceSection { flux: Some(OfUnknowns::One(flux)), .. } => {
                    is_one.then(|| InterfaceFlux::Formula(flux.clone()))
                }
                InterfaceSection { flux: Some(OfUnknowns::Each(fluxes)), .. } => {
                    fluxes.get(name).map(|flux| InterfaceFlux::Formula(flux.clone()))
                }
                InterfaceSection { conductance: Some(OfUnknowns::One(value)), .. } => {
                    is_one.then(|| conductance(value))
                }
                InterfaceSection { conductance: Some(OfUnknowns::Each(values)), .. } => {
                    values.get(name).map(conductance)
                }
                _ => None,
            };
            let Some(flux) = flux else {
                let message = format!(
                    "there is none of `{name}`, and each unknown has two values at an interface: give a table, {{ {} }}, with 0 where nothing flows",
                    unknowns.iter().map(|name| format!("{name} = …")).collect::<Vec<_>>().join(", ")
                );
                return Err(case.wrong(&path_of_table(section, i), message));
            };
            fluxes.push((name, flux));
        }
        let of_conductance = match &section.conductance {
            Some(OfUnknowns::Each(values)) => values.keys().collect(),
            _ => Vec::new(),
        };
        let of_flux = match &section.flux {
            Some(OfUnknowns::Each(fluxes)) => fluxes.keys().collect(),
            _ => Vec::new(),
        };
        if let Some(name) = of_conductance.into_iter().chain(of_flux).find(|name| !unknowns.contains(name)) {
            let path = below(&path_of_table(section, i), name.as_str());
            return Err(case.wrong(&path, format!("there is no unknown `{name}`")));
        }
        problem.interface(pairs, &fluxes, section.place().has_side());
    }
    Ok(())
}

/// Returns the setting that has a table of several unknowns.
fn path_of_table(section: &InterfaceSection, number: usize) -> [Key; 3] {
    let key = if section.flux.is_some() { "flux" } else { "conductance" };
    ["interface".into(), number.into(), key.into()]
}

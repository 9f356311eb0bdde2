use femtile_solve::{Key, below};

use crate::file::{Entry, EquationKind};
use crate::form::interface::values;
use crate::{Case, CaseError};

/// Checks that each `[[interface]]` has one place and one flux.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let kind = case.file.equation.kind;
    for (i, section) in case.file.interface.iter().enumerate() {
        let path: [Key; 2] = ["interface".into(), i.into()];
        let wrong = |key: &str, message: &str| Err(case.wrong(&below(&path, key), message));
        let places = [section.r#where.is_some(), section.between.is_some(), section.sides.is_some()];
        if places.into_iter().filter(|is_given| *is_given).count() != 1 {
            let message = "give `where`, a tag of facets inside the mesh, or `between`, two tags of cells, or `sides` of parts that touch";
            return Err(case.wrong(&path, message));
        }
        if section.r#where.is_none() && section.from.is_some() {
            return wrong("from", "with `between` and `sides` u is that of the first ones: leave this out");
        }
        if section.between.is_none() && section.name.is_some() {
            return wrong("name", "the facets have tags: leave this out");
        }
        let (own, other) = match kind {
            EquationKind::Elasticity => ("stiffness", "conductance"),
            _ => ("conductance", "stiffness"),
        };
        let given =
            [("conductance", section.conductance.is_some()), ("stiffness", section.stiffness.is_some())];
        if given.contains(&(other, true)) {
            return wrong(other, &format!("this kind of equation has `{own}`"));
        }
        if section.flux.is_some() {
            if given.contains(&(own, true)) {
                return wrong("flux", &format!("`{own}` gives the flux too: leave one of them out"));
            }
            if section.r#where.is_some() && section.from.is_none() {
                let message = "flows into the first side: give the tag of its cells, `from = \"…\"`, or take `between` or `sides`";
                return wrong("flux", message);
            }
        } else if given.contains(&(own, false)) {
            return Err(case.wrong(&path, format!("the key `{own}` is missing")));
        }
        for (path, value) in values(section, &path) {
            if let Entry::Number(number) = value
                && !(number.is_finite() && *number >= 0.0)
            {
                return Err(case.wrong(&path, format!("is {number}; it must be finite and not negative")));
            }
        }
    }
    Ok(())
}

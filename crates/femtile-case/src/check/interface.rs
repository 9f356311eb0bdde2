use femtile_solve::{Key, below};

use crate::file::{Entry, EquationKind};
use crate::form::interface::values;
use crate::{Case, CaseError};

/// Checks that each `[[interface]]` has one place and one conductance.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let kind = case.file.equation.kind;
    for (i, section) in case.file.interface.iter().enumerate() {
        let path: [Key; 2] = ["interface".into(), i.into()];
        let wrong = |key: &str, message: &str| Err(case.wrong(&below(&path, key), message));
        if section.r#where.is_some() == section.between.is_some() {
            let message = "give `where`, a tag of facets inside the mesh, or `between`, two tags of cells";
            return Err(case.wrong(&path, message));
        }
        if section.between.is_some() && section.from.is_some() {
            return wrong("from", "with `between` u is that of the first cells: leave this out");
        }
        if section.r#where.is_some() && section.name.is_some() {
            return wrong("name", "the facets have the tag of `where`: leave this out");
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
        if given.contains(&(own, false)) {
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

use femtile_solve::{Key, below};

use crate::file::EquationKind;
use crate::route::Route;
use crate::{Case, CaseError};

/// Checks that each `[[boundary]]` has one place and one condition.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    for (i, section) in case.file.boundary.iter().enumerate() {
        let path: [Key; 2] = ["boundary".into(), i.into()];
        let contradiction = match (&section.r#where, &section.nodes) {
            (None, None) => Some("the key `where` is missing, or `nodes` for a `dirichlet` at single nodes"),
            (Some(_), Some(_)) => Some("give `where`, a part of the boundary, or `nodes`, not both"),
            _ => None,
        };
        if let Some(message) = contradiction {
            return Err(case.wrong(&path, message));
        }
        if section.from.is_some() && section.nodes.is_some() {
            let message = "nodes have no side: leave this out, or take `where`";
            return Err(case.wrong(&below(&path, "from"), message));
        }
        let given = [
            section.dirichlet.is_some(),
            section.neumann.is_some(),
            section.robin.is_some(),
            section.traction.is_some(),
            section.pressure.is_some(),
            section.flux.is_some(),
            section.total.is_some() && !section.floats(),
            section.floats(),
            section.periodic,
        ];
        if given.iter().filter(|&&given| given).count() != 1 {
            let message = match case.file.equation.kind {
                EquationKind::Elasticity => {
                    "give exactly one of `dirichlet`, `traction`, `pressure`, `flux`, `total` and `floating`"
                }
                EquationKind::Form => "give exactly one of `dirichlet`, `flux`, `total` and `floating`",
                EquationKind::Diffusion if case.route() == Route::Grid => {
                    "give exactly one of `dirichlet`, `neumann`, `robin` and `periodic`"
                }
                _ => "give exactly one of `dirichlet`, `neumann`, `robin`, `flux`, `total` and `floating`",
            };
            return Err(case.wrong(&path, message));
        }
        if section.nodes.is_some() && section.dirichlet.is_none() {
            let message =
                "only `dirichlet` holds at nodes; fluxes go through parts of the boundary: take `where`";
            return Err(case.wrong(&below(&path, "nodes"), message));
        }
    }
    Ok(())
}

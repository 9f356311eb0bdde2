use femtile_solve::{Key, below};

use crate::file::{EquationKind, Functional};
use crate::file_names::{MATRIX, PLOT, of_line};
use crate::route::Route;
use crate::{Case, CaseError};

/// Most points along a line.
const MAX_POINTS: u32 = 1_000_000;

/// Checks the functionals of a case, as far as possible without a mesh.
///
/// # Errors
/// [`CaseError::Input`] with the place of the first wrong one.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let functionals = &case.file.output.functionals;
    for (i, functional) in functionals.iter().enumerate() {
        let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
        let name = functional.name();
        if functionals[..i].iter().any(|earlier| earlier.name() == name) {
            return Err(case.wrong(&path, format!("a second functional is called `{name}`")));
        }
        if functional.field().is_some() && case.file.equation.kind != EquationKind::Monodomain {
            let message = "only kind = \"monodomain\" records other fields than u";
            return Err(case.wrong(&below(&path, "of"), message));
        }
        if let Functional::Integral { r#where: None, from: Some(_), .. }
        | Functional::Mean { r#where: None, from: Some(_), .. } = functional
        {
            let message = "is the side of facets: give them by `where`, or leave it out";
            return Err(case.wrong(&below(&path, "from"), message));
        }
        if let Some(key) = functional.key_of_form().filter(|_| case.route() != Route::Form) {
            let message = "is for equations of finite elements: of hearts and grids integrals are those of u over the mesh";
            return Err(case.wrong(&below(&path, key), message));
        }
        match functional {
            Functional::ValueAt { point, points, .. } => {
                if point.is_some() == points.is_some() {
                    return Err(case.wrong(&path, "give exactly one of `point` and `points`"));
                }
                if points.as_ref().is_some_and(Vec::is_empty) {
                    return Err(case.wrong(&below(&path, "points"), "no point is given"));
                }
            }
            Functional::Along { points, .. } => {
                check_file_name(case, &functionals[..i], name, &below(&path, "name"))?;
                if !(2..=MAX_POINTS).contains(points) {
                    let message = format!("{points} points: a line has 2 to {MAX_POINTS}");
                    return Err(case.wrong(&below(&path, "points"), message));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks that a name is portable as a file name and not taken.
fn check_file_name(case: &Case, earlier: &[Functional], name: &str, path: &[Key]) -> Result<(), CaseError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_plain) {
        let message = "this is the name of files: letters a to z, digits, `-` and `_` alone";
        return Err(case.wrong(path, message));
    }
    let has_matrix = !case.file.output.matrix.is_empty();
    let is_plot = of_line(name)
        .iter()
        .any(|file| file.eq_ignore_ascii_case(PLOT) || has_matrix && file.eq_ignore_ascii_case(MATRIX));
    let is_taken = |functional: &Functional| matches!(functional, Functional::Along { name: other, .. } if other.eq_ignore_ascii_case(name));
    if is_plot || earlier.iter().any(is_taken) {
        let message = format!("the files of `{name}` have the names of others; choose another name");
        return Err(case.wrong(path, message));
    }
    Ok(())
}

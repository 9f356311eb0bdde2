//! The conductivity of the monodomain equation from those of the two domains.

use femtile_expression::Expression;
use femtile_fem::Coefficient;
use femtile_mesh::{Field, Mesh};

use crate::SolveError;
use crate::coefficient::{Value, by_cell, positive, scalar};
use crate::setting::{Key, below};

/// Resolves the conductivity of the monodomain equation, $\sigma_i \sigma_e / (\sigma_i + \sigma_e)$.
pub(crate) fn bidomain(mesh: &Mesh, values: [&Value; 2], path: &[Key]) -> Result<Coefficient, SolveError> {
    let paths = ["intra", "extra"].map(|key| below(path, key));
    let [intra, extra] = [0, 1].map(|i| scalar(mesh, values[i], &paths[i]));
    let both = [intra?, extra?];
    if let [Some(i), Some(e)] = [0, 1].map(|k| formula(&both[k])) {
        for (value, path) in [&i, &e].into_iter().zip(&paths) {
            value.as_constant().map_or(Ok(1.0), |value| positive(value, None, path))?;
        }
        return Ok((&(&i * &e) / &(&i + &e)).into());
    }
    let [intra, extra] = both;
    let both = [by_cell(intra, &paths[0])?, by_cell(extra, &paths[1])?];
    let of_cell = |cell: usize| {
        let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
        let [i, e] = [0, 1].map(|k| match both[k].scalar_at(cell, tag, [0.0; 3]) {
            // Of cells with other tags, whose value is elsewhere.
            value if value.is_nan() => Ok(value),
            value => positive(value, Some(cell), &paths[k]),
        });
        let (i, e) = (i?, e?);
        Ok(i * e / (i + e))
    };
    let values = (0..mesh.n_cells()).map(of_cell).collect::<Result<_, SolveError>>()?;
    Ok(Coefficient::CellField(Field { n_components: 1, values }))
}

/// Returns a scalar as a formula, if it is the same one in all cells.
fn formula(coefficient: &Coefficient) -> Option<Expression> {
    match coefficient {
        Coefficient::Constant(value) => Some(Expression::constant(*value)),
        Coefficient::Expression(expression) => Some(expression.clone()),
        _ => None,
    }
}

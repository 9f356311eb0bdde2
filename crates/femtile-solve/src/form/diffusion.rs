//! Checks of diffusion with and without convection: a conductivity that is positive definite, a reaction that is not negative, the cell
//! Péclet number.

use femtile_fem::forms::{Points, definite, not_negative};
use femtile_form::{Argument, Coefficient};
use femtile_mesh::Mesh;

use super::FormProblem;
use crate::SolveError;

/// Refuses a conductivity whose symmetric part is not positive definite at a corner of a cell, and a negative reaction of a linear
/// equation without convection. Functions of u have no values yet.
pub(super) fn check(problem: &FormProblem<'_>, is_linear: bool) -> Result<(), SolveError> {
    let (mesh, d, mut points) = (problem.mesh, problem.mesh.space_dimension(), Points::default());
    let given = |name| match problem.coefficient(name) {
        Some(Argument::One(coefficient)) if !coefficient.uses_unknown() => Some(coefficient),
        _ => None,
    };
    let is_elliptic = is_linear && problem.equation.name() == "reaction-diffusion";
    let (sigma, lambda) = (given("sigma"), given("lambda").filter(|_| is_elliptic));
    if sigma.is_none() && lambda.is_none() {
        return Ok(());
    }
    for cell in 0..mesh.n_cells() {
        let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
        for &node in mesh.cell(cell) {
            let point = mesh.points[node as usize];
            points.clear();
            points.push(cell as u32, point);
            if let Some(sigma) = sigma {
                let tensor = sigma.tensor_at(cell, tag, point);
                let symmetric =
                    std::array::from_fn(|i| std::array::from_fn(|j| 0.5 * (tensor[i][j] + tensor[j][i])));
                definite(&[symmetric], &points, d)?;
            }
            if let Some(lambda) = lambda {
                not_negative("lambda", &[lambda.scalar_at(cell, tag, point)], &points)?;
            }
        }
    }
    Ok(())
}

/// Returns a warning if the largest cell Péclet number |b|h/(2σ) of an equation with convection is above 1.
///
/// h is the extent of the cell along b, divided by the degree; b and σ along b are those in the middle of the cell.
pub(super) fn peclet_warning(problem: &FormProblem<'_>) -> Option<String> {
    if problem.is_stabilised() {
        return None;
    }
    let (sigma, velocity) = (problem.coefficient("sigma"), problem.coefficient("velocity")?);
    let mesh = problem.mesh;
    let number = |cell: usize| {
        let corners = mesh.cell(cell);
        let (tag, centre) = (mesh.cell_tags.get(cell).copied().unwrap_or(0), centre(mesh, cell));
        let b = vector_at(velocity, cell, tag, centre);
        let sigma = match sigma {
            Some(Argument::One(sigma)) => sigma.tensor_at(cell, tag, centre),
            _ => femtile_form::multiple_of_identity(1.0),
        };
        let square: f64 = b.iter().map(|b| b * b).sum();
        if square == 0.0 {
            return (0.0, centre);
        }
        let along = |x: [f64; 3]| (0..3).map(|axis| b[axis] * x[axis]).sum::<f64>() / square.sqrt();
        let places = corners.iter().map(|&node| along(mesh.points[node as usize]));
        let (least, most) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let of_rows = (0..3).map(|i| (0..3).map(|j| b[i] * sigma[i][j] * b[j]).sum::<f64>());
        let diffusion = of_rows.sum::<f64>() / square;
        (square.sqrt() * (most - least) / (2.0 * diffusion * problem.degree as f64), centre)
    };
    let all = (0..mesh.n_cells()).map(number);
    let (largest, [x, y, z]) = all.fold((0.0, [0.0; 3]), |a, b| if b.0 > a.0 { b } else { a });
    (largest > 1.0).then(|| {
        format!(
            "the cell Péclet number |b|h/(2σ) is {largest:.3} at ({x:.3}, {y:.3}, {z:.3}), above 1: the solution may \
             oscillate; refine the mesh, or give stabilise = \"supg\" in [equation] with degree 1"
        )
    })
}

/// Returns the mean of the corners of a cell.
pub(super) fn centre(mesh: &Mesh, cell: usize) -> [f64; 3] {
    let corners = mesh.cell(cell);
    std::array::from_fn(|axis| {
        corners.iter().map(|&node| mesh.points[node as usize][axis]).sum::<f64>() / corners.len() as f64
    })
}

fn vector_at(vector: &Argument, cell: usize, tag: i32, point: [f64; 3]) -> [f64; 3] {
    match vector {
        Argument::Vector(parts) => {
            std::array::from_fn(|axis| parts.get(axis).map_or(0.0, |part| part.scalar_at(cell, tag, point)))
        }
        Argument::One(Coefficient::CellField(field)) => std::array::from_fn(|axis| {
            if axis < field.n_components { field.values[cell * field.n_components + axis] } else { 0.0 }
        }),
        Argument::One(_) => [0.0; 3],
    }
}

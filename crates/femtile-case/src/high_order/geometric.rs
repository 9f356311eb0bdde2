//! Geometric multigrid of a case: the box behind its mesh, the boxes below, what is refused.

use femtile_device::Cpu;
use femtile_fem::tensor::TensorProblem;
use femtile_linalg::precondition::Diagonal;
use femtile_multigrid::{BoxGrid, GeometricMultigrid, Multigrid, MultigridConfig, MultigridError, PostOrder};
use femtile_tensor::Contract;

use super::lattice::Lattice;
use super::renumbered::{Numbers, Renumbered};
use crate::file::{BoxSmootherName, GmgSection, LevelPrecision, Method};
use crate::report::LevelReport;
use crate::solve::Preconditioning;
use crate::{Case, CaseError};

/// Coefficients of cells that differ from their mean by less than this share are one.
const CONSTANT: f64 = 1e-10;

/// A cycle for −∇·(σ̄∇u) with u = 0 on the whole boundary, up to a factor, which conjugate gradients do not see, on the cells
/// that the corners of the mesh span.
///
/// σ̄ has one number for each cell, the mean of the diagonal of σ in its middle; entries that differ everywhere alike stretch the
/// box instead. What else σ does and λ are left to the iterations.
///
/// # Errors
/// [`CaseError::Input`] where the cells do not stand in rows, u is not given on the whole boundary, or the coarsest level is too large.
pub(super) fn preconditioner(
    cpu: &Cpu,
    case: &Case,
    problem: &TensorProblem<'_>,
) -> Result<Preconditioning<Cpu>, CaseError> {
    let space = problem.space();
    let lattice = Lattice::of(space).map_err(|lack| {
        refuse(case, &format!("needs cells in rows like those of a box, and {lack}: use another mesh"))
    })?;
    let options = case.file.solver.gmg.clone().unwrap_or_default();
    let finest = finest(&lattice, problem, options.smoother).map_err(|error| refused(case, error))?;
    let numbers = Numbers::new(lattice.nodes(space), problem.constraints().dofs());
    if let Some(side) = free_side(&lattice, &finest, &numbers) {
        let message = format!(
            "needs u given on the whole boundary, and it is not on the side {side}: put a `dirichlet` there"
        );
        return Err(refuse(case, &message));
    }
    if numbers.constrained.len() == space.n_dofs() {
        return Ok((Box::new(Diagonal::identity(cpu, space.n_dofs())?), Vec::new()));
    }
    // What need not be symmetric smooths in the same order before and after, which takes off more.
    let post = if case.file.solver.method == Method::Gmres { PostOrder::Same } else { PostOrder::Reversed };
    let cycle = match options.precision {
        LevelPrecision::Single => cycle::<f32>(cpu, &finest, (&options, post), numbers),
        LevelPrecision::Double => cycle::<f64>(cpu, &finest, (&options, post), numbers),
    };
    cycle.map_err(|error| refused(case, error))
}

/// The error where a case is none for geometric multigrid.
fn refuse(case: &Case, message: &str) -> CaseError {
    let message = format!("geometric multigrid {message}, or use \"pmg\"");
    case.wrong(&["solver".into(), "preconditioner".into()], message)
}

/// The same for what the hierarchy refuses, with what to do about cells that cannot be joined.
fn refused(case: &Case, error: MultigridError) -> CaseError {
    match error {
        MultigridError::Linalg(error) => error.into(),
        MultigridError::Points => {
            let message = "smooths by points on rectangular cells alone: take `smoother = \"vertex-patch\"`";
            refuse(case, message)
        }
        MultigridError::Coarsest { axis, cells, least, most } => {
            let name = ["x", "y", "z"][axis];
            let message = format!(
                "joins cells in pairs of one width while an axis has an even number of them, and {cells} along {name} \
                 remain on the coarsest level, which takes {least} to {most}: take 2, 4, 8, … times a few cells along each axis"
            );
            refuse(case, &message)
        }
        error => refuse(case, &format!("cannot be set up ({error}): use another mesh")),
    }
}

/// The box of the mesh, stretched to where σ̄ is 1 in the mean and its longest side too; points smooth on rectangles as if it were
/// 1 in all cells.
fn finest(
    lattice: &Lattice,
    problem: &TensorProblem<'_>,
    smoother: BoxSmootherName,
) -> Result<BoxGrid, MultigridError> {
    let (degree, d) = (problem.space().degree(), problem.space().dimension());
    let sigma = diagonals(lattice, problem);
    let means = means(&sigma);
    let extent = |axis: usize| {
        let along = || lattice.corners().iter().map(|corner| corner[axis]);
        along().fold(f64::NEG_INFINITY, f64::max) - along().fold(f64::INFINITY, f64::min)
    };
    let roots = means.map(f64::sqrt);
    let longest = (0..d).map(|axis| extent(axis) / roots[axis]).fold(0.0, f64::max);
    let coefficient = |sigma: &[f64; 3]| (0..d).map(|axis| sigma[axis] / means[axis]).sum::<f64>() / d as f64;
    let coefficients: Vec<f64> = sigma.iter().map(coefficient).collect();
    let is_one =
        smoother == BoxSmootherName::Point || coefficients.iter().all(|c| (c - 1.0).abs() < CONSTANT);
    if let Some(mut widths) = lattice.widths().filter(|_| is_one) {
        for (widths, root) in widths.iter_mut().zip(roots) {
            widths.iter_mut().for_each(|width| *width /= root * longest);
        }
        return BoxGrid::new(degree, &widths);
    }
    let stretch = |corner: &[f64; 3]| {
        [0, 1, 2].map(|axis| if axis < d { corner[axis] / (roots[axis] * longest) } else { 0.0 })
    };
    let corners = lattice.corners().iter().map(stretch).collect();
    BoxGrid::mapped(degree, &lattice.n_cells()[..d], corners, coefficients)
}

/// The diagonal entries of σ in the middles of all cells, in the order of the box.
fn diagonals(lattice: &Lattice, problem: &TensorProblem<'_>) -> Vec<[f64; 3]> {
    let (space, sigma) = (problem.space(), problem.form().sigma);
    let mut found = vec![[1.0; 3]; space.n_cells()];
    if sigma.as_constant().is_some() {
        return found;
    }
    let (mesh, [n_x, n_y, _]) = (space.mesh(), lattice.n_cells());
    for (position, &cell) in space.order().iter().enumerate() {
        let cell = cell as usize;
        let nodes = mesh.cell(cell);
        let sum = |axis: usize| nodes.iter().map(|&node| mesh.points[node as usize][axis]).sum::<f64>();
        let middle = [0, 1, 2].map(|axis| sum(axis) / nodes.len() as f64);
        let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
        let tensor = sigma.tensor_at(cell, tag, middle);
        let [x, y, z] = lattice.place(position);
        found[(z * n_y + y) * n_x + x] = [0, 1, 2].map(|axis| tensor[axis][axis]);
    }
    found
}

fn means(entries: &[[f64; 3]]) -> [f64; 3] {
    [0, 1, 2].map(|axis| entries.iter().map(|entry| entry[axis]).sum::<f64>() / entries.len() as f64)
}

/// A side of the box on which u is not given everywhere.
fn free_side(lattice: &Lattice, grid: &BoxGrid, numbers: &Numbers) -> Option<String> {
    let along = grid.nodes();
    let mut is_given = vec![false; numbers.node_of_dof.len()];
    numbers.constrained.iter().for_each(|&dof| is_given[numbers.node_of_dof[dof as usize] as usize] = true);
    let side_of = |node: usize| {
        let at = [node % along[0], node / along[0] % along[1], node / (along[0] * along[1])];
        let on_side = |axis: usize| at[axis] == 0 || at[axis] + 1 == along[axis];
        (0..grid.dimension()).find(|&axis| on_side(axis)).map(|axis| (axis, at[axis] > 0))
    };
    let free = (0..is_given.len()).filter(|&node| !is_given[node]);
    free.filter_map(side_of).next().map(|(axis, is_upper)| lattice.side(axis, is_upper))
}

/// The cycle, and what there is to tell of its levels, the finest first.
fn cycle<T: Contract>(
    cpu: &Cpu,
    finest: &BoxGrid,
    (options, post): (&GmgSection, PostOrder),
    numbers: Numbers,
) -> Result<Preconditioning<Cpu>, MultigridError> {
    let config = MultigridConfig { smoother: options.smoother.into(), post };
    let cycle = GeometricMultigrid::<T>::of(Multigrid::below(cpu, finest, config)?)?;
    let has_patches =
        matches!(options.smoother, BoxSmootherName::VertexPatch | BoxSmootherName::AdditivePatch);
    let n_vertices = |grid: &BoxGrid| (0..grid.dimension()).map(|axis| grid.widths(axis).len() - 1).product();
    let level = |(level, grid): (usize, &BoxGrid)| LevelReport {
        n_rows: grid.n_unknowns(),
        n_nonzeros: None,
        n_patches: (has_patches && level > 0).then(|| n_vertices(grid)),
    };
    let mut levels: Vec<_> = cycle.multigrid().grids().enumerate().map(level).collect();
    levels.reverse();
    Ok((Box::new(Renumbered::new(cpu, cycle, numbers)?), levels))
}

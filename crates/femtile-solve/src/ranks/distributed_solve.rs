//! Solutions on a distributed mesh, and its boxes of geometric multigrid.

use std::sync::Arc;

use femtile_fem::{Constraints, functionals};
use femtile_mesh::partition::{BoxCubes, DistributedMesh};
use femtile_space::{Space, TensorSpace};

use super::mesh_on_ranks::MeshOnRanks;
use super::numbering::{Numbering, numbers_in, numbers_in_box};
use super::rows::agreed;
use super::unknowns::RankUnknowns;
use crate::discretization::Discretization;
use crate::distributed_solution::DistributedSolution;
use crate::solution::{Finished, Solution};
use crate::tensor::geometric::{self, refuse};
use crate::tensor::{BoxCells, Boxes};
use crate::{GmgOptions, GmgStart, SolveError};

/// Values of σ gathered in one message, for that many cells of all ranks, 24 bytes each. MPI counts bytes in
/// 31 bits.
const MOST_GATHERED: usize = 1 << 24;

/// The space on the rank's own cells; none for linear elements.
fn own_space<'m>(
    problem: &Discretization<'m>,
    divided: &MeshOnRanks<'m>,
) -> Result<Option<Arc<TensorSpace<'m>>>, SolveError> {
    let degree = problem.space().map(TensorSpace::degree);
    let made = degree.map(|degree| TensorSpace::new(&divided.mesh.own().mesh, degree)).transpose();
    Ok(agreed(&divided.comm, made.map_err(SolveError::from))?.map(Arc::new))
}

/// Restricts values on the part to the degrees of freedom of `space` on the rank's own cells.
fn own_values(
    (problem, divided): (&Discretization<'_>, &MeshOnRanks<'_>),
    own: Option<&TensorSpace<'_>>,
    u: &[f64],
) -> Vec<f64> {
    let mesh = divided.mesh;
    match (problem.space(), own) {
        (Some(space), Some(own)) => {
            numbers_in(space, own, &mesh.own().cells).into_iter().map(|dof| u[dof as usize]).collect()
        }
        _ => mesh.own().nodes.iter().map(|&node| u[node as usize]).collect(),
    }
}

/// The mean of a function over the whole mesh, from its values on the own cells of each rank. Collective.
fn mean(divided: &MeshOnRanks<'_>, own: Option<&TensorSpace<'_>>, u: &[f64]) -> Result<f64, SolveError> {
    let mesh = &divided.mesh.own().mesh;
    let space = Space::of(mesh, own)?;
    let here = [functionals::integral(&space, u)?, functionals::measure(&space)?];
    let [integral, measure] = divided.sum(here)?;
    Ok(integral / measure)
}

/// The result of a solve on one rank, before it is joined with those of others.
pub(crate) struct SolvedOnRank {
    /// With the values of each component: those of the whole mesh, or on the part of the rank.
    pub finished: Finished,
    pub unknowns: RankUnknowns,
    /// Whether the values on parts are unique only up to a constant.
    pub is_pure_neumann: bool,
}

/// Makes the distributed solution from the values of each component on the part; the mean is removed if a
/// constant is free. The solution of this rank is that on its own cells. Collective.
pub(crate) fn results<'m>(
    (problem, divided): (Discretization<'m>, MeshOnRanks<'m>),
    of_rank: SolvedOnRank,
) -> Result<Solution<'m>, SolveError> {
    let SolvedOnRank { mut finished, unknowns, is_pure_neumann } = of_rank;
    let mut components = std::mem::take(&mut finished.components);
    let space = own_space(&problem, &divided)?;
    for u in &mut components {
        let mut of_own = own_values((&problem, &divided), space.as_deref(), u);
        if is_pure_neumann {
            let mean = mean(&divided, space.as_deref(), &of_own)?;
            u.iter_mut().chain(&mut of_own).for_each(|u| *u -= mean);
        }
        finished.components.push(of_own);
    }
    let own = problem.on_own_cells(&divided, space);
    let n_owned = unknowns.owned.len();
    let is_owned = unknowns.local.positions().iter().map(|&number| (number as usize) < n_owned).collect();
    let distributed = DistributedSolution::new((problem, divided), components, is_owned)?;
    Ok(Solution::distributed(own, finished, distributed))
}

/// The box of a problem on ranks that have generated its layers. Collective.
///
/// # Errors
/// As on one rank; also if cells are not distributed by layers.
pub(crate) fn boxes(
    problem: &Discretization<'_>,
    divided: &MeshOnRanks<'_>,
    options: &GmgOptions,
) -> Result<Boxes, SolveError> {
    let mesh = divided.mesh;
    if options.start != GmgStart::None {
        return Err(geometric::no_start());
    }
    let cubes = mesh.cubes.as_ref().filter(|_| mesh.way == "layers");
    let (Some(cubes), Some(space)) = (cubes, problem.space()) else {
        return Err(refuse(
            "needs a box in layers of its cells where no rank has the whole mesh: take one that each has",
        ));
    };
    geometric::need_positive(&problem.sigma)?;
    let along = cubes.n.map(|n| n * space.degree() + 1);
    if along.iter().product::<usize>() > u32::MAX as usize {
        return Err(refuse("has at most 4294967295 unknowns"));
    }
    let given = Constraints::of_form(&Space::from(space), &problem.form(0)).map_err(SolveError::from);
    let given = agreed(&divided.comm, given)?;
    let numbering = Numbering::new(&mesh.part, space, divided.comm.rank());
    let nodes = numbers_in_box(cubes, &mesh.part, space);
    let nodes: Vec<u32> = nodes.into_iter().map(|node| node as u32).collect();
    let (free, is_known) = free_sides(divided, (along, &nodes), (&numbering.owned, &given))?;
    let cells = box_cells(problem, divided, cubes)?;
    Boxes::of_part((space.degree(), nodes), &cells, (free, is_known))
}

/// All cells of the box. Collective.
fn box_cells(
    problem: &Discretization<'_>,
    divided: &MeshOnRanks<'_>,
    cubes: &BoxCubes,
) -> Result<BoxCells<'static>, SolveError> {
    let is_one = problem.sigma.as_constant().is_some();
    let is_straight = cubes.deform.is_none_or(|deform| deform.amplitude == 0.0);
    let ends = || [0, 1].map(|end| cubes.lines.each_ref().map(|lines| lines[end * (lines.len() - 1)]));
    Ok(BoxCells {
        n: cubes.n,
        widths: is_straight.then(|| geometric::widths_between(&cubes.lines)),
        corners: if is_one && is_straight { ends().to_vec() } else { cubes.corners() }.into(),
        sigma: if is_one { None } else { Some(sigma_of_box(problem, divided)?) },
    })
}

/// The diagonal entries of σ at the centres of all cells of a box, in rows. Collective.
fn sigma_of_box(
    problem: &Discretization<'_>,
    divided: &MeshOnRanks<'_>,
) -> Result<Vec<[f64; 3]>, SolveError> {
    let DistributedMesh { part, counts, .. } = divided.mesh;
    let own = &divided.mesh.own().cells;
    let cells: Vec<u32> = own.iter().map(|&cell| part.cells[cell as usize]).collect();
    let sigma: Vec<[f64; 3]> =
        own.iter().map(|&cell| geometric::diagonal(problem.mesh, &problem.sigma, cell as usize)).collect();
    let most = divided.comm.all_gather(&[cells.len() as u64])?.into_iter().flatten().max().unwrap_or(0);
    let at_once = (MOST_GATHERED / divided.comm.n_ranks()).max(1);
    let mut all = vec![[1.0; 3]; counts.n_cells as usize];
    // All ranks send as many messages as the one with the most cells.
    for begin in (0..most as usize).step_by(at_once) {
        let piece = begin.min(cells.len())..(begin + at_once).min(cells.len());
        let cells = divided.comm.all_gather(&cells[piece.clone()])?.concat();
        let sigma = divided.comm.all_gather(&sigma[piece])?.concat();
        cells.into_iter().zip(sigma).for_each(|(cell, sigma)| all[cell as usize] = sigma);
    }
    Ok(all)
}

/// The sides of a box without Dirichlet values, and whether all unknowns have Dirichlet values. Collective.
fn free_sides(
    divided: &MeshOnRanks<'_>,
    (along, nodes): ([usize; 3], &[u32]),
    (owned, given): (&[u32], &Constraints),
) -> Result<([[bool; 2]; 3], bool), SolveError> {
    let sides_of = |node: u32| {
        let node = node as usize;
        let at = [node % along[0], node / along[0] % along[1], node / (along[0] * along[1])];
        let on = |side: usize| at[side / 2] == (side % 2) * (along[side / 2] - 1);
        [0, 1, 2, 3, 4, 5].map(on)
    };
    // The part has all facets around an owned unknown.
    let owned = || owned.iter().map(|&dof| dof as usize);
    let mut is_open = [false; 7];
    for dof in owned().filter(|&dof| given.value(dof).is_none()) {
        let on = sides_of(nodes[dof]);
        (0..6).for_each(|side| is_open[side] |= on[side]);
        is_open[6] = true;
    }
    let is_open = divided.comm.any(is_open)?;
    let is_fixed = |on: [bool; 6]| (0..6).any(|side| on[side] && !is_open[side]);
    let mut has_part = [false; 7];
    for dof in owned().filter(|&dof| given.value(dof).is_some()) {
        let on = sides_of(nodes[dof]);
        if !is_fixed(on) {
            (0..6).for_each(|side| has_part[side] |= on[side]);
            has_part[6] = true;
        }
    }
    let has_part = divided.comm.any(has_part)?;
    if let Some(side) = (0..6).find(|&side| has_part[side]) {
        let name = ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"][side];
        return Err(refuse(&format!(
            "needs u given everywhere or nowhere on each side, and it is on a part of the side {name}: put a `dirichlet` on \
             all of it"
        )));
    }
    if has_part[6] {
        return Err(refuse("needs u given on whole sides alone, and it is at nodes inside the box"));
    }
    Ok(([0, 1, 2].map(|axis| [is_open[2 * axis], is_open[2 * axis + 1]]), !is_open[6]))
}

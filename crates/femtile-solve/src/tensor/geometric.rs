//! Geometric multigrid on a mesh: the box of its cells, the coarser boxes, and unsupported problems.

use std::borrow::Cow;
use std::sync::Arc;

use femtile_device::parallel;
use femtile_fem::Coefficient;
use femtile_fem::tensor::TensorProblem;
use femtile_linalg::precondition::Diagonal;
use femtile_mesh::Mesh;
use femtile_mesh::partition::Partition;
use femtile_multigrid::{
    BoxGrid, MultigridConfig, MultigridDevice, MultigridError, PostOrder, Slabs, Smoother,
};
use femtile_space::TensorSpace;

use super::lattice::{Lattice, widths};
use super::start::Nested;
use crate::method::SolveDevice;
use crate::preconditioner::{Level, Preconditioning};
use crate::ranks::device::RankDevices;
use crate::{GmgOptions, GmgStart, LevelPrecision, Method, SolveError};

/// Coefficients of cells that differ from their mean by less than this share are treated as constant.
const CONSTANT: f64 = 1e-10;
/// The message if no side has Dirichlet values.
const NO_SIDE: &str = "needs u given on one side of the box at least: put a `dirichlet` there";
/// Degrees of freedom per parallel task.
const DOFS: usize = 1 << 14;

/// The box of the cells of a mesh.
#[derive(Debug)]
pub(crate) struct Boxes {
    finest: BoxGrid,
    /// Returns the node of the box of each degree of freedom.
    nodes: Vec<u32>,
    /// Whether all degrees of freedom have Dirichlet values.
    is_known: bool,
    /// The lattice of cells, for full multigrid.
    lattice: Option<Box<Lattice>>,
    /// The partition of layers of cells among ranks.
    partition: Option<Partition>,
}

impl Boxes {
    /// Finds the box of a problem.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if the cells do not form rows, or Dirichlet values cover only parts of sides
    /// or no side.
    pub fn of(options: &GmgOptions, problem: &TensorProblem<'_>) -> Result<Self, SolveError> {
        let cells = (problem.space(), problem.form().sigma);
        let (boxes, lattice) = Self::with_lattice(cells, problem.constraints().dofs())?;
        let lattice = (options.start == GmgStart::Full).then(|| Box::new(lattice));
        Ok(Self { lattice, ..boxes })
    }

    /// Finds the box of a space, a coefficient σ and the Dirichlet degrees of freedom, and distributes its
    /// layers among ranks.
    ///
    /// # Errors
    /// As [`Boxes::of`], and for full multigrid as initial guess, which several ranks do not support.
    pub fn of_ranks(
        options: &GmgOptions,
        cells: (&TensorSpace<'_>, &Coefficient),
        given: &[u32],
        n_ranks: usize,
    ) -> Result<Self, SolveError> {
        if options.start != GmgStart::None {
            return Err(no_start());
        }
        let (boxes, lattice) = Self::with_lattice(cells, given)?;
        let (space, across) = (cells.0, cells.0.dimension() - 1);
        let n_layers = lattice.n_cells()[across];
        if n_layers < n_ranks {
            return Err(refuse(&format!(
                "divides layers of cells across the last axis of the box among ranks, and {n_layers} layers are too few for \
                 {n_ranks} ranks: take fewer"
            )));
        }
        let slabs = Slabs::new(n_layers, n_ranks);
        let mut ranks = vec![0; space.n_cells()];
        for (position, &cell) in space.order().iter().enumerate() {
            ranks[cell as usize] = slabs.rank_of(lattice.place(position)[across]) as u32;
        }
        let partition = Partition::new(ranks, n_ranks).ok_or_else(|| refuse("needs ranks for all layers"))?;
        Ok(Self { partition: Some(partition), ..boxes })
    }

    /// Takes the box of a distributed mesh, and the node of the box of each degree of freedom of a part.
    ///
    /// # Errors
    /// As [`Boxes::of`].
    pub fn of_part(
        (degree, nodes): (usize, Vec<u32>),
        cells: &BoxCells<'_>,
        (free, is_known): ([[bool; 2]; 3], bool),
    ) -> Result<Self, SolveError> {
        let mut finest = cells.grid(degree, 3).map_err(refused)?;
        if !is_known {
            if free.as_flattened().contains(&true) {
                finest = finest.with_free_sides(free).map_err(|_| refuse(NO_SIDE))?;
            }
            femtile_multigrid::check_coarsening(&finest).map_err(refused)?;
        }
        Ok(Self { finest, nodes, is_known, lattice: None, partition: None })
    }

    /// Finds the box, and the lattice of its cells.
    fn with_lattice(
        cells: (&TensorSpace<'_>, &Coefficient),
        given: &[u32],
    ) -> Result<(Self, Lattice), SolveError> {
        let (space, sigma) = cells;
        need_positive(sigma)?;
        let lattice = Lattice::of(space).map_err(|lack| {
            refuse(&format!("needs cells in rows like those of a box, and {lack}: use another mesh"))
        })?;
        let finest = finest(&lattice, cells).map_err(refused)?;
        let nodes = lattice.nodes(space);
        let finest = with_free_sides(finest, &nodes, given).map_err(|lack| lack.refusal(&lattice))?;
        let is_known = given.len() == space.n_dofs();
        if !is_known {
            femtile_multigrid::check_coarsening(&finest).map_err(refused)?;
        }
        Ok((Self { is_known, finest, nodes, lattice: None, partition: None }, lattice))
    }

    /// Returns the finest box.
    pub fn finest(&self) -> &BoxGrid {
        &self.finest
    }

    /// Returns the node of the box of each degree of freedom.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns whether all degrees of freedom have Dirichlet values.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns the lattice of cells, if full multigrid may need it.
    pub(super) fn lattice(&self) -> Option<&Lattice> {
        self.lattice.as_deref()
    }

    /// Returns the partition of layers of cells among ranks, if there are several.
    pub fn partition(&self) -> Option<&Partition> {
        self.partition.as_ref()
    }

    /// Returns the fewest layers of cells of a rank.
    pub fn fewest_layers(&self, n_ranks: usize) -> usize {
        self.finest.widths(self.finest.dimension() - 1).len() / n_ranks.max(1)
    }

    /// Returns the part of the method that GPUs do not support, if there is one.
    pub fn lack_of_gpus(&self) -> Option<String> {
        let lack = femtile_multigrid::unsupported_on_gpu(&self.finest)?;
        Some(format!("geometric multigrid on this mesh runs on CPUs only ({lack})"))
    }

    /// Returns the reason why a CPU is the better choice, if GPUs need more iterations.
    pub fn gain_of_cpus(&self) -> Option<String> {
        let axis = femtile_multigrid::thin_axis(&self.finest)?;
        let name = ["x", "y", "z"][axis];
        Some(format!(
            "geometric multigrid takes fewer iterations on CPUs where a box is thin (here along {name})"
        ))
    }
}

/// Sets up geometric multigrid for −∇·(σ̄∇u) on the cells spanned by the corners of the mesh, with u = 0 on
/// Dirichlet sides and no flux through the others. The operator is approximated up to a factor, which
/// conjugate gradients do not depend on.
///
/// σ̄ is a scalar per cell, the mean of the diagonal of σ at its centre. A constant ratio of diagonal entries
/// is treated by stretching the box instead. Off-diagonal entries, λ and Robin coefficients are left to the
/// iterations.
///
/// Also returns full multigrid on these levels, if each level is the problem on coarser cells up to a factor.
///
/// # Errors
/// [`SolveError::Setting`] if there are no levels for the box.
pub(super) fn preconditioner<D>(
    device: &D,
    options: &GmgOptions,
    method: Method,
    boxes: &Boxes,
) -> Result<(Preconditioning<D>, Option<Nested<D>>), SolveError>
where
    D: SolveDevice + MultigridDevice,
{
    if boxes.is_known {
        return Ok(((Box::new(Diagonal::identity(device, boxes.nodes.len())?), Vec::new()), None));
    }
    let config = config_of(options, method);
    cycle(device, boxes, config, options.precision).map_err(refused)
}

/// The settings of a cycle. If it need not be symmetric, pre- and post-smoothing have the same order, which
/// reduces the error more.
fn config_of(options: &GmgOptions, method: Method) -> MultigridConfig {
    let post = if matches!(method, Method::Gmres { .. }) { PostOrder::Same } else { PostOrder::Reversed };
    MultigridConfig { smoother: options.smoother, post }
}

/// As [`preconditioner`], distributed; `owned` has the global number of each owned unknown. Collective.
///
/// # Errors
/// As [`preconditioner`].
pub(crate) fn of_ranks<D>(
    RankDevices { device, comm, .. }: RankDevices<'_, D>,
    (options, method): (&GmgOptions, Method),
    boxes: &Boxes,
    owned: &[u32],
) -> Result<Preconditioning<D>, SolveError>
where
    D: SolveDevice + MultigridDevice,
{
    if boxes.is_known {
        return Ok((Box::new(Diagonal::identity(device, owned.len())?), Vec::new()));
    }
    let nodes = parallel::map(owned.len(), DOFS, |at| boxes.nodes[owned[at] as usize]);
    let (config, of) = (config_of(options, method), (&boxes.finest, &nodes[..]));
    let made = device.distributed_multigrid(comm, of, config, options.precision);
    let (cycle, grids) = made.map_err(refused)?;
    let n_above = grids.len() - 1;
    let level = |(level, grid)| {
        level_of(device, grid, (level < n_above).then_some(config.smoother), options.precision)
    };
    Ok((cycle, grids.iter().enumerate().map(level).collect()))
}

/// Describes a level; the coarsest has no smoother.
fn level_of<D: MultigridDevice>(
    device: &D,
    grid: &BoxGrid,
    smoother: Option<Smoother>,
    precision: LevelPrecision,
) -> Level {
    let n_patches = |smoother| device.n_patches(grid, smoother, precision);
    Level {
        n_rows: grid.n_unknowns(),
        n_nonzeros: None,
        n_patches: smoother.and_then(n_patches),
        format: None,
    }
}

/// Returns whether the cells of a mesh are quadrilaterals or hexahedra in rows that fill a box, as geometric multigrid needs.
pub fn cells_fill_rows(mesh: &Mesh) -> bool {
    super::is_for(mesh.kind) && TensorSpace::new(mesh, 1).is_ok_and(|space| Lattice::of(&space).is_ok())
}

/// Returns the error about full multigrid as initial guess on several ranks.
pub(crate) fn no_start() -> SolveError {
    let place = ["solver".into(), "gmg".into(), "start".into()];
    SolveError::setting(&place, "several ranks begin from zero: leave it out")
}

/// Returns the error for problems that geometric multigrid does not support.
pub(crate) fn refuse(message: &str) -> SolveError {
    let message = format!("geometric multigrid {message}, or use \"pmg\"");
    SolveError::solver("preconditioner", message)
}

/// Returns the error if the hierarchy refuses a box, with a remedy for cells that cannot be joined.
pub(super) fn refused(error: MultigridError) -> SolveError {
    match error {
        MultigridError::Linalg(error) => error.into(),
        MultigridError::Coarsest { axis, cells, least, most } => {
            let name = ["x", "y", "z"][axis];
            let message = format!(
                "joins cells in pairs of one width while an axis has an even number of them, and {cells} along {name} \
                 remain on the coarsest level, which takes {least} to {most}: take 2, 4, 8, … times a few cells along each axis"
            );
            refuse(&message)
        }
        error => refuse(&format!("cannot be set up ({error}): use another mesh")),
    }
}

/// Returns the widths of cells between lines along each axis; nearly equal ones are made equal.
pub(crate) fn widths_between(lines: &[Vec<f64>; 3]) -> Vec<Vec<f64>> {
    lines.iter().map(|lines| widths(lines)).collect()
}

/// Refuses σ = 0.
pub(crate) fn need_positive(sigma: &Coefficient) -> Result<(), SolveError> {
    let message = "geometric multigrid is for a positive sigma, and this one is 0: use \"jacobi\"";
    match sigma.as_constant() {
        Some(0.0) => Err(SolveError::solver("preconditioner", message)),
        _ => Ok(()),
    }
}

/// Cells in rows that fill a box.
pub(crate) struct BoxCells<'a> {
    /// Number of cells along each axis.
    pub n: [usize; 3],
    /// Widths of cells along each axis, if they are rectangles along the axes.
    pub widths: Option<Vec<Vec<f64>>>,
    /// Corners of cells, row by row; those at the ends of the box suffice for rectangles with one σ.
    pub corners: Cow<'a, [[f64; 3]]>,
    /// The diagonal entries of σ at the centres of cells, row by row; none if σ is a number.
    pub sigma: Option<Vec<[f64; 3]>>,
}

impl BoxCells<'_> {
    /// Returns the box of elements of a degree in `d` dimensions, scaled such that the mean of σ̄ and the
    /// longest side are 1.
    fn grid(&self, degree: usize, d: usize) -> Result<BoxGrid, MultigridError> {
        let means = self.sigma.as_ref().map_or([1.0; 3], |sigma| means(sigma));
        let extent = |axis: usize| {
            let along = || self.corners.iter().map(|corner| corner[axis]);
            along().fold(f64::NEG_INFINITY, f64::max) - along().fold(f64::INFINITY, f64::min)
        };
        let roots = means.map(f64::sqrt);
        let longest = (0..d).map(|axis| extent(axis) / roots[axis]).fold(0.0, f64::max);
        let coefficient =
            |sigma: &[f64; 3]| (0..d).map(|axis| sigma[axis] / means[axis]).sum::<f64>() / d as f64;
        let coefficients: Option<Vec<f64>> =
            self.sigma.as_ref().map(|sigma| sigma.iter().map(coefficient).collect());
        let is_one = coefficients.iter().flatten().all(|c| (c - 1.0).abs() < CONSTANT);
        if let Some(widths) = self.widths.as_ref().filter(|_| is_one) {
            let mut widths = widths.clone();
            for (widths, root) in widths.iter_mut().zip(roots) {
                widths.iter_mut().for_each(|width| *width /= root * longest);
            }
            return BoxGrid::new(degree, &widths);
        }
        let stretch = |corner: &[f64; 3]| {
            [0, 1, 2].map(|axis| if axis < d { corner[axis] / (roots[axis] * longest) } else { 0.0 })
        };
        let corners = self.corners.iter().map(stretch).collect();
        let coefficients = coefficients.unwrap_or_else(|| vec![1.0; self.n.iter().product()]);
        BoxGrid::mapped(degree, &self.n[..d], corners, coefficients)
    }
}

/// Returns the box of the mesh, as [`BoxCells::grid`] makes it.
fn finest(lattice: &Lattice, cells: (&TensorSpace<'_>, &Coefficient)) -> Result<BoxGrid, MultigridError> {
    let (degree, d) = (cells.0.degree(), cells.0.dimension());
    let box_cells = BoxCells {
        n: lattice.n_cells(),
        widths: lattice.widths(),
        corners: lattice.corners().into(),
        sigma: cells.1.as_constant().is_none().then(|| diagonals(lattice, cells)),
    };
    box_cells.grid(degree, d)
}

/// Returns the diagonal entries of σ at the centres of all cells, in the order of the box.
fn diagonals(lattice: &Lattice, (space, sigma): (&TensorSpace<'_>, &Coefficient)) -> Vec<[f64; 3]> {
    let mut found = vec![[1.0; 3]; space.n_cells()];
    let (mesh, [n_x, n_y, _]) = (space.mesh(), lattice.n_cells());
    for (position, &cell) in space.order().iter().enumerate() {
        let [x, y, z] = lattice.place(position);
        found[(z * n_y + y) * n_x + x] = diagonal(mesh, sigma, cell as usize);
    }
    found
}

/// Returns the diagonal entries of σ at the centre of a cell.
pub(crate) fn diagonal(mesh: &Mesh, sigma: &Coefficient, cell: usize) -> [f64; 3] {
    let tag = mesh.cell_tags.get(cell).copied().unwrap_or(0);
    let tensor = sigma.tensor_at(cell, tag, mesh.middle(cell));
    [0, 1, 2].map(|axis| tensor[axis][axis])
}

fn means(entries: &[[f64; 3]]) -> [f64; 3] {
    [0, 1, 2].map(|axis| entries.iter().map(|entry| entry[axis]).sum::<f64>() / entries.len() as f64)
}

/// An end of an axis of a box: the axis, and whether it is the upper one.
type Side = (usize, bool);

/// The reason why geometric multigrid does not support a set of Dirichlet values.
enum Lack {
    /// No side has Dirichlet values everywhere.
    Side,
    /// A side has Dirichlet values only on a part of it.
    RestOf(Side),
    /// There are Dirichlet values inside the box.
    Inside,
}

impl Lack {
    fn refusal(self, lattice: &Lattice) -> SolveError {
        match self {
            Self::Side => refuse(NO_SIDE),
            Self::RestOf((axis, is_upper)) => refuse(&format!(
                "needs u given everywhere or nowhere on each side, and it is on a part of the side {}: put a `dirichlet` on \
                 all of it",
                lattice.side(axis, is_upper)
            )),
            Self::Inside => refuse("needs u given on whole sides alone, and it is at nodes inside the box"),
        }
    }
}

/// Returns the box; sides without Dirichlet values are free.
fn with_free_sides(grid: BoxGrid, nodes: &[u32], given: &[u32]) -> Result<BoxGrid, Lack> {
    if given.len() == nodes.len() {
        return Ok(grid);
    }
    let mut is_given = vec![false; nodes.len()];
    given.iter().for_each(|&dof| is_given[nodes[dof as usize] as usize] = true);
    let along = grid.nodes();
    let sides = (0..grid.dimension()).flat_map(|axis| [(axis, false), (axis, true)]);
    let (free, fixed): (Vec<Side>, Vec<Side>) =
        sides.partition(|&of| nodes_of_side(along, of).any(|node| !is_given[node]));
    let is_on_fixed = |node: usize| fixed.iter().any(|&side| lies_on(along, side, node));
    let has_aside = given.iter().any(|&dof| !is_on_fixed(nodes[dof as usize] as usize));
    let flags = [0, 1, 2].map(|axis| [false, true].map(|is_upper| free.contains(&(axis, is_upper))));
    let grid = if free.is_empty() { grid } else { grid.with_free_sides(flags).map_err(|_| Lack::Side)? };
    if !has_aside {
        return Ok(grid);
    }
    let has_part = |of: &Side| nodes_of_side(along, *of).any(|node| is_given[node] && !is_on_fixed(node));
    Err(free.into_iter().find(has_part).map_or(Lack::Inside, Lack::RestOf))
}

/// Returns the nodes on the lower or upper side across an axis of a grid with these numbers of nodes along each axis.
fn nodes_of_side(along: [usize; 3], (axis, is_upper): (usize, bool)) -> impl Iterator<Item = usize> {
    let strides = [1, along[0], along[0] * along[1]];
    let first = if is_upper { (along[axis] - 1) * strides[axis] } else { 0 };
    let [one, other] = [(axis + 1) % 3, (axis + 2) % 3];
    (0..along[one] * along[other])
        .map(move |i| first + i % along[one] * strides[one] + i / along[one] * strides[other])
}

/// Returns whether a node lies on a side.
fn lies_on(along: [usize; 3], (axis, is_upper): (usize, bool), node: usize) -> bool {
    let at = [node % along[0], node / along[0] % along[1], node / (along[0] * along[1])][axis];
    at == if is_upper { along[axis] - 1 } else { 0 }
}

/// Returns the cycle with its levels, the finest first, and full multigrid on them.
fn cycle<D: SolveDevice + MultigridDevice>(
    device: &D,
    boxes: &Boxes,
    config: MultigridConfig,
    precision: LevelPrecision,
) -> Result<(Preconditioning<D>, Option<Nested<D>>), MultigridError> {
    let cycle = device.geometric_multigrid(&boxes.finest, &boxes.nodes, config, precision)?;
    let smoother = |level: usize| (level > 0).then_some(config.smoother);
    let level = |(level, grid): (usize, &BoxGrid)| level_of(device, grid, smoother(level), precision);
    let mut levels: Vec<_> = cycle.grids().into_iter().enumerate().map(level).collect();
    levels.reverse();
    let is_exact = !boxes.finest.is_mapped() && levels.len() > 1;
    let start = is_exact.then(|| {
        let cycle = Arc::clone(&cycle);
        let add: Nested<D> = Box::new(move |w, r| cycle.add_start(w, r));
        add
    });
    Ok(((Box::new(cycle), levels), start))
}

use femtile_device::parallel;
use femtile_element::Affine;
use femtile_mesh::Mesh;
use femtile_space::LinearSpace;

use super::dirichlet_facets::{Counts, DirichletFacets, sum_of_facets};
use super::{BLOCK, check_length, corners, sum_blocks};
use crate::FemError;
use crate::constraints::dirichlet_facets;
use crate::forms::{
    CHUNK, CellCoefficients, ChunkCoefficients, ChunkScratch, Form, State, VOIGT, facet_measure, facet_terms,
    mass_entries, winners,
};

/// Returns the flux **into** the domain through each boundary facet, $\int_F n\cdot\sigma\nabla u$ with the outward
/// normal n.
///
/// The sign is that of Neumann data: positive where heat flows in; outflow is minus the result. On Neumann and Robin
/// facets the flux is that of the condition, $\int_F g$ or $\int_F c\,(w - u)$; on facets without a condition it is
/// zero. On Dirichlet facets it is the consistent flux: the residual
///
/// $$ r_i = a(u, \varphi_i) - \ell(\varphi_i) $$
///
/// of the equation of a constrained node, which assembly leaves out, is the flux through the Dirichlet facets around
/// the node. The flux of the discrete gradient distributes it to these facets, with the remainder in proportion to
/// their measures. Hence, up to the residual of the solver and, in a pure Neumann problem, its imbalance,
///
/// $$ \sum_F \int_F n\cdot\sigma\nabla u = \int_\Omega \lambda u - \int_\Omega f $$
///
/// with the integrals of [`reaction_integral`] and [`source_integral`]. Inflow at nodes of
/// [`crate::Condition::DirichletAtNodes`] outside Dirichlet facets is not included. On smooth solutions,
/// fluxes through sides converge with order 2; the discrete gradient has order 1.
///
/// # Shapes
/// `u: [n_nodes]`; the result has one entry per boundary facet.
/// # Cost
/// Element matrices of the cells around Dirichlet nodes; one visit of every cell.
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per node, [`FemError::Space`] for cells that are
/// not simplices, [`FemError::NoSuchFacet`] for a facet that the boundary does not have, and errors for data
/// out of their range.
/// # Source
/// `[carey1985]`, for the residual of constrained nodes. Differs: the residual is not converted to a nodal density.
pub fn facet_fluxes(form: &Form<'_>, u: &[f64]) -> Result<Vec<f64>, FemError> {
    facet_shares(form, u, &|_| true)
}

/// As [`facet_fluxes`], of each flux the shares of the nodes that count: those of disjoint sets of nodes add up, and need the cells
/// and facets around these nodes alone.
///
/// # Errors
/// As [`facet_fluxes`].
pub fn facet_shares(form: &Form<'_>, u: &[f64], counts: Counts<'_>) -> Result<Vec<f64>, FemError> {
    LinearSpace::new(form.mesh)?;
    check_length(form.mesh, u)?;
    let winners = winners(form)?;
    let coefficients = CellCoefficients::of_any_sign(form)?;
    let n_corners = form.mesh.dimension();
    let mut fluxes = vec![0.0; form.boundary.len()];
    let facets: Vec<u32> = dirichlet_facets(form, &winners).map(|(facet, _)| facet as u32).collect();
    let mut is_given = vec![false; form.mesh.n_nodes()];
    for &facet in &facets {
        form.boundary.facet(facet as usize).iter().for_each(|&node| is_given[node as usize] = true);
    }
    let mut residual =
        if facets.is_empty() { Vec::new() } else { cell_residual(form, &coefficients, u, &is_given)? };
    for term in facet_terms(form, &winners)? {
        let own = term.nodal_fluxes(u, n_corners);
        let counted = term.nodes[..n_corners].iter().zip(own).filter(|(node, _)| counts(**node));
        fluxes[term.facet as usize] = counted.map(|(_, flux)| flux).sum();
        for (&node, flux) in term.nodes[..n_corners].iter().zip(own) {
            if is_given[node as usize] {
                residual[node as usize] -= flux;
            }
        }
    }
    if !facets.is_empty() {
        discrete_fluxes(form, &coefficients, u, &facets)?.distribute(&mut fluxes, residual, counts);
    }
    Ok(fluxes)
}

/// Returns the flux into the domain through a set of boundary facets, by [`facet_fluxes`].
///
/// `facets` are positions in the list of boundary facets, as in [`crate::BoundaryCondition`]; each counts once. Fluxes
/// through disjoint sets add up to the flux through their union.
///
/// # Errors
/// Errors of [`facet_fluxes`], and [`FemError::FacetOutOfRange`] for a facet beyond the boundary.
pub fn flux(form: &Form<'_>, u: &[f64], facets: &[u32]) -> Result<f64, FemError> {
    sum_of_facets(&facet_fluxes(form, u)?, facets)
}

/// Returns $\int_\Omega f$ at u with the quadrature of assembly.
///
/// # Errors
/// [`FemError::Space`] for cells that are not simplices; [`FemError::Length`] unless `u` has one entry per
/// node; a coefficient out of its range.
pub fn source_integral(form: &Form<'_>, u: &[f64]) -> Result<f64, FemError> {
    let n_corners = LinearSpace::new(form.mesh).map(|_| form.mesh.dimension() + 1)?;
    check_length(form.mesh, u)?;
    integrate(form, u, |cell, c, lane| {
        form.mesh.signed_measure(cell as usize).abs() * (0..n_corners).map(|a| c.load[a][lane]).sum::<f64>()
    })
}

/// Returns $\int_\Omega \lambda u$ with the quadrature of assembly.
///
/// # Errors
/// Errors of [`source_integral`].
pub fn reaction_integral(form: &Form<'_>, u: &[f64]) -> Result<f64, FemError> {
    LinearSpace::new(form.mesh)?;
    check_length(form.mesh, u)?;
    integrate(form, u, |cell, c, lane| {
        let (_, values, _) = corners(form.mesh, u, cell);
        form.mesh.signed_measure(cell as usize).abs()
            * times_mass(form.mesh, c, lane, &values).iter().sum::<f64>()
    })
}

fn integrate(
    form: &Form<'_>,
    u: &[f64],
    of_cell: impl Fn(u32, &ChunkCoefficients, usize) -> f64 + Sync,
) -> Result<f64, FemError> {
    let coefficients = CellCoefficients::of_any_sign(form)?;
    sum_blocks(form.mesh, |cells| {
        let mut sum = 0.0;
        let cells: Vec<u32> = cells.collect();
        for_cells(&coefficients, &cells, u, |cell, c, lane| sum += of_cell(cell, c, lane))?;
        Ok(sum)
    })
}

/// Calls `visit` with each cell, the coefficients of its chunk at a function and its lane there.
pub(crate) fn for_cells(
    coefficients: &CellCoefficients<'_>,
    cells: &[u32],
    u: &[f64],
    mut visit: impl FnMut(u32, &ChunkCoefficients, usize),
) -> Result<(), FemError> {
    let (mut chunk, mut scratch) = (coefficients.start_chunk(), ChunkScratch::default());
    for cells in cells.chunks(CHUNK) {
        coefficients.eval(&mut chunk, cells, State::of(u), &mut scratch)?;
        cells.iter().enumerate().for_each(|(lane, &cell)| visit(cell, &chunk, lane));
    }
    Ok(())
}

/// Returns $\bar\sigma g$.
pub(crate) fn times_sigma(c: &ChunkCoefficients, lane: usize, g: [f64; 3]) -> [f64; 3] {
    if c.sigma_is_scalar {
        return g.map(|g| c.sigma[0][lane] * g);
    }
    let mut product = [0.0; 3];
    for (entry, (i, j)) in VOIGT.into_iter().enumerate() {
        product[i] += c.sigma[entry][lane] * g[j];
        if i != j {
            product[j] += c.sigma[entry][lane] * g[i];
        }
    }
    product
}

/// Returns the mean of $\lambda u \varphi_a$ for each corner.
fn times_mass(mesh: &Mesh, c: &ChunkCoefficients, lane: usize, values: &[f64; 4]) -> [f64; 4] {
    let mut product = [0.0; 4];
    for (moment, (a, b)) in mass_entries(mesh.dimension()) {
        product[a] += c.mass[moment][lane] * values[b];
        if a != b {
            product[b] += c.mass[moment][lane] * values[a];
        }
    }
    product
}

/// Returns the contributions of cells to $a(u, \varphi_i) - \ell(\varphi_i)$ at marked nodes; zero elsewhere.
fn cell_residual(
    form: &Form<'_>,
    coefficients: &CellCoefficients<'_>,
    u: &[f64],
    is_marked: &[bool],
) -> Result<Vec<f64>, FemError> {
    let mesh = form.mesh;
    let of_block = |block: usize| {
        let cells = block * BLOCK..((block + 1) * BLOCK).min(mesh.n_cells());
        let touches = |cell: &usize| mesh.cell(*cell).iter().any(|&node| is_marked[node as usize]);
        let cells: Vec<u32> = cells.filter(touches).map(|cell| cell as u32).collect();
        let mut found = Vec::new();
        for_cells(coefficients, &cells, u, |cell, c, lane| {
            let (points, values, n) = corners(mesh, u, cell);
            let map = Affine::simplex(&points[..n]);
            let flux = times_sigma(c, lane, map.gradient(&values));
            let reaction = times_mass(mesh, c, lane, &values);
            for (a, &node) in mesh.cell(cell as usize).iter().enumerate() {
                if is_marked[node as usize] {
                    let density = dot(flux, map.gradients[a]) + reaction[a] - c.load[a][lane];
                    found.push((node, map.measure * density));
                }
            }
        })?;
        Ok(found)
    };
    let parts: Vec<Result<_, FemError>> = parallel::map(mesh.n_cells().div_ceil(BLOCK), 1, of_block);
    let mut residual = vec![0.0; mesh.n_nodes()];
    for part in parts {
        part?.into_iter().for_each(|(node, value)| residual[node as usize] += value);
    }
    Ok(residual)
}

/// Returns the Dirichlet facets with the fluxes of the discrete gradient.
///
/// With corner o of the cell opposite to the facet, $n|F| = -d\,|T|\,\nabla\varphi_o$; each node has one d-th of the
/// flux.
fn discrete_fluxes(
    form: &Form<'_>,
    coefficients: &CellCoefficients<'_>,
    u: &[f64],
    facets: &[u32],
) -> Result<DirichletFacets, FemError> {
    let mesh = form.mesh;
    let cells: Vec<u32> = facets.iter().map(|&facet| form.boundary.cells[facet as usize]).collect();
    let mut given = DirichletFacets::default();
    let mut next = facets.iter();
    for_cells(coefficients, &cells, u, |cell, c, lane| {
        let Some(&facet) = next.next() else { return };
        let nodes = form.boundary.facet(facet as usize);
        let (points, values, n) = corners(mesh, u, cell);
        let map = Affine::simplex(&points[..n]);
        let flux = times_sigma(c, lane, map.gradient(&values));
        let opposite = mesh.cell(cell as usize).iter().position(|node| !nodes.contains(node)).unwrap_or(0);
        let own = -map.measure * dot(flux, map.gradients[opposite]);
        let corners: Vec<[f64; 3]> = nodes.iter().map(|&node| mesh.points[node as usize]).collect();
        given.push(facet, nodes, &vec![own; nodes.len()], facet_measure(&corners));
    })?;
    Ok(given)
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

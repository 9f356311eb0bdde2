use femtile::Mesh;
use femtile::expression::Condition;
use femtile::linalg::LinalgError;

use crate::monodomain::Nodes;

/// A part of the tissue, as a set of nodes.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// Everything.
    All,
    /// A box with sides along the axes.
    Box {
        /// Smallest coordinates.
        lower: [f64; 3],
        /// Largest coordinates.
        upper: [f64; 3],
    },
    /// A ball.
    Sphere {
        /// Its centre.
        centre: [f64; 3],
        /// Its radius.
        radius: f64,
    },
    /// The nodes of all cells, or else of all boundary facets, with a tag, by name or number.
    Tag(String),
    /// The nodes that satisfy a comparison such as `x < 1.5 && y < 1.5`.
    Where(String),
    /// Nodes by their numbers.
    Nodes(Vec<u32>),
}

impl Place {
    /// Returns the nodes of the place that the mesh of this rank has, ascending, or the reason why no rank
    /// has any. Collective.
    ///
    /// # Errors
    /// Another rank ended.
    pub(crate) fn nodes(&self, mesh: &Mesh, here: &Nodes<'_>) -> Result<Found, LinalgError> {
        let nodes = match self.found(mesh, here)? {
            Ok(nodes) => nodes,
            Err(reason) => return Ok(Err(reason)),
        };
        match here.any([!nodes.is_empty()])? {
            [true] => Ok(Ok(nodes)),
            [false] => Ok(Err(touches_nothing(mesh, here)?)),
        }
    }

    fn found(&self, mesh: &Mesh, here: &Nodes<'_>) -> Result<Found, LinalgError> {
        let holding = |holds: &dyn Fn([f64; 3]) -> bool| {
            let n = mesh.n_nodes() as u32;
            (0..n).filter(|&node| holds(mesh.points[node as usize])).collect()
        };
        Ok(Ok(match self {
            Self::All => (0..mesh.n_nodes() as u32).collect(),
            Self::Box { lower, upper } => {
                // Nodes on a side belong to the box whatever rounding the mesh has.
                let reach = 1e-9 * (0..3).map(|a| upper[a] - lower[a]).fold(0.0, f64::max);
                holding(&|p| (0..3).all(|a| p[a] >= lower[a] - reach && p[a] <= upper[a] + reach))
            }
            Self::Sphere { centre, radius } => holding(&|p| {
                let square: f64 = (0..3).map(|a| (p[a] - centre[a]).powi(2)).sum();
                square.sqrt() <= radius * (1.0 + 1e-9)
            }),
            Self::Where(text) => match Condition::parse(text) {
                Ok(condition) => holding(&|p| condition.holds(p)),
                Err(error) => {
                    return Ok(Err(format!("`{text}` is no comparison such as \"x < 1.5\" ({error})")));
                }
            },
            Self::Tag(tag) => return tagged(mesh, here, tag),
            Self::Nodes(nodes) => return Ok(listed(here, nodes)),
        }))
    }
}

/// Nodes of a mesh, or the reason why there are none.
pub(crate) type Found = Result<Vec<u32>, String>;

/// The reason of a place that touches no node. Collective.
fn touches_nothing(mesh: &Mesh, here: &Nodes<'_>) -> Result<String, LinalgError> {
    let none = [[f64::INFINITY, f64::NEG_INFINITY]; 3];
    let both = |a: [[f64; 2]; 3], b: [[f64; 2]; 3]| {
        [0, 1, 2].map(|axis| [a[axis][0].min(b[axis][0]), a[axis][1].max(b[axis][1])])
    };
    let own = mesh.points.iter().map(|point| point.map(|x| [x, x])).fold(none, both);
    let [x, y, z] = here.comm().all_gather(&[own])?.concat().into_iter().fold(none, both);
    let extent = |[low, high]: [f64; 2]| format!("{low} … {high}");
    let [x, y, z] = [x, y, z].map(extent);
    Ok(format!(
        "it touches no node; the mesh reaches from x = {x}, y = {y}, z = {z}: compare the unit of length"
    ))
}

fn listed(here: &Nodes<'_>, nodes: &[u32]) -> Found {
    let n = here.n_global();
    if let Some(far) = nodes.iter().find(|&&node| node as usize >= n) {
        return Err(format!("there is no node {far}, the mesh has {n}"));
    }
    Ok(here.to_local(sorted(nodes.to_vec())))
}

fn sorted(mut nodes: Vec<u32>) -> Vec<u32> {
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Returns the nodes of cells with a tag, or else of facets. Collective.
fn tagged(mesh: &Mesh, here: &Nodes<'_>, name: &str) -> Result<Found, LinalgError> {
    let of_dimension = |dimension: usize| -> Vec<i32> {
        let named = mesh.tag_names.iter().filter(|((d, _), known)| *d == dimension && known.as_str() == name);
        named.map(|((_, tag), _)| *tag).chain(name.parse().ok()).collect()
    };
    let wanted = of_dimension(mesh.dimension());
    let cells = mesh.cell_tags.iter().enumerate().filter(|(_, tag)| wanted.contains(tag));
    let of_cells: Vec<u32> = cells.flat_map(|(cell, _)| mesh.cell(cell).iter().copied()).collect();
    if here.any([!of_cells.is_empty()])? == [true] {
        return Ok(Ok(sorted(of_cells)));
    }
    let wanted = of_dimension(mesh.dimension() - 1);
    let facets = mesh.facets.tags.iter().enumerate().filter(|(_, tag)| wanted.contains(tag));
    let of_facets: Vec<u32> = facets.flat_map(|(facet, _)| mesh.facet(facet).iter().copied()).collect();
    if here.any([!of_facets.is_empty()])? == [true] {
        return Ok(Ok(sorted(of_facets)));
    }
    // In parts of a mesh, the number of a tag without a name is its name.
    let named = mesh.tag_names.iter().filter(|((_, tag), name)| **name != tag.to_string());
    let names: Vec<&str> = named.map(|(_, name)| name.as_str()).collect();
    let names = if names.is_empty() { "none".into() } else { names.join(", ") };
    Ok(Err(format!("no cell or facet has the tag `{name}`; named tags: {names}")))
}

use femtile::Mesh;
use femtile::expression::Condition;

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
    /// Returns the nodes of the place, ascending.
    ///
    /// # Errors
    /// The reason where there is no node, with the extent of the mesh.
    pub(crate) fn nodes(&self, mesh: &Mesh) -> Result<Vec<u32>, String> {
        let nodes = self.found(mesh)?;
        if !nodes.is_empty() {
            return Ok(nodes);
        }
        let extent = |axis: usize| {
            let of_node = mesh.points.iter().map(|point| point[axis]);
            let (low, high) =
                of_node.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
            format!("{low} … {high}")
        };
        Err(format!(
            "it touches no node; the mesh reaches from x = {}, y = {}, z = {}: compare the unit of length",
            extent(0),
            extent(1),
            extent(2)
        ))
    }

    fn found(&self, mesh: &Mesh) -> Result<Vec<u32>, String> {
        let holding = |holds: &dyn Fn([f64; 3]) -> bool| {
            let n = mesh.n_nodes() as u32;
            (0..n).filter(|&node| holds(mesh.points[node as usize])).collect()
        };
        Ok(match self {
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
            Self::Where(text) => {
                let condition = Condition::parse(text)
                    .map_err(|error| format!("`{text}` is no comparison such as \"x < 1.5\" ({error})"))?;
                holding(&|p| condition.holds(p))
            }
            Self::Tag(tag) => tagged(mesh, tag)?,
            Self::Nodes(nodes) => listed(mesh, nodes)?,
        })
    }
}

fn listed(mesh: &Mesh, nodes: &[u32]) -> Result<Vec<u32>, String> {
    let n = mesh.n_nodes();
    if let Some(far) = nodes.iter().find(|&&node| node as usize >= n) {
        return Err(format!("there is no node {far}, the mesh has {n}"));
    }
    Ok(sorted(nodes.to_vec()))
}

fn sorted(mut nodes: Vec<u32>) -> Vec<u32> {
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Returns the nodes of cells with a tag, or else of facets.
fn tagged(mesh: &Mesh, name: &str) -> Result<Vec<u32>, String> {
    let of_dimension = |dimension: usize| -> Vec<i32> {
        let named = mesh.tag_names.iter().filter(|((d, _), known)| *d == dimension && known.as_str() == name);
        named.map(|((_, tag), _)| *tag).chain(name.parse().ok()).collect()
    };
    let wanted = of_dimension(mesh.dimension());
    let cells = mesh.cell_tags.iter().enumerate().filter(|(_, tag)| wanted.contains(tag));
    let of_cells: Vec<u32> = cells.flat_map(|(cell, _)| mesh.cell(cell).iter().copied()).collect();
    if !of_cells.is_empty() {
        return Ok(sorted(of_cells));
    }
    let wanted = of_dimension(mesh.dimension() - 1);
    let facets = mesh.facets.tags.iter().enumerate().filter(|(_, tag)| wanted.contains(tag));
    let of_facets: Vec<u32> = facets.flat_map(|(facet, _)| mesh.facet(facet).iter().copied()).collect();
    if !of_facets.is_empty() {
        return Ok(sorted(of_facets));
    }
    let names: Vec<&str> = mesh.tag_names.values().map(String::as_str).collect();
    let names = if names.is_empty() { "none".into() } else { names.join(", ") };
    Err(format!("no cell or facet has the tag `{name}`; named tags: {names}"))
}

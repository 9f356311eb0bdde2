//! Whole solves: meshes of every kind of cell, generated and of other programs, in sizes from a thousand unknowns on.

use std::path::{Path, PathBuf};

use femtile::mesh::check::{CheckConfig, boundary_facets, check};
use femtile::mesh::generate::{
    BallConfig, BoxConfig, BoxSplit, HexahedralBallConfig, SquareConfig, SquareSplit, ball, box_mesh,
    hexahedral_ball, square,
};
use femtile::mesh::{CellKind, MeshError, io};
use femtile::{Mesh, Poisson, SolveError};

/// Unknowns of the problems on generated meshes, about.
const SIZES: [f64; 5] = [1e3, 1e4, 1e5, 1e6, 3e6];
/// The selection has one of every 4, 3, … problems of a size, other ones of the next size.
const STRIDES: [usize; 5] = [4, 3, 3, 4, 7];

/// Source of the mesh of a problem.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Triangles,
    Quadrilaterals,
    Tetrahedra,
    Hexahedra,
    BallOfTetrahedra,
    BallOfHexahedra,
    Sample(PathBuf),
}

/// Data of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    /// −Δu = f, u = 0 on the lower end along x; f varies along all axes, so that the solution does as well.
    End,
    /// The same with u = 0 on the whole boundary.
    Held,
    /// The same in air: σ∂u/∂n = −cu on the whole boundary, c small beside σ over the extent.
    Cooled,
    /// −∇·(σ∇u) + u = 1, u = 0 on the boundary, σ = 1 and 1,000 in halves.
    Jump,
}

/// A problem with the size of its mesh.
#[derive(Debug, Clone, PartialEq)]
pub struct Solve {
    shape: Shape,
    degree: usize,
    data: Data,
    unknowns: f64,
    /// Position among all problems of its size.
    number: usize,
}

/// Generated meshes with the degrees of elements on them.
const GENERATED: [(Shape, usize); 11] = [
    (Shape::Triangles, 1),
    (Shape::Quadrilaterals, 1),
    (Shape::Quadrilaterals, 4),
    (Shape::Tetrahedra, 1),
    (Shape::Hexahedra, 1),
    (Shape::Hexahedra, 3),
    (Shape::Hexahedra, 6),
    (Shape::BallOfTetrahedra, 1),
    (Shape::BallOfHexahedra, 1),
    (Shape::BallOfHexahedra, 2),
    (Shape::BallOfHexahedra, 4),
];

/// Returns the problems with at most about `most` unknowns: those on generated meshes by size, then those on the meshes
/// of a folder with `tet` and `hex` in it.
pub fn solves(most: usize, samples: Option<&Path>) -> Vec<Solve> {
    let mut found = Vec::new();
    for unknowns in SIZES.into_iter().filter(|&size| size <= most as f64) {
        let mut number = 0;
        for (shape, degree) in &GENERATED {
            let data: &[Data] = match (shape, degree) {
                (Shape::Tetrahedra, _) | (Shape::Hexahedra, 3) => {
                    &[Data::End, Data::Jump, Data::Held, Data::Cooled]
                }
                _ => &[Data::End, Data::Jump],
            };
            for &data in data {
                found.push(Solve { shape: shape.clone(), degree: *degree, data, unknowns, number });
                number += 1;
            }
        }
    }
    for file in samples.map(files).unwrap_or_default() {
        let degrees: &[usize] =
            if file.parent().is_some_and(|folder| folder.ends_with("hex")) { &[1, 3] } else { &[1] };
        found.extend(degrees.iter().map(|&degree| Solve {
            shape: Shape::Sample(file.clone()),
            degree,
            data: Data::End,
            unknowns: most as f64,
            number: 0,
        }));
    }
    found
}

/// Files with meshes, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for kind in ["tet", "hex"] {
        let entries = std::fs::read_dir(folder.join(kind)).into_iter().flatten().flatten();
        files.extend(entries.map(|entry| entry.path()));
    }
    let is_mesh = |file: &PathBuf| {
        file.extension().is_some_and(|end| ["node", "msh", "mesh", "vtk"].iter().any(|known| end == *known))
    };
    files.retain(is_mesh);
    files.sort();
    files
}

impl Solve {
    /// Returns the name of the mesh, the degree and the data.
    pub fn name(&self) -> String {
        let mesh = match &self.shape {
            Shape::Triangles => "square of triangles",
            Shape::Quadrilaterals => "square of quadrilaterals",
            Shape::Tetrahedra => "cube of tetrahedra",
            Shape::Hexahedra => "cube of hexahedra",
            Shape::BallOfTetrahedra => "ball of tetrahedra",
            Shape::BallOfHexahedra => "ball of hexahedra",
            Shape::Sample(file) => file.file_name().and_then(|name| name.to_str()).unwrap_or("sample"),
        };
        let data = match self.data {
            Data::End => "held at one end",
            Data::Held => "held on all sides",
            Data::Cooled => "in air",
            Data::Jump => "jump of sigma",
        };
        format!("{mesh}, degree {}, {data}", self.degree)
    }

    /// Returns whether the problem is in a selection that takes two minutes on a machine with a GPU. Samples are.
    pub fn is_in_selection(&self) -> bool {
        let size = SIZES.iter().position(|&size| size == self.unknowns).unwrap_or(0);
        matches!(self.shape, Shape::Sample(_)) || self.number % STRIDES[size] == size % STRIDES[size]
    }

    /// Returns the mesh; none for a sample that is unusable or too large.
    ///
    /// # Errors
    /// When a mesh cannot be generated.
    pub fn mesh(&self) -> Result<Option<Mesh>, MeshError> {
        let per_side = |dimension: i32| {
            let cells = (self.unknowns.powf(1.0 / f64::from(dimension)) / self.degree as f64).round();
            // Numbers that can be halved a few times, as one would choose them.
            let step = if cells >= 32.0 {
                8.0
            } else if cells >= 8.0 {
                4.0
            } else {
                1.0
            };
            ((cells / step).round() * step).max(2.0) as usize
        };
        let plane =
            |split| square(&SquareConfig { cells: [per_side(2); 2], split, ..SquareConfig::default() });
        let cube = |split| box_mesh(&BoxConfig { cells: [per_side(3); 3], split, ..BoxConfig::default() });
        match &self.shape {
            Shape::Triangles => plane(SquareSplit::Triangles).map(Some),
            Shape::Quadrilaterals => plane(SquareSplit::Quadrilateral).map(Some),
            Shape::Tetrahedra => cube(BoxSplit::Kuhn).map(Some),
            Shape::Hexahedra => cube(BoxSplit::Hexahedron).map(Some),
            // By count, 24,389 nodes for h = 0.075.
            Shape::BallOfTetrahedra => {
                let h = (10.0 / self.unknowns).powf(1.0 / 3.0);
                ball(&BallConfig { radius: 1.0, h }).map(Some)
            }
            // A cube in the middle with six blocks around it, of as many cells a side.
            Shape::BallOfHexahedra => {
                let cells =
                    ((self.unknowns / 4.0).powf(1.0 / 3.0) / self.degree as f64).round().max(2.0) as usize;
                let layers = (cells / 2).max(1);
                let order = self.degree.min(2);
                let config = HexahedralBallConfig { cells, layers, order, ..HexahedralBallConfig::default() };
                hexahedral_ball(&config).map(Some)
            }
            Shape::Sample(file) => Ok(self.sample(file)),
        }
    }

    fn sample(&self, file: &Path) -> Option<Mesh> {
        let mut mesh = io::read(file).ok()?;
        check(&mut mesh, &CheckConfig::default()).ok()?;
        let is_simplex = matches!(mesh.kind, CellKind::Triangle | CellKind::Tetrahedron);
        let per_cell = if is_simplex { 0 } else { self.degree.pow(mesh.dimension() as u32) };
        let unknowns = (mesh.n_cells() * per_cell).max(mesh.n_nodes());
        (unknowns as f64 <= self.unknowns).then_some(mesh)
    }

    /// Returns the problem on its mesh.
    ///
    /// # Errors
    /// Those of [`Poisson`].
    pub fn problem<'m>(&self, mesh: &'m Mesh) -> Result<Poisson<'m>, SolveError> {
        let along = || mesh.points.iter().map(|point| point[0]);
        let least = along().fold(f64::INFINITY, f64::min);
        let extent = along().fold(f64::NEG_INFINITY, f64::max) - least;
        let problem = Poisson::new(mesh)
            .degree(self.degree)
            .source(format!("1 + sin((3*x + 4*y + 5*z)/{extent:?})").as_str());
        match self.data {
            Data::End => problem.dirichlet(end(mesh, least, extent), 0.0),
            Data::Held => problem.dirichlet("all", 0.0),
            Data::Cooled => problem.robin("all", 0.05 / extent, 0.0),
            Data::Jump => {
                let middle = least + 0.5 * extent;
                let sigma = format!("if(x < {middle:?}, 1, 1000)");
                problem.sigma(sigma).lambda(1.0).dirichlet("all", 0.0)
            }
        }
    }
}

/// The facets at the lower end along x: those of a flat side, else those in the first fifth of the mesh, else all.
fn end(mesh: &Mesh, least: f64, extent: f64) -> Vec<u32> {
    let boundary = boundary_facets(mesh);
    let within = |share: f64| -> Vec<u32> {
        let is_near = |node: &u32| mesh.points[*node as usize][0] <= least + share * extent;
        (0..boundary.len() as u32)
            .filter(|&facet| boundary.facet(facet as usize).iter().all(is_near))
            .collect()
    };
    let found = [1e-6, 0.2].map(within).into_iter().find(|facets| !facets.is_empty());
    found.unwrap_or_else(|| (0..boundary.len() as u32).collect())
}

//! Meshes, coefficients and boundary conditions of every kind.

use std::collections::BTreeMap;

use femtile::expression::Expression;
use femtile::fem::{
    AssembledSystem, AssemblyKernels, BoundaryCondition, Coefficient, Condition, FemError, Form, assemble,
};
use femtile::mesh::check::{BoundaryFacets, boundary_facets};
use femtile::mesh::generate::{BoxConfig, SquareConfig, box_mesh, square};
use femtile::mesh::{Field, Mesh};

use femtile::device::Scalar;

use super::problems::Random;

/// A problem that owns its parts.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The mesh.
    pub mesh: Mesh,
    /// Its boundary.
    pub boundary: BoundaryFacets,
    /// Conductivity.
    pub sigma: Coefficient,
    /// Reaction.
    pub lambda: Coefficient,
    /// Source.
    pub source: Coefficient,
    /// Boundary conditions.
    pub conditions: Vec<BoundaryCondition>,
}

impl Problem {
    /// −Δu = 1 with natural sides.
    pub fn new(mesh: Mesh) -> Self {
        let boundary = boundary_facets(&mesh);
        let (sigma, lambda, source) = (1.0.into(), 0.0.into(), 1.0.into());
        Self { mesh, boundary, sigma, lambda, source, conditions: Vec::new() }
    }

    /// Lets a condition hold on the facets whose nodes all satisfy `holds`.
    pub fn on(&mut self, holds: impl Fn([f64; 3]) -> bool, condition: Condition) {
        let facet = |&facet: &u32| {
            let mut nodes = self.boundary.facet(facet as usize).iter();
            nodes.all(|&node| holds(self.mesh.points[node as usize]))
        };
        let facets = (0..self.boundary.len() as u32).filter(facet).collect();
        self.conditions.push(BoundaryCondition { facets, condition });
    }

    /// Dirichlet, Neumann and Robin conditions that vary, each on one side of the unit square or cube.
    #[must_use]
    pub fn with_all_conditions(mut self) -> Self {
        self.on(|p| p[0] < 1e-9, Condition::Dirichlet(formula("1 + y")));
        self.on(|p| p[0] > 1.0 - 1e-9, Condition::Neumann(formula("y - z")));
        let robin = Condition::Robin { coefficient: formula("1 + x"), value: formula("x*x") };
        self.on(|p| p[1] < 1e-9, robin);
        self
    }

    /// The form.
    pub fn form(&self) -> Form<'_> {
        Form {
            mesh: &self.mesh,
            boundary: &self.boundary,
            sigma: &self.sigma,
            lambda: &self.lambda,
            source: &self.source,
            conditions: &self.conditions,
        }
    }

    /// Its system on a device.
    pub fn assemble<T: Scalar, D: AssemblyKernels<T>>(
        &self,
        device: &D,
    ) -> Result<AssembledSystem<T, D>, FemError> {
        assemble(device, &self.form(), &|_| ())
    }
}

/// The coefficient of a text.
pub fn formula(text: &str) -> Coefficient {
    Coefficient::Expression(Expression::parse(text).expect("a formula"))
}

/// A tensor of formulas.
pub fn tensor(texts: [[&str; 3]; 3]) -> Coefficient {
    let entry = |text: &str| Expression::parse(text).expect("a formula");
    Coefficient::TensorExpression(Box::new(texts.map(|row| row.map(entry))))
}

/// The coefficient whose parts belong to the tags 0, 1, 2 and so on.
pub fn by_tag(parts: Vec<Coefficient>) -> Coefficient {
    Coefficient::ByTag((0..).zip(parts).collect::<BTreeMap<_, _>>())
}

/// A field of `base` in every cell, each number disturbed by up to a half of it.
pub fn field(mesh: &Mesh, base: &[f64], random: &mut Random) -> Coefficient {
    let cell = |_| base.iter().map(|b| b * (1.0 + 0.25 * random.unit())).collect::<Vec<_>>();
    let values = (0..mesh.n_cells()).flat_map(cell).collect();
    Coefficient::CellField(Field { n_components: base.len(), values })
}

/// The unit square or cube with n cells a side, cells and nodes in random order, inner nodes moved, four tags.
pub fn disturbed_mesh(dimension: usize, n: usize, random: &mut Random) -> Mesh {
    let mut mesh = match dimension {
        2 => square(&SquareConfig { cells: [n; 2], ..SquareConfig::default() }),
        _ => box_mesh(&BoxConfig { cells: [n; 3], ..BoxConfig::default() }),
    }
    .expect("a mesh");
    for point in &mut mesh.points {
        if point[..dimension].iter().all(|&x| x > 1e-9 && x < 1.0 - 1e-9) {
            point[..dimension].iter_mut().for_each(|x| *x += 0.15 * random.unit() / n as f64);
        }
    }
    let mut mesh = shuffled(&mesh, random);
    mesh.cell_tags = (0..mesh.n_cells()).map(|_| random.below(N_TAGS) as i32).collect();
    mesh
}

/// Tags of [`disturbed_mesh`].
pub const N_TAGS: usize = 4;

/// The same mesh with its cells and nodes in random order.
pub fn shuffled(mesh: &Mesh, random: &mut Random) -> Mesh {
    let new_number = order(mesh.n_nodes(), random);
    let mut points = mesh.points.clone();
    for (old, &new) in new_number.iter().enumerate() {
        points[new] = mesh.points[old];
    }
    let cells = order(mesh.n_cells(), random).into_iter().flat_map(|cell| mesh.cell(cell).to_vec());
    let cells = cells.map(|node| new_number[node as usize] as u32).collect();
    Mesh::new(points, mesh.kind, cells).expect("the same mesh in another order")
}

fn order(n: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    (1..n).rev().for_each(|i| order.swap(i, random.below(i + 1)));
    order
}

/// Conductivity, reaction and source of a mesh with [`N_TAGS`] tags: few sets in which every kind stands once.
pub fn mixed_coefficients(mesh: &Mesh, random: &mut Random) -> Vec<(&'static str, [Coefficient; 3])> {
    let constant_tensor = Coefficient::Tensor([[2.0, 0.5, 0.1], [0.5, 3.0, -0.2], [0.1, -0.2, 1.5]]);
    let varying_tensor = tensor([["2+x", "0.3*y", "0"], ["0.3*y", "1+x*x", "0.1"], ["0", "0.1", "3"]]);
    let by_rows = field(mesh, &[1.0], random);
    let by_rows = nine(&by_rows);
    let mut field = |base: &[f64]| field(mesh, base, random);
    let numbers_by_cell = by_tag(vec![0.5.into(), field(&[1.0]), 3.0.into(), field(&[0.25])]);
    let numbers_by_point =
        by_tag(vec![formula("1 + x*y"), field(&[1.0]), 2.0.into(), formula("2 + sin(3*y)")]);
    let tensors_by_cell = by_tag(vec![
        constant_tensor.clone(),
        field(&[1.0, 2.0, 3.0]),
        field(&[3.0, 4.0, 5.0, 0.1, 0.2, 0.3]),
        by_rows,
    ]);
    let tensors_by_point = by_tag(vec![varying_tensor, formula("1 + z^2"), constant_tensor, field(&[2.0])]);
    vec![
        ("constants", [2.5.into(), 0.0.into(), 3.0.into()]),
        ("numbers by cell", [numbers_by_cell.clone(), numbers_by_cell.clone(), numbers_by_cell]),
        ("numbers by point", [numbers_by_point.clone(), numbers_by_point, formula("exp(x)*cos(3*y) - z")]),
        ("tensors by cell", [tensors_by_cell, formula("max(0, x - 0.9)"), 0.0.into()]),
        ("tensors by point", [tensors_by_point, 1.0.into(), formula("hypot(x, y)")]),
    ]
}

/// Asymmetric to rounding only: three times a field of numbers, by rows.
fn nine(numbers: &Coefficient) -> Coefficient {
    let Coefficient::CellField(field) = numbers else { return numbers.clone() };
    let tensor = |v: &f64| [3.0 * v, 0.5, 0.1 * v, 0.5, 2.0, 0.2, 0.1 * v, 0.2 + 1e-14, 1.0 + v];
    let values = field.values.iter().flat_map(tensor).collect();
    Coefficient::CellField(Field { n_components: 9, values })
}

/// Each kind of coefficient on its own.
pub fn single_coefficients(mesh: &Mesh, random: &mut Random) -> Vec<(&'static str, [Coefficient; 3])> {
    let mut field = |base: &[f64]| field(mesh, base, random);
    let plain = |sigma: Coefficient| [sigma, formula("x + 2*y"), formula("exp(x)*cos(3*y) - z")];
    let everywhere = |number: Coefficient| [number.clone(), number.clone(), number];
    vec![
        ("constant", plain(2.5.into())),
        ("tensor", plain(Coefficient::Tensor([[2.0, 0.5, 0.1], [0.5, 3.0, -0.2], [0.1, -0.2, 1.5]]))),
        ("formula", plain(formula("1 + x*y + sin(z)^2"))),
        (
            "tensor of formulas",
            plain(tensor([["2+x", "0.3*y", "0"], ["0.3*y", "1+x*x", "0.1"], ["0", "0.1", "3"]])),
        ),
        ("field of numbers", plain(field(&[1.0]))),
        ("field of diagonals", plain(field(&[1.0, 2.0, 3.0]))),
        ("field of symmetric tensors", plain(field(&[3.0, 4.0, 5.0, 0.1, 0.2, 0.3]))),
        ("constant everywhere", everywhere(3.0.into())),
        ("formula everywhere", everywhere(formula("x*y + 1"))),
        ("field everywhere", everywhere(field(&[1.0]))),
    ]
}

//! Shared by the tests: random numbers, disturbed meshes, a solve.

pub mod curved;
pub mod manufactured;

use femtile_device::{Buffer, Cpu, Device, Scalar};
use femtile_expression::Expression;
use femtile_fem::{
    AssembledSystem, AssemblyKernels, BoundaryCondition, Coefficient, Condition, Form, assemble,
};
use femtile_linalg::comm::SingleRank;
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile_linalg::precondition::Jacobi;
use femtile_mesh::Mesh;
use femtile_mesh::check::{BoundaryFacets, boundary_facets};
use femtile_mesh::generate::{BoxConfig, SquareConfig, box_mesh, square};
use femtile_space::Space;

/// A small pseudorandom number generator without dependencies.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64
    }

    pub fn shuffled(&mut self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            order.swap(i, self.next() as usize % (i + 1));
        }
        order
    }
}

pub fn expression(text: &str) -> Coefficient {
    Coefficient::Expression(Expression::parse(text).unwrap())
}

pub fn constant(value: f64) -> Coefficient {
    Coefficient::Constant(value)
}

pub fn unit_mesh(dimension: usize, n: usize) -> Mesh {
    match dimension {
        2 => square(&SquareConfig { cells: [n; 2], ..SquareConfig::default() }).unwrap(),
        _ => box_mesh(&BoxConfig { cells: [n; 3], ..BoxConfig::default() }).unwrap(),
    }
}

/// Returns the mesh with nodes and cells in random order and interior nodes moved by up to `amount` cells.
pub fn disturbed(mut mesh: Mesh, n: usize, amount: f64, random: &mut Random) -> Mesh {
    let dimension = mesh.dimension();
    for point in &mut mesh.points {
        if point[..dimension].iter().all(|&x| x > 1e-9 && x < 1.0 - 1e-9) {
            for x in &mut point[..dimension] {
                *x += amount * (random.unit() - 0.5) / n as f64;
            }
        }
    }
    let new_number = random.shuffled(mesh.n_nodes());
    let mut points = mesh.points.clone();
    for (old, &new) in new_number.iter().enumerate() {
        points[new as usize] = mesh.points[old];
    }
    let order = random.shuffled(mesh.n_cells());
    let cells = order.iter().flat_map(|&cell| mesh.cell(cell as usize).to_vec());
    let cells = cells.map(|node| new_number[node as usize]).collect();
    Mesh::new(points, mesh.kind, cells).unwrap()
}

/// Returns the boundary facets whose nodes all satisfy a condition.
pub fn facets_where(mesh: &Mesh, boundary: &BoundaryFacets, holds: impl Fn([f64; 3]) -> bool) -> Vec<u32> {
    let all = 0..boundary.len() as u32;
    all.filter(|&f| boundary.facet(f as usize).iter().all(|&n| holds(mesh.points[n as usize]))).collect()
}

/// A problem that owns its parts.
pub struct Problem {
    pub mesh: Mesh,
    pub boundary: BoundaryFacets,
    pub sigma: Coefficient,
    pub lambda: Coefficient,
    pub source: Coefficient,
    pub conditions: Vec<BoundaryCondition>,
}

impl Problem {
    /// −Δu = 1 with natural sides.
    pub fn new(mesh: Mesh) -> Self {
        let boundary = boundary_facets(&mesh);
        let (sigma, lambda, source) = (constant(1.0), constant(0.0), constant(1.0));
        Self { mesh, boundary, sigma, lambda, source, conditions: Vec::new() }
    }

    pub fn on(&mut self, holds: impl Fn([f64; 3]) -> bool, condition: Condition) -> &mut Self {
        let facets = facets_where(&self.mesh, &self.boundary, holds);
        self.conditions.push(BoundaryCondition { facets, condition });
        self
    }

    /// The space of linear elements.
    pub fn space(&self) -> Space<'_> {
        Space::new(&self.mesh, 1).unwrap()
    }

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

    pub fn assemble<T: Scalar, D: AssemblyKernels<T>>(&self, device: &D) -> AssembledSystem<T, D> {
        assemble(device, &self.form(), &|_| ()).unwrap()
    }

    /// Solves by conjugate gradients to 1e-12.
    pub fn solve(&self, device: &Cpu) -> Vec<f64> {
        self.solve_to(1e-12, device)
    }

    /// Solves by conjugate gradients to a tolerance.
    pub fn solve_to(&self, tolerance: f64, device: &Cpu) -> Vec<f64> {
        let system: AssembledSystem<f64, Cpu> = self.assemble(device);
        device.install(|| {
            let preconditioner = Jacobi::new(&system.matrix).unwrap();
            let mut w = Buffer::zeros(device, self.mesh.n_nodes()).unwrap();
            let config = KrylovConfig { tolerance, ..KrylovConfig::default() };
            let outcome = ConjugateGradient::new(config)
                .solve(&mut w, &system.matrix, &preconditioner, &system.rhs, &SingleRank, &mut ())
                .unwrap();
            assert_eq!(outcome.stop, Stop::Converged, "{outcome:?}");
            system.solution(&self.space(), &w).unwrap()
        })
    }
}

/// Returns all entries of a matrix as (row, column, value).
pub fn entries<T: Scalar, D: femtile_device::HostDevice>(
    matrix: &femtile_sparse::csr::Csr<T, D>,
) -> Vec<(usize, usize, f64)> {
    let rows = 0..matrix.n_rows();
    rows.flat_map(|i| matrix.row(i).map(move |(j, value)| (i, j, value.to_f64())).collect::<Vec<_>>())
        .collect()
}

/// Returns CPU devices with each SIMD level of this machine.
pub fn cpus() -> Vec<Cpu> {
    let levels = femtile_device::cpu::SimdLevel::available().into_iter();
    levels.map(|level| Cpu::with_simd(2, level).unwrap()).collect()
}

pub fn description(device: &impl Device) -> String {
    device.description()
}

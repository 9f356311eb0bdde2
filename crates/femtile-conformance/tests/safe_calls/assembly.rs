use femtile::device::Cpu;
use femtile::fem::{Assembly, Coefficient, DeviceState, FemError, Form};
use femtile::linalg::sparse::{Csr, EllWarp, EllWarpConfig, StoredMatrix};
use femtile::mesh::Mesh;
use femtile::mesh::check::BoundaryFacets;
use femtile::mesh::generate::{BoxConfig, box_mesh};

use crate::{cpu, matrix, refused, zeros};

const ONE: Coefficient = Coefficient::Constant(1.0);

fn cube(n: usize) -> Mesh {
    box_mesh(&BoxConfig { cells: [n; 3], ..BoxConfig::default() }).unwrap()
}

fn form<'a>(mesh: &'a Mesh, boundary: &'a BoundaryFacets) -> Form<'a> {
    Form { mesh, boundary, sigma: &ONE, lambda: &ONE, source: &ONE, conditions: &[] }
}

fn a_small_system_is_not_filled_by_a_large_assembly<M: StoredMatrix<Cpu>>(config: impl Fn() -> M::Config) {
    let (cpu, boundary) = (cpu(), BoundaryFacets::default());
    let (small, large) = (cube(1), cube(4));
    let mut of_small = Assembly::<f64, Cpu, M>::in_format(&cpu, &small, config()).unwrap();
    let mut of_large = Assembly::<f64, Cpu, M>::in_format(&cpu, &large, config()).unwrap();
    let mut system = of_small.system(&form(&small, &boundary)).unwrap();
    let foreign = |result: Result<(), FemError>, wanted: &str| match result {
        Err(FemError::OtherAssembly { field, .. }) => assert_eq!(field, wanted),
        other => panic!("{other:?} where another {wanted} is to be refused"),
    };
    foreign(of_large.refill(&mut system, &form(&large, &boundary)), "system");
    let large_form = form(&large, &boundary);
    let problem = of_large.prepare(&large_form).unwrap();
    foreign(of_large.fill(&mut system, &problem, DeviceState::default()), "system");
    foreign(of_small.fill(&mut system, &problem, DeviceState::default()), "problem");
    of_small.refill(&mut system, &form(&small, &boundary)).unwrap();
}

#[test]
fn rows_of_a_small_system_are_not_filled_by_a_large_assembly() {
    a_small_system_is_not_filled_by_a_large_assembly::<Csr<f64, Cpu>>(|| ());
}

#[test]
fn slices_of_a_small_system_are_not_filled_by_a_large_assembly() {
    a_small_system_is_not_filled_by_a_large_assembly::<EllWarp<f64, Cpu>>(|| EllWarpConfig::new(8));
}

#[test]
fn arrays_of_a_system_that_were_replaced_by_others_are_refused() {
    let (cpu, boundary, mesh) = (cpu(), BoundaryFacets::default(), cube(2));
    let mut assembly = Assembly::<f64, Cpu>::new(&cpu, &mesh).unwrap();
    let fresh = |assembly: &mut Assembly<f64, Cpu>| assembly.system(&form(&mesh, &boundary)).unwrap();
    let mut refill = |change: &dyn Fn(&mut femtile::fem::AssembledSystem<f64, Cpu>)| {
        let mut system = fresh(&mut assembly);
        let n_values = system.matrix.n_nonzeros();
        change(&mut system);
        match assembly.refill(&mut system, &form(&mesh, &boundary)) {
            Err(FemError::Linalg(error)) => (error, n_values),
            other => panic!("{other:?}"),
        }
    };
    let (error, _) = refill(&|system| system.rhs = zeros(&cpu, 1));
    refused::<()>(Err(error), ("rhs", 27, 1));
    let (error, n_values) = refill(&|system| system.matrix = matrix(&cpu, 2));
    refused::<()>(Err(error), ("values", n_values, 4));
}

#[test]
fn another_mesh_with_as_many_nodes_and_cells_is_refused() {
    let (cpu, boundary, mesh) = (cpu(), BoundaryFacets::default(), cube(2));
    let mut assembly = Assembly::<f64, Cpu>::new(&cpu, &mesh).unwrap();
    let mut system = assembly.system(&form(&mesh, &boundary)).unwrap();
    let mut twisted = mesh.clone();
    twisted.cells.iter_mut().for_each(|node| *node = (*node + 1) % 27);
    let mut moved = mesh.clone();
    moved.points[13][0] += 0.01;
    for other in [twisted, moved] {
        let refusal = assembly.refill(&mut system, &form(&other, &boundary));
        assert!(matches!(refusal, Err(FemError::ChangedMesh)), "{refusal:?}");
    }
    let mut copied = mesh.clone();
    assembly.refill(&mut system, &form(&copied, &boundary)).unwrap();
    copied.cells.rotate_left(4);
    let refusal = assembly.refill(&mut system, &form(&copied, &boundary));
    assert!(matches!(refusal, Err(FemError::ChangedMesh)), "{refusal:?}");
}

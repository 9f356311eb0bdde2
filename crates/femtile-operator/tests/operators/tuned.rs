//! The tuned assembly of diffusion and reaction has the matrix and the load of the general form.

use femtile_device::Cpu;
use femtile_fem::assembly::assemble as assemble_simplices;
use femtile_fem::tensor::{CellMatrices, TensorProblem, assemble as assemble_tensor};
use femtile_fem::{BoundaryCondition, Condition, Form as TunedForm};
use femtile_form::{Argument, Coefficient, Equation};
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::DeformConfig;
use femtile_operator::{DiscreteForm, State, reference};
use femtile_space::Space;
use femtile_space::geometry::CellRule;

use crate::meshes::{KINDS, mesh};

#[test]
fn tuned_matrices_and_loads_are_those_of_the_form() {
    let by_tag = |a: Coefficient, b: Coefficient| Coefficient::ByTag([(0, a), (3, b)].into());
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.25], [0.5, 3.0, 0.75], [0.25, 0.75, 4.0]]);
    for kind in KINDS {
        for degree in [1, 3] {
            if kind.is_simplex() && degree > 1 {
                continue;
            }
            let mut mesh = mesh(kind, [3, 2, 2], Some(DeformConfig { amplitude: 0.07, order: 1 }));
            mesh.cell_tags = (0..mesh.n_cells()).map(|cell| if cell % 3 == 0 { 3 } else { 0 }).collect();
            let (d, boundary) = (mesh.dimension(), boundary_facets(&mesh));
            // Rules of other degrees integrate it exactly.
            let source = Coefficient::Constant(-1.5);
            let (sigma, lambda) = (by_tag(tensor.clone(), 2.5.into()), by_tag(0.25.into(), 1.5.into()));
            let [flux, outside]: [Vec<u32>; 2] =
                [0, 1].map(|first| (first..boundary.len() as u32).step_by(2).collect());
            let conditions = [
                BoundaryCondition { facets: flux.clone(), condition: Condition::Neumann(0.75.into()) },
                BoundaryCondition {
                    facets: outside.clone(),
                    condition: Condition::Robin { coefficient: 1.25.into(), value: (-2.0).into() },
                },
            ];
            let tuned = TunedForm {
                mesh: &mesh,
                boundary: &boundary,
                sigma: &sigma,
                lambda: &lambda,
                source: &source,
                conditions: &conditions,
            };
            let space = Space::new(&mesh, degree).unwrap();
            let cpu = Cpu::new(2).unwrap();
            let (matrix, load) = match space.tensor() {
                None => {
                    let system = assemble_simplices::<f64, Cpu>(&cpu, &tuned, &|_| ()).unwrap();
                    (system.matrix, system.rhs)
                }
                Some(tensor) => {
                    let problem = TensorProblem::new(tensor, &tuned).unwrap();
                    let cells = CellMatrices::new(tensor, &sigma, &lambda, CellRule::default()).unwrap();
                    let (matrix, right) =
                        assemble_tensor(&cpu, &problem, &cells, &|_| ()).unwrap().into_parts();
                    (matrix, right.rhs)
                }
            };
            let equation = Equation::named("reaction-diffusion").unwrap();
            let builder = equation.form(d).with("sigma", sigma.clone()).unwrap();
            let builder =
                builder.with("lambda", lambda.clone()).unwrap().with("source", source.clone()).unwrap();
            let builder = builder.on_boundary("neumann", &flux, &[("value", 0.75.into())]).unwrap();
            let robin: [(&str, Argument); 2] = [("coefficient", 1.25.into()), ("value", (-2.0).into())];
            let form = builder.on_boundary("robin", &outside, &robin).unwrap().build().unwrap();
            let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
            let expected = reference::matrix(&discrete, &State::default()).unwrap();
            let largest = expected.iter().flatten().fold(0.0f64, |size, entry| size.max(entry.abs()));
            for (row, expected) in expected.iter().enumerate() {
                let mut found = vec![0.0; expected.len()];
                matrix.row(row).for_each(|(column, entry)| found[column] = entry);
                for (column, (found, expected)) in found.iter().zip(expected).enumerate() {
                    let is_near = (found - expected).abs() < 1e-13 * largest;
                    assert!(is_near, "{kind}, degree {degree}: {found}, {expected} at {row}, {column}");
                }
            }
            let mut residual = vec![f64::NAN; space.n_dofs()];
            reference::residual(&discrete, &State::default(), &mut residual).unwrap();
            for (found, residual) in load.to_host().unwrap().iter().zip(residual) {
                assert!((found + residual).abs() < 1e-13 * (1.0 + largest), "{kind}, degree {degree}");
            }
        }
    }
}

//! Files and data of solutions on triangles and tetrahedra of higher degree: all points, in the order of VTK.

use std::sync::{Arc, Mutex};

use femtile_case::{Case, Embedding, Receiver, Silent, run};
use femtile_mesh::io::vtu::{lattice, read};
use femtile_solve::SolutionData;

/// Keeps the solution.
#[derive(Default)]
struct End(Mutex<Option<SolutionData>>);

impl Receiver for End {
    fn solution(&self, data: SolutionData) {
        *self.0.lock().unwrap() = Some(data);
    }
}

/// A polynomial of the degree, for which −Δu + u is given as the source.
fn polynomial(degree: usize, [x, y, z]: [f64; 3]) -> f64 {
    (0.5 + x - 0.7 * y + 0.4 * z).powi(degree as i32)
}

#[test]
fn points_lie_on_the_lattice_of_their_cells_with_the_values_of_the_solution() {
    for (mesh, d) in [("kind = \"square\", cells = [2, 2]", 2), ("kind = \"box\", cells = [1, 2, 1]", 3)] {
        for degree in [1_usize, 2, 3, 4, 6] {
            let linear = format!("(0.5 + x - 0.7*y{})", if d == 3 { " + 0.4*z" } else { "" });
            let square = if d == 3 { 1.65 } else { 1.49 };
            let text = format!(
                "[mesh]\ngenerate = {{ {mesh} }}\n[space]\ndegree = {degree}\n\
                 [equation]\nkind = \"convection-diffusion\"\nlambda = 1\nvelocity = {:?}\n\
                 source = \"{linear}^{degree} - {}*{linear}^{}\"\n\
                 [[boundary]]\nwhere = \"all\"\ndirichlet = \"{linear}^{degree}\"\n\
                 [solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n[output]\nplot = false\n",
                vec![0; d],
                square * (degree * (degree - 1)) as f64,
                degree.saturating_sub(2),
            );
            let folder = tempfile::tempdir().unwrap();
            let end = Arc::new(End::default());
            let embedding = Embedding { receiver: Some(end.clone()), ..Embedding::default() };
            let path = folder.path().join("case.toml");
            let mut case = Case::parse_embedded(&path, text, Vec::new(), embedding).unwrap();
            case.file.output.directory = folder.path().join("out");
            let report = run(&case, &mut Silent).unwrap();
            assert!(
                !report.warnings.iter().any(|warning| warning.contains("corners")),
                "{:?}",
                report.warnings
            );

            let data = end.0.lock().unwrap().take().unwrap();
            assert_eq!((data.order, data.points.len()), (degree, report.space.n_dofs));
            let lattice = lattice(data.kind, degree).unwrap();
            assert_eq!(lattice.len(), data.points_per_cell());
            let u = &data.point_fields["u"].values;
            for cell in data.cells.chunks(lattice.len()) {
                let points: Vec<[f64; 3]> = cell.iter().map(|&point| data.points[point as usize]).collect();
                for (at, (point, &number)) in lattice.iter().zip(points.iter().zip(cell)) {
                    for i in 0..3 {
                        let along = |axis: usize| {
                            at[axis] as f64 / degree as f64 * (points[axis + 1][i] - points[0][i])
                        };
                        let expected = points[0][i] + (0..d).map(along).sum::<f64>();
                        assert!((point[i] - expected).abs() < 1e-13, "{d} {degree}: {at:?} at {point:?}");
                    }
                    let error = (u[number as usize] - polynomial(degree, *point)).abs();
                    assert!(error < 1e-9, "{d} {degree}: {error:e} at {point:?}");
                }
            }
            // The file is that of the data.
            let written = folder.path().join("data.vtu");
            data.write_vtu(&written).unwrap();
            let file = folder.path().join("out/solution.vtu");
            let [found, expected] = [&written, &file].map(|path| read(path).unwrap());
            assert_eq!((&found.points, &found.cells), (&expected.points, &expected.cells));
            assert_eq!(found.node_fields["u"], expected.node_fields["u"]);
            let version = if degree > 1 { b"version=\"2.2\"" } else { b"version=\"1.0\"" };
            for path in [written, file] {
                assert!(std::fs::read(path).unwrap().windows(13).any(|text| text == version));
            }
        }
    }
}

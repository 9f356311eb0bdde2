//! Cases that are run from file to file.

/// A case without its device, threads and folder of results.
#[derive(Debug, Clone)]
pub struct WholeCase {
    /// Its name in records.
    pub name: &'static str,
    /// The mesh of the case file; none where it is read from a file with this ending.
    pub mesh: Result<String, &'static str>,
    /// The rest of the case file.
    pub rest: String,
}

/// The preconditioners, and the space of hexahedra.
const AMG: &str = "\n[solver]\npreconditioner = \"amg\"\n";
const GMG: &str = "\n[space]\ndegree = 4\n[solver]\npreconditioner = \"gmg\"\n";

/// Values on two sides of a box, and a source that varies.
const ON_BOX: &str = "
[equation]
source = \"sin(3*x) + y*z\"
[[boundary]]
where = \"xmin\"
dirichlet = \"y\"
[[boundary]]
where = \"xmax\"
dirichlet = \"1 + z\"
";

/// Of a mesh whose file may have no names of tags.
const ON_FILE: &str = "\n[equation]\nlambda = 1\nsource = \"sin(3*x) + y*z\"\n";

/// Tetrahedra along a side of the largest box and of the others, hexahedra along a side of the box.
const LARGEST_SIDE: usize = 256;
const SIDE: usize = 128;
const HEXAHEDRA: usize = 64;

/// Returns the cases, none of them with many more unknowns than `most`.
pub fn cases(most: usize) -> Vec<WholeCase> {
    let side = |of_case: usize, degree: usize| {
        let fitting = ((most as f64).cbrt() as usize).saturating_sub(1) / degree;
        of_case.min(fitting.max(1))
    };
    let kuhn = |of_case| {
        let n = side(of_case, 1);
        format!("generate = {{ kind = \"box\", cells = [{n}, {n}, {n}] }}")
    };
    // A cell of degree four has about 64 unknowns, a ball of edges h some 12 cells / h^3; ventricles of h mm 5,500 nodes / h^3.
    let of_volume = |finest: f64, at_one: f64| finest.max((at_one / most as f64).cbrt());
    let n = side(HEXAHEDRA, 4);
    let whole = |name, mesh, [equation, solver]: [&str; 2]| WholeCase {
        name,
        mesh,
        rest: format!("{equation}{solver}"),
    };
    vec![
        whole("box of tetrahedra, amg", Ok(kuhn(SIDE)), [ON_BOX, AMG]),
        whole("large box of tetrahedra, amg", Ok(kuhn(LARGEST_SIDE)), [ON_BOX, AMG]),
        whole(
            "ventricle, amg",
            Ok(format!("generate = {{ kind = \"ventricle\", h_mm = {:.4} }}", of_volume(0.25, 5_500.0))),
            ["\n[equation]\nlambda = 0.1\nsource = \"x\"\n", AMG],
        ),
        whole(
            "box of hexahedra, p = 4, gmg",
            Ok(format!("generate = {{ kind = \"box\", cells = [{n}, {n}, {n}], cell = \"hexahedron\" }}")),
            [ON_BOX, GMG],
        ),
        whole(
            "ball of hexahedra, p = 4, pmg",
            Ok(format!(
                "generate = {{ kind = \"ball\", h = {:.4}, cell = \"hexahedron\" }}",
                of_volume(0.08, 800.0)
            )),
            [
                "\n[equation]\nsource = \"x + y*z\"\n[[boundary]]\nwhere = \"surface\"\ndirichlet = 0\n",
                "\n[space]\ndegree = 4\n[solver]\npreconditioner = \"pmg\"\n",
            ],
        ),
        whole("box read from Gmsh 4.1, binary, amg", Err("msh"), [ON_FILE, AMG]),
        whole("box read from VTU, raw, amg", Err("vtu"), [ON_FILE, AMG]),
    ]
}

/// Returns the cubes along a side of the boxes that are read.
pub fn side_of_files(most: usize) -> usize {
    SIDE.min(((most as f64).cbrt() as usize).saturating_sub(1).max(1))
}

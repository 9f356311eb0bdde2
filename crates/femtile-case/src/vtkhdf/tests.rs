//! Files are read by another reader of HDF5 and compared with the VTU files of the same run.

use hdf5_pure::{AttrValue, File as Reader};

use super::*;
use crate::{Case, Report, Silent, run, verify};

/// The bytes of an array of a VTU file with raw data and heads of 64 bits.
fn vtu_array(path: &Path, name: &str) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let mark = b"<AppendedData encoding=\"raw\">";
    let data = bytes.windows(mark.len()).position(|part| part == mark).unwrap();
    let data = data + bytes[data..].iter().position(|&byte| byte == b'_').unwrap() + 1;
    let head = String::from_utf8_lossy(&bytes[..data]).into_owned();
    assert!(head.contains("header_type=\"UInt64\""), "{head}");
    let element = head.split("<DataArray").find(|part| part.contains(&format!("Name=\"{name}\""))).unwrap();
    let offset = element.split("offset=\"").nth(1).unwrap().split('"').next().unwrap();
    let begin = data + offset.parse::<usize>().unwrap();
    let n = u64::from_le_bytes(bytes[begin..begin + 8].try_into().unwrap()) as usize;
    bytes[begin + 8..begin + 8 + n].to_vec()
}

fn reals_of(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks(8).map(|number| f64::from_le_bytes(number.try_into().unwrap())).collect()
}

fn integers_of(bytes: &[u8]) -> Vec<i64> {
    bytes.chunks(4).map(|number| i32::from_le_bytes(number.try_into().unwrap()).into()).collect()
}

/// Asserts that mesh and tags are those of a VTU file.
fn assert_mesh(file: &Reader, vtu: &Path) {
    let read = |name: &str| file.dataset(&format!("VTKHDF/{name}")).unwrap();
    let attributes = file.group("VTKHDF").unwrap().attrs().unwrap();
    assert!(matches!(&attributes["Type"], AttrValue::AsciiString(text) if text == "UnstructuredGrid"));
    assert_eq!(attributes["Version"], AttrValue::I64Array(vec![2, 0]));
    let points = read("Points");
    let coordinates = reals_of(&vtu_array(vtu, "Points"));
    assert_eq!(points.read_f64().unwrap(), coordinates);
    assert_eq!(points.shape().unwrap(), [coordinates.len() as u64 / 3, 3]);
    let connectivity = integers_of(&vtu_array(vtu, "connectivity"));
    assert_eq!(read("Connectivity").read_i64().unwrap(), connectivity);
    let ends = integers_of(&vtu_array(vtu, "offsets"));
    let offsets = read("Offsets").read_i64().unwrap();
    assert_eq!((offsets[0], &offsets[1..]), (0, &ends[..]));
    let types: Vec<u8> = read("Types").read().unwrap();
    assert_eq!(types, vtu_array(vtu, "types"));
    let counts = [coordinates.len() / 3, ends.len(), connectivity.len()].map(|n| vec![n as i64]);
    let found = ["NumberOfPoints", "NumberOfCells", "NumberOfConnectivityIds"];
    assert_eq!(found.map(|name| read(name).read_i64().unwrap()), counts);
    let tags: Vec<i32> = read("CellData/tag").read().unwrap();
    // Lagrange cells have tags as reals in VTU files.
    let of_vtu = vtu_array(vtu, "tag");
    let of_vtu = match of_vtu.len() == 8 * tags.len() {
        true => reals_of(&of_vtu).into_iter().map(|tag| tag as i64).collect(),
        false => integers_of(&of_vtu),
    };
    assert_eq!(tags.iter().map(|&tag| i64::from(tag)).collect::<Vec<_>>(), of_vtu);
    assert!(of_vtu.contains(&0) && of_vtu.contains(&1));
}

fn solved(folder: &Path, text: &str) -> (Case, Report) {
    let mut case = Case::parse(&folder.join("case.toml"), text.into()).unwrap();
    case.file.output.directory = folder.join("out");
    let report = run(&case, &mut Silent).unwrap();
    assert_eq!(verify(&case.file.output.directory).unwrap(), []);
    (case, report)
}

const REGION: &str = "[[region]]\nname = \"left\"\nwhere = \"x < 0.5\"\n";

#[test]
fn a_steady_solution_has_the_arrays_of_its_vtu_file() {
    let square = |cell: &str| format!("kind = \"square\", cells = [3, 2], cell = \"{cell}\"");
    let cube = |cell: &str| format!("kind = \"box\", cells = [2, 1, 2], cell = \"{cell}\"");
    let form = "kind = \"form\"\nflux = \"grad(u)\"\nsource = \"x\"\n[unknown]\nu = {}\n";
    let scalar = "source = \"x\"\n";
    for (mesh, degree, equation, cell, ranks) in [
        (square("triangle"), 1, scalar, 5, 1),
        (square("quadrilateral"), 3, scalar, 70, 1),
        (cube("hexahedron"), 2, scalar, 72, 1),
        (cube("hexahedron"), 3, scalar, 72, 1),
        (square("triangle"), 3, form, 69, 1),
        (square("triangle"), 1, scalar, 5, 2),
        (cube("hexahedron"), 2, scalar, 72, 2),
        (square("triangle"), 2, form, 69, 2),
        (cube("tetrahedron"), 2, form, 71, 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[mesh]\ngenerate = {{ {mesh} }}\n{REGION}[space]\ndegree = {degree}\n[equation]\n{equation}\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y\"\n[solver]\nranks = {ranks}\n\
             [output]\nvtkhdf = true\n"
        );
        let (case, report) = solved(folder.path(), &text);
        assert!(report.files.contains_key(VTKHDF));
        let out = &case.file.output.directory;
        let (vtu, file) = (out.join("solution.vtu"), Reader::open(out.join(VTKHDF)).unwrap());
        assert_mesh(&file, &vtu);
        let u = file.dataset("VTKHDF/PointData/u").unwrap();
        assert_eq!(u.read_f64().unwrap(), reals_of(&vtu_array(&vtu, "u")), "{mesh}");
        let types: Vec<u8> = file.dataset("VTKHDF/Types").unwrap().read().unwrap();
        assert_eq!(types[0], cell);
        assert!(file.group("VTKHDF/Steps").is_err());
    }
}

#[test]
fn the_file_has_the_whole_mesh_whatever_vtu_files_have() {
    let text = |vtu: &str, ranks: usize| {
        format!(
            "[mesh]\ngenerate = {{ kind = \"box\", cells = [3, 2, 2] }}\n[equation]\nsource = \"x\"\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y\"\n[solver]\nranks = {ranks}\n\
             [output]\nvtkhdf = true\nvtu = {vtu}\n"
        )
    };
    let u = |vtu: &str, ranks: usize| {
        let folder = tempfile::tempdir().unwrap();
        let (case, _) = solved(folder.path(), &text(vtu, ranks));
        let file = Reader::open(case.file.output.directory.join(VTKHDF)).unwrap();
        let read = |name: &str| file.dataset(&format!("VTKHDF/{name}")).unwrap().read_f64().unwrap();
        (read("Points"), read("PointData/u"))
    };
    let whole = u("true", 1);
    assert_eq!(whole.0.len(), 3 * 36);
    for vtu in ["false", "\"surface\""] {
        assert!(u(vtu, 1) == whole, "{vtu}");
    }
    let (points, values) = u("\"pieces\"", 2);
    assert_eq!(points, whole.0);
    assert!(values.iter().zip(&whole.1).all(|(a, b)| (a - b).abs() < 1e-8));
}

#[test]
fn vectors_and_fields_of_cells_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [4, 3] }}\n{REGION}[equation]\nsource = 1\n\
         [[boundary]]\nwhere = \"all\"\ndirichlet = 0\n[output]\nvtkhdf = true\nfields = [\"gradient\", \"error\"]\n"
    );
    let (case, _) = solved(folder.path(), &text);
    let out = &case.file.output.directory;
    let (vtu, file) = (out.join("solution.vtu"), Reader::open(out.join(VTKHDF)).unwrap());
    let gradient = file.dataset("VTKHDF/PointData/gradient").unwrap();
    assert_eq!(gradient.read_f64().unwrap(), reals_of(&vtu_array(&vtu, "gradient")));
    assert_eq!(gradient.shape().unwrap(), [20, 3]);
    let error = file.dataset("VTKHDF/CellData/error").unwrap();
    assert_eq!(error.read_f64().unwrap(), reals_of(&vtu_array(&vtu, "error")));
    assert_eq!(error.shape().unwrap(), [24]);
}

const IN_TIME: &str = "[time]\nmethod = \"bdf2\"\nend = 0.4\nsteps = 8\nframes = { every = 0.1 }\n";

#[test]
fn frames_of_a_run_in_time_are_steps_on_one_mesh() {
    let heat = "kind = \"diffusion\"\nsource = \"x + t\"\n";
    let form = "kind = \"form\"\nflux = \"grad(u)\"\nsource = \"x\"\ncapacity = 1\n[unknown]\nu = {}\n";
    for (cell, degree, equation, ranks) in [
        ("triangle", 1, heat, 1),
        ("quadrilateral", 2, heat, 1),
        ("triangle", 2, form, 1),
        ("triangle", 1, heat, 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[mesh]\ngenerate = {{ kind = \"square\", cells = [4, 3], cell = \"{cell}\" }}\n{REGION}\
             [space]\ndegree = {degree}\n[equation]\n{equation}{IN_TIME}[solver]\nranks = {ranks}\n\
             [output]\nvtkhdf = true\n"
        );
        let (case, report) = solved(folder.path(), &text);
        assert_eq!(report.warnings, [""; 0]);
        let out = &case.file.output.directory;
        let file = Reader::open(out.join(VTKHDF)).unwrap();
        assert_mesh(&file, &out.join("frames/u_0000.vtu"));
        let steps = |name: &str| file.dataset(&format!("VTKHDF/Steps/{name}")).unwrap();
        assert_eq!(file.group("VTKHDF/Steps").unwrap().attrs().unwrap()["NSteps"], AttrValue::I64(5));
        let times = steps("Values").read_f64().unwrap();
        assert!(times.iter().zip([0.0, 0.1, 0.2, 0.3, 0.4]).all(|(time, at)| (time - at).abs() < 1e-12));
        for name in
            ["PartOffsets", "PointOffsets", "CellOffsets", "ConnectivityIdOffsets", "CellDataOffsets/tag"]
        {
            assert_eq!(steps(name).read_i64().unwrap(), [0; 5], "{name}");
        }
        assert_eq!(steps("NumberOfParts").read_i64().unwrap(), [1; 5]);
        assert_eq!(steps("CellOffsets").shape().unwrap(), [5, 1]);
        let n_points = file.dataset("VTKHDF/NumberOfPoints").unwrap().read_i64().unwrap()[0];
        let begins = steps("PointDataOffsets/u").read_i64().unwrap();
        assert_eq!(begins, [0, 1, 2, 3, 4].map(|frame| frame * n_points));
        let u = file.dataset("VTKHDF/PointData/u").unwrap().read_f64().unwrap();
        let frames =
            (0..5).flat_map(|i| reals_of(&vtu_array(&out.join(format!("frames/u_{i:04}.vtu")), "u")));
        assert_eq!(u, frames.collect::<Vec<_>>(), "{cell} {degree} {ranks}");
    }
}

#[test]
fn a_run_without_frames_has_its_end_and_one_that_is_resumed_warns() {
    let text = format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [4, 3] }}\n{REGION}[equation]\nkind = \"diffusion\"\nsource = 1\n\
         {IN_TIME}checkpoint = {{ steps = 4 }}\n[output]\nvtkhdf = true\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let (case, _) = solved(folder.path(), &text.replace("frames = { every = 0.1 }\n", ""));
    let path = case.file.output.directory.join(VTKHDF);
    let file = Reader::open(&path).unwrap();
    assert_mesh(&file, &path.with_extension("vtu"));
    assert!(file.group("VTKHDF/Steps").is_err());

    // The last checkpoint is that of the end of a shorter run.
    let folder = tempfile::tempdir().unwrap();
    solved(folder.path(), &text.replace("end = 0.4\nsteps = 8", "end = 0.2\nsteps = 4"));
    let (case, report) = solved(folder.path(), &text.replace("[output]", "restart = true\n[output]"));
    let warning = "solution.vtkhdf has the frames from the restart on";
    assert!(report.warnings.iter().any(|said| said.contains(warning)), "{:?}", report.warnings);
    let file = Reader::open(case.file.output.directory.join(VTKHDF)).unwrap();
    let times = file.dataset("VTKHDF/Steps/Values").unwrap().read_f64().unwrap();
    assert!((times[0] - 0.2).abs() < 1e-12 && times.len() == 3, "{times:?}");
}

#[test]
fn a_grid_is_refused_and_names_are_those_that_links_may_have() {
    let text = "[mesh]\ngenerate = { kind = \"grid\", nodes = [5, 5] }\n[equation]\nkind = \"diffusion\"\nsource = 1\n\
                [time]\nend = 1\nsteps = 2\n[output]\nvtkhdf = true\n";
    let error = Case::parse(Path::new("case.toml"), text.into()).unwrap_err().to_string();
    assert!(error.contains("output.vtkhdf") && error.contains("solution.vti"), "{error}");
    let mut names = Names::default();
    for name in ["u", "a/b", "a_b", ".", ""] {
        names.add(name, integers(vec![1]));
    }
    assert_eq!(names.taken, ["u", "a_b", "a_b_", "._", "_"]);
}

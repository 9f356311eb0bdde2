//! Input files of Abaqus and CalculiX that include others.

use std::path::Path;

use femtile_mesh::{Mesh, io};

/// Writes files into a folder and reads the first of them.
fn read(files: &[(&str, &str)]) -> Result<Mesh, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    // Paths without the folder, with `/` on every system.
    let short =
        |text: String| text.replace(&format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR), "");
    match io::read(&folder.path().join(files[0].0)) {
        Ok(mut mesh) => {
            mesh.notes = mesh.notes.into_iter().map(short).collect();
            Ok(mesh)
        }
        Err(error) => Err(short(error.to_string())),
    }
}

const NODES: &str = "** nodes alone\n1, 0, 0\n2, 1, 0\n3, 1, 1\n4, 0, 1";
const ELEMENTS: &str = "1, 1, 2, 3\n2, 1, 3, 4\n";
const WHOLE: &str = "*HEADING\n*NODE\n1, 0, 0\n2, 1, 0\n3, 1, 1\n4, 0, 1\n*ELEMENT, TYPE=CPS3, ELSET=body\n1, 1, 2, 3\n\
                     2, 1, 3, 4\n*NSET, NSET=low\n1, 2\n";

#[test]
fn included_files_stand_where_they_are_included() {
    let whole = io::abaqus::parse(Path::new("a.inp"), WHOLE.as_bytes()).unwrap();
    // Data lines alone, a file in another folder that includes one beside it, `INPUT` of other keywords, the extension of cgx.
    let main = "*HEADING\n*NODE\n*INCLUDE, INPUT=nodes.inc\n*include, input=\"parts/all.inp\"\n*NSET, NSET=low\n1, 2\n";
    let all = "** parts\n*ELEMENT, TYPE=CPS3, ELSET=body, INPUT=more/elements.txt\n";
    let mut files = [
        ("a.inp", main),
        ("nodes.inc", NODES),
        ("parts/all.inp", all),
        ("parts/more/elements.txt", ELEMENTS),
    ];
    assert_eq!(read(&files).unwrap(), whole);
    files[0].0 = "a.msh";
    assert_eq!(read(&files).unwrap(), whole);
    // At the end of the file without a line break, and within the lines of a set.
    let tail = "*NODE, INPUT=nodes.inc\n*ELEMENT, TYPE=CPS3, ELSET=body\n1, 1, 2, 3\n2, 1, 3, 4\n*NSET, NSET=low\n1,\n*INCLUDE,\n INPUT=two.inc";
    assert_eq!(read(&[("a.inp", tail), ("nodes.inc", NODES), ("two.inc", "2")]).unwrap(), whole);
}

#[test]
fn faults_of_included_files_are_told_with_file_and_line() {
    let main = "*NODE\n*INCLUDE, INPUT=nodes.inc\n\n*ELEMENT, TYPE=CPS3\n1, 1, 2, 3\n2, 1, 3, 4\n";
    let of = |main: &str, nodes: &str| read(&[("a.inp", main), ("nodes.inc", nodes)]);
    let said = of(main, &NODES.replace("1, 1\n", "1, x\n")).unwrap_err();
    assert!(said.starts_with("nodes.inc: line 4: a coordinate should be a number, not `x`"), "{said}");
    let said = of(&main.replace("1, 3, 4", "1, 3, x"), NODES).unwrap_err();
    assert!(said.starts_with("a.inp: line 6: a node of an element"), "{said}");
    let said = of(&main.replace("2, 1, 3, 4", "2, 1, 3, 9"), NODES).unwrap_err();
    assert!(said.starts_with("a.inp: an element uses node 9"), "{said}");
    let said = of(main, &[NODES, "\n*ELEMENT, TYPE=SC6R\n"].concat()).unwrap_err();
    assert!(said.starts_with("nodes.inc: line 6: the Abaqus element type `SC6R`"), "{said}");
    let set = "\n*NSET, NSET=n\n1, 7\n";
    let notes = of(main, &[NODES, set].concat()).unwrap().notes;
    assert!(notes[0].starts_with("nodes.inc, line 7: the set `n` holds node 7"), "{notes:?}");
    let notes = of(&[main, set].concat(), NODES).unwrap().notes;
    assert!(notes[0].starts_with("line 9: the set `n` holds node 7"), "{notes:?}");
}

#[test]
fn includes_that_cannot_be_followed_are_refused_at_their_line() {
    let include = |name: &str| format!("*HEADING\n*INCLUDE, INPUT={name}\n");
    let said = read(&[("a.inp", &include("none.inc"))]).unwrap_err();
    assert!(said.starts_with("a.inp: line 2: the included file `none.inc` cannot be read: "), "{said}");
    let said = read(&[("a.inp", &include("parts")), ("parts/b.inp", "")]).unwrap_err();
    assert!(
        said.contains("line 2: the included file `parts` cannot be read: it is no regular file"),
        "{said}"
    );
    let said = read(&[("a.inp", &include("./a.inp"))]).unwrap_err();
    assert!(said.starts_with("a.inp: line 2: the included file `./a.inp` includes itself"), "{said}");
    let said = read(&[("a.inp", &include("b/b.inp")), ("b/b.inp", &include("../a.inp"))]).unwrap_err();
    assert!(said.starts_with("b/b.inp: line 2: the included file `../a.inp` includes itself"), "{said}");

    let names: Vec<String> = (0..30).map(|i| format!("{i}.inp")).collect();
    let texts: Vec<String> = names.iter().skip(1).map(|name| include(name)).chain([String::new()]).collect();
    let chain: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let said = read(&chain).unwrap_err();
    assert!(said.contains(".inp: line 2: the file `17.inp` is included more than 16 files deep"), "{said}");
    // Each includes the next one twice: 2¹⁵ copies of the last.
    let texts: Vec<String> = texts.iter().map(|text| text.repeat(2)).collect();
    let long = ["** a comment of some length\n", &"** and so on\n".repeat(20)].concat();
    let mut twice: Vec<(&str, &str)> =
        names[..15].iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    twice.push(("15.inp", &long));
    assert!(read(&twice).unwrap_err().contains("is included again and again"));
}

//! `femtile spmv` and `femtile tune`: every format is checked and timed, and bad files are refused by line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::{bench, text};

/// −u″ with three points, and a row that couples to nothing.
const SMALL: &str = "%%MatrixMarket matrix coordinate real symmetric
4 4 6
1 1 2
2 1 -1
2 2 1
2 2 1
3 2 -1
3 3 2
";

/// A folder with files.
struct Place(TempDir);

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn place(files: &[(&str, &[u8])]) -> Place {
    let place = Place(tempfile::tempdir().unwrap());
    for (name, bytes) in files {
        std::fs::write(place.path(name), bytes).unwrap();
    }
    place
}

/// The program as `femtile` runs it for a command.
fn femtile(command: &str) -> Command {
    let mut program = bench();
    program.arg(if command == "spmv" { "products" } else { command });
    program
}

/// Runs a command on the CPU, with a cache of its own.
fn run(place: &Place, command: &str, arguments: &[&str]) -> Output {
    femtile(command)
        .current_dir(place.0.path())
        .env("FEMTILE_CACHE", place.path("cache"))
        .args(["--device", "cpu", "--repeats", "2"])
        .args(arguments)
        .output()
        .unwrap()
}

fn report_of(place: &Place, command: &str, arguments: &[&str]) -> Value {
    let output = run(place, command, &[arguments, &["--json", "-", "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn report(place: &Place, arguments: &[&str]) -> Value {
    report_of(place, "spmv", arguments)
}

fn said(place: &Place, command: &str, arguments: &[&str]) -> String {
    let output = run(place, command, arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn refuses(files: &[(&str, &[u8])], arguments: &[&str], words: &[&str]) {
    let output = run(&place(files), "spmv", arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let said = said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

#[test]
fn a_matrix_of_columns_without_entries_is_refused_before_it_takes_memory() {
    let wide = b"%%MatrixMarket matrix coordinate real general\n1 4294967295 0\n";
    refuses(&[("a.mtx", wide)], &["a.mtx"], &["line 2", "nearly all of 4294967295 columns are empty"]);
}

fn entries(report: &Value) -> &Vec<Value> {
    report["devices"][0]["entries"].as_array().unwrap()
}

fn formats(report: &Value) -> Vec<&str> {
    entries(report).iter().map(|entry| entry["format"].as_str().unwrap()).collect()
}

#[test]
fn a_file_is_described_before_its_products_are_timed() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    let found = report(&place, &["a.mtx"]);
    let numbers = ["n_rows", "n_cols", "n_nonzeros", "n_duplicates"].map(|key| found[key].as_u64().unwrap());
    assert_eq!(numbers, [4, 4, 7, 1]);
    let rows = &found["row_lengths"];
    assert_eq!(
        ["shortest", "median", "longest", "n_empty"].map(|key| rows[key].as_u64().unwrap()),
        [0, 2, 3, 1]
    );
    assert_eq!((rows["mean"].as_f64(), found["kind"].as_str()), (Some(1.75), Some("real symmetric")));
    let said = said(&place, "spmv", &["a.mtx"]);
    for words in ["a.mtx: 4 × 4, 7 non-zeros, real symmetric", "0 to 3 entries", "1 have none", "added up: 1"]
    {
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
}

#[test]
fn the_table_is_sorted_by_time_and_marks_what_the_model_takes() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    let found = report(&place, &["a.mtx", "--all"]);
    let device = &found["devices"][0];
    let seconds: Vec<_> = entries(&found).iter().map(|e| e["seconds_min"].as_f64().unwrap()).collect();
    assert!(seconds.len() > 8 && seconds.is_sorted(), "{seconds:?}");
    assert!(device["model_over_best"].as_f64().unwrap() >= 1.0);
    assert!(formats(&found).contains(&device["model"].as_str().unwrap()));
    for key in ["gb_per_s", "of_bound", "padding", "bytes", "seconds_built", "seconds_median"] {
        assert!(entries(&found).iter().all(|entry| entry[key].is_number()), "{key}");
    }
    assert_eq!(device["nominal_bytes"], 12 * 7 + 20 * 4);
    let said = said(&place, "spmv", &["a.mtx", "--all"]);
    for words in ["read bandwidth", "padding", "CSR", "K1", "16-bit", "model "] {
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
}

#[test]
fn without_all_csr_and_what_is_chosen_are_timed() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    let found = report(&place, &["a.mtx"]);
    assert!(formats(&found).contains(&"CSR") && formats(&found).len() <= 2, "{:?}", formats(&found));
}

#[test]
fn json_goes_to_a_file_beside_the_table() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    assert!(said(&place, "spmv", &["a.mtx", "--json", "report.json"]).contains("time, µs"));
    let found: Value = serde_json::from_slice(&std::fs::read(place.path("report.json")).unwrap()).unwrap();
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_small_matrix_is_said_to_fit_the_cache() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    let found = report(&place, &["a.mtx"]);
    let device = &found["devices"][0];
    if device["bound"]["cache_bytes"].is_null() {
        eprintln!("SKIPPED: the note on caches: the system does not tell their size");
        return;
    }
    assert_eq!(device["fits_cache"], true);
    assert!(said(&place, "spmv", &["a.mtx"]).contains("may pass 1"));
}

#[test]
fn row_lengths_are_drawn_or_printed() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    let printed = said(&place, "spmv", &["a.mtx"]);
    // One row is empty, two have two entries and one has three; the longest bar is of 40 characters.
    assert_eq!(printed.matches('█').count(), 20 + 40 + 20, "{printed}");
    let drawn = said(&place, "spmv", &["a.mtx", "--histogram", "rows.svg"]);
    assert!(drawn.contains("rows.svg") && !drawn.contains('█'), "{drawn}");
    let svg = std::fs::read_to_string(place.path("rows.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("a.mtx"), "{svg}");
}

#[test]
fn compressed_files_are_read_as_well() {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(SMALL.as_bytes()).unwrap();
    let place = place(&[("a.mtx.gz", &gz.finish().unwrap())]);
    assert_eq!(report(&place, &["a.mtx.gz"])["n_nonzeros"], 7);
}

#[test]
fn rectangular_and_empty_matrices_have_products() {
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    for (counts, shape) in [
        ("2 5 3\n1 1 1\n1 5 2\n2 3 1\n", [2, 5, 3]),
        ("5 2 1\n5 2 1\n", [5, 2, 1]),
        ("3 3 0\n", [3, 3, 0]),
        ("0 4 0\n", [0, 4, 0]),
        ("4 0 0\n", [4, 0, 0]),
        ("0 0 0\n", [0, 0, 0]),
    ] {
        let place = place(&[("a.mtx", format!("{banner}{counts}").as_bytes())]);
        let found = report(&place, &["a.mtx", "--all", "--histogram", "rows.svg"]);
        assert_eq!(["n_rows", "n_cols", "n_nonzeros"].map(|key| found[key].as_u64().unwrap()), shape);
        assert!(formats(&found).iter().any(|format| format.starts_with("K1")), "{counts}");
        said(&place, "spmv", &["a.mtx"]);
    }
}

#[test]
fn bad_files_are_refused_by_path_and_line() {
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    for (content, words) in [
        (String::new(), &["a.mtx: line 1", "empty"][..]),
        ("1 1 1\n".into(), &["a.mtx: line 1", "banner"]),
        (format!("{banner}2 2 1\n3 1 1.0\n"), &["a.mtx: line 3"]),
        (format!("{banner}2 2 2\n1 1 1.0\n"), &["a.mtx"]),
        (format!("{banner}2 2 1\n1 1 one\n"), &["a.mtx: line 3", "one"]),
        (banner.replace("real", "complex") + "1 1 1\n1 1 1 0\n", &["a.mtx: line 1", "complex"]),
    ] {
        refuses(&[("a.mtx", content.as_bytes())], &["a.mtx"], words);
    }
    refuses(&[], &["no.mtx"], &["no.mtx", "cannot read"]);
}

#[test]
fn bad_arguments_say_what_to_do() {
    let a: [(&str, &[u8]); 1] = [("a.mtx", SMALL.as_bytes())];
    refuses(&a, &["a.mtx", "--json", "no/such/report.json"], &["--json", "no/such"]);
    refuses(&a, &["a.mtx", "--histogram", "no/such/rows.svg"], &["--histogram", "no/such"]);
    refuses(&[], &["--profile", "nothing"], &["`nothing`", "webbase-1M"]);
    refuses(&[], &["--profile", "cant", "--scale", "0"], &["scale"]);
    refuses(&[], &[], &["FILE"]);
    let place = place(&a);
    let with =
        |device: &str| femtile("spmv").args(["--device", device]).arg(place.path("a.mtx")).output().unwrap();
    assert_eq!((with("gpu").status.code(), with("cuda:99").status.code()), (Some(2), Some(3)));
    let hidden = text(&with("a\u{1b}[2Jb").stderr);
    assert!(hidden.contains("2Jb") && !hidden.contains('\u{1b}'), "{hidden:?}");
}

#[test]
fn what_a_search_finds_is_used_until_it_is_forgotten() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    let found = report_of(&place, "tune", &["a.mtx"]);
    let best = formats(&found)[0].to_owned();
    assert!(formats(&found).len() > 8);
    let file: Value =
        serde_json::from_slice(&std::fs::read(place.path("cache/tuned.json")).unwrap()).unwrap();
    let (kept, device) = (&file["tuned"][0], found["devices"][0]["device"].as_str().unwrap());
    assert!(file["version"] == 1 && kept["format"] == best.as_str(), "{file}");
    assert_eq!(kept["device"], format!("{device} on {}", femtile_terminal::processor()));
    assert!(kept["matrix"].as_str().unwrap().starts_with("4x4-7-"), "{file}");
    let after = report(&place, &["a.mtx"]);
    assert_eq!(after["devices"][0]["tuned"], best.as_str());
    assert!(formats(&after).contains(&best.as_str()) && after["devices"][0]["tuned_over_best"].is_number());
    assert!(said(&place, "spmv", &["a.mtx"]).contains(&format!("tuned     {best}")));
    let forgotten = said(&place, "tune", &["--forget"]);
    assert!(forgotten.contains("removed 1") && !place.path("cache/tuned.json").exists(), "{forgotten}");
    assert!(report(&place, &["a.mtx"])["devices"][0]["tuned"].is_null());
}

#[test]
fn results_of_searches_that_cannot_be_understood_are_passed_over_with_a_note() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    std::fs::create_dir(place.path("cache")).unwrap();
    std::fs::write(place.path("cache/tuned.json"), "{\"version\": 1").unwrap();
    assert!(said(&place, "spmv", &["a.mtx"]).contains("tuned.json: ignored"));
    report_of(&place, "tune", &["a.mtx"]);
    assert!(report(&place, &["a.mtx"])["devices"][0]["tuned"].is_string());
}

#[test]
fn without_a_cache_a_search_keeps_nothing() {
    let place = place(&[("a.mtx", SMALL.as_bytes())]);
    let tune = |more: &[&str]| {
        let output = femtile("tune")
            .env("FEMTILE_CACHE", "")
            .args(["--device", "cpu", "--repeats", "1"])
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(tune(&[place.path("a.mtx").to_str().unwrap()]).contains("no cache folder"));
    let forgotten = femtile("tune").env("FEMTILE_CACHE", "").arg("--forget").output().unwrap();
    assert!(text(&forgotten.stdout).contains("there is no cache"));
}

#[test]
fn other_libraries_are_timed_or_said_to_be_missing() {
    let place = place(&[]);
    let found = report(&place, &["--profile", "mc2depi", "--scale", "50", "--peers"]);
    let device = &found["devices"][0];
    let peers: Vec<_> = entries(&found).iter().filter(|entry| entry["is_peer"] == true).collect();
    match device["peer_absent"].as_str() {
        Some(reason) => assert!(reason.contains("MKL") && reason.contains("pip install") && peers.is_empty()),
        None => assert!(peers.iter().any(|peer| peer["format"].as_str().unwrap().starts_with("MKL "))),
    }
}

#[test]
fn every_format_gives_the_products_of_all_matrices_of_the_samples() {
    let Some(samples) = std::env::var_os("FEMTILE_SAMPLES") else {
        eprintln!("SKIPPED: products of known matrices: FEMTILE_SAMPLES names no folder");
        return;
    };
    let place = place(&[]);
    let mut n_files = 0;
    for entry in std::fs::read_dir(PathBuf::from(samples).join("matrices")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "mtx") {
            continue;
        }
        n_files += 1;
        let found = report(&place, &[path.to_str().unwrap(), "--all"]);
        let n_done = entries(&found).len() + found["devices"][0]["skipped"].as_array().unwrap().len();
        assert!(entries(&found).len() > 8 && n_done >= 18, "{}: {n_done}", path.display());
    }
    assert!(n_files > 0);
}

#[test]
fn a_gpu_multiplies_as_well() {
    if !femtile::device::cuda::gpus().is_ok_and(|gpus| !gpus.is_empty()) {
        eprintln!("SKIPPED: femtile spmv on a GPU: there is none");
        return;
    }
    let what = ["--profile", "cant", "--scale", "20", "--all", "--repeats", "2"];
    let how = ["--device", "cuda", "--json", "-", "--quiet"];
    let output = femtile("spmv").args(what).args(how).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(entries(&found).len() > 20, "{:?}", formats(&found));
}

#[test]
fn the_example_gives_what_it_promises() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/11-sparse-products");
    let expected: Value =
        serde_json::from_slice(&std::fs::read(example.join("expected.json")).unwrap()).unwrap();
    let found = report(&place(&[]), &["--profile", "rma10", "--scale", "20", "--all"]);
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&found[key], value, "{key}");
    }
    let readme = text(&std::fs::read(example.join("README.md")).unwrap());
    let counts = format!("{} × {}, {} non-zeros", found["n_rows"], found["n_cols"], found["n_nonzeros"]);
    assert!(readme.contains(&counts), "{counts}");
}

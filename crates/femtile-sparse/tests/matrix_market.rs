//! Matrix Market files: what is read, what is refused and how, and that what is written comes back.

use std::io::Write;
use std::path::{Path, PathBuf};

use femtile_device::{Reference, Scalar};
use femtile_sparse::matrix_market::{
    Field, MatrixMarket, MatrixMarketError, ReadConfig, Symmetry, WriteConfig, parse, read, write,
};
use femtile_sparse::{Csr, Triplets};
use proptest::prelude::*;

const BANNER: &str = "%%MatrixMarket matrix coordinate real general\n";

fn parsed<T: Scalar>(text: &str) -> Result<MatrixMarket<T>, MatrixMarketError> {
    parse(Path::new("a.mtx"), text.as_bytes(), &ReadConfig::default())
}

fn assert_refused(text: &str, parts: &[&str]) {
    let said = parsed::<f64>(text).map(|_| ()).unwrap_err().to_string();
    for part in ["a.mtx: "].iter().chain(parts) {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
}

fn rows<T: Scalar>(matrix: &Csr<T, Reference>) -> Vec<Vec<(usize, T)>> {
    (0..matrix.n_rows()).map(|row| matrix.row(row).collect()).collect()
}

fn matrix<T: Scalar>(n_rows: usize, n_cols: usize, entries: &[(usize, usize, T)]) -> Csr<T, Reference> {
    let mut triplets = Triplets::new(n_rows, n_cols);
    for &(row, column, value) in entries {
        triplets.push(row, column, value).unwrap();
    }
    triplets.into_csr(&Reference).unwrap().matrix
}

#[test]
fn a_general_file_is_read_with_its_comments() -> Result<(), MatrixMarketError> {
    let text = format!("{BANNER}% first\n%second\n\n 2 3  3\n2 1 -1.5e-3\r\n\n1 3 +2\n2 3 .5");
    let found = parsed::<f64>(&text)?;
    assert_eq!(rows(&found.matrix), [vec![(2, 2.0)], vec![(0, -1.5e-3), (2, 0.5)]]);
    assert_eq!((found.matrix.n_cols(), found.field, found.symmetry), (3, Field::Real, Symmetry::General));
    assert_eq!(found.comments, ["first", "second"]);
    assert!(found.notes.is_empty() && found.n_duplicates == 0);
    Ok(())
}

#[test]
fn a_symmetric_file_gives_both_triangles() -> Result<(), MatrixMarketError> {
    let text = "%%matrixmarket MATRIX Coordinate Integer Symmetric\n3 3 4\n1 1 4\n3 1 -1\n2 1 7\n3 3 5\n";
    let found = parsed::<f64>(text)?;
    let expected = [vec![(0, 4.0), (1, 7.0), (2, -1.0)], vec![(0, 7.0)], vec![(0, -1.0), (2, 5.0)]];
    assert_eq!(rows(&found.matrix), expected);
    assert_eq!((found.field, found.symmetry), (Field::Integer, Symmetry::Symmetric));
    Ok(())
}

#[test]
fn a_skew_symmetric_file_gives_the_upper_triangle_with_the_other_sign() -> Result<(), MatrixMarketError> {
    let found = parsed::<f64>("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 3\n1 1 0\n")?;
    assert_eq!(rows(&found.matrix), [vec![(0, 0.0), (1, -3.0)], vec![(0, 3.0)]]);
    assert_eq!(found.notes, ["zeros among the entries, which stay stored: 1"]);
    Ok(())
}

#[test]
fn a_pattern_is_read_as_ones_unless_values_are_needed() -> Result<(), MatrixMarketError> {
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n";
    let found = parsed::<f32>(text)?;
    assert_eq!(rows(&found.matrix), [vec![(1, 1.0)], vec![(0, 1.0), (1, 1.0)]]);
    assert!(found.notes[0].contains("pattern"), "{:?}", found.notes);
    let config = ReadConfig { values_needed: true };
    let refused = parse::<f64>(Path::new("a.mtx"), text.as_bytes(), &config).map(|_| ()).unwrap_err();
    let said = refused.to_string();
    assert!(said.starts_with("a.mtx: line 2: pattern files where values are needed are not"), "{said}");
    Ok(())
}

#[test]
fn arrays_are_read_column_after_column_without_their_zeros() -> Result<(), MatrixMarketError> {
    let found = parsed::<f64>("%%MatrixMarket matrix array real general\n2 3\n1\n0\n3 4\n\n5\n6\n")?;
    assert_eq!(rows(&found.matrix), [vec![(0, 1.0), (1, 3.0), (2, 5.0)], vec![(1, 4.0), (2, 6.0)]]);
    assert_eq!(found.notes, ["zeros of the array, which are not stored: 1"]);
    let symmetric = parsed::<f64>("%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n")?;
    assert_eq!(rows(&symmetric.matrix), [vec![(0, 1.0), (1, 2.0)], vec![(0, 2.0), (1, 3.0)]]);
    let skew = parsed::<f64>("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n")?;
    let expected = [vec![(1, -1.0), (2, -2.0)], vec![(0, 1.0), (2, -3.0)], vec![(0, 2.0), (1, 3.0)]];
    assert_eq!(rows(&skew.matrix), expected);
    Ok(())
}

#[test]
fn matrices_without_entries_rows_or_columns_are_read() -> Result<(), MatrixMarketError> {
    for (n_rows, n_cols) in [(0, 0), (0, 3), (3, 0), (2, 3)] {
        let found = parsed::<f64>(&format!("{BANNER}{n_rows} {n_cols} 0\n"))?.matrix;
        assert_eq!((found.n_rows(), found.n_cols(), found.n_nonzeros()), (n_rows, n_cols, 0));
    }
    for symmetry in ["general", "symmetric", "skew-symmetric"] {
        let found = parsed::<f64>(&format!("%%MatrixMarket matrix array real {symmetry}\n0 0\n"))?.matrix;
        assert_eq!((found.n_rows(), found.n_nonzeros()), (0, 0));
    }
    Ok(())
}

#[test]
fn duplicates_are_counted_as_the_file_has_them() -> Result<(), MatrixMarketError> {
    let general = parsed::<f64>(&format!("{BANNER}2 2 3\n1 2 1\n1 2 2\n1 2 4\n"))?;
    assert_eq!((rows(&general.matrix), general.n_duplicates), (vec![vec![(1, 7.0)], vec![]], 2));
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n2 1 1\n2 1 2\n2 2 4\n";
    let symmetric = parsed::<f64>(text)?;
    assert_eq!(symmetric.n_duplicates, 1);
    assert_eq!(rows(&symmetric.matrix), [vec![(1, 3.0)], vec![(0, 3.0), (1, 4.0)]]);
    assert!(symmetric.notes[0].contains("added up: 1"), "{:?}", symmetric.notes);
    Ok(())
}

#[test]
fn a_bad_banner_is_refused_with_what_is_needed() {
    assert_refused("", &["line 1", "empty"]);
    assert_refused("3 3 1\n1 1 1\n", &["line 1", "`3 3 1` is no banner"]);
    assert_refused("%MatrixMarket matrix coordinate real general\n", &["line 1", "no banner"]);
    assert_refused("%%MatrixMarket matrix coordinate real\n", &["line 1", "no banner"]);
    assert_refused("%%MatrixMarket vector array real general\n", &["`vector`", "matrix is needed"]);
    assert_refused("%%MatrixMarket matrix sparse real general\n", &["`sparse`", "coordinate or array"]);
    assert_refused("%%MatrixMarket matrix coordinate float general\n", &["`float`", "integer or pattern"]);
    assert_refused("%%MatrixMarket matrix coordinate real both\n", &["`both`", "skew-symmetric"]);
    assert_refused("%%MatrixMarket matrix array pattern general\n", &["cannot be a pattern"]);
    assert_refused("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", &["no signs"]);
}

#[test]
fn complex_and_hermitian_matrices_are_refused_by_name() {
    assert_refused("%%MatrixMarket matrix coordinate complex general\n", &["line 1", "complex matrices"]);
    assert_refused("%%MatrixMarket matrix coordinate real hermitian\n", &["line 1", "hermitian matrices"]);
}

#[test]
fn bad_counts_are_refused() {
    assert_refused(BANNER, &["line 1", "without the line of counts"]);
    assert_refused(&format!("{BANNER}% only\n% comments\n"), &["line 3", "without the line of counts"]);
    assert_refused(&format!("{BANNER}2 2\n"), &["line 2", "`2 2` should be three counts"]);
    assert_refused(&format!("{BANNER}2 2 -1\n"), &["line 2", "three counts"]);
    assert_refused(&format!("{BANNER}2 2 1.5\n"), &["line 2", "three counts"]);
    assert_refused(&format!("{BANNER}2 99999999999999999999 1\n"), &["line 2", "three counts"]);
    assert_refused(&format!("{BANNER}2 4294967297 0\n"), &["line 2", "too large"]);
    assert_refused("%%MatrixMarket matrix array real general\n2 2 4\n", &["line 2", "two counts"]);
    let huge = format!("%%MatrixMarket matrix array real general\n{} {}\n", usize::MAX, usize::MAX);
    assert_refused(&huge, &["line 2", "too large"]);
    let flat = "%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n";
    assert_refused(flat, &["line 2", "not square", "`general`"]);
}

#[test]
fn a_count_is_not_trusted_before_the_entries_are_there() {
    assert_refused(&format!("{BANNER}9 9 9999999999999\n1 1 1\n"), &["line 3", "9999999999998 of its"]);
    let text = format!("{BANNER}4000000000 4000000000 1\n1 1 1\n");
    assert_refused(&text, &["nearly all of 4000000000 rows are empty", "line 2"]);
    let wide = format!("{BANNER}1 4294967295 0\n");
    assert_refused(&wide, &["line 2: nearly all of 4294967295 columns are empty: 0 entries"]);
    assert_refused(
        "%%MatrixMarket matrix array real general\n0 4294967295\n",
        &["nearly all of 4294967295 columns are empty"],
    );
}

#[test]
fn a_truncated_file_is_refused_with_what_is_missing() {
    let text = format!("{BANNER}% comment\n2 2 4\n1 1 1\n2 2 1\n");
    assert_refused(&text, &["line 5: the file ends here", "2 of its 4 entries", "line 3"]);
    let array = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n";
    assert_refused(array, &["line 5: the file ends here", "1 of its 4 entries"]);
    assert_refused(&format!("{BANNER}2 2 2\n1 1 1\n2 2"), &["line 4", "2 words where row, column and value"]);
}

#[test]
fn more_entries_than_announced_are_refused() {
    let text = format!("{BANNER}2 2 1\n1 1 1\n\n2 2 1\n");
    assert_refused(&text, &["line 5", "more than the 1 that line 2 announces"]);
    let array = "%%MatrixMarket matrix array real general\n1 2\n1\n2\n3\n";
    assert_refused(array, &["line 5", "more than the 2"]);
}

#[test]
fn an_index_out_of_range_is_refused_with_row_column_and_value() {
    for (entry, row, column) in [("3 1 2.5", 3, 1), ("1 4 2.5", 1, 4), ("0 1 2.5", 0, 1), ("1 0 2.5", 1, 0)] {
        let place = format!("row {row}, column {column} (value `2.5`)");
        assert_refused(&format!("{BANNER}2 3 1\n{entry}\n"), &["line 3", &place, "2 × 3", "counted from 1"]);
    }
    assert_refused(&format!("{BANNER}2 3 1\n1 -1 1\n"), &["line 3", "the column `-1` is no whole number"]);
    assert_refused(&format!("{BANNER}2 3 1\nx 1 1\n"), &["line 3", "the row `x`"]);
}

#[test]
fn a_value_that_is_no_number_is_refused() {
    assert_refused(&format!("{BANNER}1 1 1\n1 1 abc\n"), &["line 3", "`abc` is no number"]);
    assert_refused(&format!("{BANNER}1 1 1\n1 1 1.0DD+3\n"), &["line 3", "`1.0DD+3` is no number"]);
    assert_refused(&format!("{BANNER}1 1 1\n1 1 1 2\n"), &["line 3", "4 words"]);
    let integer = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n";
    assert_refused(integer, &["line 3", "`1.5` is no whole number", "`real`"]);
    let invalid = [BANNER.as_bytes(), b"1 1 1\n1 1 \xff\xfe\n"].concat();
    assert!(parse::<f64>(Path::new("a.mtx"), &invalid[..], &ReadConfig::default()).is_err());
}

#[test]
fn values_that_are_not_finite_are_refused_with_their_line() {
    for value in ["nan", "NaN", "-inf", "Infinity"] {
        assert_refused(&format!("{BANNER}2 2 2\n1 1 1\n2 2 {value}\n"), &["line 4", value]);
    }
    assert_refused(&format!("{BANNER}1 1 1\n1 1 1e999\n"), &["line 3", "beyond the range of f64"]);
    assert_refused(&format!("{BANNER}1 1 2\n1 1 1e308\n1 1 1e308\n"), &["add up beyond the range of f64"]);
    let said = parsed::<f32>(&format!("{BANNER}1 1 1\n1 1 1e39\n")).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("line 3: `1e39` is beyond the range of f32"), "{said}");
}

#[test]
fn an_entry_above_the_diagonal_of_a_symmetric_file_is_refused() {
    for symmetry in ["symmetric", "skew-symmetric"] {
        let text = format!("%%MatrixMarket matrix coordinate real {symmetry}\n2 2 2\n2 1 1\n1 2 1\n");
        assert_refused(&text, &["line 4", "row 1, column 2 lies above", "`general`", "swap"]);
    }
}

#[test]
fn a_diagonal_entry_of_a_skew_symmetric_file_is_refused() {
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1.5\n";
    assert_refused(text, &["line 3", "row 2 is 1.5", "zeros"]);
}

#[test]
fn a_file_that_is_not_there_is_refused_by_its_path() {
    let said = read::<f64>(Path::new("/nowhere/a.mtx")).map(|_| ()).unwrap_err().to_string();
    assert!(said.starts_with("/nowhere/a.mtx: cannot read"), "{said}");
}

fn packed(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

#[test]
fn compressed_files_are_told_by_their_first_bytes() -> Result<(), MatrixMarketError> {
    let text = format!("{BANNER}% packed\n2 2 2\n1 2 1.25\n2 1 -3\n");
    // Two compressed files one behind the other are one file.
    let (head, tail) = text.split_at(60);
    let bytes = [packed(head), packed(tail)].concat();
    let found = parse::<f64>(Path::new("a.mtx"), &bytes[..], &ReadConfig::default())?;
    assert_eq!(rows(&found.matrix), [vec![(1, 1.25)], vec![(0, -3.0)]]);
    let cut = &bytes[..bytes.len() - 12];
    let said = parse::<f64>(Path::new("a.mtx"), cut, &ReadConfig::default()).map(|_| ()).unwrap_err();
    assert!(said.to_string().starts_with("a.mtx: cannot read: "), "{said}");
    Ok(())
}

#[test]
fn a_line_without_end_is_refused_when_it_is_too_long() {
    let packed = packed(&format!("{BANNER}{}", "7".repeat(3 << 20)));
    assert!(packed.len() < 1 << 16, "it is small until it is read");
    let said = parse::<f64>(Path::new("a.mtx.gz"), &*packed, &ReadConfig::default()).map(|_| ()).unwrap_err();
    assert_eq!(
        said.to_string(),
        "a.mtx.gz: line 2: the line is longer than 1048576 bytes; is this a Matrix Market file?"
    );
}

#[test]
fn comments_are_kept_up_to_a_bound() -> Result<(), MatrixMarketError> {
    let text = format!("{BANNER}% first\n{}1 1 1\n1 1 1.5D+00\n", "%\n".repeat(1 << 20));
    let found = parsed::<f64>(&text)?;
    assert_eq!((found.comments[0].as_str(), found.comments.len()), ("first", (1 << 18) / 24));
    assert_eq!(rows(&found.matrix), [vec![(0, 1.5)]]);
    Ok(())
}

/// Finite numbers with as many large and small ones as there are.
fn finite() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite())
}

proptest! {
    #[test]
    fn what_is_written_comes_back_with_the_same_bits(
        (n_rows, n_cols, entries) in (0..12_usize, 0..12_usize).prop_flat_map(|(n_rows, n_cols)| {
            let n_entries = if n_rows * n_cols == 0 { 0..1 } else { 0..40 };
            let entry = (0..n_rows.max(1), 0..n_cols.max(1), finite());
            (Just(n_rows), Just(n_cols), prop::collection::vec(entry, n_entries))
        }),
        packed in any::<bool>(),
    ) {
        let mut places = std::collections::BTreeSet::new();
        let entries: Vec<_> = entries.into_iter().filter(|entry| places.insert((entry.0, entry.1))).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(if packed { "a.mtx.gz" } else { "a.mtx" });
        let a = matrix(n_rows, n_cols, &entries);
        write(&path, &a, &WriteConfig::default()).unwrap();
        let back = read::<f64>(&path).unwrap().matrix;
        let bits = |a: &Csr<f64, Reference>| -> Vec<_> {
            a.values().as_slice().iter().map(|value| value.to_bits()).collect()
        };
        prop_assert_eq!((back.n_rows(), back.n_cols(), bits(&back)), (n_rows, n_cols, bits(&a)));
        prop_assert_eq!(back.columns().as_slice(), a.columns().as_slice());
    }

    #[test]
    fn single_precision_comes_back_with_the_same_bits(bits in any::<u32>()) {
        let value = f32::from_bits(bits);
        prop_assume!(value.is_finite());
        let text = format!("{BANNER}1 1 1\n1 1 {value:?}\n");
        let back = parsed::<f32>(&text).unwrap().matrix.values().as_slice()[0];
        prop_assert_eq!(back.to_bits(), bits);
    }
}

#[test]
fn a_symmetric_matrix_is_written_as_one_triangle_and_comes_back_whole() -> Result<(), MatrixMarketError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let a = matrix::<f64>(3, 3, &[(0, 0, 2.0), (0, 2, 0.1), (2, 0, 0.1), (2, 2, 1e-300)]);
    let config = WriteConfig { symmetry: Symmetry::Symmetric, comments: vec!["two\nlines".into()] };
    write(&path, &a, &config)?;
    let text = std::fs::read_to_string(&path).unwrap();
    let expected = "% two\n% lines\n3 3 3\n1 1 2.0\n3 1 0.1\n3 3 1e-300\n";
    assert_eq!(text, format!("%%MatrixMarket matrix coordinate real symmetric\n{expected}"));
    let back = read::<f64>(&path)?;
    assert_eq!((rows(&back.matrix), back.comments), (rows(&a), vec!["two".into(), "lines".into()]));

    let skew = matrix::<f64>(2, 2, &[(0, 1, 1.5), (1, 0, -1.5)]);
    write(&path, &skew, &WriteConfig { symmetry: Symmetry::SkewSymmetric, ..Default::default() })?;
    assert_eq!(rows(&read::<f64>(&path)?.matrix), rows(&skew));
    Ok(())
}

#[test]
fn a_matrix_that_cannot_be_written_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    std::fs::write(&path, "old").unwrap();
    let symmetric = WriteConfig { symmetry: Symmetry::Symmetric, ..Default::default() };
    let said =
        |a: &Csr<f64, Reference>, config: &WriteConfig| write(&path, a, config).unwrap_err().to_string();
    let one_sided = said(&matrix(2, 2, &[(0, 1, 1.0)]), &symmetric);
    assert!(one_sided.contains("row 0 is not that of a symmetric matrix"), "{one_sided}");
    assert!(said(&matrix(2, 3, &[]), &symmetric).contains("2 × 3"));
    let nan = said(&matrix(2, 2, &[(1, 0, f64::NAN)]), &WriteConfig::default());
    assert!(nan.contains("row 1, column 0 is NaN"), "{nan}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    let nowhere = write(&folder.path().join("no/a.mtx"), &matrix::<f64>(1, 1, &[]), &WriteConfig::default());
    assert!(nowhere.unwrap_err().to_string().contains("cannot write"));
}

/// Name, number of rows, entries of the whole matrix (counted by a script of its own).
const SAMPLES: [(&str, usize, usize); 14] = [
    ("airfoil", 260, 1682),
    ("ani4", 3081, 20971),
    ("bar", 600, 23402),
    ("bcsstk13", 2003, 83883),
    ("beam_hex_dof459_np2", 459, 21607),
    ("beam_tet_dof2475_np4", 2475, 72933),
    ("cryg2500", 2500, 12349),
    ("jagmesh7", 1138, 7450),
    ("knot", 239, 1667),
    ("local_disc_galerkin_diffusion", 966, 35338),
    ("recirc_flow", 225, 1849),
    ("tucker21935", 21936, 51178),
    ("unit_cube", 125, 1473),
    ("unit_square", 191, 1243),
];

fn samples() -> PathBuf {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    std::env::var_os("FEMTILE_SAMPLES").map_or_else(beside, PathBuf::from).join("matrices")
}

#[test]
fn samples_are_read_whole_and_come_back() {
    let folder = samples();
    if !folder.exists() {
        eprintln!("SKIPPED: samples_are_read_whole_and_come_back: no samples (set FEMTILE_SAMPLES)");
        return;
    }
    let copies = tempfile::tempdir().unwrap();
    for (name, n_rows, n_nonzeros) in SAMPLES {
        let path = folder.join(name).with_extension("mtx");
        let found = read::<f64>(&path).unwrap_or_else(|error| panic!("{error}"));
        let a = &found.matrix;
        assert_eq!((a.n_rows(), a.n_cols(), a.n_nonzeros()), (n_rows, n_rows, n_nonzeros), "{name}");
        let copy = copies.path().join("copy.mtx");
        write(&copy, a, &WriteConfig { symmetry: found.symmetry, comments: found.comments }).unwrap();
        let back = read::<f64>(&copy).unwrap().matrix;
        assert_eq!(back.values().as_slice(), a.values().as_slice(), "{name}");
        assert_eq!(back.columns().as_slice(), a.columns().as_slice(), "{name}");
    }
}

//! No change of the structure of a file of NumPy makes its reader panic, hang, swell or accept what is inconsistent.

use femtile_conformance::allocation::CountingAllocator;
use femtile_conformance::structure::{Reader, fuzz};

use super::{Archive, Array, Output, Values, npy, write_archive};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Numbers are read in parts of a mebibyte.
fn allowed(n_bytes: usize) -> usize {
    (3 << 20) + 16 * n_bytes
}

fn numbers(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (i as f64).to_ne_bytes()).collect()
}

fn arrays() -> Vec<Vec<u8>> {
    let file = |shape: &[usize], is_fortran, dtype| {
        let (mut bytes, numbers) = (Vec::new(), numbers(shape.iter().product()));
        let n_bytes = if dtype == "f4" { numbers.len() / 2 } else { numbers.len() };
        let array = Output { shape, is_fortran, dtype, bytes: &numbers[..n_bytes] };
        array.write(&mut bytes).unwrap();
        bytes
    };
    vec![
        file(&[3, 4], false, "f8"),
        file(&[2, 3, 2], true, "f4"),
        file(&[0, 5], false, "f8"),
        file(&[], false, "f8"),
    ]
}

/// Integers of both sizes, and a word.
fn integers() -> Vec<Vec<u8>> {
    let file =
        |descr: &str, shape: &[usize], bytes: &[u8]| [&npy::header(descr, false, shape), bytes].concat();
    vec![
        file("<i8", &[3], &[7; 24]),
        file(">i4", &[3], &[7; 12]),
        file("|S3", &[], b"csr"),
        file("<U3", &[], b"c\0\0\0s\0\0\0r\0\0\0"),
    ]
}

fn archive() -> Vec<u8> {
    let (mut bytes, numbers) = (Vec::new(), numbers(6));
    let array = |shape| Output { shape, is_fortran: false, dtype: "f8", bytes: &numbers };
    let members = [("lower", array(&[6][..])), ("rhs", array(&[2, 3][..]))];
    write_archive(&mut bytes, &members).unwrap();
    bytes
}

/// An archive with one deflated member.
fn deflated() -> Vec<u8> {
    use std::io::Write;

    let member = &arrays()[0];
    let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(member).unwrap();
    let packed = packer.finish().unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(member);
    let sizes = [packed.len() as u32, member.len() as u32].map(u32::to_le_bytes).concat();
    let common =
        [&[20, 0, 0, 0, 8, 0, 0, 0, 0x21, 0][..], &crc.sum().to_le_bytes(), &sizes, &[7, 0, 0, 0]].concat();
    let local = [&b"PK\x03\x04"[..], &common, b"rhs.npy", &packed].concat();
    let central = [&b"PK\x01\x02\x14\0"[..], &common, &[0; 14], b"rhs.npy"].concat();
    let place = [central.len() as u32, local.len() as u32].map(u32::to_le_bytes).concat();
    let end = [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &place, &[0, 0]].concat();
    [local, central, end].concat()
}

fn is_sound(array: &Array) -> bool {
    let n = match &array.values {
        Values::F32(values) => values.len(),
        Values::F64(values) => values.len(),
    };
    array.shape.iter().product::<usize>() == n
}

#[test]
fn files_of_numpy_of_any_structure_are_read_or_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let read_array =
        |input: &[Vec<u8>], available: Option<u64>| match npy::read(&*input[0], available, "a.npy") {
            Ok(array) => {
                assert!(is_sound(&array), "{:?}", array.shape);
                true
            }
            Err(error) => {
                assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
                false
            }
        };
    let of_known_length = |input: &[Vec<u8>]| read_array(input, Some(input[0].len() as u64));
    let of_a_pipe = |input: &[Vec<u8>]| read_array(input, None);
    let read_archive = |input: &[Vec<u8>]| {
        std::fs::write(file.path(), &input[0]).unwrap();
        let Ok(mut archive) = Archive::open(file.path()) else { return false };
        let names: Vec<String> = archive.names().map(String::from).collect();
        assert!(!names.iter().flat_map(|name| name.chars()).any(char::is_control), "{names:?}");
        let arrays = names.iter().take(8).map(|name| archive.read(name));
        let arrays: Vec<_> = arrays.filter_map(Result::ok).collect();
        assert!(arrays.iter().all(is_sound));
        !arrays.is_empty()
    };
    let read_list = |input: &[Vec<u8>]| {
        let available = Some(input[0].len() as u64);
        let word = npy::read_word(&*input[0], available, "a.npy");
        let said = word.as_ref().err().map(ToString::to_string).unwrap_or_default();
        assert!(!said.chars().any(char::is_control), "{said:?}");
        npy::read_integers(&*input[0], available, "a.npy").is_ok() || word.is_ok()
    };
    let alone = |files: Vec<Vec<u8>>| files.into_iter().map(|file| vec![file]).collect::<Vec<_>>();
    let reader = |name, seeds, read| Reader { name, seeds: alone(seeds), allowed, read };
    fuzz(&[
        reader("npy of known length", arrays(), &of_known_length),
        reader("npy from a pipe", arrays(), &of_a_pipe),
        reader("npy of integers and words", integers(), &read_list),
        reader("npz, stored", vec![archive(), deflated()], &read_archive),
        reader("npz, deflated", vec![deflated(), archive()], &read_archive),
    ]);
}

//! Where the four arrays come from.

use std::path::Path;

use super::batch::NAMES;
use crate::arrays::{Archive, Array};
use crate::failure::Failure;

/// The short names of the arrays, as papers use them.
const LETTERS: [&str; 4] = ["a", "b", "c", "d"];

/// Reads lower, diagonal, upper and right side.
pub fn read(files: &[String]) -> Result<[Array; 4], Failure> {
    match files {
        [archive] if !has_extension(archive, "npy") => members(Path::new(archive)),
        [lower, diagonal, upper, rhs] => {
            Ok([band(lower)?, band(diagonal)?, band(upper)?, Array::read(Path::new(rhs))?])
        }
        _ => Err(Failure::message(format!(
            "{} files; give one .npz, or four .npy in this order: {}",
            files.len(),
            NAMES.join(", ")
        ))),
    }
}

fn has_extension(file: &str, extension: &str) -> bool {
    Path::new(file).extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// A file, or a number that stands for a constant band.
fn band(file: &str) -> Result<Array, Failure> {
    match file.parse() {
        Ok(value) if !Path::new(file).exists() => Ok(Array::scalar(value)),
        _ => Ok(Array::read(Path::new(file))?),
    }
}

fn members(path: &Path) -> Result<[Array; 4], Failure> {
    let mut archive = Archive::open(path)?;
    let mut chosen = [""; 4];
    for ((chosen, name), letter) in chosen.iter_mut().zip(NAMES).zip(LETTERS) {
        let has = |wanted| archive.names().any(|found| found == wanted);
        *chosen = match (has(name), has(letter)) {
            (true, false) => name,
            (false, true) => letter,
            (both, _) => {
                let found: Vec<_> = archive.names().collect();
                let members = found.join(", ");
                let file = path.display();
                return Err(Failure::message(if both {
                    format!(
                        "{file} has a member `{name}` and a member `{letter}`, which mean the same: keep one"
                    )
                } else {
                    format!("{file} has no member `{name}`, nor `{letter}`; its members are: {members}")
                }));
            }
        };
    }
    let [lower, diagonal, upper, rhs] = chosen.map(|name| archive.read(name));
    Ok([lower?, diagonal?, upper?, rhs?])
}

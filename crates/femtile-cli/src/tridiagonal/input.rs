//! Where the four arrays come from.

use std::path::Path;

use super::batch::NAMES;
use crate::arrays::{Announced, Archive, Array, Opened};
use crate::failure::Failure;

/// The short names of the arrays in the literature.
const LETTERS: [&str; 4] = ["a", "b", "c", "d"];

/// Lower, diagonal, upper and right side, with their headers read.
pub struct Input {
    pub announced: [Announced; 4],
    source: Source,
}

enum Source {
    Members(Archive, [&'static str; 4]),
    Files(Box<[Opened; 4]>),
}

impl Input {
    /// Opens the files and reads the headers.
    pub fn open(files: &[String]) -> Result<Self, Failure> {
        match files {
            [archive] if !has_extension(archive, "npy") => {
                let mut archive = Archive::open(Path::new(archive))?;
                let names = members(&archive)?;
                let [lower, diagonal, upper, rhs] = names.map(|name| archive.announced(name));
                let announced = [lower?, diagonal?, upper?, rhs?];
                Ok(Self { announced, source: Source::Members(archive, names) })
            }
            [lower, diagonal, upper, rhs] => {
                let files = [band(lower)?, band(diagonal)?, band(upper)?, Opened::new(Path::new(rhs))?];
                let announced = files.each_ref().map(|file| file.announced.clone());
                Ok(Self { announced, source: Source::Files(Box::new(files)) })
            }
            _ => Err(Failure::message(format!(
                "{} files; give one .npz, or four .npy in this order: {}",
                files.len(),
                NAMES.join(", ")
            ))),
        }
    }

    /// Reads the arrays.
    pub fn read(self) -> Result<[Array; 4], Failure> {
        let [lower, diagonal, upper, rhs] = match self.source {
            Source::Members(mut archive, names) => names.map(|name| archive.read(name)),
            Source::Files(files) => (*files).map(Opened::read),
        };
        Ok([lower?, diagonal?, upper?, rhs?])
    }
}

fn has_extension(file: &str, extension: &str) -> bool {
    Path::new(file).extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// A file, or a number for a constant band.
fn band(file: &str) -> Result<Opened, Failure> {
    match file.parse() {
        Ok(value) if !Path::new(file).exists() => Ok(Opened::scalar(value)),
        _ => Ok(Opened::new(Path::new(file))?),
    }
}

/// The names of the members that hold the arrays.
fn members(archive: &Archive) -> Result<[&'static str; 4], Failure> {
    let mut chosen = [""; 4];
    for ((chosen, name), letter) in chosen.iter_mut().zip(NAMES).zip(LETTERS) {
        let has = |wanted| archive.names().any(|found| found == wanted);
        *chosen = match (has(name), has(letter)) {
            (true, false) => name,
            (false, true) => letter,
            (both, _) => {
                let found: Vec<_> = archive.names().collect();
                let (members, file) = (found.join(", "), archive.place());
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
    Ok(chosen)
}

//! Files that a model includes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::line_origins::LineOrigins;
use super::lines::{Keyword, Lines};
use crate::MeshError;
use crate::io::file::{bytes_of, regular_file};
use crate::io::name::printable;

/// Files may include files that include files, this deep.
const DEEPEST: usize = 16;

/// Keywords whose lines may stand in the file of their `INPUT`.
const WITH_INPUT: [&str; 4] = ["NODE", "ELEMENT", "NSET", "ELSET"];

/// Returns the text of a file with the text of the files that it includes instead of the lines that include
/// them.
///
/// # Errors
/// [`MeshError::Parse`] at the line that includes a file which cannot be read, or which includes itself.
pub(super) fn with_included<'a>(
    path: &Path,
    bytes: &'a [u8],
) -> Result<(Cow<'a, [u8]>, LineOrigins), MeshError> {
    let mut text = Text {
        bytes: Vec::new(),
        n_lines: 0,
        places: LineOrigins::of_file(path),
        open: regular_file(path).into_iter().collect(),
        included: HashMap::new(),
        n_bytes: bytes.len(),
        n_repeated: 0,
    };
    text.places.is_whole = true;
    match text.append(bytes, 0)? {
        0 => Ok((bytes.into(), text.places)),
        _ => Ok((text.bytes.into(), text.places)),
    }
}

struct Text {
    bytes: Vec<u8>,
    n_lines: usize,
    places: LineOrigins,
    /// Files that include the next one.
    open: Vec<PathBuf>,
    /// Numbers of files that were included.
    included: HashMap<PathBuf, usize>,
    /// Bytes of all files.
    n_bytes: usize,
    /// Bytes of files that were included before.
    n_repeated: usize,
}

impl Text {
    /// Adds a file, and returns the number of files that it includes. A file without includes is added if it
    /// is not the first.
    fn append(&mut self, bytes: &[u8], file: usize) -> Result<usize, MeshError> {
        // Places of this file alone; a line that cannot be read is an error of this file.
        let path = self.places.file(file).to_path_buf();
        let places = LineOrigins::of_file(&path);
        let mut lines = Lines::new(&places, bytes);
        let (mut begin, mut line, mut n_included) = (0, 0, 0);
        loop {
            lines.pass_over();
            let (at_keyword, line_of_keyword) = (bytes.len() - lines.n_left(), lines.number());
            let Some(keyword) = lines.keyword()? else { break };
            let Some(input) = input_of(&keyword) else { continue };
            let after = (bytes.len() - lines.n_left(), lines.number());
            let is_include = keyword.name == "INCLUDE";
            let end = if is_include { (at_keyword, line_of_keyword) } else { after };
            self.push(&bytes[begin..end.0], file, line, end.1 - line);
            (begin, line) = after;
            self.include(&path, input, &lines)?;
            n_included += 1;
        }
        if n_included > 0 || file > 0 {
            let n_lines = bytes[begin..].iter().filter(|&&byte| byte == b'\n').count();
            self.push(&bytes[begin..], file, line, n_lines + usize::from(!bytes.ends_with(b"\n")));
        }
        Ok(n_included)
    }

    /// Adds `n_lines` lines of a file after its first `line` ones.
    fn push(&mut self, bytes: &[u8], file: usize, line: usize, n_lines: usize) {
        if bytes.is_empty() {
            return;
        }
        self.places.go_on(self.n_lines + 1, file, line + 1);
        self.bytes.extend_from_slice(bytes);
        if !bytes.ends_with(b"\n") {
            self.bytes.push(b'\n');
        }
        self.n_lines += n_lines;
    }

    fn include(&mut self, from: &Path, name: &[u8], lines: &Lines<'_>) -> Result<(), MeshError> {
        let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
        let name = String::from_utf8_lossy(name);
        let shown = printable(&name).into_owned();
        let path = from.with_file_name(&*name);
        let found = regular_file(&path)
            .map_err(|error| lines.error(format!("the included file `{shown}` cannot be read: {error}")))?;
        if self.open.contains(&found) {
            return Err(lines.error(format!("the included file `{shown}` includes itself")));
        }
        if self.open.len() > DEEPEST {
            let message = format!("the file `{shown}` is included more than {DEEPEST} files deep");
            return Err(lines.error(message));
        }
        let bytes = bytes_of(&path)?;
        let file = match self.included.get(&found) {
            Some(&file) => {
                self.n_repeated += bytes.len();
                file
            }
            None => {
                self.n_bytes += bytes.len();
                let file = self.places.add(path);
                self.included.insert(found.clone(), file);
                file
            }
        };
        // Without a bound short files that include each other twice would make a long text.
        if self.n_repeated > (1 << 20) + self.n_bytes {
            return Err(lines.error(format!("the file `{shown}` is included again and again")));
        }
        self.open.push(found);
        self.append(&bytes, file)?;
        self.open.pop();
        Ok(())
    }
}

/// The file that a keyword includes.
fn input_of<'a>(keyword: &Keyword<'a>) -> Option<&'a [u8]> {
    let includes = keyword.name == "INCLUDE" || WITH_INPUT.contains(&keyword.name.as_str());
    keyword.value("INPUT").filter(|_| includes)
}

//! Options of the program that override values of a case file.

use std::path::Path;

use femtile_solve::{Key, path_text};
use toml::{Table, Value};

use crate::CaseError;

const ADVICE: &str = "write KEY=VALUE, such as solver.tolerance=1e-8 or boundary[0].dirichlet=2";

/// An option of the program that overrides a value of a case file.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// The option, as messages name it.
    option: String,
    path: Vec<Key>,
    value: Value,
    /// It replaces the source of the mesh.
    is_mesh: bool,
}

impl Override {
    /// Parses `solver.tolerance=1e-8` behind an option such as `--set`: a key, with positions in brackets and names that
    /// hold points in quotes, and a value as in a case file; what is no such value is a string.
    ///
    /// # Errors
    /// [`CaseError::Option`] if there is no key.
    pub fn parse(option: &str, text: &str) -> Result<Self, CaseError> {
        let option = format!("{option} {text}");
        let Some((key, value)) = text.split_once('=') else { return Err(CaseError::option(&option, ADVICE)) };
        Self::of_value(option, key.trim(), value_of(value.trim()))
    }

    /// Sets a key to a value; messages name it as `option`.
    pub(crate) fn of_value(option: String, key: &str, value: Value) -> Result<Self, CaseError> {
        let path = keys(key).ok_or_else(|| CaseError::option(&option, ADVICE))?;
        Ok(Self { path, value, option, is_mesh: false })
    }

    /// Takes the mesh from a file, relative to the current folder, in place of that of the case.
    ///
    /// # Errors
    /// [`CaseError::Option`] if the path cannot stand in a case file.
    pub fn mesh(option: &str, file: &Path) -> Result<Self, CaseError> {
        let option = format!("{option} {}", file.display());
        let absolute = std::path::absolute(file).ok();
        let text = absolute.as_deref().and_then(Path::to_str).map(String::from);
        let text = text.ok_or_else(|| CaseError::option(&option, "no such path can stand in a case file"))?;
        let path = vec!["mesh".into(), "file".into()];
        Ok(Self { path, value: Value::String(text), option, is_mesh: true })
    }

    /// Returns the path of the key.
    pub(crate) fn path(&self) -> &[Key] {
        &self.path
    }

    /// Returns the value.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the option, as messages name it.
    pub(crate) fn option(&self) -> &str {
        &self.option
    }

    /// Returns whether it sets the value at `path`, or one that this is a part of.
    pub(crate) fn sets(&self, path: &[Key]) -> bool {
        path.starts_with(&self.path)
    }

    /// Returns whether it sets a part of the value at `path`.
    pub(crate) fn sets_part_of(&self, path: &[Key]) -> bool {
        self.path.len() > path.len() && self.path.starts_with(path)
    }

    /// Puts the value into a case.
    ///
    /// # Errors
    /// [`CaseError::Option`] if the way to the key ends before.
    pub(crate) fn apply(&self, case: &mut Table) -> Result<(), CaseError> {
        let mut whole = Value::Table(std::mem::take(case));
        let done = self.put(&mut whole);
        if let Value::Table(table) = whole {
            *case = table;
        }
        done.map_err(|message| CaseError::option(&self.option, message))
    }

    fn put(&self, whole: &mut Value) -> Result<(), String> {
        if self.is_mesh
            && let Some(Value::Table(mesh)) = whole.get_mut("mesh")
        {
            mesh.remove("generate");
            mesh.remove("check");
        }
        let mut place = whole;
        for (depth, key) in self.path.iter().enumerate() {
            let (above, here) = (path_text(&self.path[..depth]), path_text(&self.path[..=depth]));
            place = match (key, place) {
                (Key::Name(name), Value::Table(table)) => {
                    table.entry(name).or_insert_with(|| Value::Table(Table::new()))
                }
                (Key::Index(index), Value::Array(array)) => {
                    let n = array.len();
                    array.get_mut(*index).ok_or(format!("there is no `{here}`: the case has {n} of them"))?
                }
                (Key::Name(_), _) => return Err(format!("`{above}` of the case is not a table")),
                (Key::Index(_), _) => return Err(format!("`{above}` of the case is not a list")),
            };
        }
        *place = self.value.clone();
        Ok(())
    }
}

/// The steps of `boundary[0].robin."a.b"`; none if it is no key.
fn keys(text: &str) -> Option<Vec<Key>> {
    let (mut path, mut rest) = (Vec::new(), text);
    loop {
        let name = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"')?;
                rest = &quoted[end + 1..];
                &quoted[..end]
            }
            None => {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let name = &rest[..end];
                rest = &rest[end..];
                name
            }
        };
        let is_plain = |c: char| c != ']' && !c.is_control();
        path.push((!name.is_empty() && name.chars().all(is_plain)).then(|| Key::from(name))?);
        while let Some(index) = rest.strip_prefix('[') {
            let end = index.find(']')?;
            path.push(Key::Index(index[..end].trim().parse().ok()?));
            rest = &index[end + 1..];
        }
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None => return rest.is_empty().then_some(path),
        }
    }
}

/// A value in the syntax of a case file, else the text itself.
pub(crate) fn value_of(text: &str) -> Value {
    let table = toml::from_str::<Table>(&format!("value = {text}")).ok();
    // A text of several lines might hold more than a value.
    let value = table.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_positions_and_names_in_quotes() {
        let text = |text| keys(text).map(|path| path_text(&path));
        assert_eq!(text("solver.tolerance").as_deref(), Some("solver.tolerance"));
        let expected = [Key::from("boundary"), 1.into(), "robin".into(), "value".into()];
        assert_eq!(keys("boundary[1].robin.value").unwrap(), expected);
        let expected = ["sigma", "by_tag", "a.b"].map(Key::from);
        assert_eq!(keys("sigma.by_tag.\"a.b\"").unwrap(), expected);
        for wrong in ["", ".", "a.", "a[x]", "a[1", "a[-1]", "a]", "\"a", "[0]"] {
            assert_eq!(keys(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_are_those_of_case_files_and_bare_words_are_strings() {
        assert_eq!(value_of("1e-8"), Value::Float(1e-8));
        assert_eq!(value_of("3"), Value::Integer(3));
        assert_eq!(value_of("true"), Value::Boolean(true));
        assert_eq!(value_of("amg"), Value::String("amg".into()));
        assert_eq!(value_of("\"1\""), Value::String("1".into()));
        assert_eq!(value_of("sin(pi*x) + 1"), Value::String("sin(pi*x) + 1".into()));
        assert_eq!(value_of("[1, 2]"), Value::Array(vec![Value::Integer(1), Value::Integer(2)]));
        assert_eq!(value_of("1\nother = 2"), Value::String("1\nother = 2".into()));
        assert_eq!(value_of(""), Value::String(String::new()));
    }
}

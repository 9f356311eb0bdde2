//! Reads values of case files; the schema of the type that is read says what is wrong with them.

use femtile_solve::{Key, path_text};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value as Schema;
use toml::{Table, Value};

use crate::syntax::number_at_start;

/// A key or a value that a case file must not have.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The steps to it.
    pub path: Vec<Key>,
    /// The key is wrong rather than its value.
    pub is_key: bool,
    /// The reason and the remedy.
    pub message: String,
}

impl Refusal {
    /// Refuses the value at a path.
    pub fn of_value(path: &[Key], message: impl Into<String>) -> Self {
        Self { path: path.into(), is_key: false, message: message.into() }
    }

    /// Returns the message, behind the path if there is one.
    pub fn text(&self) -> String {
        match &*self.path {
            [] => self.message.clone(),
            path => format!("{}: {}", path_text(path), self.message),
        }
    }
}

/// Reads a value.
///
/// # Errors
/// The first key or value that the schema of `T` does not have.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(value: Value) -> Result<T, Refusal> {
    let schema = schemars::schema_for!(T);
    let definitions = &schema.as_value()["$defs"];
    Reader { definitions }.check(schema.as_value(), &value, &[])?;
    value.try_into().map_err(|error: toml::de::Error| Refusal::of_value(&[], error.message()))
}

struct Reader<'a> {
    definitions: &'a Schema,
}

impl<'a> Reader<'a> {
    /// Returns the forms that a value may have, each with its own type or name.
    fn forms(&self, schema: &'a Schema) -> Vec<&'a Schema> {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return self.forms(&self.definitions[name]);
        }
        // Beside the properties of a table these are rules between its keys.
        let several = ["anyOf", "oneOf"].into_iter().find_map(|key| schema[key].as_array());
        match several {
            Some(several) if schema["properties"].is_null() => several
                .iter()
                .flat_map(|form| self.forms(form))
                .filter(|form| form["type"] != "null")
                .collect(),
            _ => vec![schema],
        }
    }

    fn check(&self, schema: &'a Schema, value: &Value, path: &[Key]) -> Result<(), Refusal> {
        self.check_forms(&self.forms(schema), value, path)
    }

    fn check_forms(&self, forms: &[&'a Schema], value: &Value, path: &[Key]) -> Result<(), Refusal> {
        let fitting: Vec<&Schema> = forms.iter().copied().filter(|form| admits(form, value)).collect();
        match value {
            _ if fitting.is_empty() => Err(self.misfit(forms, value, path)),
            Value::Table(table) => self.check_table(self.form_of(&fitting, table, path)?, table, path),
            Value::Array(items) => {
                // Of several forms, the one that fits longest is meant.
                let index = |refusal: &Refusal| match refusal.path.get(path.len()) {
                    Some(Key::Index(index)) => index + 1,
                    _ => 0,
                };
                let found: Result<Vec<Refusal>, ()> =
                    fitting.iter().map(|form| self.check_array(form, items, path).err().ok_or(())).collect();
                found.ok().and_then(|refusals| refusals.into_iter().max_by_key(index)).map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    /// Returns the form that a table has: by its `kind`, else by the keys that the form requires and has.
    fn form_of(&self, forms: &[&'a Schema], table: &Table, path: &[Key]) -> Result<&'a Schema, Refusal> {
        let kinds = forms.iter().map(|form| &form["properties"]["kind"]);
        let kinds: Vec<&Schema> = kinds.filter(|kind| kind["const"].is_string()).collect();
        if !kinds.is_empty() {
            let kind = table.get("kind").ok_or_else(|| missing("kind", path))?;
            self.check_forms(&kinds, kind, &below(path, "kind"))?;
            let is_of_kind = |form: &&&Schema| form["properties"]["kind"]["const"].as_str() == kind.as_str();
            return Ok(forms.iter().find(is_of_kind).unwrap_or(&forms[0]));
        }
        let fit = |form: &&&Schema| {
            let n_required = texts(&form["required"]).filter(|key| table.contains_key(*key)).count();
            (n_required, table.keys().filter(|key| has_key(form, key)).count())
        };
        match forms.iter().rev().max_by_key(fit) {
            Some(form) if forms.len() == 1 || fit(&form).1 > 0 => Ok(form),
            _ => match forms.iter().find(|form| form["additionalProperties"].is_object()) {
                // Keys of the user.
                Some(form) if !table.is_empty() => Ok(form),
                _ => Err(Refusal::of_value(path, needed(forms, &Value::Table(table.clone())))),
            },
        }
    }

    fn check_table(&self, form: &'a Schema, table: &Table, path: &[Key]) -> Result<(), Refusal> {
        let others = &form["additionalProperties"];
        for (name, value) in table {
            let path = below(path, name.as_str());
            if has_key(form, name) {
                self.check(&form["properties"][name], value, &path)?;
            } else if others.is_object() {
                self.check(others, value, &path)?;
            } else if others == false {
                let names: Vec<&str> =
                    form["properties"].as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
                let message = format!("unknown key `{name}`; {}", choices("the keys here are", name, &names));
                return Err(Refusal { path, is_key: true, message });
            }
        }
        match texts(&form["required"]).find(|name| !table.contains_key(*name)) {
            Some(name) => Err(missing(name, path)),
            None => Ok(()),
        }
    }

    fn check_array(&self, form: &'a Schema, items: &[Value], path: &[Key]) -> Result<(), Refusal> {
        for (i, item) in items.iter().enumerate() {
            self.check(&form["items"], item, &below(path, i))?;
        }
        match length(form) {
            Some(n) if n != items.len() as u64 => {
                let message = format!("an array of {n} entries is needed here, not of {}", items.len());
                Err(Refusal::of_value(path, message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a value that has the type of no form.
    fn misfit(&self, forms: &[&'a Schema], value: &Value, path: &[Key]) -> Refusal {
        let is_table = |form: &&Schema| texts(&form["type"]).any(|kind| kind == "object");
        let has_tables = |form: &&Schema| self.forms(&form["items"]).iter().any(is_table);
        if value.is_table() && forms.iter().any(has_tables) {
            let message = double_brackets(&path_text(path));
            return Refusal { path: path.into(), is_key: true, message };
        }
        Refusal::of_value(path, needed(forms, value))
    }
}

/// Returns what to write above each entry of a list of tables.
pub(crate) fn double_brackets(name: &str) -> String {
    format!("write `[[{name}]]`, in double brackets, above each entry: there may be several")
}

fn below(path: &[Key], key: impl Into<Key>) -> Vec<Key> {
    path.iter().cloned().chain([key.into()]).collect()
}

fn missing(name: &str, path: &[Key]) -> Refusal {
    Refusal::of_value(path, format!("the key `{name}` is missing"))
}

fn has_key(form: &Schema, name: &str) -> bool {
    !form["properties"][name].is_null()
}

/// The texts of a list, or the only one.
fn texts(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.as_str().into_iter().chain(schema.as_array().into_iter().flatten().filter_map(Schema::as_str))
}

/// The length of arrays that all have the same.
fn length(form: &Schema) -> Option<u64> {
    form["minItems"].as_u64().filter(|_| form["minItems"] == form["maxItems"])
}

/// The range of whole numbers.
fn range(form: &Schema) -> (i64, i64) {
    match form["format"].as_str() {
        Some("uint32") => (0, u32::MAX.into()),
        Some(format) if format.starts_with("uint") => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Returns whether a value has the name or the type of a form.
fn admits(form: &Schema, value: &Value) -> bool {
    if let Some(name) = form["const"].as_str() {
        return value.as_str() == Some(name);
    }
    texts(&form["type"]).any(|kind| match (kind, value) {
        ("integer", Value::Integer(n)) => range(form).0 <= *n && *n <= range(form).1,
        ("number", Value::Integer(_) | Value::Float(_)) => true,
        (kind, value) => {
            let own = match value {
                Value::String(_) => "string",
                Value::Boolean(_) => "boolean",
                Value::Array(_) => "array",
                Value::Table(_) => "object",
                _ => return false,
            };
            kind == own
        }
    })
}

/// Returns what is needed in place of a value.
fn needed(forms: &[&Schema], value: &Value) -> String {
    let names: Vec<&str> = forms.iter().filter_map(|form| form["const"].as_str()).collect();
    if let Value::String(text) = value
        && names.len() == forms.len()
    {
        return format!("`{text}` is not offered here; {}", choices("choose one of", text, &names));
    }
    let mut words: Vec<String> = Vec::new();
    for word in forms.iter().flat_map(|form| words_of(form, forms.len() == 1)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let last = words.pop().unwrap_or_default();
    let needed = if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) };
    let (given, advice) = match value {
        Value::String(text) => {
            let number = number_at_start(text).filter(|_| needed.contains("number"));
            let advice = |number| format!("; numbers have neither quotes nor units here: write {number}");
            (format!("{text:?}"), number.map(advice).unwrap_or_default())
        }
        Value::Array(_) => ("an array".into(), String::new()),
        Value::Table(table) if table.is_empty() => ("an empty table".into(), String::new()),
        Value::Table(table) => (shape(table.keys().map(String::as_str)), String::new()),
        other => (other.to_string(), String::new()),
    };
    format!("{needed} is needed here, not {given}{advice}")
}

/// The words for a form, more of them if it is the only one.
fn words_of(form: &Schema, is_only: bool) -> Vec<String> {
    if let Some(name) = form["const"].as_str() {
        return vec![format!("`\"{name}\"`")];
    }
    let words = |kind| match kind {
        "integer" => match range(form) {
            (0, i64::MAX) => vec!["a whole number ≥ 0".into()],
            (i64::MIN, _) => vec!["a whole number".into()],
            (least, most) => vec![format!("a whole number from {least} to {most}")],
        },
        "number" => vec!["a number".into()],
        "string" => match form["examples"][0].as_str() {
            Some(example) => vec![format!("a text such as \"{example}\"")],
            None => vec!["a text in quotes".into()],
        },
        "boolean" => vec!["`true`".into(), "`false`".into()],
        "array" => vec![match length(form) {
            Some(n) if is_only => format!("an array of {n} entries"),
            _ => "an array in brackets".into(),
        }],
        "object" if form["properties"]["kind"]["const"].is_string() => {
            vec!["a table `{ kind = …, … }`".into()]
        }
        "object" if is_only => vec![format!("a table {}", shape(texts(&form["required"])))],
        "object" => vec![shape(texts(&form["required"]))],
        _ => Vec::new(),
    };
    texts(&form["type"]).flat_map(words).collect()
}

/// A table with these keys; with any if there are none.
fn shape<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let keys: Vec<String> = keys.map(|key| format!("{key} = …")).collect();
    format!("`{{ {} }}`", if keys.is_empty() { "key = value, …".into() } else { keys.join(", ") })
}

/// `choose one of a, b`, and the name that was probably meant.
fn choices(begin: &str, given: &str, names: &[&str]) -> String {
    let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let list = format!("{begin} {}", list.join(", "));
    match names.iter().map(|name| (strsim::damerau_levenshtein(given, name), name)).min() {
        Some((distance, name)) if distance <= 1 + given.chars().count() / 3 => {
            format!("{list}; did you mean `{name}`?")
        }
        _ => list,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Case, CaseError};

    /// Returns the key, the marked text and the message of the error in a text.
    fn said(text: &str) -> (String, String, String) {
        match Case::parse(Path::new("case.toml"), text.into()) {
            Err(CaseError::Input { text, key, span, message, .. }) => {
                (key.unwrap_or_default(), text[span.unwrap_or(0..0)].into(), message)
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_needed_is_told_in_the_words_of_a_case_file() {
        for (section, key, place, message) in [
            ("solver.tolerance = \"a\"", "solver.tolerance", "\"a\"", "a number is needed here, not \"a\""),
            ("solver.threads = -1", "solver.threads", "-1", "a whole number ≥ 0 is needed here, not -1"),
            ("solver.device = 3", "solver.device", "3", "a text in quotes is needed here, not 3"),
            (
                "space.degree = 1.5",
                "space.degree",
                "1.5",
                "a whole number from 0 to 4294967295 is needed here, not 1.5",
            ),
            (
                "output.vtu = 1",
                "output.vtu",
                "1",
                "`true`, `false`, `\"surface\"` or `\"pieces\"` is needed here, not 1",
            ),
            (
                "output.directory = []",
                "output.directory",
                "[]",
                "a text in quotes is needed here, not an array",
            ),
            ("output.fields = 1", "output.fields", "1", "an array in brackets is needed here, not 1"),
            (
                "output.functionals = {}",
                "output.functionals",
                "functionals",
                "write `[[output.functionals]]`",
            ),
            ("[boundary]\nwhere = \"all\"", "boundary", "boundary", "write `[[boundary]]`"),
            ("solver.amg = 3", "solver.amg", "3", "a table `{ key = value, … }` is needed here, not 3"),
            ("solver.method = [1]", "solver.method", "[1]", "`\"cg\"`, `\"merged-cg\"`"),
            (
                "solver.method = \"cq\"",
                "solver.method",
                "\"cq\"",
                "`cq` is not offered here; choose one of `cg`, `merged-cg`, `pipelined-cg`, `s-step-cg`, `gmres`; did you mean `cg`?",
            ),
            (
                "time.a = 1",
                "time.a",
                "a",
                "unknown key `a`; the keys here are `absolute_tolerance`, `algorithm`, `checkpoint`",
            ),
            ("[solver]\n[solvr]", "solvr", "solvr", "unknown key `solvr`"),
            ("[[region]]\nname = \"a\"", "region[0]", "[[region]]", "the key `where` is missing"),
            (
                "solver.tolerance = \"1e-8\"",
                "solver.tolerance",
                "\"1e-8\"",
                "a number is needed here, not \"1e-8\"; numbers have neither quotes nor units here: write 1e-8",
            ),
            (
                "solver.time_limit_s = \"20 s\"",
                "solver.time_limit_s",
                "\"20 s\"",
                "a number is needed here, not \"20 s\"; numbers have neither quotes nor units here: write 20",
            ),
        ] {
            let found = said(&format!("mesh = {{ file = \"a.vtu\" }}\n{section}\n"));
            assert_eq!((found.0.as_str(), found.1.as_str()), (key, place), "{section}: {found:?}");
            assert!(found.2.starts_with(message), "{section}: {found:?}");
        }
        assert_eq!(said("[solver]\n").2, "the key `mesh` is missing");
    }

    #[test]
    fn a_generator_is_read_by_its_kind() {
        for (keys, key, place, message) in [
            ("cells = [3, 3]", ".cells", "[3, 3]", "an array of 3 entries is needed here, not of 2"),
            ("cells = 3, order = 3", ".cells", "3", "an array of 3 entries is needed here, not 3"),
            ("cells = [3, 3, -1]", ".cells[2]", "-1", "a whole number ≥ 0 is needed here, not -1"),
            ("cells = [3, 3, 1.5]", ".cells[2]", "1.5", "a whole number ≥ 0 is needed here, not 1.5"),
            ("cels = [3, 3, 3]", ".cels", "cels", "unknown key `cels`; the keys here are `cell`, `cells`"),
            ("order = 1", "", "{ kind = \"box\", order = 1 }", "the key `cells` is missing"),
        ] {
            let found = said(&format!("[mesh]\ngenerate = {{ kind = \"box\", {keys} }}\n"));
            assert_eq!((found.0.as_str(), found.1.as_str()), (&*format!("mesh.generate{key}"), place));
            assert!(found.2.starts_with(message), "{keys}: {found:?}");
        }
        assert_eq!(said("mesh.generate = { h = 1 }").2, "the key `kind` is missing");
        assert!(said("mesh.generate.kind = \"boxx\"").2.ends_with("did you mean `box`?"));
    }

    #[test]
    fn of_the_forms_of_a_coefficient_the_one_that_is_meant_is_told() {
        let forms = "a number, a text in quotes, an array in brackets, `{ by_tag = … }`, `{ field = … }`, ";
        for (sigma, key, message) in [
            ("true", "", forms),
            ("{ }", "", "`{ by_tag = … }`, `{ field = … }`, `{ fibre = …, along = …, across = … }`, "),
            ("{ fibre = \"f\", along = 2 }", "", "the key `across` is missing"),
            ("{ across = 2, along = 1 }", "", "the key `fibre` is missing"),
            ("{ fibre = \"f\", along = 2, across = 1, sheet = \"s\" }", "", "the key `normal` is missing"),
            ("{ fibre = \"f\", along = 2, acros = 1 }", ".acros", "unknown key `acros`; the keys here are"),
            ("{ by_tag = { a = [1, true] } }", ".by_tag.a[1]", "a number or a text in quotes is needed"),
            ("[[1, 0], [0]]", "[1]", "an array of 2 entries is needed here, not of 1"),
            ("[[1, true], [0, 1]]", "[0][1]", "a number or a text in quotes is needed here, not true"),
            ("[[1, 2, 3]]", "[0]", "an array of 2 entries is needed here, not of 3"),
        ] {
            let found = said(&format!("mesh.file = \"a.vtu\"\nequation.sigma = {sigma}\n"));
            assert_eq!(found.0, format!("equation.sigma{key}"), "{found:?}");
            assert!(found.2.starts_with(message), "{found:?}");
        }
    }
}

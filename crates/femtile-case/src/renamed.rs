//! Old keys and values of case files, which are still accepted, and the words that replace them.

use femtile_solve::{Key, path_text};
use toml::{Table, Value};

/// A key that has a new name: its table, the old name and the new one.
const KEYS: [(&[&str], &str, &str); 1] = [(&["solver"], "geometry", "metric")];

/// A value that has a new name: its key, the old name and the new one.
const VALUES: [(&[&str], &str, &str); 8] = [
    (&["equation", "kind"], "helmholtz", "reaction-diffusion"),
    (&["solver", "gmg", "smoother"], "point", "gauss-seidel"),
    (&["solver", "amg", "precision"], "single", "f32"),
    (&["solver", "amg", "precision"], "double", "f64"),
    (&["solver", "gmg", "precision"], "single", "f32"),
    (&["solver", "gmg", "precision"], "double", "f64"),
    (&["solver", "pmg", "precision"], "single", "f32"),
    (&["solver", "pmg", "precision"], "double", "f64"),
];

/// Replaces the old words of a case, in the notation of a TOML table; returns a warning for each.
pub(crate) fn renew(case: &mut Table) -> Vec<String> {
    let mut warnings = Vec::new();
    for (table, old, new) in KEYS {
        let Some(Value::Table(table_found)) = value_at(case, table) else { continue };
        if table_found.contains_key(new) {
            continue;
        }
        if let Some(value) = table_found.remove(old) {
            table_found.insert(new.into(), value);
            warnings.push(format!("{}.{old}: the old name of `{new}`; write `{new}`", table.join(".")));
        }
    }
    for (key, old, new) in VALUES {
        if let Some(Value::String(text)) = value_at(case, key)
            && text == old
        {
            *text = new.into();
            warnings
                .push(format!("{}: \"{old}\" is the old name of \"{new}\"; write \"{new}\"", key.join(".")));
        }
    }
    warnings.extend(warning_of_sweeps(case));
    warnings
}

/// Returns a warning where the degree of a Chebyshev polynomial is given as `sweeps`.
fn warning_of_sweeps(case: &mut Table) -> Option<String> {
    let Some(Value::Table(amg)) = value_at(case, &["solver", "amg"]) else { return None };
    let is_chebyshev = amg.get("smoother").is_none_or(|name| name.as_str() == Some("chebyshev"));
    let is_old = is_chebyshev && amg.contains_key("sweeps") && !amg.contains_key("degree");
    is_old.then(|| {
        "solver.amg.sweeps: the old name of the degree of `smoother = \"chebyshev\"`; write `degree`".into()
    })
}

/// Returns the path with the new names of its keys.
pub(crate) fn new_path(mut path: Vec<Key>) -> Vec<Key> {
    rename(&mut path, |old, new| (old, new));
    path
}

/// Returns the path with the old names of its keys.
pub(crate) fn old_path(path: &[Key]) -> Vec<Key> {
    let mut path = path.to_vec();
    rename(&mut path, |old, new| (new, old));
    path
}

fn rename(path: &mut [Key], direction: fn(&'static str, &'static str) -> (&'static str, &'static str)) {
    for (table, old, new) in KEYS {
        let (from, to) = direction(old, new);
        let before = path_text(&table.iter().map(|&name| name.into()).collect::<Vec<Key>>());
        let is_key = path.len() > table.len() && path_text(&path[..table.len()]) == before;
        if is_key && path[table.len()] == Key::from(from) {
            path[table.len()] = to.into();
        }
    }
}

/// Returns `true` for an old name whose new name is in the list as well: readers list both.
pub(crate) fn is_old_name(name: &str, names: &[&str]) -> bool {
    let values = VALUES.iter().map(|(_, old, new)| (*old, *new));
    let keys = KEYS.iter().map(|(_, old, new)| (*old, *new));
    values.chain(keys).any(|(old, new)| name == old && names.contains(&new))
}

fn value_at<'a>(case: &'a mut Table, path: &[&str]) -> Option<&'a mut Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(case.get_mut(*first)?, |value, name| value.get_mut(*name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::file::{BoxSmootherName, CaseFile, EquationKind, LevelPrecision, MetricName};
    use crate::{Case, Override};

    const MESH: &str = "mesh = { generate = { kind = \"square\", cells = [2, 2] } }\n\
        boundary = [{ where = \"all\", dirichlet = 0 }]\n";

    fn case(text: &str) -> Case {
        Case::parse(Path::new("case.toml"), format!("{MESH}{text}")).unwrap()
    }

    /// The file that an old word gives, after the check of its only warning.
    fn file(text: &str, key: &str, new: &str) -> CaseFile {
        let case = case(text);
        let [warning] = case.warnings() else { panic!("{text}: {:?}", case.warnings()) };
        assert!(warning.starts_with(key) && warning.contains(new), "{warning}");
        case.file
    }

    #[test]
    fn old_words_are_accepted_with_a_warning_that_has_the_new_word() {
        let found = file("equation = { kind = \"helmholtz\" }", "equation.kind:", "\"reaction-diffusion\"");
        assert_eq!(found.equation.kind, EquationKind::ReactionDiffusion);
        let found = file("solver.geometry = \"stored\"", "solver.geometry:", "`metric`");
        assert_eq!(found.solver.metric, MetricName::Stored);
        let text = "solver = { preconditioner = \"gmg\", gmg = { smoother = \"point\" } }";
        let found = file(text, "solver.gmg.smoother:", "\"gauss-seidel\"");
        assert_eq!(found.solver.gmg.unwrap().smoother, BoxSmootherName::GaussSeidel);
        for (old, new, precision) in
            [("single", "f32", LevelPrecision::F32), ("double", "f64", LevelPrecision::F64)]
        {
            let text = |name| {
                format!("solver = {{ preconditioner = \"{name}\", {name} = {{ precision = \"{old}\" }} }}")
            };
            let place = |name| format!("solver.{name}.precision:");
            assert_eq!(file(&text("amg"), &place("amg"), new).solver.amg.unwrap().precision, precision);
            assert_eq!(file(&text("gmg"), &place("gmg"), new).solver.gmg.unwrap().precision, precision);
            assert_eq!(file(&text("pmg"), &place("pmg"), new).solver.pmg.unwrap().precision, precision);
        }
        let amg = |options: &str| format!("solver = {{ preconditioner = \"amg\", amg = {{ {options} }} }}");
        let old = file(&amg("sweeps = 3"), "solver.amg.sweeps:", "`degree`").solver.amg.unwrap().config();
        let new = case(&amg("degree = 3"));
        assert!(new.warnings().is_empty());
        assert_eq!(new.file.solver.amg.unwrap().config(), old);
        assert!(case(&amg("smoother = \"jacobi\", sweeps = 3")).warnings().is_empty());
    }

    #[test]
    fn options_of_the_program_take_old_words_and_win_over_old_words_of_the_file() {
        let text = format!("{MESH}solver.geometry = \"stored\"");
        for key in ["solver.geometry", "solver.metric"] {
            let given = Override::parse("--set", &format!("{key}=inverse")).unwrap();
            let case = Case::parse_with(Path::new("case.toml"), text.clone(), vec![given]).unwrap();
            assert_eq!(case.file.solver.metric, MetricName::Inverse);
            assert_eq!(case.warnings().len(), 1);
        }
    }

    #[test]
    fn messages_and_the_schema_list_new_words_alone() {
        for (text, new, old) in [
            ("solver.precisio = 1", "`metric`", "`geometry`"),
            ("equation.kind = \"heat\"", "`reaction-diffusion`", "`helmholtz`"),
            ("solver.gmg.smoother = \"p\"", "`gauss-seidel`", "`point`"),
            ("solver.amg.precision = \"f16\"", "`f32`", "`single`"),
        ] {
            let said = Case::parse(Path::new("case.toml"), format!("{MESH}{text}")).unwrap_err().to_string();
            assert!(said.contains(new) && !said.contains(old), "{said}");
        }
        let schema = crate::schema().to_string();
        for (new, old) in [("\"metric\"", "\"geometry\""), ("\"reaction-diffusion\"", "helmholtz")] {
            assert!(schema.contains(new) && !schema.contains(old), "{old}");
        }
    }
}

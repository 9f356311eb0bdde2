//! The JSON schema of case files: what the types say, and rules that hold between keys.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{CaseFile, Entry};

/// The name of the schema, which editors and validators know it by.
const ID: &str = "urn:femtile:case";

/// The JSON schema of case files, with every default and a description of every key.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(CaseFile);
    schema.insert("$id".into(), ID.into());
    schema.insert("title".into(), "A case of Femtile".into());
    let mut schema = schema.to_value();
    for_editors(&mut schema);
    if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.values_mut().for_each(for_editors);
    }
    schema
}

/// Rewrites the rules of a table so that editors offer its keys, without another meaning.
///
/// Of a schema with `allOf`, taplo completes the keys of the rules alone, so the first rule repeats all. Rules name few keys, and
/// tombi wants to be told that others are allowed.
fn for_editors(table: &mut Value) {
    let Some(keys) = table.get("properties").cloned() else { return };
    for rules in RULES {
        if let Some(rules) = table.get_mut(rules) {
            allow_other_keys(rules);
        }
    }
    if let Some(rules) = table.get_mut("allOf").and_then(Value::as_array_mut) {
        rules.insert(0, json!({ "properties": keys, "additionalProperties": true }));
    }
}

/// Keys of a schema that hold further schemas of the same value.
const RULES: [&str; 6] = ["allOf", "anyOf", "oneOf", "if", "then", "else"];

fn allow_other_keys(rules: &mut Value) {
    match rules {
        Value::Array(rules) => rules.iter_mut().for_each(allow_other_keys),
        Value::Object(rule) => {
            if rule.contains_key("properties") {
                rule.entry("additionalProperties").or_insert(true.into());
            }
            rule.iter_mut()
                .filter(|(key, _)| RULES.contains(&key.as_str()))
                .for_each(|(_, rules)| allow_other_keys(rules));
        }
        _ => {}
    }
}

/// A text, or the number of a tag.
pub(super) fn text_or_integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer"] })
}

/// Several of them.
pub(super) fn texts_or_integers(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": text_or_integer(generator) })
}

/// Two of them.
pub(super) fn two_texts_or_integers(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": text_or_integer(generator), "minItems": 2, "maxItems": 2 })
}

/// Two rows of two entries, or three rows of three.
pub(super) fn tensor(generator: &mut SchemaGenerator) -> Schema {
    let entry = generator.subschema_for::<Entry>();
    let of = |n: usize| {
        let row = json!({ "type": "array", "items": entry, "minItems": n, "maxItems": n });
        json!({ "type": "array", "items": row, "minItems": n, "maxItems": n })
    };
    json_schema!({ "type": "array", "anyOf": [of(2), of(3)] })
}

/// The rule that a key needs another one with one of some values.
///
/// Written with `if` and `then`, which validators of all drafts of JSON Schema from 7 on know, those of editors among them.
pub(super) fn needs(key: &str, other: &str, values: &[&str]) -> Value {
    let given = json!({ "properties": { other: { "enum": values } }, "required": [other] });
    json!({ "if": { "required": [key] }, "then": given })
}

/// The rules of `[[boundary]]`: one place, one condition, and at nodes `dirichlet` alone.
pub(super) fn place_and_condition() -> Value {
    let periodic = json!({ "required": ["periodic"], "properties": { "periodic": { "const": true } } });
    let no = json!({ "const": false });
    let is_fixed = json!({ "anyOf": [no, { "type": "object", "additionalProperties": no }] });
    let floats = json!({ "required": ["floating"], "properties": { "floating": { "not": is_fixed } } });
    json!([
        { "oneOf": [{ "required": ["where"] }, { "required": ["nodes"] }] },
        { "oneOf": [
            { "required": ["dirichlet"] },
            { "required": ["neumann"] },
            { "required": ["robin"] },
            { "required": ["traction"] },
            { "required": ["pressure"] },
            { "required": ["flux"] },
            { "required": ["total"], "properties": { "floating": is_fixed } },
            floats,
            periodic,
        ] },
        { "if": { "required": ["nodes"] }, "then": { "required": ["dirichlet"], "properties": { "from": false } } },
    ])
}

/// The keys of `[equation]` that go with each kind of equation.
pub(super) fn keys_of_kinds() -> Value {
    let is = |kind: &str| json!({ "properties": { "kind": { "const": kind } }, "required": ["kind"] });
    let in_time = json!({ "diffusion": false, "convection": false, "reaction": false });
    let one = json!({ "initial": { "type": ["number", "string"] } });
    json!([
        { "if": { "required": ["enthalpy"] }, "then": { "properties": { "capacity": false } } },
        { "if": is("diffusion"), "else": { "properties": in_time } },
        { "if": is("form"), "else": { "properties": one } },
        {
            "if": is("elasticity"),
            "then": { "required": ["young", "poisson"] },
            "else": { "properties": { "young": false, "poisson": false, "density": false, "plane": false, "expansion": false, "temperature": false, "reference_temperature": false } },
        },
        {
            "if": is("convection-diffusion"),
            "then": { "required": ["velocity"] },
            "else": { "properties": { "velocity": false } },
        },
        {
            "if": is("form"),
            "then": { "anyOf": [{ "required": ["energy"] }, { "required": ["flux"] }, { "required": ["source"] }] },
            "else": { "properties": { "define": false, "energy": false, "flux": false, "enthalpy": false } },
        },
    ])
}

/// The sections that go with each kind of equation.
pub(super) fn sections_of_kinds() -> Value {
    let is = |kind: &str| {
        let equation = json!({ "properties": { "kind": { "const": kind } }, "required": ["kind"] });
        json!({ "properties": { "equation": equation }, "required": ["equation"] })
    };
    let without = |key: &str| json!({ "properties": { "equation": { "properties": { key: false } } } });
    let has_modes = json!({ "required": ["modes"] });
    let is_of_modes = json!({ "allOf": [has_modes, { "not": is("elasticity") }] });
    let has_capacity = json!({ "anyOf": [is_of_modes, is("diffusion"), is("form")] });
    let without_loads = json!({
        "time": false,
        "continuation": false,
        "source": { "maxItems": 0 },
        "output": { "properties": { "functionals": { "maxItems": 0 } } },
        "solver": { "properties": { "method": false } },
    });
    let without_matrix = json!({ "output": { "properties": { "matrix": { "maxItems": 0 } } } });
    let of_hearts = json!({
        "membrane": false,
        "stimulus": { "maxItems": 0 },
        "activation": false,
        "ecg": false,
    });
    json!([
        {
            "if": is("monodomain"),
            "then": { "required": ["membrane", "time"], "properties": { "boundary": { "maxItems": 0 } } },
            "else": { "properties": of_hearts },
        },
        { "if": has_modes, "then": { "properties": without_loads }, "else": without("density") },
        { "if": has_capacity, "else": without("capacity") },
        { "if": { "anyOf": [{ "required": ["time"] }, has_modes] }, "then": { "properties": without_matrix } },
        {
            "if": is("monodomain"),
            "then": { "properties": {
                "source": { "maxItems": 0 },
                "interface": { "maxItems": 0 },
                "periodic": { "maxItems": 0 },
                "tie": { "maxItems": 0 },
                "space": { "properties": { "axisymmetric": { "const": false }, "thickness": false } },
                "equation": { "properties": { "constants": { "maxProperties": 0 } } },
            } },
        },
        { "if": is("form"), "then": { "required": ["unknown"] }, "else": { "properties": { "unknown": { "maxProperties": 0 }, "continuation": false } } },
        {
            "if": { "anyOf": [is("monodomain"), is("diffusion")] },
            "then": { "required": ["time"] },
            "else": { "if": is("form"), "else": { "properties": { "time": false } } },
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_rules_have_their_keys_among_them() {
        let schema = schema();
        let definitions = schema["$defs"].as_object().unwrap();
        let with_rules = |(name, table): (&String, &Value)| {
            let keys = table["properties"].as_object().filter(|_| table["allOf"].is_array())?;
            assert_eq!(table["allOf"][0]["properties"].as_object(), Some(keys), "{name}");
            Some(name.clone())
        };
        let names: Vec<String> = definitions.iter().filter_map(with_rules).collect();
        assert_eq!(
            names,
            ["AmgSection", "BoundarySection", "EquationSection", "InterfaceSection", "SolverSection"]
        );
        assert_eq!(schema["allOf"][0]["properties"], schema["properties"]);
    }
}

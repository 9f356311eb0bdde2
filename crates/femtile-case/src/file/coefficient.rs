use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::schema;

/// A number or tensor that may vary in space.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// The same number everywhere.
    Number(f64),
    /// An expression in x, y, z.
    Text(String),
    /// A symmetric tensor by rows: 2×2 or 3×3.
    Tensor(#[schemars(schema_with = "schema::tensor")] Vec<Vec<Entry>>),
    /// A number or expression for each component of u.
    Components(Vec<Entry>),
    /// One value for each tag of cells, by the tag's name or number.
    #[schemars(extend("additionalProperties" = false))]
    ByTag {
        /// The values.
        by_tag: BTreeMap<String, Value>,
        /// The value of cells with other tags; without it there must be none.
        #[serde(skip_serializing_if = "Option::is_none")]
        default: Option<Box<Value>>,
    },
    /// A cell field of the mesh file: 1 component, 3 (a diagonal), 6 (xx, yy, zz, yz, xz, xy) or 9.
    #[schemars(extend("additionalProperties" = false))]
    Field {
        /// Its name.
        field: String,
    },
    /// A conductivity along and across fibres, whose directions are a cell field of the mesh.
    #[schemars(extend(
        "additionalProperties" = false,
        "oneOf" = [{ "required": ["sheet", "normal"] }, { "properties": { "sheet": false, "normal": false } }]
    ))]
    Fibres {
        /// The cell field of the directions, which are normalised.
        fibre: String,
        /// The conductivity along the fibres: one number a cell.
        along: Box<Value>,
        /// The conductivity across the fibres, with `sheet` the one within the sheets.
        across: Box<Value>,
        /// The cell field of directions within sheets, across the fibres.
        #[serde(skip_serializing_if = "Option::is_none")]
        sheet: Option<String>,
        /// The conductivity normal to the sheets, with `sheet`.
        #[serde(skip_serializing_if = "Option::is_none")]
        normal: Option<Box<Value>>,
    },
    /// The conductivity of the monodomain equation, intra · extra / (intra + extra).
    #[schemars(extend("additionalProperties" = false))]
    Bidomain {
        /// The intracellular conductivity.
        intra: Box<Value>,
        /// The extracellular conductivity.
        extra: Box<Value>,
    },
}

/// One entry of a tensor, or of an array with one for each component.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Entry {
    /// A number.
    Number(f64),
    /// An expression in x, y, z.
    Text(String),
}

const EXPECTED: &str = "a number, an expression in quotes, an array of rows or of components, { by_tag = { name = … }, default = … }, \
                        { field = \"name\" }, { fibre = \"name\", along = …, across = … } or { intra = …, extra = … }";

/// The keys of coefficients that are tables.
const KEYS: [&str; 10] =
    ["by_tag", "default", "field", "fibre", "along", "across", "sheet", "normal", "intra", "extra"];

/// The forms of such tables: the keys that are needed, and those that may be added.
const FORMS: [(&[&str], &[&str]); 4] = [
    (&["by_tag"], &["default"]),
    (&["field"], &[]),
    (&["fibre", "along", "across"], &["sheet", "normal"]),
    (&["intra", "extra"], &[]),
];

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let (mut tensor, mut components) = (Vec::new(), Vec::new());
        while let Some(item) = items.next_element()? {
            match item {
                Item::Row(row) => tensor.push(row),
                Item::Entry(entry) => components.push(entry),
            }
        }
        if tensor.is_empty() {
            return Ok(Value::Components(components));
        }
        if !components.is_empty() {
            return Err(de::Error::custom(
                "rows of a tensor and entries of components cannot stand side by side",
            ));
        }
        let n = tensor.len();
        if !(2..=3).contains(&n) || tensor.iter().any(|row| row.len() != n) {
            return Err(de::Error::custom("a tensor has 2 rows of 2 entries or 3 rows of 3"));
        }
        Ok(Value::Tensor(tensor))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut parts = Parts::default();
        while let Some(key) = map.next_key::<String>()? {
            parts.read(&key, &mut map)?;
            parts.keys.push(key);
        }
        parts.into_value()
    }
}

/// The keys of a coefficient that is a table, and their values.
#[derive(Default)]
struct Parts {
    keys: Vec<String>,
    by_tag: Option<BTreeMap<String, Value>>,
    default: Option<Box<Value>>,
    field: Option<String>,
    fibre: Option<String>,
    along: Option<Box<Value>>,
    across: Option<Box<Value>>,
    sheet: Option<String>,
    normal: Option<Box<Value>>,
    intra: Option<Box<Value>>,
    extra: Option<Box<Value>>,
}

impl Parts {
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "by_tag" => self.by_tag = Some(map.next_value()?),
            "default" => self.default = Some(map.next_value()?),
            "field" => self.field = Some(map.next_value()?),
            "fibre" => self.fibre = Some(map.next_value()?),
            "along" => self.along = Some(map.next_value()?),
            "across" => self.across = Some(map.next_value()?),
            "sheet" => self.sheet = Some(map.next_value()?),
            "normal" => self.normal = Some(map.next_value()?),
            "intra" => self.intra = Some(map.next_value()?),
            "extra" => self.extra = Some(map.next_value()?),
            other => return Err(de::Error::unknown_field(other, &KEYS)),
        }
        Ok(())
    }

    /// Checks that the keys are those of one form.
    fn check<E: de::Error>(&self) -> Result<(), E> {
        let has = |key: &&str| self.keys.iter().any(|found| found == key);
        let form = FORMS.iter().find(|(needed, others)| needed.iter().chain(*others).any(has));
        let Some((needed, others)) = form else { return Err(E::custom(format!("expected {EXPECTED}"))) };
        let belongs = |key: &&String| needed.iter().chain(*others).any(|own| own == key);
        let own = needed.iter().chain(*others).find(|key| has(key)).unwrap_or(&"");
        if let Some(other) = self.keys.iter().find(|key| !belongs(key)) {
            return Err(E::custom(format!("`{other}` cannot stand beside `{own}`")));
        }
        if let Some(missing) = needed.iter().find(|key| !has(key)) {
            return Err(E::custom(format!("`{own}` needs `{missing}` beside it")));
        }
        match has(&"sheet") == has(&"normal") {
            true => Ok(()),
            false => Err(E::custom("`sheet` and `normal`, the conductivity normal to sheets, go together")),
        }
    }

    fn into_value<E: de::Error>(self) -> Result<Value, E> {
        self.check()?;
        let Self { default, sheet, normal, .. } = self;
        let forms =
            (self.by_tag, self.field, (self.fibre, self.along, self.across), (self.intra, self.extra));
        Ok(match forms {
            (Some(by_tag), ..) => Value::ByTag { by_tag, default },
            (_, Some(field), ..) => Value::Field { field },
            (.., (Some(fibre), Some(along), Some(across)), _) => {
                Value::Fibres { fibre, along, across, sheet, normal }
            }
            (.., (Some(intra), Some(extra))) => Value::Bidomain { intra, extra },
            _ => return Err(E::custom(format!("expected {EXPECTED}"))),
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

/// An item of an array: a row of a tensor, or the entry of a component.
enum Item {
    Row(Vec<Entry>),
    Entry(Entry),
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, an expression in quotes, or a row of them")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Item, E> {
        EntryVisitor.visit_f64(value).map(Item::Entry)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Item, E> {
        EntryVisitor.visit_i64(value).map(Item::Entry)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Item, E> {
        EntryVisitor.visit_str(text).map(Item::Entry)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Item, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(entries)).map(Item::Row)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

struct EntryVisitor;

impl Visitor<'_> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or an expression in quotes")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Entry, E> {
        Ok(Entry::Number(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Entry, E> {
        Ok(Entry::Number(value as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Entry, E> {
        Ok(Entry::Text(text.into()))
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

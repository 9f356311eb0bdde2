use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A number or tensor that may vary in space.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// The same number everywhere.
    Number(f64),
    /// An expression in x, y, z.
    Text(String),
    /// A symmetric tensor by rows: 2×2 or 3×3.
    Tensor(Vec<Vec<Entry>>),
    /// A number or expression for each component of u.
    Components(Vec<Entry>),
    /// One value for each tag of cells, by the tag's name or number.
    ByTag {
        /// The values.
        by_tag: BTreeMap<String, Value>,
        /// The value of cells with other tags; without it there must be none.
        #[serde(skip_serializing_if = "Option::is_none")]
        default: Option<Box<Value>>,
    },
    /// A cell field of the mesh file: 1 component, 3 (a diagonal), 6 (xx, yy, zz, yz, xz, xy) or 9.
    Field {
        /// Its name.
        field: String,
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

const EXPECTED: &str = "a number, an expression in quotes, an array of rows or of components, { by_tag = { name = … }, default = … } or \
                        { field = \"name\" }";

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
        let (mut by_tag, mut default, mut field) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "by_tag" if field.is_none() => by_tag = Some(map.next_value()?),
                "default" if field.is_none() => default = Some(map.next_value()?),
                "field" if by_tag.is_none() && default.is_none() => field = Some(map.next_value()?),
                "by_tag" | "default" | "field" => {
                    let message = "`field` cannot stand beside `by_tag` and `default`";
                    return Err(de::Error::custom(message));
                }
                other => return Err(de::Error::unknown_field(other, &["by_tag", "default", "field"])),
            }
        }
        match (by_tag, default, field) {
            (Some(by_tag), default, _) => Ok(Value::ByTag { by_tag, default }),
            (None, Some(_), _) => Err(de::Error::custom("`default` needs `by_tag` beside it")),
            (None, None, Some(field)) => Ok(Value::Field { field }),
            (None, None, None) => Err(de::Error::custom(format!("expected {EXPECTED}"))),
        }
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

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

const EXPECTED: &str = "a number, an expression in quotes, an array of rows or of components, { by_tag = { name = … } } or \
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
        let key: Option<String> = map.next_key()?;
        let value = match key.as_deref() {
            Some("by_tag") => Value::ByTag { by_tag: map.next_value()? },
            Some("field") => Value::Field { field: map.next_value()? },
            Some(other) => return Err(de::Error::unknown_field(other, &["by_tag", "field"])),
            None => return Err(de::Error::custom(format!("expected {EXPECTED}"))),
        };
        match map.next_key::<String>()? {
            Some(more) => Err(de::Error::custom(format!("`{more}` cannot stand beside `by_tag` or `field`"))),
            None => Ok(value),
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

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// A number with a unit: B, kB, MB, GB, TB, or KiB, MiB, GiB, TiB.
    Text(
        #[schemars(
            regex(pattern = "^ *[0-9]+(\\.[0-9]*)? *([kKmMgGtT]?[iI]?[bB])? *$"),
            extend("examples" = ["8 GB"])
        )]
        String,
    ),
}

/// Units in lower case.
const UNITS: [(&str, f64); 10] = [
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("tb", 1e12),
    ("kib", 1024.0),
    ("mib", 1024.0 * 1024.0),
    ("gib", 1024.0 * 1024.0 * 1024.0),
    ("tib", 1024.0 * 1024.0 * 1024.0 * 1024.0),
    ("", 1.0),
];

impl Amount {
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// A message for a text that is not an amount.
    pub fn bytes(&self) -> Result<f64, String> {
        let text = match self {
            Self::Bytes(bytes) => return Ok(*bytes as f64),
            Self::Text(text) => text.trim(),
        };
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let unit = text[end..].trim().to_lowercase();
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
        match (text[..end].parse::<f64>(), factor) {
            (Ok(number), Some(factor)) => Ok(number * factor),
            _ => Err(format!(
                "`{text}` is not an amount of memory: give bytes, or a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers_with_units() {
        let bytes = |text: &str| Amount::Text(text.into()).bytes();
        for (text, expected) in [
            ("8 GB", 8e9),
            ("1.5kB", 1500.0),
            (" 2 MiB ", 2097152.0),
            ("17", 17.0),
            ("3 tb", 3e12),
            ("1 TiB", 2f64.powi(40)),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "GB", "-1 GB", "8 GBB", "1.2.3 B", "eight GB", "1e3 B"] {
            assert!(bytes(text).unwrap_err().contains("not an amount of memory"), "{text}");
        }
        assert_eq!(Amount::Bytes(5).bytes(), Ok(5.0));
    }
}

use serde::Serialize;

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A count.
    Count(usize),
    /// A measured number.
    Number(f64),
    /// A text.
    Words(&'static str),
    /// Not measured here, or not given there.
    Nothing,
}

impl Cell {
    /// Returns the number, if it can be plotted.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Self::Count(count) => Some(count as f64),
            Self::Number(number) => Some(number).filter(|number| number.is_finite()),
            Self::Words(_) | Self::Nothing => None,
        }
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Nothing, Self::Number)
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Its name; published values are marked so.
    pub name: String,
    /// An entry for each row.
    pub cells: Vec<Cell>,
    /// True if its numbers are bars of the picture.
    pub is_drawn: bool,
}

/// Entries by row, such as a matrix, and by column, such as a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The columns.
    pub columns: Vec<Column>,
}

impl Table {
    /// A table without columns.
    pub fn new(rows: Vec<String>) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Adds a plotted column.
    #[must_use]
    pub fn drawn(self, name: &str, cells: Vec<Cell>) -> Self {
        self.with(name, cells, true)
    }

    /// Adds a column that is not plotted.
    #[must_use]
    pub fn listed(self, name: &str, cells: Vec<Cell>) -> Self {
        self.with(name, cells, false)
    }

    /// Adds a column, plotted or not.
    #[must_use]
    pub fn with(mut self, name: &str, cells: Vec<Cell>, is_drawn: bool) -> Self {
        // A column of which nothing is known only widens the table.
        if cells.iter().any(|cell| *cell != Cell::Nothing) {
            self.columns.push(Column { name: name.into(), cells, is_drawn });
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_nothing_is_left_out() {
        let rows = vec!["a".to_string(), "b".to_string()];
        let table = Table::new(rows)
            .drawn("known", vec![Cell::Count(3), Cell::Nothing])
            .listed("unknown", vec![Cell::Nothing; 2]);
        assert_eq!(table.columns.len(), 1);
        assert_eq!(table.columns[0].cells[0].number(), Some(3.0));
        assert_eq!(Cell::Number(f64::INFINITY).number(), None);
    }
}

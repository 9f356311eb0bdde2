//! Tables as pictures: the bars of a row beneath each other, row under row.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::plot::{CURVES, DrawError, GRID, INK, value_label};
use super::{Column, Figure, Quantity, Table};

const WIDTH: u32 = 900;
const BAR: u32 = 9;
const LEAST_HEIGHT: u32 = 320;
/// Space for the names of rows.
const NAMES: u32 = 210;

impl Quantity {
    /// Returns whether its values differ by more than a linear scale shows.
    pub(super) fn is_logarithmic(self) -> bool {
        matches!(
            self,
            Self::Nanoseconds | Self::Microseconds | Self::Milliseconds | Self::Products | Self::Iterations
        )
    }
}

/// Draws the columns that are to be drawn.
pub(super) fn draw(svg: &mut String, figure: &Figure, table: &Table) -> Result<(), DrawError> {
    let columns: Vec<&Column> = table.columns.iter().filter(|column| column.is_drawn).collect();
    let n_bars = (table.rows.len() * (columns.len() + 1)) as u32;
    let size = (WIDTH, (n_bars * BAR + 130).max(LEAST_HEIGHT));
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    bars(&root, figure, table, &columns)?;
    root.present()
}

fn bars<B: DrawingBackend<ErrorType = std::io::Error>>(
    root: &DrawingArea<B, plotters::coord::Shift>,
    figure: &Figure,
    table: &Table,
    columns: &[&Column],
) -> Result<(), DrawError> {
    let is_logarithmic = figure.quantity.is_logarithmic();
    let place = |value: f64| if is_logarithmic { value.max(1e-300).log10() } else { value };
    let values = columns.iter().flat_map(|column| &column.cells).filter_map(|cell| cell.number());
    let x = span(values.map(place), is_logarithmic);
    let base = if is_logarithmic { x.start } else { 0.0 };
    let n_rows = table.rows.len().max(1);
    let mut chart = ChartBuilder::on(root)
        .margin(12)
        .margin_right(24)
        .caption(&figure.title, ("sans-serif", 16).with_color(INK))
        .x_label_area_size(40)
        .y_label_area_size(NAMES)
        .build_cartesian_2d(x.clone(), n_rows as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).with_color(INK))
        .x_desc(figure.quantity.label())
        .x_labels(if is_logarithmic { (x.end - x.start) as usize + 1 } else { 8 })
        .x_label_formatter(&|x| if is_logarithmic { value_label(*x) } else { format!("{x}") })
        .draw()?;
    let name_style = ("sans-serif", 13).with_color(INK).into_text_style(root);
    let name_style = name_style.pos(Pos::new(HPos::Right, VPos::Center));
    for (row, name) in table.rows.iter().enumerate() {
        let name = Text::new(name.clone(), (-8, 0), name_style.clone());
        chart.plotting_area().draw(&(EmptyElement::at((x.start, row as f64 + 0.5)) + name))?;
    }
    let height = 0.9 / columns.len().max(1) as f64;
    for (k, column) in columns.iter().enumerate() {
        let style = CURVES[k % CURVES.len()].filled();
        let bar = |(row, value): (usize, f64)| {
            let top = row as f64 + 0.05 + k as f64 * height;
            Rectangle::new([(base, top), (place(value), top + height)], style)
        };
        let numbers = column.cells.iter().map(|cell| cell.number()).enumerate();
        chart
            .draw_series(numbers.filter_map(|(row, value)| Some((row, value?))).map(bar))?
            .label(&column.name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(GRID)
        .label_font(("sans-serif", 11).with_color(INK))
        .draw()
}

/// From the least to the greatest, with zero or in whole decades.
fn span(places: impl Iterator<Item = f64>, is_logarithmic: bool) -> std::ops::Range<f64> {
    let (low, high) = places.fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    if is_logarithmic {
        low.floor()..(high + 0.05).ceil()
    } else if low == high {
        low..low + 1.0
    } else {
        1.05 * low..1.05 * high
    }
}

//! Tables against a number of unknowns as pictures: a curve for each column.

use std::ops::Range;

use plotters::prelude::*;

use super::plot::{CURVES, DrawError, GRID, INK, legend};
use super::{Column, Figure, Table};

const SIZE: (u32, u32) = (900, 520);

/// Draws the columns that are to be drawn, on a logarithmic scale of unknowns.
pub(super) fn draw(svg: &mut String, figure: &Figure, table: &Table) -> Result<(), DrawError> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let sizes: Vec<f64> =
        table.rows.iter().map(|name| name.parse::<f64>().map_or(f64::NAN, f64::log10)).collect();
    let columns: Vec<&Column> = table.columns.iter().filter(|column| column.is_drawn).collect();
    let is_logarithmic = figure.quantity.is_logarithmic();
    let place = |value: f64| if is_logarithmic { value.max(1e-300).log10() } else { value };
    let values = columns.iter().flat_map(|column| &column.cells).filter_map(|cell| cell.number());
    let places: Vec<f64> = values.map(place).collect();
    let highest = places.iter().copied().fold(0.0, f64::max);
    let y = match is_logarithmic {
        true => span(&places),
        false => 0.0..if highest > 0.0 { 1.05 * highest } else { 1.0 },
    };
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .margin_right(24)
        .caption(&figure.title, ("sans-serif", 16).with_color(INK))
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(span(&sizes), y)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).with_color(INK))
        .x_desc(figure.abscissa)
        .y_desc(figure.quantity.label())
        .x_label_formatter(&|x| format!("{:.1e}", 10f64.powf(*x)))
        .y_label_formatter(&|y| {
            if is_logarithmic { format!("{:.1}", 10f64.powf(*y)) } else { format!("{y}") }
        })
        .draw()?;
    for (k, column) in columns.iter().enumerate() {
        let style = CURVES[k % CURVES.len()].stroke_width(2);
        let points =
            sizes.iter().zip(&column.cells).filter_map(|(&x, cell)| Some((x, place(cell.number()?))));
        chart
            .draw_series(LineSeries::new(points.filter(|(x, _)| x.is_finite()), style).point_size(3))?
            .label(&column.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    legend(&mut chart, SeriesLabelPosition::UpperMiddle)?;
    root.present()
}

/// From the least to the most, with some room.
fn span(sizes: &[f64]) -> Range<f64> {
    let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let most = sizes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least < most { least - 0.02..most + 0.02 } else { 0.0..1.0 }
}

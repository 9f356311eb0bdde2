//! Plots of roofline tables: of three columns the first is the abscissa, the second gives points and the third a line.

use plotters::prelude::*;

use super::plot::{CURVES, DrawError, GRID, INK, legend};
use super::{Cell, Column, Figure, Table};

const SIZE: (u32, u32) = (900, 520);

/// Draws columns by threes, both axes logarithmic.
pub(super) fn draw(svg: &mut String, figure: &Figure, table: &Table) -> Result<(), DrawError> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (abscissas, drawn): (Vec<_>, Vec<_>) = table.columns.iter().partition(|column| !column.is_drawn);
    let all = |columns: &[&Column]| -> Vec<f64> {
        columns.iter().flat_map(|column| places(column)).flatten().collect()
    };
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .margin_right(24)
        .caption(&figure.title, ("sans-serif", 16).with_color(INK))
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(span(&all(&abscissas)), span(&all(&drawn)))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).with_color(INK))
        .x_desc(figure.abscissa)
        .y_desc(figure.quantity.label())
        .x_label_formatter(&|x| format!("{:.2}", 10f64.powf(*x)))
        .y_label_formatter(&|y| format!("{:.0}", 10f64.powf(*y)))
        .draw()?;
    for (k, group) in table.columns.chunks_exact(3).enumerate() {
        let colour = CURVES[k % CURVES.len()];
        let points = |column: &Column| -> Vec<(f64, f64)> {
            let pairs = places(&group[0]).into_iter().zip(places(column));
            pairs.filter_map(|(x, y)| x.zip(y)).collect()
        };
        let mut roof = points(&group[2]);
        roof.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart.draw_series(LineSeries::new(roof, colour.stroke_width(1)))?;
        chart
            .draw_series(points(&group[1]).into_iter().map(|point| Circle::new(point, 4, colour.filled())))?
            .label(&group[1].name)
            .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
    }
    legend(&mut chart, SeriesLabelPosition::LowerRight)?;
    root.present()
}

/// Decimal logarithms.
fn places(column: &Column) -> Vec<Option<f64>> {
    let positive = |cell: &Cell| cell.number().filter(|value| *value > 0.0).map(f64::log10);
    column.cells.iter().map(positive).collect()
}

/// From the least to the most, with some room.
fn span(places: &[f64]) -> std::ops::Range<f64> {
    let least = places.iter().copied().fold(f64::INFINITY, f64::min);
    let most = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least <= most { least - 0.1..most + 0.1 } else { 0.0..1.0 }
}

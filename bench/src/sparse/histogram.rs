//! Histograms of row lengths as SVG, in the style of `[wong2015]`, Fig. 4.

use plotters::prelude::*;

use super::lengths::{Bin, even_bins, fill};

const SIZE: (u32, u32) = (640, 420);
const MOST_BARS: usize = 80;
const INK: RGBColor = RGBColor(38, 50, 56);
const GRID: RGBColor = RGBColor(225, 229, 232);
const BARS: RGBColor = RGBColor(0, 105, 146);

type DrawError = DrawingAreaErrorKind<std::io::Error>;

/// Draws a histogram of row lengths with a logarithmic vertical axis as SVG; empty where drawing fails.
pub fn histogram_svg(caption: &str, lengths: &[u32]) -> String {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let ends = (sorted.first().copied().unwrap_or(0), sorted.last().copied().unwrap_or(0));
    let mut bins = even_bins(ends.0, ends.1, MOST_BARS);
    fill(&mut bins, &sorted);
    let mut svg = String::new();
    if draw(&mut svg, caption, &bins).is_err() {
        svg.clear();
    }
    svg
}

fn draw(svg: &mut String, caption: &str, bins: &[Bin]) -> Result<(), DrawError> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let edges = bins.first().map_or(0.0, left)..bins.last().map_or(1.0, right);
    let n_lengths = (edges.end - edges.start).ceil().min(12.0) as usize;
    let most = bins.iter().map(|bin| bin.n_rows).max().unwrap_or(0);
    let decades = (most.max(1) as f64).log10().floor() as usize + 1;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .margin_right(20)
        .caption(caption, ("sans-serif", 16).with_color(INK))
        .x_label_area_size(40)
        .y_label_area_size(58)
        .build_cartesian_2d(edges, FLOOR..decades as f64)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).with_color(INK))
        .x_desc("entries of a row")
        .y_desc("rows")
        .x_labels(n_lengths)
        .y_labels(decades + 1)
        .x_label_formatter(&|length| format!("{length:.0}"))
        .y_label_formatter(&|log| format!("{:.0}", 10f64.powf(*log)))
        .draw()?;
    let bars = bins.iter().filter(|bin| bin.n_rows > 0).map(|bin| {
        let top = (bin.n_rows as f64).log10();
        Rectangle::new([(left(bin), FLOOR), (right(bin), top)], BARS.filled())
    });
    chart.draw_series(bars)?;
    root.present()
}

/// Lower end of the logarithmic axis, below 10⁰ so that the bar of a single row is visible.
const FLOOR: f64 = -0.2;

fn left(bin: &Bin) -> f64 {
    f64::from(bin.from) - 0.45
}

fn right(bin: &Bin) -> f64 {
    f64::from(bin.to) + 0.45
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_that_occurs_has_a_bar() {
        let colour = "#006992";
        let n_bars = |lengths: &[u32]| histogram_svg("rows", lengths).matches(colour).count();
        assert_eq!([n_bars(&[]), n_bars(&[0]), n_bars(&[3, 3, 5]), n_bars(&[7; 100])], [0, 1, 2, 1]);
        assert!(histogram_svg("rows", &[1, u32::MAX]).contains("</svg>"));
    }
}

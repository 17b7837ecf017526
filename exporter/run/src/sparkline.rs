//! Sparklines: a curve in one line of text, from the block elements of Unicode (U+2581 to U+2588).

/// The blocks, from one eighth to eight eighths.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A column with a value that is NaN or infinite.
const NOT_FINITE: char = '×';

/// Draws values in at most `columns` columns. A column of several values shows their mean, or `×` if one is
/// not finite.
pub fn sparkline(values: &[f64], columns: usize) -> String {
    let columns = columns.min(values.len());
    if columns == 0 {
        return String::new();
    }
    let means: Vec<f64> = (0..columns)
        .map(|column| {
            let part = &values[column * values.len() / columns..(column + 1) * values.len() / columns];
            part.iter().sum::<f64>() / part.len() as f64
        })
        .collect();
    let finite = means.iter().copied().filter(|mean| mean.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| {
        (low.min(mean), high.max(mean))
    });
    means
        .into_iter()
        .map(|mean| {
            if !mean.is_finite() {
                return NOT_FINITE;
            }
            let part = if high > low {
                (mean - low) / (high - low)
            } else {
                0.5
            };
            BLOCKS[((part * 7.0).round() as usize).min(7)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparkline_uses_all_eight_block_heights() {
        let rising: Vec<f64> = (0..8).map(f64::from).collect();
        assert_eq!(sparkline(&rising, 8), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&rising, 4), "▁▃▆█");
    }

    #[test]
    fn non_finite_values_of_a_sparkline_are_marked() {
        assert_eq!(sparkline(&[1.0, f64::NAN, 2.0, f64::INFINITY], 10), "▁×█×");
        assert_eq!(sparkline(&[3.0, 3.0], 10), "▅▅");
        assert_eq!(sparkline(&[], 10), "");
    }
}

//! Parses tables of files with the expected values of their series.

use pulsetrain_semconv::metric;

/// A file of the corpus, and the values of some of its series.
pub(crate) struct Sample {
    pub(crate) file: &'static str,
    pub(crate) format: &'static str,
    pub(crate) series: Vec<(&'static str, Vec<f64>)>,
}

/// Parses a table: a line `FILE FORMAT` a file, then a line `SERIES -> VALUES` a series. A line with `#` is a comment.
pub(crate) fn samples(table: &'static str) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    for line in table.lines().filter(is_row) {
        if let Some((series, values)) = line.split_once(" ->") {
            let sample = samples.last_mut().expect("a series follows its file");
            let values = values.split_whitespace().map(number).collect();
            let metric = series.split('{').next().unwrap_or(series);
            assert!(metric::find(metric).is_some(), "the registry has no {metric}");
            sample.series.push((series, values));
        } else {
            let (file, format) = line.split_once(' ').expect("a file has a format");
            samples.push(Sample {
                file,
                format,
                series: Vec::new(),
            });
        }
    }
    assert!(
        samples.iter().all(|sample| !sample.series.is_empty()),
        "a file has no series"
    );
    samples
}

/// Parses a number. The suffix `GiB` makes it a number of bytes.
fn number(text: &str) -> f64 {
    let (number, factor) = match text.strip_suffix("GiB") {
        Some(number) => (number, 1_073_741_824.0),
        None => (text, 1.0),
    };
    number.parse::<f64>().expect("a value is a number") * factor
}

/// Returns whether the values of a series are the expected ones, apart from the last digits of increases.
pub(crate) fn are_same(found: &[f64], expected: &[f64]) -> bool {
    let is_same = |(found, expected): (&f64, &f64)| {
        let is_near = (found - expected).abs() <= 1e-9 * expected.abs();
        is_near || found == expected || (found.is_nan() && expected.is_nan())
    };
    found.len() == expected.len() && found.iter().zip(expected).all(is_same)
}

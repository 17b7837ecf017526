//! The expected series of every name in the samples, written from the systems' documentation.

mod tags;
mod texts;

pub(crate) use tags::TAGS;
pub(crate) use texts::*;

/// A series, and the factor that converts the numbers of a tag.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) metric: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) factor: f64,
    /// Whether the numbers are cumulative.
    pub(crate) is_total: bool,
    /// The attribute with the state, of a state set.
    pub(crate) states: Option<String>,
}

/// Returns the series of a name, or `train.custom` if the table lacks it.
pub(crate) fn series(table: &str, tag: &str) -> Series {
    let lines = table.lines().filter(|line| !line.is_empty());
    let found = lines.flat_map(variants).find_map(|line| {
        let (key, series) = line.split_once(" -> ").expect("a line has an arrow");
        (key == tag).then(|| parse(series))
    });
    found.unwrap_or_else(|| custom(tag))
}

/// Returns the series of an unknown tag.
pub(crate) fn custom(tag: &str) -> Series {
    Series {
        metric: "train.custom".to_owned(),
        attributes: vec![("train.custom.name".to_owned(), tag.to_owned())],
        factor: 1.0,
        is_total: false,
        states: None,
    }
}

fn variants(line: &str) -> Vec<String> {
    let modes = ["train", "eval"].map(|mode| line.replace("MODE", mode));
    modes
        .iter()
        .flat_map(|line| ["sum", "mean"].map(|statistic| line.replace("STAT", statistic)))
        .collect()
}

fn parse(series: &str) -> Series {
    let (series, factor) = series.split_once(" * ").unwrap_or((series, "1"));
    let mut words = series.split(' ').filter(|word| !word.is_empty());
    let metric = words.next().expect("a series has a metric").to_owned();
    let (states, words): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with('@'));
    let attribute = |word: &&str| {
        let (key, value) = word.split_once('=').expect("an attribute has a value");
        (key.to_owned(), value.to_owned())
    };
    Series {
        metric,
        states: states.first().map(|word| word[1..].to_owned()),
        attributes: words.iter().map(attribute).collect(),
        factor: if factor == "total" {
            1.0
        } else {
            factor.parse().expect("a factor is a number")
        },
        is_total: factor == "total",
    }
}

//! The rules of families and their types, in the text formats.

use std::collections::{BTreeMap, HashSet};

use super::{ExposedFamily, ExposedSample};

/// A series without `le` or `quantile`.
type Group = Vec<(String, String)>;

/// The samples of one series.
#[derive(Default)]
struct Series {
    buckets: Vec<(f64, f64)>,
    sum: Option<f64>,
    count: Option<f64>,
}

/// Checks the rules of the types of families, and those between families.
pub(super) fn families(families: &[ExposedFamily], open_metrics: bool) -> Result<(), String> {
    let mut names = HashSet::new();
    let mut series = HashSet::new();
    for family in families {
        for name in reserved(family, open_metrics) {
            if !names.insert(name.clone()) {
                return Err(format!("{}: {name} is of another family too", family.name));
            }
        }
        for sample in &family.samples {
            let mut labels = sample.labels.clone();
            labels.sort();
            if !series.insert((&sample.name, labels)) {
                return Err(format!(
                    "{}: the series of {sample:?} is there twice",
                    family.name
                ));
            }
        }
        check(family, open_metrics).map_err(|error| format!("{}: {error}", family.name))?;
    }
    Ok(())
}

/// Returns the names that no other family may have: its own and those of its samples.
fn reserved(family: &ExposedFamily, open_metrics: bool) -> Vec<String> {
    let suffixes: &[&str] = match (family.kind.as_str(), open_metrics) {
        ("counter", true) => &["", "_total", "_created"],
        ("histogram", true) => &["", "_bucket", "_sum", "_count", "_created"],
        ("summary", true) => &["", "_sum", "_count", "_created"],
        ("info", true) => &["", "_info"],
        ("histogram", false) => &["", "_bucket", "_sum", "_count"],
        ("summary", false) => &["", "_sum", "_count"],
        _ => &[""],
    };
    suffixes
        .iter()
        .map(|suffix| format!("{}{suffix}", family.name))
        .collect()
}

fn check(family: &ExposedFamily, open_metrics: bool) -> Result<(), String> {
    if family.samples.is_empty() {
        return Err("no sample".to_owned());
    }
    if !family.unit.is_empty() && !family.name.ends_with(&format!("_{}", family.unit)) {
        return Err(format!("it does not end in its unit {:?}", family.unit));
    }
    let mut groups: BTreeMap<Group, Series> = BTreeMap::new();
    for sample in &family.samples {
        let suffix = sample.name.strip_prefix(&family.name);
        let suffix = suffix.ok_or_else(|| format!("the sample {} of another family", sample.name))?;
        let has_exemplar = sample.exemplar.is_some();
        match (family.kind.as_str(), suffix) {
            ("counter", "_total") if open_metrics => not_negative(sample.value)?,
            ("counter", "") if !open_metrics => not_negative(sample.value)?,
            ("info", "_info") if open_metrics && sample.value == 1.0 => {}
            ("gauge" | "untyped" | "unknown", "") if !has_exemplar => {}
            ("summary", "") if !has_exemplar => quantile(sample)?,
            ("summary", "_sum" | "_count") if !has_exemplar => {
                not_negative_in(open_metrics, sample.value)?;
            }
            ("histogram", "_bucket") => {
                let (le, group) = without(sample, "le")?;
                if open_metrics && !le.contains(['.', 'e', 'I']) {
                    return Err(format!(
                        "the bound {le:?} is not a float as OpenMetrics writes it"
                    ));
                }
                let bound = le
                    .replace("Inf", "inf")
                    .parse()
                    .map_err(|_| format!("the bound {le:?}"))?;
                not_negative(sample.value)?;
                groups
                    .entry(group)
                    .or_default()
                    .buckets
                    .push((bound, sample.value));
            }
            ("histogram", "_sum") if !has_exemplar => {
                not_negative_in(open_metrics, sample.value)?;
                groups.entry(sample.labels.clone()).or_default().sum = Some(sample.value);
            }
            ("histogram", "_count") if !has_exemplar => {
                not_negative(sample.value)?;
                groups.entry(sample.labels.clone()).or_default().count = Some(sample.value);
            }
            _ => return Err(format!("the sample {sample:?}")),
        }
    }
    groups
        .values()
        .try_for_each(|series| histogram(series, open_metrics))
}

fn histogram(series: &Series, open_metrics: bool) -> Result<(), String> {
    let rises = series
        .buckets
        .windows(2)
        .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    let Some((bound, last)) = series.buckets.last().filter(|_| rises) else {
        return Err(format!("buckets that do not rise: {:?}", series.buckets));
    };
    if *bound != f64::INFINITY {
        return Err("no bucket +Inf".to_owned());
    }
    if series.count.is_some_and(|count| count != *last) {
        return Err("another count than the bucket +Inf has".to_owned());
    }
    let has_negative = series.buckets.first().is_some_and(|(bound, _)| *bound < 0.0);
    match (open_metrics, series.sum.is_some(), series.count.is_some()) {
        (true, has_sum, has_count) if has_sum != has_count => Err("a sum or a count alone".to_owned()),
        (true, true, _) if has_negative => Err("a sum with negative bounds".to_owned()),
        (false, _, false) => Err("no count".to_owned()),
        _ => Ok(()),
    }
}

fn quantile(sample: &ExposedSample) -> Result<(), String> {
    let (quantile, _) = without(sample, "quantile")?;
    let is_one = quantile
        .parse()
        .is_ok_and(|quantile: f64| (0.0..=1.0).contains(&quantile));
    is_one
        .then_some(())
        .ok_or_else(|| format!("the quantile {quantile:?}"))
}

/// Returns the value of a label, and the other labels.
fn without(sample: &ExposedSample, name: &str) -> Result<(String, Group), String> {
    let mut labels = sample.labels.clone();
    let place = labels.iter().position(|(label, _)| label == name);
    let (_, value) = labels.remove(place.ok_or_else(|| format!("no label {name}"))?);
    Ok((value, labels))
}

fn not_negative(value: f64) -> Result<(), String> {
    match value >= 0.0 {
        true => Ok(()),
        false => Err(format!("a count of {value}")),
    }
}

fn not_negative_in(open_metrics: bool, value: f64) -> Result<(), String> {
    if open_metrics { not_negative(value) } else { Ok(()) }
}

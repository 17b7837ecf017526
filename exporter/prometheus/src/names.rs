//! The names of families, by the configured translation.
//!
//! The default is the rule of the registry (`pulsetrain_semconv::prometheus_name`). The others are those of
//! prometheus/otlptranslator, `metric_namer.go`.

use std::borrow::Cow;

use pulsetrain_semconv::{Instrument, prometheus_label, prometheus_name};

use super::{Translation, escape};

/// Returns the name of a metric's family with suffixes, or `None` if it has no valid character.
pub(super) fn family_name(
    translation: Translation,
    name: &str,
    unit: &str,
    instrument: Instrument,
) -> Option<String> {
    let name = &*readable(name);
    let family = match translation {
        Translation::UnderscoreEscapingWithSuffixes => prometheus_name(name, unit, instrument),
        Translation::UnderscoreEscapingWithoutSuffixes => underscores(name),
        Translation::NoUtf8EscapingWithSuffixes => with_suffixes(name, unit, instrument),
        Translation::NoTranslation => name.to_owned(),
    };
    // A name of underscores only is the result of invalid characters, unless it was such a name before.
    let says_something = family == name || family.contains(|c| c != '_');
    (says_something && !family.is_empty()).then_some(family)
}

/// Returns the name of an attribute's label, or `None` for an empty one. It is `__name__` if a scheme would
/// turn it into the name of the series.
pub(super) fn label_name(translation: Translation, key: &str) -> Option<String> {
    if key.is_empty() {
        return None;
    }
    let label = if translation.keeps_utf8() {
        readable(key).into_owned()
    } else {
        prometheus_label(key)
    };
    if escape::hides_name(&label) {
        return Some(escape::NAME_LABEL.to_owned());
    }
    label.contains(|c| c != '_').then_some(label)
}

/// Returns a name without NUL, which Prometheus' text parsers treat as the end of the page.
fn readable(name: &str) -> Cow<'_, str> {
    match name.contains('\0') {
        true => name.replace('\0', "_").into(),
        false => name.into(),
    }
}

/// Returns the unit for `# UNIT` if the name ends with it, otherwise an empty string.
pub(super) fn unit_of(family: &str, unit: &str) -> String {
    let words = prometheus_name("", unit, Instrument::UpDownCounter);
    let base = family.strip_suffix("_total").unwrap_or(family);
    match base.strip_suffix(words.as_str()) {
        Some(stem) if !words.is_empty() && stem.ends_with('_') => words,
        _ => String::new(),
    }
}

/// Replaces each run of invalid characters by one underscore. Underscores stay.
fn underscores(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == ':' || c == '_';
    let parts: Vec<&str> = name
        .split(|c| !legal(c))
        .filter(|part| !part.is_empty())
        .collect();
    let joined = parts.join("_");
    if joined.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{joined}")
    } else {
        joined
    }
}

/// Appends the unit, `_total` and `_ratio` where needed.
fn with_suffixes(name: &str, unit: &str, instrument: Instrument) -> String {
    let ratio = unit == "1" && instrument == Instrument::Gauge;
    let total = instrument == Instrument::Counter;
    let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
    let main = prometheus_name("", main, Instrument::UpDownCounter);
    let per = prometheus_name("", &format!("/{per}"), Instrument::UpDownCounter);
    let mut stem = name;
    for (_, suffix) in [
        (ratio, "ratio"),
        (total, "total"),
        (!per.is_empty(), per.as_str()),
    ]
    .iter()
    .filter(|(wanted, _)| *wanted)
    {
        stem = without_suffix(stem, suffix);
    }
    let mut full = stem.to_owned();
    if !main.is_empty() && !stem.ends_with(&main) {
        append(&mut full, &main);
    }
    if !per.is_empty() {
        append(&mut full, &per);
    }
    if total {
        append(&mut full, "total");
    }
    if ratio {
        append(&mut full, "ratio");
    }
    full
}

fn append(name: &mut String, suffix: &str) {
    name.push('_');
    name.push_str(suffix);
}

/// Removes the suffix and the character before it.
fn without_suffix<'a>(name: &'a str, suffix: &str) -> &'a str {
    name.strip_suffix(suffix)
        .and_then(|stem| stem.char_indices().next_back())
        .filter(|(end, _)| *end > 0)
        .map_or(name, |(end, _)| &name[..end])
}

#[cfg(test)]
mod tests;

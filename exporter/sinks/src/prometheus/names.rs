//! What a family is called: the translation that the settings ask for.
//!
//! The default is the registry's own rule (`pulsetrain_semconv::prometheus_name`); the others are those of
//! prometheus/otlptranslator, `metric_namer.go`.

use std::borrow::Cow;

use pulsetrain_semconv::{Instrument, prometheus_label, prometheus_name};

use super::{Translation, escape};

/// The name of a metric's family, suffixes included, or none where nothing legal is left of it.
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
    // A name of underscores only is what is left of illegal characters, unless it was meant so.
    let says_something = family == name || family.contains(|c| c != '_');
    (says_something && !family.is_empty()).then_some(family)
}

/// The name of an attribute's label, or none where nothing is left of it. It is `__name__` where some reader would take it
/// for the name of the series.
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

/// A name without NUL: Prometheus' readers of text take it for the end of the page.
fn readable(name: &str) -> Cow<'_, str> {
    match name.contains('\0') {
        true => name.replace('\0', "_").into(),
        false => name.into(),
    }
}

/// A unit as OpenMetrics has it in `# UNIT`, where the name ends in it; empty otherwise.
pub(super) fn unit_of(family: &str, unit: &str) -> String {
    let words = prometheus_name("", unit, Instrument::UpDownCounter);
    let base = family.strip_suffix("_total").unwrap_or(family);
    match base.strip_suffix(words.as_str()) {
        Some(stem) if !words.is_empty() && stem.ends_with('_') => words,
        _ => String::new(),
    }
}

/// Runs of illegal characters become one underscore; underscores stay as they are.
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

/// The name as it is, with the unit, `_total` and `_ratio` where they belong and are not there yet.
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

/// The name without the suffix and the one character before it, whatever that is.
fn without_suffix<'a>(name: &'a str, suffix: &str) -> &'a str {
    name.strip_suffix(suffix)
        .and_then(|stem| stem.char_indices().next_back())
        .filter(|(end, _)| *end > 0)
        .map_or(name, |(end, _)| &name[..end])
}

#[cfg(test)]
mod tests;

//! The names of metrics and attributes in Prometheus.
//!
//! The rules are those of Prometheus' own translator for OTLP (prometheus/otlptranslator, strategy
//! "UnderscoreEscapingWithSuffixes"), so that a series has the same name if it is scraped and if it is pushed as OTLP. The
//! generator uses the rules for the definitions; the endpoint uses them for metrics without a definition.

use crate::definition::Instrument;

/// Returns the name of a metric's family in Prometheus: `gpu.power` in `W` is `gpu_power_watts`.
///
/// The name of a histogram has no `_bucket`, `_sum` or `_count`; the name of a counter has `_total`.
pub fn prometheus_name(name: &str, unit: &str, instrument: Instrument) -> String {
    let mut tokens: Vec<&str> = name
        .split(|c| !is_metric_char(c))
        .filter(|token| !token.is_empty())
        .collect();
    let (main, per) = unit_suffixes(unit);
    if !main.is_empty() && !tokens.contains(&main.as_str()) {
        tokens.push(&main);
    }
    if !per.is_empty() && !tokens.contains(&per.as_str()) {
        tokens.push(&per);
    }
    if instrument == Instrument::Counter {
        move_to_end(&mut tokens, "total");
    }
    if instrument == Instrument::Gauge && unit == "1" {
        move_to_end(&mut tokens, "ratio");
    }
    let joined = tokens.join("_");
    if joined.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{joined}")
    } else {
        joined
    }
}

/// Returns the name of an attribute's label in Prometheus: `train.component` is `train_component`.
///
/// Two keys may map to one label (`a.b` and `a_b`); the caller joins their values.
pub fn prometheus_label(key: &str) -> String {
    let label: String = key
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    match label.as_bytes() {
        [b'0'..=b'9', ..] => format!("key_{label}"),
        [b'_', b'_', ..] => label,
        [b'_', ..] => format!("key{label}"),
        _ => label,
    }
}

fn is_metric_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == ':'
}

fn move_to_end<'a>(tokens: &mut Vec<&'a str>, suffix: &'a str) {
    tokens.retain(|token| *token != suffix);
    tokens.push(suffix);
}

/// Returns the words for both sides of a unit's first `/`; a word is empty if its side adds nothing.
fn unit_suffixes(unit: &str) -> (String, String) {
    let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
    let main = suffix(main, main_word);
    let per = suffix(per, per_word);
    (main, if per.is_empty() { per } else { format!("per_{per}") })
}

/// Returns a unit's word: empty for annotations like `{token}`, the unit itself for unknown units.
fn suffix(unit: &str, word: fn(&str) -> Option<&'static str>) -> String {
    let unit = unit.trim();
    if unit.contains(['{', '}']) {
        return String::new();
    }
    let text = word(unit).unwrap_or(unit);
    // A colon is legal in a name, but not in a unit.
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.join("_")
}

fn main_word(unit: &str) -> Option<&'static str> {
    Some(match unit {
        "1" => "",
        "d" => "days",
        "h" => "hours",
        "min" => "minutes",
        "s" => "seconds",
        "ms" => "milliseconds",
        "us" => "microseconds",
        "ns" => "nanoseconds",
        "By" => "bytes",
        "KiBy" => "kibibytes",
        "MiBy" => "mebibytes",
        "GiBy" => "gibibytes",
        "TiBy" => "tibibytes",
        "KBy" => "kilobytes",
        "MBy" => "megabytes",
        "GBy" => "gigabytes",
        "TBy" => "terabytes",
        "m" => "meters",
        "V" => "volts",
        "A" => "amperes",
        "J" => "joules",
        "W" => "watts",
        "g" => "grams",
        "Cel" => "celsius",
        "Hz" => "hertz",
        "%" => "percent",
        _ => return None,
    })
}

fn per_word(unit: &str) -> Option<&'static str> {
    Some(match unit {
        "s" => "second",
        "m" => "minute",
        "h" => "hour",
        "d" => "day",
        "w" => "week",
        "mo" => "month",
        "y" => "year",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Instrument::{Counter, Gauge, Histogram, UpDownCounter};

    #[test]
    fn names_match_the_official_prometheus_translator() {
        let cases = [
            ("gpu.power", "W", Gauge, "gpu_power_watts"),
            ("hw.energy", "J", Counter, "hw_energy_joules_total"),
            ("gpu.utilization", "1", Gauge, "gpu_utilization_ratio"),
            ("gpu.fan.speed_ratio", "1", Gauge, "gpu_fan_speed_ratio"),
            ("hw.status", "1", UpDownCounter, "hw_status"),
            ("x", "1", Counter, "x_total"),
            ("train.tokens", "{token}", Counter, "train_tokens_total"),
            ("tokens.total.seen", "{token}", Counter, "tokens_seen_total"),
            (
                "train.step.duration",
                "s",
                Histogram,
                "train_step_duration_seconds",
            ),
            ("step.seconds", "s", Gauge, "step_seconds"),
            ("train.loss", "{loss}", Gauge, "train_loss"),
            (
                "train.throughput",
                "{token}/s",
                Gauge,
                "train_throughput_per_second",
            ),
            ("link.rate", "By/s", Gauge, "link_rate_bytes_per_second"),
            ("gpu.clock", "MHz", Gauge, "gpu_clock_MHz"),
            ("size", "kBy", Gauge, "size_kBy"),
            ("perf.a..b", "", Gauge, "perf_a_b"),
            ("1st.loss", "", Gauge, "_1st_loss"),
            ("flow", "m/s", Gauge, "flow_meters_per_second"),
            ("cost", "{flop}/{token}", Gauge, "cost"),
            ("odd", " W / s ", Gauge, "odd_watts_per_second"),
            ("acceleration", "m/s2", Gauge, "acceleration_meters_per_s2"),
            ("área", "s", Gauge, "rea_seconds"),
            ("job:rate", "weird:unit", Gauge, "job:rate_weird_unit"),
        ];
        for (name, unit, instrument, expected) in cases {
            assert_eq!(
                prometheus_name(name, unit, instrument),
                expected,
                "{name} in {unit}"
            );
        }
    }

    #[test]
    fn labels_are_legal_and_keep_their_underscores() {
        let cases = [
            ("train.component", "train_component"),
            ("a..b", "a__b"),
            ("0day", "key_0day"),
            ("_private", "key_private"),
            ("__name", "__name"),
            ("größe", "gr__e"),
        ];
        for (key, expected) in cases {
            assert_eq!(prometheus_label(key), expected, "{key}");
        }
    }
}

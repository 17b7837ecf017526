use Instrument::{Counter, Gauge, Histogram, UpDownCounter};
use Translation::{
    NoTranslation, NoUtf8EscapingWithSuffixes, UnderscoreEscapingWithSuffixes,
    UnderscoreEscapingWithoutSuffixes,
};

use super::*;

/// Translation, name, unit, instrument and result: the cases of prometheus/otlptranslator v1.0.0,
/// metric_namer_test.go, without those of a namespace.
#[rustfmt::skip]
const NAMES: &[(Translation, &str, &str, Instrument, Option<&str>)] = &[
    (UnderscoreEscapingWithoutSuffixes, "simple_metric", "", Gauge, Some("simple_metric")),
    (UnderscoreEscapingWithoutSuffixes, "metric@with#special$chars", "", Gauge, Some("metric_with_special_chars")),
    (UnderscoreEscapingWithoutSuffixes, "123metric", "", Gauge, Some("_123metric")),
    (UnderscoreEscapingWithoutSuffixes, "", "", Gauge, None),
    (UnderscoreEscapingWithoutSuffixes, "metric@@##$$name", "", Gauge, Some("metric_name")),
    (UnderscoreEscapingWithoutSuffixes, "@#$%", "", Gauge, None),
    (UnderscoreEscapingWithoutSuffixes, "@_#_$_%", "", Gauge, None),
    (UnderscoreEscapingWithSuffixes, "requests", "", Counter, Some("requests_total")),
    (UnderscoreEscapingWithSuffixes, "cpu_usage", "1", Gauge, Some("cpu_usage_ratio")),
    (UnderscoreEscapingWithSuffixes, "items", "1", Counter, Some("items_total")),
    (UnderscoreEscapingWithSuffixes, "response_time", "ms", Gauge, Some("response_time_milliseconds")),
    (UnderscoreEscapingWithSuffixes, "memory_usage", "By", Gauge, Some("memory_usage_bytes")),
    (UnderscoreEscapingWithSuffixes, "requests", "1/s", Gauge, Some("requests_per_second")),
    (UnderscoreEscapingWithSuffixes, "throughput", "By/s", Gauge, Some("throughput_bytes_per_second")),
    (UnderscoreEscapingWithSuffixes, "custom_metric", "custom_unit", Gauge, Some("custom_metric_custom_unit")),
    (UnderscoreEscapingWithSuffixes, "custom_metric", "{custom}", Gauge, Some("custom_metric")),
    (UnderscoreEscapingWithSuffixes, "custom_metric", "By/{custom}", Gauge, Some("custom_metric_bytes")),
    (UnderscoreEscapingWithSuffixes, "requests_total", "", Counter, Some("requests_total")),
    (UnderscoreEscapingWithSuffixes, "cpu_usage_ratio", "1", Gauge, Some("cpu_usage_ratio")),
    (UnderscoreEscapingWithSuffixes, "response_time_seconds", "s", Gauge, Some("response_time_seconds")),
    (NoUtf8EscapingWithSuffixes, "requests_total", "", Counter, Some("requests_total")),
    (NoUtf8EscapingWithSuffixes, "cpu_usage_ratio", "1", Gauge, Some("cpu_usage_ratio")),
    (NoUtf8EscapingWithSuffixes, "response_time_seconds", "s", Gauge, Some("response_time_seconds")),
    (NoUtf8EscapingWithSuffixes, "cpu_seconds_total", "s", Counter, Some("cpu_seconds_total")),
    (NoUtf8EscapingWithSuffixes, "otelcol_process_cpu_seconds", "s", Counter, Some("otelcol_process_cpu_seconds_total")),
    (UnderscoreEscapingWithoutSuffixes, "___", "", Gauge, Some("___")),
    (NoTranslation, "___", "", Gauge, Some("___")),
    (UnderscoreEscapingWithSuffixes, "metric__with__multiple__underscores", "unit__multiple__underscores", Gauge, Some("metric_with_multiple_underscores_unit_multiple_underscores")),
    (UnderscoreEscapingWithSuffixes, "custom_metric", "unit@with#special/chars", Gauge, Some("custom_metric_unit_with_special_per_chars")),
    (UnderscoreEscapingWithSuffixes, "@#$%", "", Gauge, None),
    (NoTranslation, "métric_with_ñ_chars", "", Gauge, Some("métric_with_ñ_chars")),
    (NoUtf8EscapingWithSuffixes, "requêsts", "", Counter, Some("requêsts_total")),
    (NoUtf8EscapingWithSuffixes, "cpu_usagé", "1", Gauge, Some("cpu_usagé_ratio")),
    (NoUtf8EscapingWithSuffixes, "respønse_time", "ms", Gauge, Some("respønse_time_milliseconds")),
    (NoUtf8EscapingWithSuffixes, "requêsts", "1/s", Gauge, Some("requêsts_per_second")),
    (NoUtf8EscapingWithSuffixes, "@#$%", "", Counter, Some("@#$%_total")),
    (UnderscoreEscapingWithSuffixes, "request_duration", "s", Histogram, Some("request_duration_seconds")),
    (UnderscoreEscapingWithSuffixes, "request_size", "By", Histogram, Some("request_size_bytes")),
    (UnderscoreEscapingWithSuffixes, "response_time", "ms", Histogram, Some("response_time_milliseconds")),
    (UnderscoreEscapingWithSuffixes, "active_connections", "", UpDownCounter, Some("active_connections")),
    (UnderscoreEscapingWithSuffixes, "unknown_metric", "", UpDownCounter, Some("unknown_metric")),
    (UnderscoreEscapingWithSuffixes, "uptime", "d", Gauge, Some("uptime_days")),
    (UnderscoreEscapingWithSuffixes, "duration", "h", Gauge, Some("duration_hours")),
    (UnderscoreEscapingWithSuffixes, "timeout", "min", Gauge, Some("timeout_minutes")),
    (UnderscoreEscapingWithSuffixes, "latency", "us", Gauge, Some("latency_microseconds")),
    (UnderscoreEscapingWithSuffixes, "precision_time", "ns", Gauge, Some("precision_time_nanoseconds")),
    (UnderscoreEscapingWithSuffixes, "cache_size", "KiBy", Gauge, Some("cache_size_kibibytes")),
    (UnderscoreEscapingWithSuffixes, "memory", "MiBy", Gauge, Some("memory_mebibytes")),
    (UnderscoreEscapingWithSuffixes, "storage", "GiBy", Gauge, Some("storage_gibibytes")),
    (UnderscoreEscapingWithSuffixes, "capacity", "TiBy", Gauge, Some("capacity_tibibytes")),
    (UnderscoreEscapingWithSuffixes, "transfer", "KBy", Gauge, Some("transfer_kilobytes")),
    (UnderscoreEscapingWithSuffixes, "download", "MBy", Gauge, Some("download_megabytes")),
    (UnderscoreEscapingWithSuffixes, "backup", "GBy", Gauge, Some("backup_gigabytes")),
    (UnderscoreEscapingWithSuffixes, "archive", "TBy", Gauge, Some("archive_terabytes")),
    (UnderscoreEscapingWithSuffixes, "distance", "m", Gauge, Some("distance_meters")),
    (UnderscoreEscapingWithSuffixes, "voltage", "V", Gauge, Some("voltage_volts")),
    (UnderscoreEscapingWithSuffixes, "current", "A", Gauge, Some("current_amperes")),
    (UnderscoreEscapingWithSuffixes, "energy", "J", Gauge, Some("energy_joules")),
    (UnderscoreEscapingWithSuffixes, "power", "W", Gauge, Some("power_watts")),
    (UnderscoreEscapingWithSuffixes, "weight", "g", Gauge, Some("weight_grams")),
    (UnderscoreEscapingWithSuffixes, "temperature", "Cel", Gauge, Some("temperature_celsius")),
    (UnderscoreEscapingWithSuffixes, "frequency", "Hz", Gauge, Some("frequency_hertz")),
    (UnderscoreEscapingWithSuffixes, "cpu_usage", "%", Gauge, Some("cpu_usage_percent")),
    (UnderscoreEscapingWithSuffixes, "requests", "1/m", Gauge, Some("requests_per_minute")),
    (UnderscoreEscapingWithSuffixes, "events", "1/h", Gauge, Some("events_per_hour")),
    (UnderscoreEscapingWithSuffixes, "transactions", "1/d", Gauge, Some("transactions_per_day")),
    (UnderscoreEscapingWithSuffixes, "reports", "1/w", Gauge, Some("reports_per_week")),
    (UnderscoreEscapingWithSuffixes, "invoices", "1/mo", Gauge, Some("invoices_per_month")),
    (UnderscoreEscapingWithSuffixes, "renewals", "1/y", Gauge, Some("renewals_per_year")),
    (UnderscoreEscapingWithSuffixes, "custom", "1/custom_unit", Gauge, Some("custom_per_custom_unit")),
    (UnderscoreEscapingWithSuffixes, "metric", "By/", Gauge, Some("metric_bytes")),
    (UnderscoreEscapingWithSuffixes, "metric", " By / s ", Gauge, Some("metric_bytes_per_second")),
    (UnderscoreEscapingWithSuffixes, "metric", "/", Gauge, Some("metric")),
    (UnderscoreEscapingWithSuffixes, "unsupported.metric.weird", "+=.:,!* & #", Gauge, Some("unsupported_metric_weird")),
    (UnderscoreEscapingWithSuffixes, "http.request.duration", "ms", Histogram, Some("http_request_duration_milliseconds")),
    (NoTranslation, "http.request.duration", "ms", Histogram, Some("http.request.duration")),
    (UnderscoreEscapingWithSuffixes, "http.requests", "1", Counter, Some("http_requests_total")),
    (NoTranslation, "http.requests", "1", Counter, Some("http.requests")),
];

#[test]
fn metric_names_match_the_table_of_the_reference_translator() {
    for &(translation, name, unit, instrument, expected) in NAMES {
        assert_eq!(
            family_name(translation, name, unit, instrument).as_deref(),
            expected,
            "{name:?} in {unit:?} by {translation:?}"
        );
    }
}

/// Key and label: the cases of label_namer_test.go with Prometheus' settings for OTLP. Runs of underscores
/// are kept, and a label that starts with one gets the prefix `key`.
const LABELS: &[(&str, Option<&str>)] = &[
    ("", None),
    ("label:with:colons", Some("label_with_colons")),
    ("LabelWithCapitalLetters", Some("LabelWithCapitalLetters")),
    ("label!with&special$chars)", Some("label_with_special_chars_")),
    (
        "label_with_foreign_characters_字符",
        Some("label_with_foreign_characters___"),
    ),
    ("label.with.dots", Some("label_with_dots")),
    ("123label", Some("key_123label")),
    (
        "_label_starting_with_underscore",
        Some("key_label_starting_with_underscore"),
    ),
    (
        "__label_starting_with_2underscores",
        Some("__label_starting_with_2underscores"),
    ),
    ("ようこそ", None),
    (
        "label.name__with&&special##chars",
        Some("label_name__with__special__chars"),
    ),
    ("trailing_underscores___", Some("trailing_underscores___")),
];

#[test]
fn label_names_match_the_table_of_the_reference_translator() {
    for &(key, expected) in LABELS {
        assert_eq!(
            label_name(UnderscoreEscapingWithSuffixes, key).as_deref(),
            expected,
            "{key:?}"
        );
    }
    assert_eq!(label_name(NoTranslation, "a.b").as_deref(), Some("a.b"));
}

#[test]
fn unit_is_written_only_if_the_name_ends_with_it() {
    for (family, unit, expected) in [
        ("gpu_power_watts", "W", "watts"),
        ("hw_energy_joules_total", "J", "joules"),
        ("rate_bytes_per_second", "By/s", "bytes_per_second"),
        ("train_loss", "{loss}", ""),
        ("gpu_power", "W", ""),
    ] {
        assert_eq!(unit_of(family, unit), expected);
    }
}

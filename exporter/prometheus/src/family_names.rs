//! The reserved names of a family: its own and those of its samples, in every format.
//!
//! OpenMetrics 1.0 ("MetricFamily"): no two families may share a name, and the suffix `_created` is reserved
//! too.

use super::store::family::FamilyKind;

/// Returns the names of a family whose samples have this name in text 0.0.4.
pub(super) fn exposed(name: &str, kind: FamilyKind) -> Vec<String> {
    let (base, suffixes): (&str, &[&str]) = match kind {
        FamilyKind::Gauge | FamilyKind::Untyped => (name, &[""]),
        FamilyKind::Counter => (
            name.strip_suffix("_total").unwrap_or(name),
            &["", "_total", "_created"],
        ),
        FamilyKind::Histogram => (name, &["", "_bucket", "_sum", "_count", "_created"]),
        FamilyKind::Summary => (name, &["", "_sum", "_count", "_created"]),
        FamilyKind::Info => (name.strip_suffix("_info").unwrap_or(name), &["", "_info"]),
    };
    suffixes.iter().map(|suffix| format!("{base}{suffix}")).collect()
}

//! The generated tables: found by name, numbered by index, and with the Prometheus names of the runtime translation.

use pulsetrain_semconv::{
    Attribute, AttributeKind, Instrument, Metric, attribute, event, metric, prometheus_name, span,
};

#[test]
fn every_definition_is_found_by_its_name() {
    assert!(
        metric::ALL
            .iter()
            .all(|found| metric::find(found.name) == Some(*found))
    );
    assert!(
        attribute::ALL
            .iter()
            .all(|found| attribute::find(found.name) == Some(*found))
    );
    assert!(
        span::ALL
            .iter()
            .all(|found| span::find(found.name) == Some(*found))
    );
    assert!(
        event::ALL
            .iter()
            .all(|found| event::find(found.name) == Some(*found))
    );
    assert_eq!(metric::find("train.losses"), None);
    assert_eq!(metric::find("").or(metric::find("zzz")), None);
}

#[test]
fn metric_ordinals_are_indices_in_the_table() {
    for (place, metric) in metric::ALL.iter().enumerate() {
        assert_eq!(usize::from(metric.ordinal), place, "{}", metric.name);
    }
}

#[test]
fn references_to_constants_are_static() {
    const TABLE: &[(&str, &Metric)] = &[("loss", &metric::TRAIN_LOSS)];
    let step: &'static Attribute = &attribute::TRAIN_STEP;
    assert_eq!((TABLE[0].1.name, step.name), ("train.loss", "train.step"));
}

#[test]
fn generated_prometheus_names_match_the_runtime_translation() {
    for metric in metric::ALL {
        let name = prometheus_name(metric.name, metric.unit, metric.instrument);
        assert_eq!(metric.prometheus_name, name);
    }
    assert_eq!(metric::GPU_POWER.prometheus_name, "gpu_power_watts");
    assert_eq!(metric::TRAIN_TOKENS.prometheus_name, "train_tokens_total");
}

#[test]
fn only_histograms_have_bounds_and_they_are_increasing() {
    // The points of this metric have their own bounds, so its definition must have none.
    let brings_its_own = |metric: &Metric| metric.name == metric::TRAIN_CUSTOM_DISTRIBUTION.name;
    for metric in metric::ALL {
        assert_eq!(
            metric.bounds.is_empty(),
            metric.instrument != Instrument::Histogram || brings_its_own(metric),
            "{}",
            metric.name
        );
        assert!(metric.bounds.is_sorted_by(|a, b| a < b), "{}", metric.name);
    }
}

#[test]
fn step_span_carries_the_values_of_its_step() {
    let carries = |key: &str| {
        span::TRAIN_STEP
            .attributes
            .iter()
            .any(|used| used.attribute.name == key)
    };
    for key in [
        "train.step",
        "train.loss",
        "train.grad_norm",
        "train.phase",
        "moe.router_entropy",
    ] {
        assert!(carries(key), "{key}");
    }
    assert!(
        matches!(attribute::TRAIN_PHASE.kind, AttributeKind::Enum(values) if values.contains(&"plateau"))
    );
}

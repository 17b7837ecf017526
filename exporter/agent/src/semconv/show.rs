//! The definition of a name of the registry, and the names of a key of a trainer's log.

use std::{collections::BTreeMap, fmt::Write};

use pulsetrain_conformance::nearest;
use pulsetrain_mapping::trainers;
use pulsetrain_semconv::{
    Attribute, AttributeKind, AttributeUse, Event, Metric, Requirement, Span, Stability, Upstream, attribute,
    event, metric, span,
};

use crate::failure::Failure;

/// Returns the entries of the registry for a name; a name may be of several kinds. For a key of a trainer's log, returns the
/// metrics that its values become.
pub(super) fn show(name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let by_prometheus = || {
        metric::ALL
            .iter()
            .copied()
            .find(|metric| metric.prometheus_name == name)
    };
    metric::find(name)
        .or_else(by_prometheus)
        .into_iter()
        .for_each(|found| show_metric(found, &mut text));
    attribute::find(name)
        .into_iter()
        .for_each(|found| show_attribute(found, &mut text));
    span::find(name)
        .into_iter()
        .for_each(|found| show_span(found, &mut text));
    event::find(name)
        .into_iter()
        .for_each(|found| show_event(found, &mut text));
    if text.is_empty() {
        text = show_key(name);
    }
    if text.is_empty() {
        Err(Failure::failed(unknown(name)))
    } else {
        Ok(text)
    }
}

/// Lists the metrics of a key by trainer; empty if no trainer has it.
fn show_key(key: &str) -> String {
    let mut trainers_by_metric: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for trainer in trainers() {
        let mapping = trainer.mapping();
        let metrics = mapping.resolve_anywhere(key);
        for metric in metrics.filter_map(|row| row.mapping.target.metric()) {
            let titles = trainers_by_metric.entry(metric.name).or_default();
            if !titles.contains(&mapping.title()) {
                titles.push(mapping.title());
            }
        }
    }
    let mut text = String::new();
    for (metric, titles) in trainers_by_metric {
        let _ = writeln!(text, "{key} is {metric} in logs of {}", titles.join(", "));
    }
    if !text.is_empty() {
        text.push_str("For the definition: pulsetrain semconv show NAME\n");
    }
    text
}

fn unknown(name: &str) -> String {
    let near = nearest(name)
        .map(|near| format!("; did you mean {near}?"))
        .unwrap_or_default();
    format!("{name:?} is not in the registry{near}\nTo see every name: pulsetrain semconv list")
}

fn show_metric(metric: &Metric, out: &mut String) {
    head("metric", metric.name, metric.brief, metric.stability, out);
    row("instrument", metric.instrument.as_str(), out);
    row("unit", metric.unit, out);
    row("value", &format!("{:?}", metric.number).to_lowercase(), out);
    row("prometheus", metric.prometheus_name, out);
    if !metric.bounds.is_empty() {
        row(
            "buckets",
            &metric
                .bounds
                .iter()
                .map(f64::to_string)
                .collect::<Vec<_>>()
                .join(" "),
            out,
        );
    }
    uses(metric.attributes, out);
    upstream(metric.upstream, out);
}

fn show_attribute(attribute: &Attribute, out: &mut String) {
    head(
        "attribute",
        attribute.name,
        attribute.brief,
        attribute.stability,
        out,
    );
    match attribute.kind {
        AttributeKind::Enum(members) => row("values", &members.join(", "), out),
        kind => row("type", &format!("{kind:?}").to_lowercase(), out),
    }
}

fn show_span(span: &Span, out: &mut String) {
    head("span", span.name, span.brief, span.stability, out);
    row("kind", &format!("{:?}", span.kind).to_lowercase(), out);
    uses(span.attributes, out);
    upstream(span.upstream, out);
}

fn show_event(event: &Event, out: &mut String) {
    head("event", event.name, event.brief, event.stability, out);
    uses(event.attributes, out);
    upstream(event.upstream, out);
}

fn head(kind: &str, name: &str, brief: &str, stability: Stability, out: &mut String) {
    let blank = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{blank}{kind} {name}\n  {brief}");
    let stability = match stability {
        Stability::Development => "development",
        Stability::ReleaseCandidate => "release candidate",
        Stability::Stable => "stable",
    };
    row("stability", stability, out);
}

fn row(name: &str, value: &str, out: &mut String) {
    let _ = writeln!(out, "  {name:<12} {value}");
}

fn uses(uses: &[AttributeUse], out: &mut String) {
    for AttributeUse {
        attribute,
        requirement,
    } in uses
    {
        let requirement = match requirement {
            Requirement::Required => "required",
            Requirement::ConditionallyRequired => "conditionally required",
            Requirement::Recommended => "recommended",
            Requirement::OptIn => "opt-in",
        };
        row("attribute", &format!("{} ({requirement})", attribute.name), out);
    }
}

fn upstream(upstream: &[Upstream], out: &mut String) {
    for Upstream { system, names } in upstream {
        row("from", &format!("{system}: {}", names.join(", ")), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_name_in_prometheus_too() {
        let by_name = show("train.step.duration").unwrap();
        assert_eq!(show("train_step_duration_seconds").unwrap(), by_name);
        assert!(by_name.contains("histogram") && by_name.contains("surogate"));
    }

    #[test]
    fn trainer_key_lookup_shows_its_metrics() {
        let text = show("timing_s/gen").unwrap();
        assert!(
            text.contains("timing_s/gen is perf.rollout_time in logs of verl"),
            "{text}"
        );
        let text = show("loss").unwrap();
        assert!(text.contains("loss is train.loss in logs of"), "{text}");
    }

    #[test]
    fn misspelled_name_suggests_the_closest_match() {
        let Err(Failure::Failed(problem)) = show("train.los") else {
            panic!("it is not in the registry")
        };
        let message = problem.to_string();
        assert!(message.contains("did you mean train.loss?"), "{message}");
    }
}

//! The TraceQL queries of dashboards in the fleet's Tempo, and the link from an exemplar to the trace of its step.

#![allow(clippy::print_stdout, reason = "the test prints what it found of each panel")]

use pulsetrain_grafana::Language;
use pulsetrain_tests::{
    Prometheus, Tempo,
    otlp::{list, spans, time},
    wait_until,
};
use serde_json::Value;

use crate::grafana::{
    fleet::Fleet,
    queries::{dashboards, queries, substitute, variables},
};

/// Returns an error for each query without traces, and for each Prometheus whose exemplar of a slow step has no trace.
pub(crate) fn check(fleet: &Fleet) -> Vec<String> {
    let Some(tempo) = &fleet.tempo else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let mut asked = 0;
    for (name, dashboard) in dashboards() {
        let queries = queries(&name, &dashboard);
        let mut traceql = queries
            .iter()
            .filter(|query| query.language == Language::TraceQl)
            .peekable();
        if traceql.peek().is_none() {
            continue;
        }
        let values = variables(&dashboard, &fleet.scraped, "scrape", &mut errors);
        for query in traceql {
            let found = tempo.search(&substitute(&query.expr, &values)).len();
            println!("Tempo  {name} / {}: {found} traces", query.place);
            asked += 1;
            if found == 0 {
                errors.push(format!("{name} / {}: no traces: {}", query.place, query.expr));
            }
        }
    }
    assert!(asked > 0, "there are queries in TraceQL");
    for (way, prometheus) in fleet.backends() {
        errors.extend(follow_exemplar(way, prometheus, tempo).err());
    }
    errors
}

/// Follows the exemplar of the slowest step to its trace, which must have a step of that duration.
fn follow_exemplar(way: &str, prometheus: &Prometheus, tempo: &Tempo) -> Result<(), String> {
    let series = prometheus.exemplars("train_step_duration_seconds_bucket");
    let exemplars = series.iter().flat_map(|series| list(&series["exemplars"]));
    let seconds = |exemplar: &Value| {
        exemplar["value"]
            .as_str()
            .and_then(|value| value.parse::<f64>().ok())
    };
    let slowest = exemplars
        .filter_map(|exemplar| Some((seconds(exemplar)?, exemplar["labels"]["trace_id"].as_str()?)))
        .max_by(|left, right| left.0.total_cmp(&right.0));
    let Some((seconds, id)) = slowest else {
        return Err(format!(
            "{way}: train_step_duration_seconds_bucket has no exemplars"
        ));
    };
    wait_until(
        &format!("Tempo has the trace {id} of an exemplar by {way}"),
        || tempo.trace(id).is_some(),
    );
    let trace = tempo.trace(id).expect("it was there");
    let durations = step_durations(&trace);
    println!("{way:6} exemplar of {seconds} s: trace {id} with steps of {durations:?} s");
    if durations.iter().any(|duration| (duration - seconds).abs() < 1e-3) {
        Ok(())
    } else {
        Err(format!(
            "{way}: trace {id} has steps of {durations:?} s, its exemplar is of {seconds} s"
        ))
    }
}

/// Returns the durations of the spans `train.step` of a trace, in seconds.
fn step_durations(trace: &Value) -> Vec<f64> {
    spans(trace)
        .filter(|span| span["name"] == "train.step")
        .map(|span| (time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano")) as f64 / 1e9)
        .collect()
}

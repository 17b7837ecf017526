//! Tests of the ends of series, after a slow pass and after one that hung.

use std::{sync::Arc, time::Duration};

use pulsetrain_otlp::{UnixNanos, write::Envelope};
use pulsetrain_semconv::{
    attribute::GPU_POWER_READING,
    metric::{GPU_POWER, GPU_TEMPERATURE_LIMIT},
};
use serde_json::Value;

use super::*;

const SECOND: u64 = 1_000_000_000;
/// The second at which the tests begin.
const BEGIN: u64 = 1_800_000_000;

/// Returns the time of a second after the beginning.
fn at(second: u64) -> UnixNanos {
    UnixNanos((BEGIN + second) * SECOND)
}

/// A store with its written points.
struct PendingPoints {
    store: SeriesStore,
    carried: EntityAttributes,
}

impl PendingPoints {
    fn new() -> Self {
        Self {
            store: SeriesStore::new(Duration::from_secs(1)),
            carried: Arc::new([]),
        }
    }

    /// Observes the power and the limit of a GPU, read at one second; the power was measured at another.
    fn read(&mut self, gpu: u32, second: u64, measured: u64) {
        let of_gpu = |metric| ObservationContext {
            subject: gpu,
            ..ObservationContext::of_host(&self.carried, metric, at(second))
        };
        let power = ObservationContext {
            driver_unix_nanos: at(measured),
            cadence: Cadence::Tick,
            ..of_gpu(&GPU_POWER)
        };
        self.store.observe(power, Observation::Now(500.0));
        let limit = of_gpu(&GPU_TEMPERATURE_LIMIT);
        self.store.observe(limit, Observation::Held(90.0));
    }

    fn sweep(&mut self, pass: u64, now: u64) {
        self.store.sweep(at(pass), at(now), |_| false);
    }

    /// Returns the points since the last call by their metrics.
    fn points_so_far(&mut self) -> Vec<(String, u64, bool)> {
        let mut found = points(&mut self.store, |metric, _| &metric["name"]);
        found.sort();
        found
    }

    /// Returns the ends since the last call.
    fn ends_so_far(&mut self) -> Vec<(String, u64, bool)> {
        let points = self.points_so_far().into_iter();
        points.filter(|(_, _, ends)| *ends).collect()
    }
}

/// Returns the points since the last call: the text that `name` selects in the metric or the point, the nanoseconds since the
/// beginning, and whether it is an end.
fn points(
    store: &mut SeriesStore,
    name: for<'a> fn(&'a Value, &'a Value) -> &'a Value,
) -> Vec<(String, u64, bool)> {
    let Some(encoded) = store.finish(&Envelope::new(&[], "test", "1", "")) else {
        return Vec::new();
    };
    let mut json = Vec::new();
    pulsetrain_otlp::json::encode(encoded.signal, &encoded.bytes, &mut json).expect("it is OTLP");
    let message: Value = serde_json::from_slice(&json).expect("it is JSON");
    let metrics = &message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut found = Vec::new();
    for metric in metrics.as_array().expect("there are metrics") {
        for point in metric["gauge"]["dataPoints"].as_array().expect("gauges") {
            let time: u64 = text(&point["timeUnixNano"]).parse().expect("a time");
            let name = text(name(metric, point));
            found.push((name, time - BEGIN * SECOND, point["flags"] == 1));
        }
    }
    found
}

fn point(name: &str, nanos: u64, ends: bool) -> (String, u64, bool) {
    (name.to_owned(), nanos, ends)
}

#[test]
fn slow_pass_does_not_end_series_that_it_read() {
    let mut written = PendingPoints::new();
    for pass in [0, 10] {
        written.read(0, pass, pass);
        written.read(1, pass + 8, pass + 8);
        written.sweep(pass, pass + 8);
    }
    assert_eq!(written.ends_so_far().len(), 0);
    written.read(1, 30, 30);
    written.sweep(30, 30);
    assert_eq!(written.ends_so_far(), [point("gpu.power", 30 * SECOND, true)]);
}

#[test]
fn reading_older_than_the_end_of_its_series_is_not_sent() {
    let mut written = PendingPoints::new();
    written.read(0, 0, 0);
    written.store.end(at(10), |_, _| true);
    assert_eq!(written.ends_so_far().len(), 2);
    // The pass that hung ends: it had read the first GPU long ago.
    written.read(0, 3, 3);
    written.sweep(3, 60);
    assert_eq!(
        written.points_so_far(),
        [point("gpu.temperature_limit", 10 * SECOND + 1, false)],
        "what never changes is true all the same"
    );
    written.read(0, 61, 61);
    written.sweep(61, 61);
    assert_eq!(written.points_so_far(), [point("gpu.power", 61 * SECOND, false)]);
}

#[test]
fn value_measured_before_the_series_ended_is_sent_with_the_read_time() {
    let mut written = PendingPoints::new();
    written.read(0, 0, 0);
    written.store.end(at(10), |_, _| true);
    written.points_so_far();
    written.read(0, 12, 8);
    assert!(
        written
            .points_so_far()
            .contains(&point("gpu.power", 12 * SECOND, false))
    );
}

#[test]
fn series_ends_before_it_restarts_with_a_different_reading_label() {
    static INSTANT: Labels = Labels::fixed(&[(&GPU_POWER_READING, "instant")]);
    static AVERAGE: Labels = Labels::fixed(&[(&GPU_POWER_READING, "average")]);
    let mut store = SeriesStore::new(Duration::from_secs(1));
    let carried: EntityAttributes = Arc::new([]);
    let mut read = |second: u64, labels: Labels| {
        let place = ObservationContext {
            labels,
            cadence: Cadence::Tick,
            ..ObservationContext::of_host(&carried, &GPU_POWER, at(second))
        };
        store.observe(place, Observation::Now(500.0));
    };
    read(0, INSTANT);
    // The preferred reading of a pass is the first.
    read(0, AVERAGE);
    read(1, AVERAGE);
    read(2, AVERAGE);
    read(3, INSTANT);
    let points = points(
        &mut store,
        |_, point| &point["attributes"][0]["value"]["stringValue"],
    );
    let points = points
        .into_iter()
        .map(|(reading, nanos, ends)| (reading, nanos / SECOND, ends));
    assert_eq!(
        points.collect::<Vec<_>>(),
        [
            point("instant", 0, false),
            point("instant", 1, true),
            point("average", 1, false),
            point("average", 2, false),
            point("average", 3, true),
            point("instant", 3, false),
        ]
    );
}

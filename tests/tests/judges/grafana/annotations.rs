//! Annotations of a job at a realistic pace, in a Prometheus that scrapes it and in one that receives it by OTLP.

#![allow(clippy::print_stdout, reason = "the test prints the marks of each annotation")]

use std::{path::Path, time::Duration};

use pulsetrain_demo::DemoConfig;
use pulsetrain_otlp::UnixNanos;
use pulsetrain_tests::{Folder, Judge, Prometheus, some_or_return};

use crate::grafana::{
    alerts::grafana,
    history::{self, Finished},
    queries::{dashboards, queries},
};

/// A time in the past, in Unix seconds.
const START: u64 = 1_767_225_600;
const SCRAPE_SECONDS: u64 = 15;
/// Grafana's `$__rate_interval` for this scrape interval.
const RATE_INTERVAL_SECONDS: u64 = 60;
/// The interval between two evaluations of a query, in seconds.
const STEP_SECONDS: u64 = 5;
/// Steps of two seconds, so that events of one kind are minutes apart: a counter has no second sample in the window of the
/// query. The second fault of each kind comes within five minutes of the first, while Prometheus still returns the old value.
const FAULTS: [&str; 4] = [
    "gradient-spike@100",
    "gradient-spike@180",
    "xid@400:rank=1",
    "xid@500:rank=1",
];

/// The start and end of a mark, in Unix seconds.
type Mark = (u64, u64);

/// The same job, stored through one of two paths.
struct Stored {
    way: &'static str,
    finished: Finished,
    prometheus: Prometheus,
    _folder: Folder,
}

#[test]
fn annotations_mark_every_event_by_scrape_and_by_otlp() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let (_, dashboard) = dashboards()
        .into_iter()
        .find(|(name, _)| name == "run-overview")
        .expect("the dashboard of a run");
    let asked = queries("run-overview", &dashboard);
    let expr = |title: &str| {
        let place = format!("annotation {title}");
        let query = asked
            .iter()
            .find(|query| query.place == place)
            .expect("an annotation");
        query
            .expr
            .replace("$__rate_interval", &format!("{RATE_INTERVAL_SECONDS}s"))
            .replace("$run", ".+")
    };
    for stored in [true, false].map(|is_scraped| Stored::new(&program, is_scraped)) {
        let (way, truths) = (stored.way, &stored.finished.truths);
        for (title, fault) in [("XID error", "xid"), ("Anomaly", "gradient-spike")] {
            let marks = stored.marks(&expr(title));
            println!("{way}: {title}: {marks:?}");
            let faults: Vec<u64> = truths
                .iter()
                .filter(|truth| truth.fault.name == fault)
                .map(|truth| truth.start_unix_nanos.0 / 1_000_000_000)
                .collect();
            assert_eq!(
                marks.len(),
                faults.len(),
                "{way}: {title}: {marks:?} of {faults:?}"
            );
            for (mark, fault) in marks.iter().zip(faults) {
                let soon = fault..=fault + SCRAPE_SECONDS + 2 * STEP_SECONDS;
                assert!(soon.contains(&mark.0), "{way}: {title}: {mark:?} of {fault}");
            }
        }
        for (title, counter) in [
            ("Evaluation", "eval_duration_seconds_count"),
            ("Checkpoint", "perf_checkpoint_time_seconds_count"),
        ] {
            let marks = stored.marks(&expr(title));
            let count = stored.last(counter);
            println!("{way}: {title}: {count} of {marks:?}");
            assert!(count > 2.0, "{way}: {title}: {count}");
            assert_eq!(marks.len(), count as usize, "{way}: {title}: {marks:?}");
        }
    }
}

impl Stored {
    fn new(program: &Path, is_scraped: bool) -> Self {
        let folder = Folder::new();
        let config = DemoConfig {
            ranks: 2,
            steps: 660,
            step_time: Duration::from_secs(2),
            gpu_interval: Duration::from_secs(15),
            start_unix_nanos: UnixNanos(START * 1_000_000_000),
            faults: FAULTS
                .map(|fault| fault.parse().expect("a fault of the demo"))
                .into(),
            ..DemoConfig::default()
        };
        let names = [
            "gpu_xid_errors_total",
            "train_anomalies_total",
            "eval_duration_seconds_count",
            "perf_checkpoint_time_seconds_count",
        ];
        let file = folder.path("job.om");
        let finished = history::run(&config, &names.map(str::to_owned).into(), &file);
        if is_scraped {
            history::scrape(&file, Duration::from_secs(SCRAPE_SECONDS));
        }
        let recording = grafana().join("alerts/pulsetrain.recording.yaml");
        let prometheus = history::store(program, &folder, &[file], &recording, (START, START + 60));
        Self {
            way: if is_scraped { "scrape" } else { "OTLP" },
            finished,
            prometheus,
            _folder: folder,
        }
    }

    /// Returns the time ranges in which the query had a value without gaps, ordered by time.
    fn marks(&self, expr: &str) -> Vec<Mark> {
        let (start, end) = (self.finished.start.to_string(), self.finished.end.to_string());
        let series = self
            .prometheus
            .range(expr, &start, &end, &STEP_SECONDS.to_string());
        let mut times: Vec<u64> = series
            .iter()
            .flatten()
            .map(|(millis, _)| millis / 1_000)
            .collect();
        times.sort_unstable();
        let mut marks: Vec<Mark> = Vec::new();
        for time in times {
            match marks.last_mut() {
                Some((_, end)) if time <= *end + STEP_SECONDS => *end = time,
                _ => marks.push((time, time)),
            }
        }
        marks
    }

    /// Returns the last value of a counter, which is the same for all ranks.
    fn last(&self, counter: &str) -> f64 {
        let expr = format!("max(last_over_time({counter}[2h]))");
        self.prometheus
            .value_at(&expr, self.finished.end)
            .expect("the counter has a sample")
    }
}

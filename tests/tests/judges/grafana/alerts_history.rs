//! Every alert on simulated jobs in a real Prometheus: silent on a healthy day, firing during its fault, resolved after it.

use std::{collections::BTreeSet, thread, time::Duration};

use pulsetrain_demo::{DemoConfig, Fault, Workload};
use pulsetrain_grafana::{
    Vocabulary,
    alert::{Alert, Rules},
};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_tests::{Folder, Judge, Prometheus, some_or_return};

use crate::grafana::{
    alerts::{grafana, rules},
    history::{self, Finished},
    jobs::Job,
};

/// The start of the first job, in Unix seconds; the others follow one after another.
const START: u64 = 1_767_225_600;
/// The sampling interval of the GPUs; shorter if they hang, because the verdict requires readings of the last 30 s.
const GPU_INTERVAL: Duration = Duration::from_secs(120);
const HANGING_GPU_INTERVAL: Duration = Duration::from_secs(20);
/// The evaluation interval of an expression, in seconds.
const STEP: u64 = 60;

/// Alerts on symptoms of a slow or interrupted run, for any cause.
const CONSEQUENCES: [&str; 5] = [
    "TrainMfuLow",
    "TrainStepTimeUp",
    "TrainThroughputLow",
    "TrainEnergyPerTokenUp",
    "TrainGoodputLow",
];

/// A job and the alerts that it must cause.
struct Scenario<'a> {
    name: String,
    config: DemoConfig,
    alerts: Vec<&'a Alert>,
}

impl Scenario<'_> {
    fn is_healthy(&self) -> bool {
        self.config.faults.is_empty()
    }

    /// Returns whether an alert other than those of the scenario may fire: for its own fault, or because the run is slow.
    fn allows(&self, alert: &Alert) -> bool {
        let row = |fault: &String| fault.parse::<Fault>().map(|fault| fault.row).ok();
        let own = alert.demo.faults.first().and_then(row);
        let is_cause = |fault: &Fault| {
            let is_verdict = |kind| alert.expr.contains(&format!("{kind:?}"));
            Some(fault.row) == own || fault.row.verdict.is_some_and(is_verdict)
        };
        CONSEQUENCES.contains(&alert.name.as_str()) || self.config.faults.iter().any(is_cause)
    }
}

#[test]
fn alerts_are_silent_on_a_healthy_day_and_follow_the_faults_of_the_demo() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let rules = rules();
    let mut scenarios = scenarios(&rules);
    let mut start = START;
    for (seed, scenario) in (0..).zip(&mut scenarios) {
        let config = &mut scenario.config;
        config.seed = seed;
        config.start_unix_nanos = UnixNanos(start * 1_000_000_000);
        // Twice the duration of the steps also covers the delays of the faults.
        start += config.steps * config.step_time.as_secs() * 2 + 2 * 3_600;
    }
    let (folder, names) = (Folder::new(), metrics(&rules));
    let file = |scenario: &Scenario<'_>| folder.path(&format!("{}.om", scenario.config.seed));
    let finished: Vec<Finished> = thread::scope(|scope| {
        let run = |scenario| {
            let (file, names) = (file(scenario), &names);
            scope.spawn(move || history::run(&scenario.config, names, &file))
        };
        let running: Vec<_> = scenarios.iter().map(run).collect();
        let joined = running.into_iter().map(|job| job.join().expect("the job ends"));
        joined.collect()
    });
    let files: Vec<_> = scenarios.iter().map(file).collect();
    let recording = grafana().join("alerts/pulsetrain.recording.yaml");
    let prometheus = history::store(&program, &folder, &files, &recording, (START, start));
    for recording in &rules.recordings {
        let (first, last) = (START.to_string(), start.to_string());
        let series = prometheus.range(&recording.record, &first, &last, "600").len();
        println!("{}: {series} series", recording.record);
        assert!(series > 0, "{} is empty: {}", recording.record, recording.expr);
    }
    let mut wrong = Vec::new();
    for (scenario, finished) in scenarios.iter().zip(&finished) {
        for alert in rules.alerts() {
            let expected = scenario.alerts.iter().any(|expected| expected.name == alert.name);
            let firing = Firing::new(alert, &prometheus, finished);
            wrong.extend(
                firing
                    .wrong(alert, scenario, finished, expected)
                    .map(|what| format!("{} in `{}`: {what}: {firing:?}", alert.name, scenario.name)),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Six steps of a spike are three seconds at two steps per second, and the verdict lasts for seven: at the usual intervals most
/// scrapes miss it.
#[test]
fn spike_between_two_scrapes_fires_an_alert() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let (folder, rules) = (Folder::new(), rules());
    let names = ["train_verdicts", "train_opened_verdicts_total"]
        .map(str::to_owned)
        .into();
    // The spike at step 40 ends before the first scrape of a Prometheus with an interval of one minute.
    let jobs = [
        ("TrainLossSpike", "loss-spike@303", 15),
        ("TrainLossSpike", "loss-spike@303", 60),
        ("TrainLossSpike", "loss-spike@40", 60),
        ("TrainGradNormSpike", "gradient-spike@303", 15),
    ];
    let run = |seed: u64, fault: &str, interval: u64| {
        let config = DemoConfig {
            ranks: 1,
            steps: 1_800,
            step_time: Duration::from_millis(500),
            gpu_interval: GPU_INTERVAL,
            start_unix_nanos: UnixNanos((START + 86_400 * seed) * 1_000_000_000),
            seed,
            faults: vec![fault.parse().expect("a fault of the demo")],
            ..DemoConfig::default()
        };
        let file = folder.path(&format!("{seed}.om"));
        let finished = history::run(&config, &names, &file);
        history::scrape(&file, Duration::from_secs(interval));
        (finished, file)
    };
    let finished: Vec<_> = thread::scope(|scope| {
        let run = &run;
        let spawn = |(seed, (_, fault, interval))| scope.spawn(move || run(seed, fault, interval));
        let running: Vec<_> = (0..).zip(jobs).map(spawn).collect();
        running
            .into_iter()
            .map(|job| job.join().expect("the job ends"))
            .collect()
    });
    let files: Vec<_> = finished.iter().map(|(_, file)| file.clone()).collect();
    let recording = grafana().join("alerts/pulsetrain.recording.yaml");
    let prometheus = history::store(&program, &folder, &files, &recording, (START, START + 60));
    for ((alert, _, interval), (finished, _)) in jobs.into_iter().zip(&finished) {
        let alert = rules.alerts().find(|of| of.name == alert).expect("the alert");
        let spike = finished.truths[0].start_unix_nanos.0 / 1_000_000_000;
        let (from, to) = (finished.start.to_string(), finished.end.to_string());
        let series = prometheus.range(&alert.expr, &from, &to, "15");
        let firing: Vec<u64> = series
            .iter()
            .flatten()
            .map(|(millis, _)| millis / 1_000)
            .collect();
        let what = format!("{} every {interval} s, spike at {spike}: {firing:?}", alert.name);
        let (Some(first), Some(last)) = (firing.first(), firing.last()) else {
            panic!("{what}");
        };
        assert!((spike..=spike + interval + 20).contains(first), "{what}");
        assert!(
            (spike + 540..=spike + 600 + 2 * interval).contains(last),
            "{what}"
        );
    }
}

/// Returns a healthy day of each workload and the jobs with faults.
fn scenarios(rules: &Rules) -> Vec<Scenario<'_>> {
    let healthy = |workload: Workload| Scenario {
        name: format!("healthy day of {workload}"),
        config: DemoConfig {
            workload,
            ranks: 2,
            steps: 24 * 60,
            step_time: Duration::from_secs(60),
            gpu_interval: GPU_INTERVAL,
            ..DemoConfig::default()
        },
        alerts: Vec::new(),
    };
    let mut scenarios = vec![healthy(Workload::Sft), healthy(Workload::Rl)];
    scenarios.extend(Job::all(rules).into_iter().map(|job| Scenario {
        name: job.faults.join(" "),
        config: config(&job),
        alerts: job.alerts,
    }));
    scenarios
}

/// Returns a job of some hours with faults.
fn config(job: &Job<'_>) -> DemoConfig {
    let hangs = job
        .faults()
        .iter()
        .any(|fault| fault.row.name == "collective-hang");
    DemoConfig {
        workload: job.workload,
        steps: job.last_step() + 160,
        step_time: Duration::from_secs(15),
        gpu_interval: if hangs { HANGING_GPU_INTERVAL } else { GPU_INTERVAL },
        ranks: job.ranks,
        faults: job.faults(),
        ..DemoConfig::default()
    }
}

/// Returns the names of the series that the rules query.
fn metrics(rules: &Rules) -> BTreeSet<String> {
    let mut vocabulary = Vocabulary::default();
    for recording in &rules.recordings {
        vocabulary.add(&recording.record);
    }
    let expressions = rules
        .alerts()
        .map(|alert| &alert.expr)
        .chain(rules.recordings.iter().map(|recording| &recording.expr));
    expressions
        .flat_map(|expression| {
            vocabulary
                .check(expression)
                .expect("the definitions are right")
                .metrics
        })
        .collect()
}

/// The times at which the expression of an alert holds, in seconds since the start of the job.
#[derive(Debug, Default)]
struct Firing {
    /// The start of the first interval that is long enough for the alert to fire, and the time at which it fires.
    first: Option<(u64, u64)>,
    /// The last time at which the alert fires.
    last: Option<u64>,
    /// The duration of the longest interval, in seconds.
    longest: Option<u64>,
}

impl Firing {
    fn new(alert: &Alert, prometheus: &Prometheus, finished: &Finished) -> Self {
        let (start, end) = (finished.start, finished.end + 4_000);
        let series = prometheus.range(
            &alert.expr,
            &start.to_string(),
            &end.to_string(),
            &STEP.to_string(),
        );
        let hold = seconds(alert.pending.as_deref().unwrap_or("0s"));
        let mut firing = Self::default();
        for samples in series {
            let mut stretch: Option<(u64, u64)> = None;
            for (millis, _) in samples {
                let at = millis / 1000 - start;
                let since = stretch
                    .filter(|(_, last)| last + STEP == at)
                    .map_or(at, |(first, _)| first);
                stretch = Some((since, at));
                firing.longest = firing.longest.max(Some(at - since));
                if at - since >= hold {
                    if firing.first.is_none_or(|(first, _)| first >= since) {
                        firing.first = Some((since, at));
                    }
                    firing.last = firing.last.max(Some(at));
                }
            }
        }
        firing
    }

    /// Returns the error of the alert in a scenario, or `None`.
    fn wrong(
        &self,
        alert: &Alert,
        scenario: &Scenario<'_>,
        finished: &Finished,
        expected: bool,
    ) -> Option<String> {
        match (self.first, expected) {
            (Some(_), _) if scenario.is_healthy() => Some("it fires on a healthy day".to_owned()),
            (None, true) => Some("it does not fire".to_owned()),
            (Some((since, _)), true) => {
                let fault = finished
                    .truths
                    .first()
                    .map(|truth| truth.start_unix_nanos.0 / 1_000_000_000 - finished.start);
                let lasts = finished.truths.iter().any(|truth| truth.end_unix_nanos.is_none());
                // A fault that lasts until the end of the job ends with its series.
                let off = if lasts { finished.end + 3_900 } else { finished.end } - finished.start;
                if fault.is_some_and(|fault| since < fault) {
                    Some(format!("it begins before the fault at {fault:?}"))
                } else if self.last >= Some(off) {
                    Some(format!("it has not resolved at {off}"))
                } else {
                    None
                }
            }
            (Some(_), false) if !scenario.allows(alert) => {
                Some("it fires for a fault of another kind".to_owned())
            }
            _ => None,
        }
    }
}

/// Parses a duration with a single unit, such as `15m`, into seconds.
fn seconds(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: u64 = number.parse().expect("a duration of one unit");
    match unit {
        "s" => number,
        "m" => number * 60,
        "h" => number * 3_600,
        _ => panic!("{text} has another unit"),
    }
}

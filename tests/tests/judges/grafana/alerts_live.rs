//! The way of alerts in real time: simulated jobs with its faults, a Prometheus that scrapes them and evaluates the rules,
//! an Alertmanager that notifies. Every duration of the rules is a sixtieth, so that ten minutes are ten seconds, and a job at
//! rate 2 has as many steps in them as one of 15 seconds a step.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    time::Duration,
};

use pulsetrain_grafana::{Thresholds, alert::Rules};
use pulsetrain_tests::{
    Alertmanager, Answer, FakeEndpoint, Folder, Judge, Process, Prometheus, command, free_port, wait_at_most,
    wait_until,
};
use serde_json::Value;

use crate::grafana::{
    alerts::{grafana, rules},
    jobs::Job,
};

/// By which durations are divided.
const FACTOR: f64 = 60.0;
/// Steps of a job that outlasts the test.
const ENDLESS: u64 = 100_000;
/// The alert that the end of the jobs makes fire.
const AT_THE_END: &str = "PulsetrainDown";
/// How long the jobs need at most until all alerts have fired and resolved.
const ROUND: Duration = Duration::from_secs(290);
/// How often the jobs of alerts are started that have not fired and resolved: rules in short time miss what happens while a busy
/// machine does not answer a scrape.
const ROUNDS: usize = 3;
/// Notifications of one alert that fires, at most: one that flaps has more.
const NOTIFICATIONS: usize = 4;
/// Alerts whose jobs run each time, next to the jobs that have the faults of several alerts.
const ALWAYS: [&str; 3] = ["TrainDataStarved", "TrainMemoryLeak", "GpuThrottled"];
/// Cause and consequence of the same run: an inhibit rule silences the consequence while the cause fires.
const CAUSE: &str = "TrainDataStarved";
const CONSEQUENCE: &str = "TrainThroughputLow";
/// Jobs at once: as many as two cores simulate in time.
const AT_ONCE: usize = 8;
/// With this variable also the other faults that need a job of their own, which takes some minutes more.
const ALL: &str = "PULSETRAIN_ALL_ALERTS";

#[test]
fn alerts_with_a_fault_reach_alertmanager_and_resolve() {
    let (Some(prometheus), Some(alertmanager)) = (
        Judge::Prometheus.require_or_skip(),
        Judge::Alertmanager.require_or_skip(),
    ) else {
        return;
    };
    let folder = Folder::new();
    let inhibit = fs::read_to_string(grafana().join("alerts/alertmanager/inhibit_rules.yml"));
    let inhibit = inhibit.expect("the rules of Alertmanager can be read");
    let [all, inhibited] = ["", &inhibit].map(|rules| Notified::start(&alertmanager, rules));
    let rules = rules();
    let is_all = env::var_os(ALL).is_some();
    let mut jobs = Job::all(&rules);
    jobs.retain(|job| {
        let is_followed = job
            .alerts
            .iter()
            .any(|alert| ALWAYS.contains(&alert.name.as_str()));
        is_all || job.is_shared || is_followed
    });
    let pages: Vec<String> = jobs
        .iter()
        .map(|_| format!("127.0.0.1:{}", free_port()))
        .collect();
    let configuration = configuration(&folder, [&all, &inhibited], &pages);
    let _prometheus = Prometheus::start_on(&prometheus, &folder.path("data"), &configuration);
    let alerts = jobs.iter().flat_map(|job| &job.alerts);
    let mut missing: BTreeSet<&str> = alerts.map(|alert| alert.name.as_str()).collect();
    let mut silenced = BTreeSet::new();
    for round in 1..=ROUNDS {
        let is_missing = |job: &&(usize, &Job<'_>)| {
            let mut alerts = job.1.alerts.iter();
            alerts.any(|alert| missing.contains(alert.name.as_str()))
        };
        let of_round: Vec<_> = jobs.iter().enumerate().filter(|job| is_missing(&job)).collect();
        println!(
            "round {round}: {} jobs for {} alerts",
            of_round.len(),
            missing.len()
        );
        for together in of_round.chunks(AT_ONCE) {
            // Some end by themselves.
            let _running: Vec<Process> = together
                .iter()
                .map(|(seed, job)| start(job, *seed, &pages[*seed], &folder))
                .collect();
            let alerts = together.iter().flat_map(|(_, job)| &job.alerts);
            let names: BTreeSet<&str> = alerts.map(|alert| alert.name.as_str()).collect();
            wait_at_most(ROUND, || {
                let alerts = all.alerts();
                missing.retain(|name| !has_resolved(&alerts, name));
                silenced.extend(inhibited.silenced_runs());
                missing.is_disjoint(&names)
            });
        }
        if missing.is_empty() {
            break;
        }
        println!("not fired and resolved: {missing:?}");
    }
    let alerts = all.alerts();
    let (silent, lasting): (Vec<&str>, Vec<&str>) = missing
        .iter()
        .partition(|name| of(&alerts, name, "firing").next().is_none());
    assert!(
        missing.is_empty(),
        "not firing: {silent:?}; not resolved: {lasting:?}"
    );
    assert_calm(&alerts);
    assert!(
        !silenced.is_empty(),
        "{CONSEQUENCE} is not silenced while {CAUSE} fires"
    );
    wait_until("the end of the jobs is an alert", || {
        of(&all.alerts(), AT_THE_END, "firing").next().is_some()
    });
}

/// Starts a job whose page is at an address.
fn start(job: &Job<'_>, seed: usize, page: &str, folder: &Folder) -> Process {
    let faults = job.faults();
    let verdicts = || faults.iter().filter_map(|fault| fault.row.verdict);
    // A verdict on a stalled run takes half a minute, whatever the rate.
    let stands_still = verdicts().any(|kind| matches!(kind, "stalled" | "collective_hang"));
    // The alert on what lasts to the end resolves after it.
    let ends = faults.iter().any(|fault| fault.row.lasts == 0);
    let steps = if ends { job.last_step() + 140 } else { ENDLESS };
    let mut demo = command(["demo", "--json", "--listen", page]);
    demo.args(["--workload", job.workload.as_str(), "--seed", &seed.to_string()])
        .args(["--ranks", &job.ranks.to_string()])
        .args(["--rate", if stands_still { "1" } else { "2" }])
        .args(["--steps", &steps.to_string()])
        .arg("--to")
        .arg(format!(
            "logs={}",
            folder.path(&format!("{seed}.jsonl")).display()
        ));
    for fault in &job.faults {
        demo.args(["--fault", fault]);
    }
    Process::start("demo", &mut demo)
}

/// An Alertmanager and what it notified.
struct Notified {
    alertmanager: Alertmanager,
    receiver: FakeEndpoint,
}

impl Notified {
    fn start(program: &Path, rules: &str) -> Self {
        let receiver = FakeEndpoint::start([], Answer::Say("{}".to_owned()));
        Self {
            alertmanager: Alertmanager::start(program, &format!("{}/alerts", receiver.url()), rules),
            receiver,
        }
    }

    /// Returns the runs whose consequence Alertmanager silences now.
    ///
    /// # Panics
    /// If the receiver was notified of a silenced consequence while its cause fires.
    fn silenced_runs(&self) -> BTreeSet<String> {
        // Read before Alertmanager is asked: after its answer the cause may end.
        let mut is_notified = BTreeMap::new();
        for alert in self.alerts() {
            let run = label(&alert["labels"], "train_run_id");
            let is_firing = alert["status"] == "firing";
            match label(&alert["labels"], "alertname").as_str() {
                CAUSE if is_firing => drop(is_notified.entry(run).or_insert(false)),
                CAUSE => drop(is_notified.remove(&run)),
                CONSEQUENCE if is_firing => {
                    is_notified.entry(run).and_modify(|is| *is = true);
                }
                _ => {}
            }
        }
        let inhibited = self.alertmanager.inhibited().into_iter();
        let consequences = inhibited.filter(|labels| labels["alertname"] == CONSEQUENCE);
        let runs = consequences.map(|labels| label(&labels, "train_run_id"));
        let silenced: BTreeSet<String> = runs.filter(|run| is_notified.contains_key(run)).collect();
        for run in &silenced {
            assert!(
                !is_notified[run],
                "{run}: a notification of {CONSEQUENCE} while {CAUSE} fires"
            );
        }
        silenced
    }

    /// Every alert of every notification, in their order.
    fn alerts(&self) -> Vec<Value> {
        let parse = |body: &[u8]| -> Value { serde_json::from_slice(body).expect("a notification is JSON") };
        let received = self.receiver.received();
        let notifications = received.iter().map(|request| parse(&request.body));
        notifications
            .flat_map(|notification| notification["alerts"].as_array().cloned().expect("it has alerts"))
            .collect()
    }
}

/// Notified alerts of a name and a status, each with its runbook.
fn of<'a>(alerts: &'a [Value], name: &'a str, status: &'a str) -> impl Iterator<Item = &'a Value> {
    alerts.iter().filter(move |alert| {
        let runbook = alert["annotations"]["runbook_url"].as_str().unwrap_or_default();
        alert["labels"]["alertname"] == name
            && alert["status"] == status
            && runbook.ends_with(&format!("/{name}.md"))
    })
}

/// Returns a label, empty if the alert has none of this name.
fn label(labels: &Value, name: &str) -> String {
    labels[name].as_str().unwrap_or_default().to_owned()
}

/// Whether an alert that fired has resolved, with the same labels.
fn has_resolved(alerts: &[Value], name: &str) -> bool {
    of(alerts, name, "firing")
        .any(|fired| of(alerts, name, "resolved").any(|alert| alert["labels"] == fired["labels"]))
}

/// Checks that no alert flaps.
fn assert_calm(alerts: &[Value]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for alert in alerts.iter().filter(|alert| alert["status"] == "firing") {
        *counts.entry(alert["labels"].to_string()).or_default() += 1;
    }
    let flapping: Vec<_> = counts
        .iter()
        .filter(|(_, count)| **count > NOTIFICATIONS)
        .collect();
    assert!(flapping.is_empty(), "alerts flap: {flapping:#?}");
}

/// Returns the configuration of a Prometheus with the rules in short time, which scrapes these pages.
fn configuration(folder: &Folder, alertmanagers: [&Notified; 2], pages: &[String]) -> String {
    let definitions = grafana().join("definitions");
    let thresholds = Thresholds::load(&definitions).expect("the thresholds can be read");
    let rules = Rules::load_scaled(&definitions, &thresholds, FACTOR).expect("the definitions are right");
    let mut paths = Vec::new();
    for file in rules.prometheus_files() {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let path = folder.path(name);
        fs::write(&path, file.text).expect("a file can be written");
        paths.push(path.display().to_string());
    }
    let alertmanagers = alertmanagers.map(|notified| notified.alertmanager.address());
    format!(
        "global: {{scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}}\n\
         rule_files: ['{}']\n\
         alerting: {{alertmanagers: [{{static_configs: [{{targets: ['{}']}}]}}]}}\n\
         scrape_configs:\n\
         - job_name: pulsetrain\n  \
           honor_labels: true\n  \
           static_configs: [{{targets: ['{}']}}]\n",
        paths.join("', '"),
        alertmanagers.join("', '"),
        pages.join("', '"),
    )
}

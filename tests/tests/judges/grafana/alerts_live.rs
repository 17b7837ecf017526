//! Alerts in real time, end to end: simulated jobs with faults, a Prometheus that scrapes them and evaluates the rules, and an
//! Alertmanager that notifies. Every duration of the rules is divided by 60, so that ten minutes become ten seconds; a job at
//! rate 2 then has the number of steps that a job with steps of 15 seconds has in ten minutes.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    time::Duration,
};

use pulsetrain_grafana::{Thresholds, alert::Rules};
use pulsetrain_tests::{
    Alertmanager, Answer, FakeEndpoint, Folder, Judge, Process, Prometheus, command, free_port,
    some_or_return, wait_at_most, wait_until,
};
use serde_json::Value;

use crate::grafana::{
    alerts::{grafana, rules},
    jobs::Job,
};

/// The divisor of durations.
const FACTOR: f64 = 60.0;
/// The number of steps of a job that runs longer than the test.
const ENDLESS: u64 = 100_000;
/// The alert that fires after the end of the jobs.
const AT_THE_END: &str = "PulsetrainDown";
/// The maximum time until all alerts of the jobs have fired and resolved.
const ROUND: Duration = Duration::from_secs(290);
/// The maximum number of attempts for jobs whose alerts have not fired and resolved: rules in scaled time miss events while a
/// busy machine does not respond to a scrape.
const ROUNDS: usize = 3;
/// The maximum number of notifications of one firing alert; a flapping alert has more.
const NOTIFICATIONS: usize = 4;
/// Alerts whose jobs always run, in addition to the jobs that have the faults of several alerts.
const ALWAYS: [&str; 3] = ["TrainDataStarved", "TrainMemoryLeak", "GpuThrottled"];
/// Cause and consequence of the same run: an inhibit rule suppresses the consequence while the cause fires.
const CAUSE: &str = "TrainDataStarved";
const CONSEQUENCE: &str = "TrainThroughputLow";
/// The number of concurrent jobs that two cores can simulate in real time.
const AT_ONCE: usize = 8;
/// The variable that also enables the other faults that need separate jobs, for some additional minutes.
const ALL: &str = "PULSETRAIN_ALL_ALERTS";

#[test]
fn alerts_with_a_fault_reach_alertmanager_and_resolve() {
    let prometheus = some_or_return!(Judge::Prometheus.require_or_skip());
    let alertmanager = some_or_return!(Judge::Alertmanager.require_or_skip());
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
            // Some jobs end by themselves.
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
        .partition(|name| alerts_named(&alerts, name, "firing").next().is_none());
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
        alerts_named(&all.alerts(), AT_THE_END, "firing").next().is_some()
    });
}

/// Starts a job with its page at an address.
fn start(job: &Job<'_>, seed: usize, page: &str, folder: &Folder) -> Process {
    let faults = job.faults();
    let verdicts = || faults.iter().filter_map(|fault| fault.row.verdict);
    // A verdict on a stalled run needs half a minute at any rate.
    let stands_still = verdicts().any(|kind| matches!(kind, "stalled" | "collective_hang"));
    // The alert on a fault that lasts until the end of the job resolves after the job.
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

/// An Alertmanager and its notifications.
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

    /// Returns the runs whose consequence Alertmanager suppresses now.
    ///
    /// # Panics
    /// If the receiver was notified of a suppressed consequence while its cause fires.
    fn silenced_runs(&self) -> BTreeSet<String> {
        // Read before the request to Alertmanager: the cause may end after its response.
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

    /// Returns every alert of every notification, in order.
    fn alerts(&self) -> Vec<Value> {
        let parse = |body: &[u8]| -> Value { serde_json::from_slice(body).expect("a notification is JSON") };
        let received = self.receiver.received();
        let notifications = received.iter().map(|request| parse(&request.body));
        notifications
            .flat_map(|notification| notification["alerts"].as_array().cloned().expect("it has alerts"))
            .collect()
    }
}

/// Returns the notified alerts with a name, a status and a link to their runbook.
fn alerts_named<'a>(alerts: &'a [Value], name: &'a str, status: &'a str) -> impl Iterator<Item = &'a Value> {
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

/// Returns whether an alert that fired has resolved, with the same labels.
fn has_resolved(alerts: &[Value], name: &str) -> bool {
    alerts_named(alerts, name, "firing")
        .any(|fired| alerts_named(alerts, name, "resolved").any(|alert| alert["labels"] == fired["labels"]))
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

/// Returns the configuration of a Prometheus with the rules in scaled time, which scrapes these pages.
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

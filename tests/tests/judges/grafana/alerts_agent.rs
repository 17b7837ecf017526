//! The alerts on telemetry itself: real agents with real faults, a Prometheus that evaluates the rules with durations divided
//! by 60, and two Alertmanagers: one without inhibit rules, one with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use pulsetrain_grafana::{Thresholds, alert::Rules};
use pulsetrain_tests::{
    Alertmanager, Answer, FakeEndpoint, Folder, Judge, Prometheus, Received, free_port, http::answers_ok,
    some_or_return, wait_until,
};
use serde_json::Value;

use crate::grafana::{
    agent_faults::{self, Running},
    alerts::{grafana, rules},
};

/// The group of the alerts on telemetry.
const GROUP: &str = "telemetry";
/// Divisor of every duration of the rules.
const FACTOR: f64 = 60.0;
/// The lookback delta: the default of five minutes, divided as well.
const LOOKBACK: &str = "5s";
/// Fault and alert: additional alerts that a fault causes.
const CONSEQUENCES: [(&str, &str); 5] = [
    ("long-outage", "PulsetrainSinkDown"),
    ("long-outage", "PulsetrainRetrying"),
    ("killed-agent", "PulsetrainAgentSilent"),
    ("many-series", "PulsetrainTelemetryDropped"),
    ("small-budget", "PulsetrainTelemetryDropped"),
];
/// Fault and alert: alerts that the inhibit rules suppress.
const INHIBITED: [(&str, &str); 4] = [
    ("killed-agent", "PulsetrainAgentSilent"),
    ("dead-sink", "PulsetrainRetrying"),
    ("dead-sink", "PulsetrainQueueFilling"),
    ("long-outage", "PulsetrainQueueOld"),
];

#[test]
fn every_alert_on_telemetry_fires_for_its_fault_and_resolves() {
    let prometheus = some_or_return!(Judge::Prometheus.require_or_skip());
    let alertmanager = some_or_return!(Judge::Alertmanager.require_or_skip());
    let (folder, expected) = (Folder::new(), expected());
    let [receiver, other] = [(); 2].map(|()| FakeEndpoint::start([], Answer::Accept));
    let inhibit = fs::read_to_string(grafana().join("alerts/alertmanager/inhibit_rules.yml"));
    let inhibit = inhibit.expect("the rules of Alertmanager can be read");
    let plain = Alertmanager::start(&alertmanager, &receiver.url(), "");
    let inhibiting = Alertmanager::start(&alertmanager, &other.url(), &inhibit);

    let port = free_port();
    let mut faults = agent_faults::start(&format!("http://127.0.0.1:{port}/api/v1/otlp"));
    let names: BTreeSet<&str> = faults.iter().map(|running| running.name).collect();
    assert_eq!(
        expected.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        names
    );
    for running in &faults {
        let port = running.page.rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.expect("an address has a port");
        wait_until("the page answers", || answers_ok(port, "/metrics"));
    }
    let configuration = configuration(&folder, &[plain.address(), inhibiting.address()], &faults);
    let prometheus =
        Prometheus::start_in_short_time(&prometheus, &folder.path("data"), &configuration, port, LOOKBACK);
    let agents = format!("count(pulsetrain_build_info) == {}", faults.len());
    wait_until("every agent is seen", || !prometheus.query(&agents).is_empty());
    let fired = |status: &str| fired(&receiver.received(), status);
    assert_eq!(fired("firing"), BTreeMap::new(), "before the faults");

    for running in &mut faults {
        running.fault.begin();
    }
    // An inhibited alert may end before the last one fires.
    let mut silenced = BTreeSet::new();
    for (fault, alert) in pairs(&expected) {
        wait_until(&format!("{fault}: {alert} fires"), || {
            for running in &mut faults {
                running.fault.keep_up();
            }
            silenced.extend(inhibiting.inhibited().iter().map(fault_and_alert));
            has(&fired("firing"), fault, alert)
        });
    }
    for (fault, alert) in INHIBITED {
        let key = (fault.to_owned(), alert.to_owned());
        wait_until(&format!("{fault}: {alert} is silenced"), || {
            silenced.extend(inhibiting.inhibited().iter().map(fault_and_alert));
            silenced.contains(&key)
        });
    }
    for running in &mut faults {
        running.fault.end();
    }
    for (fault, alert) in pairs(&expected) {
        wait_until(&format!("{fault}: {alert} resolves"), || {
            for running in &mut faults {
                running.fault.keep_changed();
            }
            has(&fired("resolved"), fault, alert)
        });
    }

    let mut allowed = expected;
    for (fault, alert) in CONSEQUENCES {
        allowed
            .entry(fault.to_owned())
            .or_default()
            .insert(alert.to_owned());
    }
    for (fault, alerts) in &fired("firing") {
        let others: Vec<_> = alerts.difference(&allowed[fault]).collect();
        assert!(others.is_empty(), "{fault} made {others:?} fire");
    }
}

/// Each alert of the group names a fault of an agent, or of the demo.
#[test]
fn every_telemetry_alert_has_a_fault_that_triggers_it() {
    for group in rules().groups.iter().filter(|group| group.name == GROUP) {
        for alert in &group.alerts {
            let has_fault = alert.agent.is_some() || !alert.demo.faults.is_empty();
            assert!(has_fault, "{} has no fault", alert.name);
        }
    }
}

/// Returns the alerts by their fault, from the definitions.
fn expected() -> BTreeMap<String, BTreeSet<String>> {
    let mut expected = BTreeMap::<String, BTreeSet<String>>::new();
    for alert in rules().alerts() {
        if let Some(fault) = &alert.agent {
            expected
                .entry(fault.clone())
                .or_default()
                .insert(alert.name.clone());
        }
    }
    expected
}

fn pairs(alerts: &BTreeMap<String, BTreeSet<String>>) -> Vec<(&str, &str)> {
    let pairs = alerts
        .iter()
        .flat_map(|(fault, alerts)| alerts.iter().map(move |alert| (fault.as_str(), alert.as_str())));
    pairs.collect()
}

fn has(alerts: &BTreeMap<String, BTreeSet<String>>, fault: &str, alert: &str) -> bool {
    alerts.get(fault).is_some_and(|alerts| alerts.contains(alert))
}

/// Returns the alerts of the group in notifications with a status, by fault.
fn fired(notifications: &[Received], status: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut fired = BTreeMap::<String, BTreeSet<String>>::new();
    for request in notifications {
        let notification: Value = serde_json::from_slice(&request.body).expect("a notification is JSON");
        for alert in notification["alerts"].as_array().expect("it has alerts") {
            if alert["status"] == status {
                let (fault, name) = fault_and_alert(&alert["labels"]);
                let runbook = alert["annotations"]["runbook_url"].as_str().unwrap_or_default();
                assert!(runbook.ends_with(&format!("/{name}.md")), "{alert}");
                fired.entry(fault).or_default().insert(name);
            }
        }
    }
    fired
}

/// Returns the fault and the alert of some labels. The label of the agent is the name of the fault, except for the agent with
/// the address of its host.
fn fault_and_alert(labels: &Value) -> (String, String) {
    let text = |name: &str| labels[name].as_str().unwrap_or_default().to_owned();
    let host = [text("host_name"), text("instance")]
        .into_iter()
        .find(|host| !host.is_empty());
    let host = host.unwrap_or_default();
    let fault = if host == "127.0.0.1" {
        "killed-agent".to_owned()
    } else {
        host
    };
    (fault, text("alertname"))
}

/// Returns the configuration of a Prometheus with the rules of the group in scaled time.
fn configuration(folder: &Folder, alertmanagers: &[String], faults: &[Running]) -> String {
    let definitions = grafana().join("definitions");
    let thresholds = Thresholds::load(&definitions).expect("the thresholds can be read");
    let mut rules = Rules::load_scaled(&definitions, &thresholds, FACTOR).expect("the definitions are right");
    rules.groups.retain(|group| group.name == GROUP);
    rules.recordings.clear();
    let file = rules
        .prometheus_files()
        .into_iter()
        .next()
        .expect("the file of alerts");
    let path = folder.file("alerts.yaml", file.text);
    let scraped = faults.iter().filter(|running| running.fault.is_scraped());
    let pages: Vec<&str> = scraped.map(|running| running.page.as_str()).collect();
    format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         rule_files: ['{}']\n\
         otlp: {{promote_resource_attributes: [host.name]}}\n\
         storage: {{tsdb: {{out_of_order_time_window: 2h}}}}\n\
         alerting: {{alertmanagers: [{{static_configs: [{{targets: ['{}']}}]}}]}}\n\
         scrape_configs:\n\
         - {{job_name: pulsetrain, honor_labels: true, static_configs: [{{targets: ['{}']}}]}}\n",
        path.display(),
        alertmanagers.join("', '"),
        pages.join("', '"),
    )
}

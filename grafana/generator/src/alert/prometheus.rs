//! Rule files for Prometheus and Mimir.

use super::{Alert, GENERATED, Rules};
use crate::{GeneratedFile, yaml::Yaml};

impl Rules {
    /// Returns the files of alerts and of recording rules.
    pub fn prometheus_files(&self) -> Vec<GeneratedFile> {
        let groups = self.groups.iter().map(|group| {
            let alerts = group.alerts.iter().map(|alert| self.alert_rule(alert)).collect();
            rule_group(&group.name, &group.interval, alerts)
        });
        let recorded = self.recordings.iter().map(|recording| {
            Yaml::map([
                ("record", Yaml::text(&recording.record)),
                ("expr", Yaml::text(recording.expr.trim())),
            ])
        });
        let recording = rule_group(
            "pulsetrain-recording",
            &self.recording_interval,
            recorded.collect(),
        );
        vec![
            file("alerts/pulsetrain.alerts.yaml", groups.collect()),
            file("alerts/pulsetrain.recording.yaml", vec![recording]),
        ]
    }

    fn alert_rule(&self, alert: &Alert) -> Yaml {
        let mut rule = vec![
            ("alert", Yaml::text(&alert.name)),
            ("expr", Yaml::text(alert.expr.trim())),
        ];
        if let Some(pending) = &alert.pending {
            rule.push(("for", Yaml::text(pending)));
        }
        if let Some(keep) = &alert.keep_firing_for {
            rule.push(("keep_firing_for", Yaml::text(keep)));
        }
        rule.push((
            "labels",
            Yaml::map([("severity", Yaml::text(alert.severity.as_str()))]),
        ));
        let annotations = self
            .annotations(alert)
            .map(|(name, text)| (name, Yaml::text(text)));
        rule.push(("annotations", Yaml::map(annotations)));
        Yaml::map(rule)
    }

    /// Returns the annotations of an alert: names and templates.
    pub(super) fn annotations(&self, alert: &Alert) -> [(&'static str, String); 4] {
        [
            ("summary", alert.summary.trim().to_owned()),
            ("description", alert.description.trim().to_owned()),
            ("runbook_url", format!("{}{}.md", self.links.runbooks, alert.name)),
            ("dashboard_url", self.dashboard_url(alert)),
        ]
    }

    /// Returns a link to the dashboard with the variables that the labels of the alert give.
    fn dashboard_url(&self, alert: &Alert) -> String {
        let labels = alert
            .tests
            .iter()
            .filter_map(|test| test.fires.as_ref())
            .map(|fires| &fires.labels)
            .next();
        let has = |label: &str| labels.is_some_and(|labels| labels.contains_key(label));
        let variables: Vec<String> = [
            ("run", "train_run_id"),
            ("rank", "train_rank"),
            ("host", "host_name"),
            ("gpu", "gpu_index"),
            ("agent", "instance"),
            ("sink", "pulsetrain_sink_name"),
        ]
        .into_iter()
        .filter(|(_, label)| has(label))
        .map(|(variable, label)| format!("var-{variable}={{{{ $labels.{label} }}}}"))
        .collect();
        let query = if variables.is_empty() { "" } else { "?" };
        format!(
            "{}/d/{}{query}{}",
            self.links.grafana,
            alert.dashboard,
            variables.join("&")
        )
    }
}

fn rule_group(name: &str, interval: &str, rules: Vec<Yaml>) -> Yaml {
    Yaml::map([
        ("name", Yaml::text(name)),
        ("interval", Yaml::text(interval)),
        ("rules", Yaml::List(rules)),
    ])
}

fn file(path: &str, groups: Vec<Yaml>) -> GeneratedFile {
    GeneratedFile {
        path: path.to_owned(),
        text: Yaml::map([("groups", Yaml::List(groups))]).document(GENERATED),
    }
}

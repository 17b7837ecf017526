//! Unit tests for promtool: each alert fires with exactly these labels and annotations, is silent at other times, and resolves.

use std::collections::BTreeMap;

use super::{
    Alert, AlertTest, Fires, GENERATED, Group, Rules,
    template::{self, TemplateError},
};
use crate::{DefinitionError, GeneratedFile, yaml::Yaml};

/// Time between two values of a series, and between two evaluations of the rules.
const INTERVAL: &str = "1m";

/// Returns a file of tests for each group of alerts.
pub(super) fn files(rules: &Rules) -> Result<Vec<GeneratedFile>, Vec<DefinitionError>> {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for group in &rules.groups {
        match tests_of(rules, group) {
            Ok(tests) => files.push(file(group, tests)),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(files) } else { Err(errors) }
}

fn file(group: &Group, tests: Vec<Yaml>) -> GeneratedFile {
    let rule_files = ["../pulsetrain.recording.yaml", "../pulsetrain.alerts.yaml"];
    let text = Yaml::map([
        ("rule_files", Yaml::List(rule_files.map(Yaml::text).into())),
        ("evaluation_interval", Yaml::text(INTERVAL)),
        ("tests", Yaml::List(tests)),
    ]);
    GeneratedFile {
        path: format!("alerts/tests/{}.yaml", group.name),
        text: text.document(GENERATED),
    }
}

fn tests_of(rules: &Rules, group: &Group) -> Result<Vec<Yaml>, Vec<DefinitionError>> {
    let (mut tests, mut errors) = (Vec::new(), Vec::new());
    for alert in &group.alerts {
        for test in &alert.tests {
            match test_of(rules, alert, test) {
                Ok(test) => tests.push(test),
                Err(message) => errors.push(DefinitionError::new(
                    &group.file(),
                    &format!("{} / {}", alert.name, test.name),
                    message,
                )),
            }
        }
    }
    if errors.is_empty() { Ok(tests) } else { Err(errors) }
}

fn test_of(rules: &Rules, alert: &Alert, test: &AlertTest) -> Result<Yaml, TemplateError> {
    let series = test
        .series
        .iter()
        .map(|(series, values)| Yaml::map([("series", Yaml::text(series)), ("values", Yaml::text(values))]));
    let silent = test.silent.iter().chain(&test.resolved);
    let mut expected: Vec<Yaml> = silent.map(|time| at(alert, time, Vec::new())).collect();
    if let Some(fires) = &test.fires {
        expected.push(at(alert, &fires.at, vec![fired(rules, alert, fires)?]));
    }
    Ok(Yaml::map([
        ("name", Yaml::text(format!("{}: {}", alert.name, test.name))),
        (
            "interval",
            Yaml::text(test.interval.as_deref().unwrap_or(INTERVAL)),
        ),
        ("input_series", Yaml::List(series.collect())),
        ("alert_rule_test", Yaml::List(expected)),
    ]))
}

fn at(alert: &Alert, time: &str, alerts: Vec<Yaml>) -> Yaml {
    Yaml::map([
        ("eval_time", Yaml::text(time)),
        ("alertname", Yaml::text(&alert.name)),
        ("exp_alerts", Yaml::List(alerts)),
    ])
}

fn fired(rules: &Rules, alert: &Alert, fires: &Fires) -> Result<Yaml, TemplateError> {
    let mut labels: BTreeMap<String, String> = fires.labels.clone();
    labels.insert("severity".to_owned(), alert.severity.as_str().to_owned());
    let mut annotations = Vec::new();
    for (name, template) in rules.annotations(alert) {
        annotations.push((
            name,
            Yaml::text(template::render(&template, &labels, fires.value)?),
        ));
    }
    let labels = labels.into_iter().map(|(name, value)| (name, Yaml::text(value)));
    Ok(Yaml::map([
        ("exp_labels", Yaml::map(labels)),
        ("exp_annotations", Yaml::map(annotations)),
    ]))
}

//! All rules: read, checked, and with the numbers of `thresholds.yaml` in place.

use std::{
    collections::BTreeSet,
    fmt::Display,
    fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use super::{Alert, Group, Links, Recording, definition::RecordingFile, duration, promql};
use crate::{DefinitionError, Thresholds, Vocabulary};

/// File of the recording rules.
const RECORDING: &str = "recording.yaml";
/// File of the links.
const LINKS: &str = "links.yaml";
/// The maximum number of rules in a group: Mimir's default limit (`ruler_max_rules_per_rule_group`).
const LARGEST_GROUP: usize = 20;
/// The longest name that Grafana accepts as the `uid` of a rule, with a dash for each capital letter.
const MAX_NAME_LEN: usize = 40;

/// Every alert and every recording rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The alerts in groups, by name of the group.
    pub groups: Vec<Group>,
    /// The recording rules.
    pub recordings: Vec<Recording>,
    /// Evaluation interval of the recording rules.
    pub recording_interval: String,
    /// The targets of the links in alerts.
    pub links: Links,
}

impl Group {
    /// File name below `grafana/definitions`.
    pub(super) fn file(&self) -> String {
        format!("alerts/{}.yaml", self.name)
    }
}

impl Rules {
    /// Reads and checks the files of a folder of definitions.
    ///
    /// # Errors
    ///
    /// Returns all errors: unreadable files, unknown thresholds, queries that do not parse, alerts without a complete test.
    pub fn load(
        definitions: &Path,
        thresholds: &Thresholds,
        vocabulary: &Vocabulary,
    ) -> Result<Self, Vec<DefinitionError>> {
        let mut rules = Self::read(definitions).map_err(|error| vec![error])?;
        let mut errors = rules.substitute(|text| thresholds.substitute(text));
        errors.extend(rules.substitute_texts(thresholds));
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut vocabulary = vocabulary.clone();
        for recording in &rules.recordings {
            vocabulary.add(&recording.record);
        }
        let errors = rules.check(&vocabulary);
        if errors.is_empty() { Ok(rules) } else { Err(errors) }
    }

    /// Reads the files of a folder of definitions and divides every duration by `factor`: in queries, in `for` and in
    /// thresholds in seconds. A test can then check in a minute a rule that needs hours.
    ///
    /// # Errors
    ///
    /// Returns all errors.
    pub fn load_scaled(
        definitions: &Path,
        thresholds: &Thresholds,
        factor: f64,
    ) -> Result<Self, Vec<DefinitionError>> {
        let mut rules = Self::read(definitions).map_err(|error| vec![error])?;
        let mut errors = rules.substitute(|text| {
            let text = thresholds.substitute_scaled(text, factor);
            promql::scaled(&text.map_err(|error| error.to_string())?, factor)
        });
        errors.extend(rules.substitute_texts(thresholds));
        let scale = |text: &mut String| {
            let millis = duration::parse(text).unwrap_or_default() as f64 / factor;
            *text = duration::format(millis.round() as u64);
        };
        for group in &mut rules.groups {
            scale(&mut group.interval);
            for alert in &mut group.alerts {
                alert.pending.iter_mut().for_each(scale);
                alert.keep_firing_for.iter_mut().for_each(scale);
            }
        }
        scale(&mut rules.recording_interval);
        if errors.is_empty() { Ok(rules) } else { Err(errors) }
    }

    /// Returns every alert.
    pub fn alerts(&self) -> impl Iterator<Item = &Alert> {
        self.groups.iter().flat_map(|group| &group.alerts)
    }

    /// Returns the names that recording rules of a folder of definitions record.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file cannot be read.
    pub fn recorded_names(definitions: &Path) -> Result<Vec<String>, DefinitionError> {
        let file: RecordingFile = read(definitions, RECORDING)?;
        Ok(file.rules.into_iter().map(|rule| rule.record).collect())
    }

    fn read(definitions: &Path) -> Result<Self, DefinitionError> {
        let recording: RecordingFile = read(definitions, RECORDING)?;
        let mut groups = Vec::new();
        for path in files(&definitions.join("alerts"))? {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let group: Group = read(definitions, &format!("alerts/{name}.yaml"))?;
            groups.push(Group { name, ..group });
        }
        Ok(Self {
            groups,
            recordings: recording.rules,
            recording_interval: recording.interval,
            links: read(definitions, LINKS)?,
        })
    }

    /// Changes every expression; returns the errors.
    fn substitute<E: Display>(&mut self, change: impl Fn(&str) -> Result<String, E>) -> Vec<DefinitionError> {
        let mut errors = Vec::new();
        let mut apply = |file: &str, name: &str, expr: &mut String| match change(expr) {
            Ok(changed) => *expr = changed,
            Err(message) => errors.push(DefinitionError::new(file, name, message)),
        };
        for recording in &mut self.recordings {
            apply(RECORDING, &recording.record, &mut recording.expr);
        }
        for group in &mut self.groups {
            let file = group.file();
            for alert in &mut group.alerts {
                apply(&file, &alert.name, &mut alert.expr);
            }
        }
        errors
    }

    /// Replaces the placeholders of summaries and descriptions; returns the errors.
    fn substitute_texts(&mut self, thresholds: &Thresholds) -> Vec<DefinitionError> {
        let mut errors = Vec::new();
        for group in &mut self.groups {
            let file = group.file();
            for alert in &mut group.alerts {
                for text in [&mut alert.summary, &mut alert.description] {
                    match thresholds.substitute(text) {
                        Ok(changed) => *text = changed,
                        Err(message) => errors.push(DefinitionError::new(&file, &alert.name, message)),
                    }
                }
            }
        }
        errors
    }

    fn check(&self, vocabulary: &Vocabulary) -> Vec<DefinitionError> {
        let mut errors = Vec::new();
        for recording in &self.recordings {
            let wrong = vocabulary.check(&recording.expr).err().unwrap_or_default();
            errors.extend(
                wrong
                    .iter()
                    .map(|message| DefinitionError::new(RECORDING, &recording.record, message)),
            );
        }
        let mut names = BTreeSet::new();
        for group in &self.groups {
            if group.alerts.len() > LARGEST_GROUP {
                errors.push(DefinitionError::new(
                    &group.file(),
                    "",
                    format!(
                        "{} alerts; Mimir accepts {LARGEST_GROUP} in a group, so move some to another file",
                        group.alerts.len()
                    ),
                ));
            }
            for alert in &group.alerts {
                let mut wrong = check_alert(alert, vocabulary);
                if !names.insert(&alert.name) {
                    wrong.push("there is another alert of this name; rename one".to_owned());
                }
                let file = group.file();
                errors.extend(
                    wrong
                        .iter()
                        .map(|message| DefinitionError::new(&file, &alert.name, message)),
                );
            }
        }
        errors
    }
}

/// Returns the problems of an alert.
fn check_alert(alert: &Alert, vocabulary: &Vocabulary) -> Vec<String> {
    let mut wrong = vocabulary.check(&alert.expr).err().unwrap_or_default();
    let mut times = vec![alert.pending.as_ref(), alert.keep_firing_for.as_ref()];
    for test in &alert.tests {
        for series in test.series.keys() {
            wrong.extend(vocabulary.check(series).err().unwrap_or_default());
        }
        times.extend(test.silent.iter().map(Some));
        times.extend([
            test.interval.as_ref(),
            test.resolved.as_ref(),
            test.fires.as_ref().map(|fires| &fires.at),
        ]);
    }
    for time in times.into_iter().flatten() {
        if duration::parse(time).is_none() {
            wrong.push(format!("`{time}` is not a duration; write one as in 1h30m"));
        }
    }
    let tests = &alert.tests;
    for (has, what) in [
        (tests.iter().any(|test| test.fires.is_some()), "fires"),
        (tests.iter().any(|test| !test.silent.is_empty()), "is silent"),
        (
            tests
                .iter()
                .any(|test| test.fires.is_some() && test.resolved.is_some()),
            "resolves",
        ),
    ] {
        if !has {
            wrong.push(format!("no test shows that it {what}; add one"));
        }
    }
    let ways = [
        !alert.demo.faults.is_empty(),
        alert.demo.none.is_some(),
        alert.agent.is_some(),
    ];
    if ways.iter().filter(|is_given| **is_given).count() != 1 {
        wrong.push(
            "needs one of `demo: {faults}`, `agent` with a fault of an agent, or `demo: {none}` with the reason why there is no fault"
                .to_owned(),
        );
    }
    let capitals = alert.name.chars().filter(char::is_ascii_uppercase).count();
    if alert.name.len() + capitals > MAX_NAME_LEN {
        wrong.push(format!(
            "the name is too long for Grafana: {MAX_NAME_LEN} characters with a dash for each capital letter"
        ));
    }
    if !alert.dashboard.starts_with("pulsetrain-") {
        wrong.push(format!("`{}` is not the uid of a dashboard", alert.dashboard));
    }
    wrong
}

fn read<T: DeserializeOwned>(definitions: &Path, file: &str) -> Result<T, DefinitionError> {
    let error = |message: String| DefinitionError::new(file, "", message);
    let text = fs::read_to_string(definitions.join(file)).map_err(|source| error(source.to_string()))?;
    serde_saphyr::from_str(&text).map_err(|source| error(source.to_string()))
}

/// Returns the YAML files of a folder in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, DefinitionError> {
    let error = |source: std::io::Error| DefinitionError::new("alerts", "", source);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes definitions with one alert of these lines, and returns the errors.
    fn errors(name: &str, alert: &str) -> String {
        let folder = std::env::temp_dir().join(format!("pulsetrain-rules-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("alerts")).unwrap();
        let write = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
        write(RECORDING, "interval: 1m\nrules: []\n");
        write(
            LINKS,
            "{runbooks: 'https://example.com/', grafana: 'http://localhost', datasource: prometheus}",
        );
        write("alerts/one.yaml", &format!("interval: 30s\nalerts:\n{alert}"));
        let loaded = Rules::load(&folder, &Thresholds::default(), &Vocabulary::default());
        fs::remove_dir_all(&folder).unwrap();
        let errors = loaded.err().unwrap_or_default();
        errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ")
    }

    const VALID_ALERT: &str = r#"
  - name: TrainLossHigh
    expr: train_loss > 9
    for: 5m
    severity: warning
    summary: High
    description: High.
    dashboard: pulsetrain-run
    tests:
      - name: it rises and falls
        series: {'train_loss{train_run_id="r"}': 1x5 10x10 1x10}
        silent: [4m]
        fires: {at: 12m, labels: {train_run_id: r}, value: 10}
        resolved: 20m
    demo: {none: No fault raises the loss.}
"#;

    #[test]
    fn a_complete_alert_has_no_errors() {
        assert_eq!(errors("right", VALID_ALERT), "");
    }

    #[test]
    fn incomplete_alert_is_rejected_with_the_missing_field() {
        for (name, from, to, expected) in [
            (
                "metric",
                "train_loss > 9",
                "train_los > 9",
                "no metric `train_los`",
            ),
            ("threshold", "> 9", "> ${threshold.loss}", "no threshold `loss`"),
            (
                "resolved",
                "        resolved: 20m\n",
                "",
                "no test shows that it resolves",
            ),
            (
                "silent",
                "        silent: [4m]\n",
                "",
                "no test shows that it is silent",
            ),
            (
                "series",
                "'train_loss{",
                "'train_losses{",
                "no metric `train_losses`",
            ),
            ("duration", "for: 5m", "for: soon", "`soon` is not a duration"),
            (
                "demo",
                "none: No fault raises the loss.",
                "",
                "needs one of `demo: {faults}`",
            ),
            (
                "dashboard",
                "pulsetrain-run",
                "overview",
                "not the uid of a dashboard",
            ),
            ("severity", "warning", "page", "severity"),
            (
                "name",
                "TrainLossHigh",
                "TrainLossHighForAVeryLongTimeIndeed",
                "too long for Grafana",
            ),
        ] {
            let changed = VALID_ALERT.replace(from, to);
            assert_ne!(changed, VALID_ALERT, "{name}");
            let errors = errors(name, &changed);
            assert!(errors.contains(expected), "{name}: {errors}");
        }
    }

    #[test]
    fn alert_group_over_the_mimir_limit_is_rejected() {
        let alerts: String = (0..=LARGEST_GROUP)
            .map(|number| VALID_ALERT.replace("TrainLossHigh", &format!("TrainLossHigh{number}")))
            .collect();
        assert!(errors("large", &alerts).contains("Mimir accepts 20 in a group"));
    }
}

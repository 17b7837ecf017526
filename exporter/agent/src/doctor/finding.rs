//! The findings: the subject, the observation, and the remedy.

use std::{
    borrow::Cow,
    fmt::{self, Write},
    io,
    path::{Path, PathBuf},
};

use pulsetrain_pipeline::Problem;
use pulsetrain_sinks::SinkError;
use serde::Serialize;

use super::environment::rename;
use crate::terminal;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// Works as intended.
    Ok,
    /// Works, but perhaps not as the user expects.
    Warning,
    /// Does not work.
    Wrong,
}

/// The subject of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The configuration, by its file.
    Config(String),
    /// The driver of the GPUs.
    Driver,
    /// A GPU, by its number.
    Gpu(u32),
    /// A receiver, by its URL.
    Endpoint(String),
    /// Variables of the environment.
    Environment(String),
    /// The translation of names at this address.
    Names(String),
    /// A Prometheus, by its URL.
    Prometheus(String),
    /// A log, or a path or pattern of logs.
    Log(PathBuf),
    /// A file that the agent writes.
    File(PathBuf),
    /// A folder that the agent writes to.
    Folder(PathBuf),
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    #[serde(serialize_with = "as_text")]
    pub(super) place: Subject,
    pub(super) what: String,
    /// The remedy, if there is a problem.
    #[serde(rename = "do")]
    pub(super) advice: Option<String>,
    /// The cause as the agent reports it, if that is not `what`.
    #[serde(skip)]
    cause: Option<String>,
}

/// All findings, in the order of the checks.
#[derive(Debug, Default, Serialize)]
pub(super) struct Findings {
    findings: Vec<Finding>,
}

impl Findings {
    /// Adds a finding about something that works as intended.
    pub(super) fn fine(&mut self, place: Subject, what: impl Into<String>) {
        self.push(Level::Ok, place, what.into(), None);
    }

    /// Adds a finding that works, but perhaps not as the user expects.
    pub(super) fn warn(&mut self, place: Subject, what: impl Into<String>, advice: impl Into<String>) {
        self.push(Level::Warning, place, what.into(), Some(advice.into()));
    }

    /// Adds a finding that does not work.
    pub(super) fn wrong(&mut self, place: Subject, what: impl Into<String>, advice: impl Into<String>) {
        self.push(Level::Wrong, place, what.into(), Some(advice.into()));
    }

    /// Adds a problem, with the advice `otherwise` if its remedy is unknown. Its subject is the place.
    pub(super) fn add(&mut self, level: Level, place: Subject, problem: Problem, otherwise: &'static str) {
        let advice = problem.remedy.unwrap_or(Cow::Borrowed(otherwise));
        self.push(level, place, problem.what, Some(advice.into()));
    }

    /// Adds a finding about a file or a folder that cannot be written. The agent reports this error about the same path in
    /// its own words.
    pub(super) fn unwritable(
        &mut self,
        place: Subject,
        path: &Path,
        what: String,
        error: io::Error,
        advice: String,
    ) {
        let of_agent = SinkError::OpenFile {
            path: path.to_owned(),
            remedy: "",
            source: error,
        };
        self.push(Level::Wrong, place, what, Some(advice));
        if let Some(finding) = self.findings.last_mut() {
            finding.cause = Some(of_agent.problem().what);
        }
    }

    /// Returns whether a finding does not work.
    pub(super) fn has_wrong(&self) -> bool {
        self.count(Level::Wrong) > 0
    }

    /// Returns whether a finding that does not work has this cause.
    pub(super) fn explain(&self, cause: &str) -> bool {
        let mut wrong = (self.findings.iter()).filter(|finding| finding.level == Level::Wrong);
        wrong.any(|finding| finding.cause.as_ref().unwrap_or(&finding.what) == cause)
    }

    /// Returns whether a variable of the environment is known to be wrong, or to be misspelt.
    pub(super) fn concern(&self, variable: &str) -> bool {
        let rename = rename(variable);
        self.findings.iter().any(|finding| {
            let Subject::Environment(variables) = &finding.place else {
                return false;
            };
            let is_wrong =
                finding.level == Level::Wrong && variables.split(", ").any(|name| name == variable);
            is_wrong || finding.advice.as_ref() == Some(&rename)
        })
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the findings as text.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let Finding {
                level,
                place,
                what,
                advice,
                ..
            } = finding;
            let advice = advice.iter().map(|advice| format!("         -> {advice}\n"));
            // Writing to a string cannot fail.
            let _ = write!(text, "{level:<8} {place}: {what}\n{}", advice.collect::<String>());
        }
        let (wrong, warnings) = (self.count(Level::Wrong), self.count(Level::Warning));
        let _ = writeln!(text, "{wrong} wrong, {warnings} to know");
        text
    }

    /// Returns the findings as JSON.
    pub(super) fn to_json(&self) -> String {
        let all = serde_json::json!({
            "findings": self.findings,
            "wrong": self.count(Level::Wrong),
            "warnings": self.count(Level::Warning),
        });
        terminal::json_line(&all)
    }

    fn push(&mut self, level: Level, place: Subject, what: String, advice: Option<String>) {
        self.findings.push(Finding {
            level,
            place,
            what,
            advice,
            cause: None,
        });
    }

    fn count(&self, level: Level) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(file) => write!(f, "configuration {file}"),
            Self::Driver => f.write_str("GPU driver"),
            Self::Gpu(index) => write!(f, "GPU {index}"),
            Self::Endpoint(url) => write!(f, "endpoint {url}"),
            Self::Environment(variables) => write!(f, "environment {variables}"),
            Self::Names(place) => write!(f, "names at {place}"),
            Self::Prometheus(url) => write!(f, "Prometheus {url}"),
            Self::Log(path) => write!(f, "log {}", path.display()),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Folder(path) => write!(f, "folder {}", path.display()),
        }
    }
}

fn as_text<S: serde::Serializer>(place: &Subject, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_finding_with_the_same_cause_explains_a_problem() {
        let mut findings = Findings::default();
        let place = || Subject::Endpoint("http://collector:4318".to_owned());
        findings.wrong(place(), "HTTP status 503: ", "start it");
        assert!(!findings.explain("the disk queue is full"));
        findings.wrong(place(), "cannot reach it: connection refused", "start it");
        assert!(findings.explain("cannot reach it: connection refused"));
        let error = io::Error::from(io::ErrorKind::PermissionDenied);
        let what = format!("it cannot be written: {error}");
        let path = Path::new("out; 1.jsonl");
        findings.unwritable(
            Subject::File(path.to_owned()),
            path,
            what,
            error,
            "change it".to_owned(),
        );
        assert!(findings.explain("cannot write out; 1.jsonl: permission denied"));
    }
}

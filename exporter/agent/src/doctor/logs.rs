//! Checks the logs: whether each can be read, its format, its run and its rank.

use std::path::{Path, PathBuf};

use pulsetrain_tail::{Claims, ImportReport, LogInput, RunOptions, TailError, followed_files, inspect};

use super::finding::{Findings, Subject};
use crate::{
    config::{Config, SourceConfig},
    topology,
};

/// The limit on the logs of one path that are inspected.
const MAX_LOGS: usize = 64;

/// Inspects the logs of the command line and of the configuration.
pub(super) fn check(paths: &[PathBuf], config: Option<&Config>, findings: &mut Findings) {
    let claims = Claims::default();
    let options = RunOptions {
        claims: claims.clone(),
        ..RunOptions::default()
    };
    for path in paths {
        check_path(path, &options, findings);
    }
    let sources = config.into_iter().flat_map(|config| config.sources.iter());
    for (_, source) in sources {
        let SourceConfig::Logs(logs) = source else {
            continue;
        };
        let options = topology::run_options(logs, &claims);
        for path in &logs.paths {
            check_path(Path::new(&path.value), &options, findings);
        }
    }
}

/// Inspects the logs of a path, a folder or a pattern.
fn check_path(path: &Path, options: &RunOptions, findings: &mut Findings) {
    let files = followed_files(path);
    let place = || Subject::Log(path.to_owned());
    if files.is_empty() && path.exists() && !path.is_dir() {
        let advice = "name a file or a folder; pulsetrain import reads a pipe";
        findings.wrong(
            place(),
            "it is not a regular file, so it cannot be followed",
            advice,
        );
    } else if files.is_empty() {
        let advice = "start the trainer, or correct the path; the agent waits for the log until it exists";
        findings.warn(place(), "no file has this path", advice);
    }
    let is_folder = path.is_dir();
    let skipped = files.len().saturating_sub(MAX_LOGS);
    for file in files.into_iter().take(MAX_LOGS) {
        let report = inspect(&LogInput::Path(file.clone()), options);
        // Files of other types in a folder are not faults.
        if !is_folder || report.format.is_some() {
            describe(file, &report, findings);
        }
    }
    if skipped > 0 {
        let what = format!("{skipped} further files are not inspected");
        findings.fine(place(), what);
    }
}

fn describe(file: PathBuf, report: &ImportReport, findings: &mut Findings) {
    let place = Subject::Log(file);
    if let Some(error) = &report.error {
        let message = error.to_string();
        let (what, advice) = message
            .split_once("; ")
            .unwrap_or((&message, "check the file and its permissions"));
        return match error {
            // The trainer may have just started.
            TailError::Empty { .. } => findings.warn(place, what, advice),
            _ => findings.wrong(place, what, advice),
        };
    }
    let (format, signature) = report.format.unwrap_or_default();
    let ranks: Vec<String> = report.ranks.iter().map(i64::to_string).collect();
    let ranks = match &ranks[..] {
        [] => "no rank yet".to_owned(),
        [rank] => format!("rank {rank}"),
        ranks => format!("ranks {}", ranks.join(", ")),
    };
    let run = &report.run.id;
    findings.fine(
        place.clone(),
        format!("format {format} ({signature}), run {run}, {ranks}"),
    );
    for notice in &report.notices {
        match notice.rsplit_once("; ") {
            Some((what, advice)) => findings.warn(place.clone(), what, advice),
            None => findings.fine(place.clone(), notice.clone()),
        }
    }
    if report.counts.points == 0 {
        let advice = "map its keys: pulsetrain import --suggest-mapping LOG writes a mapping to edit";
        findings.warn(place, "its first lines have no value of a metric", advice);
    }
}

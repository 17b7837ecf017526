//! Checks the logs: whether each can be read, its format, its run and its rank.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use pulsetrain_formats::suggestion_command;
use pulsetrain_tail::{
    Claims, ImportNotice, ImportReport, LogInput, RunOptions, SharedRank, TailError, followed_files, inspect,
};

use super::finding::{Findings, Level, Subject};
use crate::{
    config::{self, Config, SourceConfig},
    import::folders::run_notices,
    topology,
};

/// The limit on the logs of one path that are inspected.
const MAX_LOGS: usize = 64;

/// The advice for a log whose remedy is unknown.
const CHECK_FILE: &str = "check the file and its permissions";

/// Inspects the logs of the command line and of the configuration.
pub(super) async fn check(
    paths: &[PathBuf],
    config: Option<&Config>,
    timeout: Duration,
    findings: &mut Findings,
) {
    let claims = Claims::default();
    let options = RunOptions {
        claims: claims.clone(),
        ..RunOptions::default()
    };
    let mut reports = Vec::new();
    for path in paths {
        reports.extend(check_path(path, true, &options, timeout, findings).await);
    }
    report_collisions(&reports, findings);
    report_runs(
        paths.first().map(PathBuf::as_path),
        &reports,
        "--run-id",
        findings,
    );
    let sources = config.into_iter().flat_map(|config| config.sources.iter());
    for (_, source) in sources {
        let SourceConfig::Logs(logs) = source else {
            continue;
        };
        let options = topology::run_options(logs, &claims);
        // Those that cannot be read are reported with the configuration.
        let paths = logs.paths.iter().map(|path| Path::new(&path.value));
        let mut reports = Vec::new();
        for path in paths.clone().filter(|path| config::readable(path).is_ok()) {
            let checked = check_path(path, logs.follow_links, &options, timeout, findings);
            reports.extend(checked.await);
        }
        report_collisions(&reports, findings);
        if logs.run_id.is_none() {
            report_runs(paths.clone().next(), &reports, "run_id of the source", findings);
        }
    }
}

/// Reports each rank that several logs record, once for all of them.
fn report_collisions(reports: &[ImportReport], findings: &mut Findings) {
    let mut collisions = BTreeMap::<&SharedRank, Vec<&str>>::new();
    for report in reports {
        for notice in &report.notices {
            if let ImportNotice::SharedRank(shared) = notice {
                collisions.entry(shared).or_default().push(&report.input);
            }
        }
    }
    for (shared, logs) in collisions {
        let mut problem = shared.problem();
        let Some((first, others)) = logs.split_first() else {
            continue;
        };
        if !others.is_empty() {
            problem.what += &format!(" (further logs: {})", others.len());
        }
        findings.add(Level::Warning, Subject::Log(first.into()), problem, CHECK_FILE);
    }
}

/// Reports logs of one trainer with several run ids, at the first of their paths.
fn report_runs(first: Option<&Path>, reports: &[ImportReport], setting: &str, findings: &mut Findings) {
    let Some(first) = first else { return };
    for problem in run_notices(reports.iter(), setting) {
        findings.add(
            Level::Warning,
            Subject::Log(first.to_owned()),
            problem,
            CHECK_FILE,
        );
    }
}

/// Inspects the logs of a path, a folder or a pattern. Returns the reports of those that can be read.
async fn check_path(
    path: &Path,
    follow_links: bool,
    options: &RunOptions,
    timeout: Duration,
    findings: &mut Findings,
) -> Vec<ImportReport> {
    let mut reports = Vec::new();
    let (files, refused) = followed_files(path, follow_links);
    let place = || Subject::Log(path.to_owned());
    let is_special = path.exists() && !path.is_dir() || path == Path::new("-");
    if files.is_empty() && is_special {
        let advice = "name a file or a folder; pulsetrain import reads a pipe";
        findings.wrong(
            place(),
            "it is not a regular file, so it cannot be followed",
            advice,
        );
    } else if files.is_empty()
        && let Err(problem) = config::readable(path)
    {
        let problem = problem.within("it cannot be read");
        findings.add(Level::Wrong, place(), problem, CHECK_FILE);
    } else if files.is_empty() {
        let advice = "start the trainer, or correct the path; the agent waits for the log until it exists";
        findings.warn(place(), "no file has this path", advice);
    }
    for link in refused.iter().take(MAX_LOGS) {
        findings.add(Level::Warning, place(), link.problem(), CHECK_FILE);
    }
    let is_folder = path.is_dir();
    let skipped = files.len().saturating_sub(MAX_LOGS);
    for file in files.into_iter().take(MAX_LOGS) {
        match head(&file, options, timeout).await {
            // Files of other types in a folder are not faults.
            Some(report) if is_folder && report.format.is_none() => {}
            Some(report) => {
                describe(file, &report, findings);
                if report.error.is_none() {
                    reports.push(report);
                }
            }
            None => findings.wrong(
                Subject::Log(file),
                format!("its first bytes are not read within {} s", timeout.as_secs_f64()),
                "name a file on a disk that answers; --timeout allows it more time",
            ),
        }
    }
    if skipped > 0 {
        let what = format!("{skipped} further files are not inspected");
        findings.fine(place(), what);
    }
    reports
}

/// Inspects the head of a log. Returns `None` if it does not arrive in time, as from `/proc/kmsg`.
async fn head(file: &Path, options: &RunOptions, timeout: Duration) -> Option<ImportReport> {
    let (input, options) = (LogInput::Path(file.to_owned()), options.clone());
    let inspected = tokio::task::spawn_blocking(move || inspect(&input, &options));
    tokio::time::timeout(timeout, inspected).await.ok()?.ok()
}

fn describe(file: PathBuf, report: &ImportReport, findings: &mut Findings) {
    let place = Subject::Log(file);
    if let Some(error) = &report.error {
        // The trainer may have just started.
        let level = match error {
            TailError::Empty { .. } => Level::Warning,
            _ => Level::Wrong,
        };
        let mut problem = error.problem();
        // The finding has the name of the log as its place.
        if let Some(of_log) = problem.what.strip_prefix(&report.input) {
            problem.what = of_log.trim_start_matches([':', ' ']).to_owned();
        }
        return findings.add(level, place, problem, CHECK_FILE);
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
        match notice {
            ImportNotice::Other(problem) if problem.remedy.is_some() => {
                findings.add(Level::Warning, place.clone(), problem.clone(), CHECK_FILE);
            }
            ImportNotice::Other(problem) => findings.fine(place.clone(), &problem.what),
            // Reported once for all logs.
            _ => {}
        }
    }
    if report.counts.points == 0 {
        let advice = format!(
            "map its keys: `{}` writes a mapping to edit",
            suggestion_command(&report.input)
        );
        findings.warn(place, "its first lines have no value of a metric", &advice);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::runtime;

    #[test]
    fn log_whose_bytes_do_not_arrive_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let inspected = runtime::run_on(1, |runtime| {
            let options = RunOptions::default();
            let head = head(&pipe, &options, Duration::from_millis(100));
            Ok(runtime.block_on(head).is_some())
        });
        assert!(!inspected.unwrap());
    }
}

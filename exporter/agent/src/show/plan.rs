//! The order in which files are read: run by run, and the files of one run in order of time.

use std::{collections::BTreeSet, path::PathBuf};

use pulsetrain_otlp::UnixNanos;

use super::{
    contents::Contents,
    inputs::{Input, InputKind},
};

/// A file with its derivation group.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) input: Input,
    /// The group of files whose signals are derived together; `None` for files that have derived signals.
    pub(super) derivation: Option<usize>,
}

/// Files that share a run.
#[derive(Default)]
struct Group {
    runs: BTreeSet<String>,
    files: Vec<(UnixNanos, Input)>,
    has_derived: bool,
}

/// Orders the files. `run_of_log` returns the run of a log that shares it with other logs, and `contents` those of a
/// recorded file.
///
/// Files of one run are adjacent, because the page rejects points that are older than its newest ones. A run has derived
/// signals if one of its files has them, as rotated files do.
pub(super) fn order(
    inputs: Vec<Input>,
    run_of_log: impl Fn(&PathBuf) -> Option<String>,
    contents: impl Fn(&PathBuf) -> Contents,
) -> Vec<Step> {
    let mut groups: Vec<Group> = Vec::new();
    for input in inputs {
        let contents = match input.kind {
            InputKind::Log => Contents {
                runs: run_of_log(&input.path).into_iter().collect(),
                ..Contents::default()
            },
            InputKind::Recorded => contents(&input.path),
        };
        let mut group = Group {
            runs: contents.runs,
            files: vec![(contents.begin_unix_nanos, input)],
            has_derived: contents.has_derived,
        };
        // A file of several runs joins their groups.
        let (same, mut others): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|other| !other.runs.is_disjoint(&group.runs));
        for other in same {
            group.runs.extend(other.runs);
            group.files.extend(other.files);
            group.has_derived |= other.has_derived;
        }
        others.push(group);
        groups = others;
    }
    let of_group = |(number, mut group): (usize, Group)| {
        let files = &mut group.files;
        files.sort_by(|(time, input), (other_time, other)| {
            time.cmp(other_time).then_with(|| input.path.cmp(&other.path))
        });
        let derivation = (!group.has_derived).then_some(number);
        (group.files.into_iter()).map(move |(_, input)| Step { input, derivation })
    };
    groups.into_iter().enumerate().flat_map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(name: &str) -> Input {
        Input {
            path: name.into(),
            kind: InputKind::Recorded,
        }
    }

    #[test]
    fn files_of_one_run_are_ordered_by_time() {
        let files = ["a", "b", "c", "d"].map(recorded);
        let contents = |path: &PathBuf| {
            let (run, begin, has_derived) = match path.to_str() {
                Some("a") => ("one", 20, false),
                Some("b") => ("two", 5, true),
                Some("c") => ("one", 10, false),
                _ => ("two", 1, false),
            };
            Contents {
                runs: [run.to_owned()].into(),
                begin_unix_nanos: UnixNanos(begin),
                has_derived,
            }
        };
        let steps = order(files.into(), |_| None, contents);
        let shown: Vec<_> = (steps.iter())
            .map(|step| (step.input.path.to_str().unwrap(), step.derivation.is_some()))
            .collect();
        assert_eq!(shown, [("c", true), ("a", true), ("d", false), ("b", false)]);
        assert_eq!(steps[0].derivation, steps[1].derivation);
    }

    #[test]
    fn logs_are_separate_runs_unless_they_share_a_run_id() {
        let log = |name: &str| Input {
            path: name.into(),
            kind: InputKind::Log,
        };
        let run_of_log = |path: &PathBuf| (!path.ends_with("alone")).then(|| "r".to_owned());
        let steps = order(vec![log("2"), log("alone"), log("1")], run_of_log, |_| {
            Contents::default()
        });
        let names: Vec<_> = steps
            .iter()
            .map(|step| step.input.path.to_str().unwrap())
            .collect();
        assert_eq!(names, ["alone", "1", "2"]);
        assert_ne!(steps[0].derivation, steps[1].derivation);
        assert_eq!(steps[1].derivation, steps[2].derivation);
    }
}

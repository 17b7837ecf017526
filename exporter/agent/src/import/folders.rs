//! Finds folders whose logs may be several views of one run: the same values are then counted once per run id.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use pulsetrain_pipeline::Problem;
use pulsetrain_tail::ImportReport;

/// Returns a notice for each folder in which the logs of one trainer have several run ids.
pub(super) fn notices(folders: &[PathBuf], inputs: &[ImportReport]) -> Vec<String> {
    let notices = folders.iter().flat_map(|folder| {
        let inside = inputs
            .iter()
            .filter(|input| Path::new(&input.input).starts_with(folder));
        let found = run_notices(inside, "--run-id");
        found
            .into_iter()
            .map(move |notice| notice.about(folder.display().to_string()).to_string())
    });
    notices.collect()
}

/// Returns a notice for each trainer whose logs have several run ids. `setting` names the setting for a common id.
pub(crate) fn run_notices<'a>(inputs: impl Iterator<Item = &'a ImportReport>, setting: &str) -> Vec<Problem> {
    let mut runs = BTreeMap::<&str, (BTreeSet<&str>, usize)>::new();
    for input in inputs.filter(|input| input.format.is_some()) {
        let (ids, logs) = runs.entry(&input.run.framework).or_default();
        ids.insert(&input.run.id);
        *logs += 1;
    }
    runs.into_iter()
        .filter(|(_, (ids, _))| ids.len() > 1)
        .map(|(trainer, (ids, logs))| {
            let runs = ids.len();
            let what = format!(
                "the {logs} logs of {trainer} have {runs} run ids, because no id is common to them"
            );
            Problem::new(what).with_remedy(format!(
                "if they are of one run, give them one with {setting}, or its values count {runs} times in sums over runs"
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use pulsetrain_record::Run;

    use super::*;

    fn report(input: &str, framework: &str, id: &str) -> ImportReport {
        ImportReport {
            input: input.to_owned(),
            format: Some(("format", "sign")),
            run: Run {
                framework: framework.to_owned(),
                id: id.to_owned(),
                ..Run::default()
            },
            ..ImportReport::default()
        }
    }

    #[test]
    fn several_run_ids_of_one_trainer_in_a_folder_cause_a_notice() {
        let inputs = [
            report("run/stdout.log", "hf-trainer", "a"),
            report("run/tb/events", "hf-trainer", "b"),
            report("run/other.log", "maxtext", "c"),
            report("runs/stdout.log", "hf-trainer", "d"),
        ];
        let found = notices(&[PathBuf::from("run"), PathBuf::from("runs")], &inputs);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("run: the 2 logs of hf-trainer have 2 run ids"),
            "{found:?}"
        );
        let same = [report("run/a", "maxtext", "a"), report("run/b", "maxtext", "a")];
        assert_eq!(notices(&[PathBuf::from("run")], &same), [""; 0]);
    }
}

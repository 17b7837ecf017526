//! Finds folders whose logs may be several views of one run: the same values are then counted once per run id.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use pulsetrain_tail::ImportReport;

/// Returns a notice for each folder in which the logs of one trainer have several run ids.
pub(super) fn notices(folders: &[PathBuf], inputs: &[ImportReport]) -> Vec<String> {
    let notices = folders.iter().flat_map(|folder| {
        let mut runs = BTreeMap::<&str, (BTreeSet<&str>, usize)>::new();
        for input in inputs.iter().filter(|input| is_read(input, folder)) {
            let (ids, logs) = runs.entry(&input.run.framework).or_default();
            ids.insert(&input.run.id);
            *logs += 1;
        }
        runs.into_iter()
            .filter(|(_, (ids, _))| ids.len() > 1)
            .map(|(trainer, (ids, logs))| notice(folder, trainer, ids.len(), logs))
    });
    notices.collect()
}

fn is_read(input: &ImportReport, folder: &Path) -> bool {
    input.format.is_some() && Path::new(&input.input).starts_with(folder)
}

fn notice(folder: &Path, trainer: &str, runs: usize, logs: usize) -> String {
    let folder = folder.display();
    format!(
        "{folder}: the {logs} logs of {trainer} have {runs} run ids, because no id is common to them; if they are of one run, give them \
         one with --run-id, or its values count {runs} times in sums over runs"
    )
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

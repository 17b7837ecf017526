//! TensorBoard's event files and wandb's files of runs in folders. As in TensorBoard, all event files below a folder are read, and the
//! event files of one folder are one run. wandb writes `wandb/run-20260102_100000-ID/run-ID.wandb`.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use pulsetrain_formats::{LogFormat, TENSORBOARD, WANDB};
use pulsetrain_record::ids;

use crate::RunOptions;

/// The prefix of the name of an event file. The creation time follows, so the order of names is that of creation.
const NAME: &str = "events.out.tfevents.";
/// The number of bytes that identify a run.
const HEAD_BYTES: u64 = 64 << 10;
/// The depth to which folders are searched.
const DEPTH: usize = 16;

/// Returns the event files and the files of wandb's runs in a folder and its subfolders, sorted. With a format, returns its files
/// only. Links to folders are not followed.
pub(crate) fn run_files(folder: &Path, format: Option<&LogFormat>) -> Vec<PathBuf> {
    let reads = |written: &LogFormat| format.is_none_or(|format| format.name == written.name);
    let (events, wandb) = (reads(&TENSORBOARD), reads(&WANDB));
    let is_found = |path: &Path| events && is_event_file(path) || wandb && is_wandb_file(path);
    let mut found = Vec::new();
    if events || wandb {
        search(folder, DEPTH, &is_found, &mut found);
    }
    found.sort();
    found
}

fn search(folder: &Path, depth: usize, is_found: &impl Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_found(&path) {
            found.push(path);
        } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            search(&path, depth - 1, is_found, found);
        }
    }
}

fn is_event_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(NAME))
}

fn is_wandb_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let has_extension = path.extension().is_some_and(|extension| extension == "wandb");
    has_extension && name.is_some_and(|name| name.starts_with("run-"))
}

/// Returns the options for one input. A restarted trainer writes another event file into the same folder: all of them belong to the
/// run of the first one, unless the user names a run.
pub fn options_of_file(path: &Path, options: &RunOptions) -> RunOptions {
    RunOptions {
        run_id: options.run_id.clone().or_else(|| run_id_of_folder(path)),
        ..options.clone()
    }
}

/// Returns the run of the oldest event file in the folder of an event file.
fn run_id_of_folder(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|_| is_event_file(path))?;
    let siblings = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let oldest = siblings.filter(|sibling| is_event_file(sibling)).min()?;
    let mut head = Vec::new();
    File::open(oldest)
        .ok()?
        .take(HEAD_BYTES)
        .read_to_end(&mut head)
        .ok()?;
    let first_record = (TENSORBOARD.identify)(&head).first_record;
    (!first_record.is_empty()).then(|| ids::run_id(TENSORBOARD.name, &first_record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_runs_below_a_folder_are_found_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "b/events.out.tfevents.2.host",
            "a/deep/events.out.tfevents.9.host",
            "b/events.out.tfevents.1.host",
            "wandb/run-20260102_100000-abc/run-abc.wandb",
            "wandb/offline-run-20260102_100000-def/run-def.wandb",
        ];
        for name in names.iter().chain(&["b/checkpoint.pt"]) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        let mut expected: Vec<PathBuf> = names.iter().map(|name| folder.path().join(name)).collect();
        expected.sort();
        assert_eq!(run_files(folder.path(), None), expected);
        assert_eq!(run_files(folder.path(), Some(&WANDB)), expected[3..]);
    }

    #[test]
    fn event_files_of_one_folder_belong_to_the_run_of_the_first_one() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
        let first = folder.path().join("events.out.tfevents.1.host");
        let second = folder.path().join("events.out.tfevents.2.host");
        for (from, to) in [("kempnerforge", &first), ("torchspec", &second)] {
            let sample = run_files(&corpus.join(from), None).remove(0);
            fs::copy(sample, to).unwrap();
        }
        let options = RunOptions::default();
        let of = |path: &Path, options: &RunOptions| options_of_file(path, options).run_id;
        assert!(of(&first, &options).is_some());
        assert_eq!(of(&first, &options), of(&second, &options));
        assert_eq!(of(Path::new("training.json"), &options), None);
        let named = RunOptions {
            run_id: Some("mine".to_owned()),
            ..options
        };
        assert_eq!(of(&second, &named).as_deref(), Some("mine"));
    }
}

//! One run of the program, and its results.

use std::{collections::BTreeMap, env, ffi::OsString, fs, os::unix::fs::MetadataExt, process::Command};

use pulsetrain_tests::{FakeNvml, Folder, command, workspace_path};
use serde_json::Value;

/// A completed run.
pub(crate) struct Check {
    pub(crate) code: Option<i32>,
    /// The table and the last line of the output.
    pub(crate) output: String,
    pub(crate) corpus: Folder,
    rows: Vec<Value>,
}

/// Runs these experiments on a scenario with changes.
pub(crate) fn run(scenario: &str, changes: &str, only: &str) -> Check {
    run_with(scenario, changes, only, true)
}

/// As [`run`]; `tools` adds nvidia-smi and the loads.
pub(crate) fn run_with(scenario: &str, changes: &str, only: &str, tools: bool) -> Check {
    let fake = FakeNvml::with(scenario, changes);
    fake.equip_tools();
    // The scenario in a control group that may use only one of the GPUs.
    let denied = "extends: scenario.yaml\nfaults: [{what: answers, error: NO_PERMISSION, gpus: [1]}]\n";
    fs::write(fake.folder().join("cgroup.yaml"), denied).expect("a file can be written");
    fake.run_from(0.0);
    let (corpus, program) = (Folder::new(), workspace_path("tests/gpu-check"));
    let folder = workspace_path("tests/fake-nvml/tools");
    let pulsetrain = command([]);
    let mut check = Command::new("python3");
    check
        .arg(&program)
        .args(["--time-scale", "0.05", "--disruptive", "--only", only])
        .arg("--pulsetrain")
        .arg(pulsetrain.get_program())
        .arg("--library")
        .arg(fake.library())
        .arg("--corpus")
        .arg(corpus.path("corpus"))
        .env("FAKE_NVML_FOLDER", fake.folder())
        .env("GPU_CHECK", &program)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Even if torch is installed, there is no GPU.
        .env("CUDA_VISIBLE_DEVICES", "")
        .env("TZ", "UTC");
    if tools {
        let mut path: OsString = folder.clone().into();
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let load = format!("python3 {}", folder.join("load.py").display());
        check.arg("--load").arg(load).env("PATH", path);
    }
    let done = check.output().expect("python3 can be started");
    let rows = fs::read_to_string(corpus.path("corpus/results.json")).unwrap_or_default();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    Check {
        code: done.status.code(),
        output: String::from_utf8_lossy(&done.stdout).into_owned(),
        rows: serde_json::from_str(&rows).unwrap_or_else(|error| panic!("{error}: {errors}")),
        corpus,
    }
}

impl Check {
    /// Returns the rows of an experiment: the compared value, and the verdict.
    pub(crate) fn rows(&self, experiment: u64) -> Vec<(&str, &str)> {
        let of_it = self.rows.iter().filter(|row| row["experiment"] == experiment);
        of_it
            .map(|row| {
                (
                    row["what"].as_str().expect("text"),
                    row["verdict"].as_str().expect("text"),
                )
            })
            .collect()
    }

    /// Panics unless each of these experiments compared something and none failed. Without root, experiments that require root
    /// are skipped.
    #[track_caller]
    pub(crate) fn assert_passed(&self, experiments: &[u64]) {
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        for experiment in experiments {
            let rows = self.rows(*experiment);
            let mut verdicts: BTreeMap<&str, u32> = BTreeMap::new();
            rows.iter()
                .for_each(|(_, verdict)| *verdicts.entry(verdict).or_default() += 1);
            let needs_root = rows.iter().any(|(what, _)| what.contains("it needs root"));
            if needs_root && !is_root {
                continue;
            }
            assert!(verdicts.contains_key("passed"), "{experiment}: {rows:#?}");
            assert!(
                !verdicts.contains_key("FAILED") && !verdicts.contains_key("skipped"),
                "{experiment}:\n{}",
                self.output
            );
        }
        assert_eq!(self.code, Some(0), "{}", self.output);
    }
}

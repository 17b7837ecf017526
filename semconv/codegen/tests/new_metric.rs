//! A new metric changes about ten generated lines, and two branches that each add one merge without a conflict.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::slice;

use pulsetrain_codegen::{Registry, check, generate, write};
use tempfile::TempDir;

/// The largest number of generated lines that a metric with two attributes and two sources adds.
const MAX_LINES: usize = 10;

/// The line of a file of the registry below which its metrics are defined.
const METRICS: &str = "\nmetrics:\n";

/// Lines that are added to a copy of a file.
#[derive(Clone)]
struct Addition {
    /// The path, relative to the workspace.
    file: &'static str,
    /// The text of the file below which the lines are added.
    below: &'static str,
    lines: String,
}

impl Addition {
    /// Returns the entry of a new counter in the grammar of the registry.
    fn counter(file: &'static str, name: &str, attributes: [&str; 2]) -> Self {
        let [first, second] = attributes;
        let lines = format!(
            "  - name: {name}
    brief: Things that a test adds to a copy of the registry.
    unit: \"{{thing}}\"
    instrument: counter
    stability: development
    requirement_level: recommended
    attributes:
      - ref: {first}
        requirement_level: required
      - ref: {second}
        requirement_level: recommended
    annotations:
      code_generation:
        metric_value_type: int
      pulsetrain:
        aggregation: sum
        sources:
          nemo: [\"lost\"]
          surogate: [\"step: lost\", \"jsonl: train/lost\"]

"
        );
        Self {
            file,
            below: METRICS,
            lines,
        }
    }

    fn rejected_tokens() -> Self {
        let attributes = ["gpu.id", "gpu.index"];
        Self::counter("semconv/registry/moe.yaml", "moe.rejected_tokens", attributes)
    }

    fn dropped_steps() -> Self {
        let attributes = ["train.component", "train.phase"];
        Self::counter("semconv/registry/train.yaml", "train.dropped_steps", attributes)
    }

    /// Returns the lines that the diffs of CONTRIBUTING.md add to a file.
    fn from_contributing(file: &'static str, below: &'static str) -> Self {
        let text = fs::read_to_string(workspace().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
        let head = format!("+++ b/{file}\n");
        let (_, diff) = text
            .split_once(&head)
            .expect("CONTRIBUTING.md has a diff of the file");
        let lines: String = diff
            .lines()
            .take_while(|line| line.starts_with(['+', '@']))
            .filter_map(|line| line.strip_prefix('+'))
            .map(|line| format!("{line}\n"))
            .collect();
        Self { file, below, lines }
    }
}

/// The generated files of a copy of the registry and the mappings with additions.
struct Branch {
    folder: TempDir,
    paths: Vec<PathBuf>,
}

impl Branch {
    fn new(additions: &[Addition]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [registry, mappings] = ["semconv/registry", "exporter/mapping/mappings"].map(|source| {
            let copy = folder.path().join("copy").join(source);
            copy_files(&workspace().join(source), &copy);
            copy
        });
        for Addition { file, below, lines } in additions {
            let path = folder.path().join("copy").join(file);
            let text = fs::read_to_string(&path).expect("a copied file");
            let (head, tail) = text.split_once(below).expect("the place of the addition");
            fs::write(&path, [head, below, lines, tail].concat()).expect("the copy can be written");
        }
        let registry = Registry::load(&registry)
            .and_then(|registry| registry.with_trainers(&mappings))
            .expect("the copies are in the grammar");
        assert_eq!(check(&registry), []);
        let outputs = generate(&registry).expect("generated");
        write(&folder.path().join("generated"), &outputs).expect("written");
        let paths = outputs.into_iter().map(|output| output.path).collect();
        Self { folder, paths }
    }

    fn path(&self, file: &Path) -> PathBuf {
        self.folder.path().join("generated").join(file)
    }

    fn read(&self, file: &Path) -> String {
        fs::read_to_string(self.path(file)).expect("a generated file")
    }

    /// Returns the number of added and of removed lines in all files, compared with another branch.
    fn changed_lines(&self, base: &Self) -> [usize; 2] {
        let folders = [base, self].map(|branch| branch.path(Path::new("")));
        let changes = git(&["diff", "--no-index", "--numstat"], &folders);
        let changes = String::from_utf8(changes.stdout).expect("numbers and paths");
        let mut sums = [0, 0];
        for line in changes.lines() {
            for (sum, count) in sums.iter_mut().zip(line.split('\t')) {
                *sum += count.parse::<usize>().expect("a number of lines");
            }
        }
        sums
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder of the workspace") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a file can be copied");
    }
}

fn git(arguments: &[&str], paths: &[PathBuf]) -> Output {
    let output = Command::new("git").args(arguments).args(paths).output();
    output.expect("git can be started")
}

#[test]
fn new_metric_adds_about_ten_generated_lines_and_changes_none() {
    let base = Branch::new(&[]);
    for addition in [Addition::rejected_tokens(), Addition::dropped_steps()] {
        let [added, removed] = Branch::new(slice::from_ref(&addition)).changed_lines(&base);
        assert!(
            (5..=MAX_LINES).contains(&added),
            "{added} lines for\n{}",
            addition.lines
        );
        assert_eq!(removed, 0, "lines change for\n{}", addition.lines);
    }
}

#[test]
fn branches_that_each_add_a_metric_merge_without_a_conflict() {
    let base = Branch::new(&[]);
    let ours = entry_of_contributing();
    let our_branch = Branch::new(&ours);
    assert!(
        base.paths.len() > 10,
        "only {} files are generated",
        base.paths.len()
    );
    for theirs in [Addition::rejected_tokens(), Addition::dropped_steps()] {
        let their_branch = Branch::new(slice::from_ref(&theirs));
        let both = Branch::new(&[ours.as_slice(), &[theirs]].concat());
        for file in &base.paths {
            let versions = [&our_branch, &base, &their_branch].map(|branch| branch.path(file));
            let merged = git(&["merge-file", "-p"], &versions);
            let text = String::from_utf8_lossy(&merged.stdout);
            assert!(merged.status.success(), "{}: {text}", file.display());
            assert!(
                text == both.read(file),
                "{} is not generated from both",
                file.display()
            );
        }
    }
}

#[test]
fn metric_of_contributing_generates_the_lines_shown_there() {
    let branch = Branch::new(&entry_of_contributing());
    for file in [
        "semconv/src/generated/metric.rs",
        "semconv/src/generated/instruments.rs",
    ] {
        let shown = Addition::from_contributing(file, "").lines;
        let generated = branch.read(Path::new(file.trim_start_matches("semconv/")));
        assert!(
            !shown.is_empty() && generated.contains(&shown),
            "{file}:\n{shown}"
        );
    }
}

/// Returns the entry of CONTRIBUTING.md in the registry and its line in the mapping of Surogate.
fn entry_of_contributing() -> [Addition; 2] {
    [
        Addition::from_contributing("semconv/registry/moe.yaml", METRICS),
        Addition::from_contributing("exporter/mapping/mappings/surogate.yaml", "\n  step:\n"),
    ]
}

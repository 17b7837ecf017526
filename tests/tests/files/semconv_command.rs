//! `pulsetrain semconv`: our output conforms to the registry, and violations are found.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use pulsetrain_tests::{Folder, Import, corpus, semconv};

#[test]
fn import_output_conforms_to_the_registry() {
    let folder = Folder::new();
    for log in ["surogate/training_dense.json", "surogate/training_moe.json"] {
        for name in ["out.jsonl", "out.binpb"] {
            let file = folder.path(name);
            let imported = Import::new(corpus(log)).to(&file).run().expect_code(0);
            let finished = semconv(["check".as_ref(), file.as_os_str()]).expect_code(0);
            let delivered = &imported.summary()["delivered"];
            assert_eq!(finished.stdout, format!("{delivered} items, nothing found\n"));
        }
    }
}

/// Uses two threads, because this is the slowest of the tests on files.
#[test]
fn every_corpus_sample_conforms_to_the_registry() {
    let mut files = Vec::new();
    let mut folders = vec![corpus("")];
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder can be listed");
            folders.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
        } else {
            files.push(path);
        }
    }
    let halves = files.split_at(files.len() / 2);
    let checked = thread::scope(|scope| {
        let other = scope.spawn(|| check_samples(halves.1));
        check_samples(halves.0) + other.join().expect("the samples are as they must be")
    });
    assert!(checked > 30, "only {checked} samples were recognised");
}

/// Imports files and checks the result. Returns the number of files with a known format.
fn check_samples(files: &[PathBuf]) -> usize {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let mut checked = 0;
    for path in files {
        let imported = Import::new(path).to(&out).run();
        // A Perfetto trace, an expectation, a note: a file of no known format is reported as such.
        if imported.stderr.contains("none of the formats") || imported.stdout.contains("none of the formats")
        {
            continue;
        }
        let finished = semconv(["check".as_ref(), out.as_os_str()]);
        assert!(
            finished.stdout.ends_with("nothing found\n"),
            "{}: {}",
            path.display(),
            finished.stdout
        );
        checked += 1;
    }
    checked
}

#[test]
fn every_golden_file_conforms_to_the_registry() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let (mut folders, mut checked) = (vec![golden], 0);
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder can be listed");
            folders.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            let finished = semconv(["check".as_ref(), path.as_os_str()]).expect_code(0);
            assert!(finished.stdout.ends_with("nothing found\n"), "{}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 35, "only {checked} golden files were found");
}

#[test]
fn every_deviation_is_listed() {
    let folder = Folder::new();
    let file = folder.path("out.jsonl");
    Import::new(corpus("surogate/training_dense.json"))
        .to(&file)
        .run()
        .expect_code(0);
    let text = fs::read_to_string(&file).expect("the output can be read");
    let changed = [
        (r#""name":"train.loss""#, r#""name":"train.lost""#),
        (r#""unit":"W""#, r#""unit":"mW""#),
        (r#""key":"gpu.id""#, r#""key":"gpu.ident""#),
    ];
    let text = changed.iter().fold(text, |text, (ours, other)| {
        assert!(text.contains(ours), "{ours} is not in the output");
        text.replace(ours, other)
    });
    fs::write(&file, text).expect("the output can be written");
    let finished = semconv(["check".as_ref(), file.as_os_str()]).expect_code(1);
    for words in [
        ["train.lost", "unknown"],
        ["gpu.power", "mW"],
        ["gpu.clock.limit lacks", "gpu.id"],
    ] {
        let printed = finished
            .stdout
            .lines()
            .any(|line| words.iter().all(|word| line.contains(word)));
        assert!(printed, "{words:?} is not in\n{}", finished.stdout);
    }
}

#[test]
fn semconv_check_reports_a_file_that_is_not_otlp() {
    for (path, word) in [
        (corpus("surogate/training_dense.json"), "training_dense.json"),
        ("absent".into(), "absent"),
    ] {
        let finished = semconv(["check".as_ref(), path.as_os_str()]).expect_code(1);
        assert!(
            format!("{}{}", finished.stdout, finished.stderr).contains(word),
            "{finished:?}"
        );
    }
}

#[test]
fn semconv_names_are_listed_and_shown() {
    let list = semconv(["list"]).expect_code(0);
    for name in ["train.loss", "train.run.id", "eval.run", "run.option"] {
        assert!(list.stdout.contains(name), "{name} is not in the list");
    }
    let show = semconv(["show", "train.loss"]).expect_code(0);
    for word in ["train.loss", "train_loss", "gauge", "surogate"] {
        assert!(
            show.stdout.to_lowercase().contains(word),
            "{word} is not in\n{}",
            show.stdout
        );
    }
    semconv(["show", "train.lost"])
        .expect_code(1)
        .expect_words(&["train.loss"]);
    semconv(["explain"]).expect_code(2);
}

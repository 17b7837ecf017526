//! Bad input: a clear message with the fix, the documented exit code, no panic.

use std::{fs, fs::Permissions, os::unix::fs::PermissionsExt, path::Path};

use pulsetrain_tests::{Finished, Folder, Import, Items, as_unprivileged, corpus, otlp::gzip};

const STEP: &str = r#"{"log": "step", "time": "2026-11-21 00:18:40.989663449", "step": 7, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": 2.5, "lr": 2e-05}"#;

#[test]
fn garbage_is_distinguished_from_a_log() {
    let folder = Folder::new();
    // Every byte value, in an order that is not valid text.
    let garbage: Vec<u8> = (0..100_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let finished = import(&folder.file("garbage", garbage)).run().expect_code(1);
    finished.expect_words(&["garbage", "--format"]);
}

#[test]
fn garbage_with_an_explicit_format_is_skipped_and_counted() {
    let folder = Folder::new();
    let finished = import(&folder.file("garbage", [0xff; 10_000]))
        .arg("--format")
        .arg("surogate")
        .run();
    let finished = finished.expect_code(1);
    assert!(finished.total("skipped") > 0, "{}", finished.stderr);
}

#[test]
fn empty_file_is_reported_with_its_name() {
    let folder = Folder::new();
    import(&folder.file("empty.json", b""))
        .run()
        .expect_code(1)
        .expect_words(&["empty.json", "empty"]);
}

#[test]
fn directory_without_logs_is_reported_with_the_fix() {
    let folder = Folder::new();
    folder.file("checkpoint.pt", b"PK\x03\x04");
    import(folder.root())
        .run()
        .expect_code(1)
        .expect_words(&["is a directory", "no file in it", "--format"]);
}

/// As with `--follow`. All other files in the folder of a run are ignored.
#[test]
fn import_of_a_directory_reads_its_logs_and_ignores_other_files() {
    let folder = Folder::new();
    let log = fs::read(corpus("surogate/training_dense.json")).expect("the corpus can be read");
    let events = corpus("kempnerforge/tensorboard");
    let events = fs::read_dir(events).expect("it is a folder").flatten().next();
    let events_file = fs::read(events.expect("it holds a file").path()).expect("the corpus can be read");
    folder.file("training.json", &log);
    folder.file(
        "console.log.1.gz",
        gzip(&fs::read(corpus("surogate/console_dense.log")).expect("it can be read")),
    );
    folder.file("checkpoint.pt", b"PK\x03\x04");
    folder.file(".training.json.swp", &log);
    fs::create_dir_all(folder.path("tb/run")).expect("a folder can be made");
    folder.file("tb/run/events.out.tfevents.1795219833.vm.1.0", events_file);
    let read = |format: &str| {
        let finished = import(folder.root()).arg("--format").arg(format).run();
        let finished = finished.expect_code(0);
        let summary = finished.summary();
        let inputs = summary["inputs"].as_array().expect("inputs are listed");
        let name = |input: &serde_json::Value| {
            let path = input["input"].as_str().expect("an input has a name");
            path.rsplit('/').next().unwrap_or_default().to_owned()
        };
        // They are listed in the order in which they are finished.
        let names: std::collections::BTreeSet<String> = inputs.iter().map(name).collect();
        names.into_iter().collect::<Vec<_>>()
    };
    let (log, console) = ("training.json", "console.log.1.gz");
    let events = "events.out.tfevents.1795219833.vm.1.0";
    assert_eq!(read("auto"), [console, events, log]);
    assert_eq!(read("surogate"), [log]);
    assert_eq!(read("tensorboard"), [events]);
}

#[test]
fn missing_file_is_reported_with_its_name() {
    let folder = Folder::new();
    import(&folder.path("absent.json"))
        .run()
        .expect_code(1)
        .expect_words(&["absent.json", "No such file"]);
}

#[test]
fn gzip_and_zstd_logs_are_read_and_truncated_ones_reported() {
    let folder = Folder::new();
    let log = fs::read(corpus("surogate/training_dense.json")).expect("the corpus can be read");
    let out = folder.path("out.jsonl");
    let complete = gzip(&log.repeat(40));
    for (name, bytes) in [("training.json.gz", gzip(&log)), ("training.zst", zstd(&log))] {
        Import::new(folder.file(name, bytes))
            .to(&out)
            .run()
            .expect_code(0);
        assert_eq!(Items::read(&out).values("train.loss").len(), 30, "{name}");
    }
    let torn = &complete[..complete.len() / 2];
    Import::new(folder.file("torn.gz", torn))
        .to(&out)
        .run()
        .expect_code(1)
        .expect_words(&["torn.gz", "cannot read", "byte"]);
    let losses = Items::read(&out).values("train.loss").len();
    assert!((30..40 * 30).contains(&losses), "{losses}");
}

#[test]
fn unsupported_compression_is_reported_with_the_fix() {
    let folder = Folder::new();
    let log = folder.file("training.json.xz", b"\xfd7zXZ\x00\x00\x04");
    for format in ["auto", "kempnerforge"] {
        import(&log)
            .arg("--format")
            .arg(format)
            .run()
            .expect_code(1)
            .expect_words(&["training.json.xz", "xz -dc"]);
    }
}

#[test]
fn log_of_another_format_than_specified_is_reported_with_the_detected_format() {
    for (log, named, looks) in [
        ("surogate/training_dense.json", "tunix", "surogate"),
        ("tunix/colocated/stderr_absl.log", "maxtext", "tunix"),
        ("written/maxtext.log", "torchspec", "maxtext"),
        ("written/torchtitan.log", "kempnerforge", "torchtitan"),
    ] {
        import(&corpus(log))
            .arg("--format")
            .arg(named)
            .run()
            .expect_code(1)
            .expect_words(&[named, &format!("looks like {looks}"), "leave --format out"]);
    }
}

#[test]
fn byte_order_marks_crlf_line_endings_and_utf_16_are_accepted() {
    let folder = Folder::new();
    let points = |name: &str, bytes: &[u8]| {
        let items = Import::new(folder.file(name, bytes)).items();
        let counts = items.points_by_metric().into_iter();
        counts
            .map(|(name, count)| (name.to_owned(), count))
            .collect::<Vec<_>>()
    };
    for log in [
        "surogate/training_dense.json",
        "written/maxtext.log",
        "tunix/colocated/stderr_absl.log",
    ] {
        let text = fs::read_to_string(corpus(log)).expect("the corpus can be read");
        let plain = points("plain.log", text.as_bytes());
        assert!(!plain.is_empty());
        let marked = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(points("marked.log", marked.as_bytes()), plain, "{log}");
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        let wide: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        assert_eq!(points("wide.log", &wide), plain, "{log}");
    }
}

#[test]
fn valid_input_is_imported_when_another_is_missing() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let finished = Import::new(folder.path("absent.json"))
        .arg(corpus("surogate/training_dense.json"))
        .to(&out)
        .run()
        .expect_code(1);
    finished.expect_words(&["absent.json", "No such file"]);
    assert_eq!(Items::read(&out).values("train.loss").len(), 30);
}

#[test]
fn an_invalid_target_is_a_usage_error() {
    Import::new(corpus("surogate/training_dense.json"))
        .to("out.csv")
        .run()
        .expect_code(2)
        .expect_words(&[".jsonl"]);
}

#[test]
fn unreadable_file_is_reported_with_its_name() {
    let folder = Folder::for_all();
    let log = folder.file("secret.json", b"[\n]\n");
    fs::set_permissions(&log, Permissions::from_mode(0o000)).expect("permissions can be set");
    let mut command = as_unprivileged(&import(&log).into_command(), folder.root());
    Finished::run(&mut command)
        .expect_code(1)
        .expect_words(&["secret.json", "Permission denied"]);
}

#[test]
fn broken_record_is_skipped_alone() {
    let folder = Folder::new();
    let log = format!("[\n  {STEP},\n  {{\"log\": \"info\", \"message\": \"say \"hi\"\n,\n  {STEP}\n]\n");
    let out = folder.path("out.jsonl");
    let finished = Import::new(folder.file("training.json", log.as_bytes()))
        .to(&out)
        .run()
        .expect_code(1);
    assert_eq!(finished.total("skipped"), 1, "{}", finished.stderr);
    assert_eq!(Items::read(&out).values("train.loss").len(), 2);
}

/// Creates an import for tests that check only the messages.
fn import(path: &Path) -> Import {
    Import::new(path).to("-")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory can be compressed")
}

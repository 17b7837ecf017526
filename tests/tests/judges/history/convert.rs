//! `convert`: of a log, which it rejects, and of OTLP to OpenMetrics.

use std::fs;

use pulsetrain_tests::{Finished, Folder, Import, command, convert};

use crate::history::world::Run;

#[test]
fn converting_a_log_suggests_import_and_keeps_the_output_file() {
    let folder = Folder::new();
    let run = Run::finished(&folder);
    for name in ["run.pftrace", "run.jsonl", "run.om"] {
        let output = folder.path(name);
        let target = match name {
            "run.om" => format!("openmetrics:{}", output.display()),
            _ => output.display().to_string(),
        };
        let convert = || Finished::run(command(["convert"]).arg(&run.log).arg("-o").arg(&target));
        let import = format!("pulsetrain import {} --to", run.log.display());
        convert()
            .expect_code(1)
            .expect_words(&["surogate", &import, "is not written"]);
        assert!(!output.exists(), "{name}");
        fs::write(&output, "from before").expect("a file can be written");
        convert().expect_code(1);
        assert_eq!(fs::read_to_string(&output).expect("it is there"), "from before");
        assert_eq!(
            fs::read_dir(output.parent().expect("a folder"))
                .expect("it can be read")
                .count(),
            2
        );
        fs::remove_file(&output).expect("it can be removed");
    }
}

#[test]
fn openmetrics_of_otlp_equals_openmetrics_of_its_log() {
    let folder = Folder::new();
    let run = Run::finished(&folder);
    let [otlp, imported, converted] =
        ["run.jsonl", "imported.om", "converted.om"].map(|name| folder.path(name));
    Import::new(&run.log)
        .to(&otlp)
        .to(format!("openmetrics:{}", imported.display()))
        .run()
        .expect_code(0);
    let target = format!("openmetrics:{}", converted.display());
    let summary = convert(&[&otlp], target.as_ref(), &[]).expect_code(0).summary();
    assert_eq!(summary["files"][0], converted.display().to_string());
    let notes = summary["notes"].to_string();
    assert!(notes.contains("log records are left out"), "{notes}");
    let read = |path| fs::read_to_string(path).expect("there is a file");
    assert_eq!(read(imported), read(converted));
}

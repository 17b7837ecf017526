//! Importing the same file twice gives the same telemetry: the same ids, the same times, the same bytes.

use std::fs;

use pulsetrain_tests::{Folder, Import, corpus};

#[test]
fn a_second_import_writes_the_same_bytes() {
    let folder = Folder::new();
    for name in ["out.jsonl", "out.binpb"] {
        let [first, second] = ["first", "second"].map(|run| {
            let path = folder.path(&format!("{run}-{name}"));
            Import::new(corpus("surogate/training_moe.json"))
                .to(&path)
                .run()
                .expect_code(0);
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        });
        assert!(first == second, "two imports of one file differ in {name}");
    }
}

#[test]
fn second_run_id_changes_trace_ids_but_not_timestamps() {
    let [first, second] = ["first", "second"].map(|run| {
        let import = Import::new(corpus("surogate/training_dense.json"));
        import.arg("--run-id").arg(run).items()
    });
    assert_eq!(first.values("train.loss"), second.values("train.loss"));
    for (one, other) in first.of_kind("span").iter().zip(second.of_kind("span")) {
        assert_ne!(one["span"]["traceId"], other["span"]["traceId"]);
    }
}

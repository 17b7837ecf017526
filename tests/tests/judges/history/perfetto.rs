//! `import LOG --to run.pftrace`: the same trace as `convert` writes for the log's OTLP.

use std::{fs, io::Read};

use flate2::read::GzDecoder;
use pulsetrain_tests::{Folder, Import, convert};

use crate::history::world::Run;

#[test]
fn trace_of_a_log_equals_the_trace_of_its_otlp() {
    let folder = Folder::new();
    let run = Run::finished(&folder);
    let [otlp, direct, gzip, converted] = [
        "run.jsonl",
        "direct.pftrace",
        "direct.pftrace.gz",
        "converted.pftrace",
    ]
    .map(|name| folder.path(name));
    Import::new(&run.log)
        .to(&otlp)
        .to(&direct)
        .to(&gzip)
        .run()
        .expect_code(0);
    convert(&[&otlp], &converted, &[]).expect_code(0);
    let direct = fs::read(direct).expect("there is a trace");
    assert!(direct.len() > 10_000, "{} bytes", direct.len());
    assert!(
        direct == fs::read(converted).expect("there is a trace"),
        "the traces differ"
    );
    let mut plain = Vec::new();
    let mut decoder = GzDecoder::new(fs::File::open(gzip).expect("there is a trace"));
    decoder.read_to_end(&mut plain).expect("it is gzip");
    assert!(plain == direct, "the compressed trace differs");
}

#[test]
fn trace_contains_only_the_selected_signals() {
    let folder = Folder::new();
    let run = Run::finished(&folder);
    let [spans, back] = ["spans.pftrace", "back.jsonl"].map(|name| folder.path(name));
    Import::new(&run.log)
        .to(format!("traces={}", spans.display()))
        .run()
        .expect_code(0);
    convert(&[&spans], &back, &[]).expect_code(0);
    let items = pulsetrain_tests::Items::read(&back);
    assert_eq!((items.of_kind("span").len(), items.len()), (33, 33));
}

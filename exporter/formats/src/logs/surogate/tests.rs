//! Tests of special cases on small texts; complete files are in the workspace's tests.

use super::{super::LogReader, *};
use crate::logs::{
    ReadLimits,
    sampled::{Sampled, read_in_any_chunks, read_in_chunks, reasons},
};
use numbers::{NumberKind, Numbers};
use pulsetrain_mapping::FieldValue;
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Counts, LoggedTime, ParseReport, Run};
use record::parse;

fn fields(text: &str) -> Vec<(&str, RecordValue<'_>)> {
    parse(text).unwrap().fields
}

fn read(text: &str) -> (Counts, ParseReport) {
    read_in_chunks(&FORMAT, text.as_bytes(), 7)
}

const TIME: &str = r#""time": "2026-11-21 00:18:40.978996216""#;

fn record(kind: &str, fields: &str) -> String {
    format!(r#"{{"log": "{kind}", {TIME}, "step": 3{fields}}}"#)
}

fn file(records: &[String]) -> String {
    format!("[\n  {}\n]\n", records.join(",\n  "))
}

#[test]
fn record_fields_are_parsed_in_any_order() {
    let text = format!(r#"{{"log": "dataset", "split": "train", {TIME}, "step": 0, "tokens": 2000000}}"#);
    let record = parse(&text).unwrap();
    assert_eq!(
        (record.kind, record.time_unix_nanos, record.step),
        ("dataset", UnixNanos(1_795_220_320_978_996_216), 0)
    );
    assert_eq!(
        record.fields,
        [
            ("split", RecordValue::Text("train")),
            ("tokens", RecordValue::Int(2_000_000))
        ]
    );
    assert_eq!(record.len, text.len());
}

#[test]
fn non_finite_numbers_are_quoted_or_bare() {
    let text = record(
        "step",
        r#", "loss": "nan", "norm": "-inf", "epoch": inf, "lr": nan"#,
    );
    let values: Vec<f64> = fields(&text)
        .iter()
        .map(|(_, value)| value.as_f64().unwrap())
        .collect();
    assert!(values[0].is_nan() && values[3].is_nan());
    assert_eq!(values[1..3], [f64::NEG_INFINITY, f64::INFINITY]);
}

#[test]
fn strings_with_quotes_backslashes_and_newlines_are_kept() {
    let message = "he wrote \"stop\", C:\\new, {\"a\": 1}\nand went";
    let text = record("info", &format!(r#", "message": "{message}", "duration_ms": 12"#));
    assert_eq!(
        fields(&text),
        [
            ("message", RecordValue::Text(message)),
            ("duration_ms", RecordValue::Int(12))
        ]
    );
}

#[test]
fn an_unescaped_string_at_the_end_of_a_record_ends_there() {
    let text = record("option", r#", "name": "prompt", "value": "oh "hi"""#);
    assert_eq!(fields(&text)[1], ("value", RecordValue::Text("oh \"hi\"")));
}

#[test]
fn a_parse_error_has_its_offset() {
    let text = record("step", r#", "loss": 1.5, "norm": oops"#);
    let error = parse(&text).unwrap_err();
    assert_eq!(&text[error.offset..], "oops}");
    assert!(!error.is_cut_off);
}

#[test]
fn deep_nesting_is_refused() {
    let text = record(
        "step",
        &format!(r#", "x": {}1{}"#, "[".repeat(10_000), "]".repeat(10_000)),
    );
    assert!(parse(&text).unwrap_err().to_string().contains("nested less deep"));
}

#[test]
fn text_before_the_array_is_not_a_record_at_any_chunk_size() {
    let text = format!("x{}{}", " ".repeat(20), record("step", r#", "loss": 2.5"#));
    for piece in 1..=text.len() {
        let (counts, _) = read_in_chunks(&FORMAT, text.as_bytes(), piece);
        assert_eq!(counts, Counts::default(), "in pieces of {piece}");
    }
}

#[test]
fn malformed_record_does_not_affect_its_neighbours() {
    let good = record("step", r#", "loss": 1.5"#);
    let text = file(&[
        good.clone(),
        record("step", r#", "loss": oops"#),
        good.clone(),
        good,
    ]);
    let (counts, skipped) = read(&text);
    assert_eq!(counts.records, 3);
    assert_eq!(reasons(&skipped), [(SkipReason::MalformedRecord, 1)]);
    assert_eq!(skipped.problems()[0].position.line, 3);
}

#[test]
fn a_file_that_is_still_being_written_ends_in_an_incomplete_record() {
    let text = file(&[
        record("step", r#", "loss": 1.5"#),
        record("step", r#", "loss": 2.25, "norm": 1"#),
    ]);
    let cut = text.find("2.25").unwrap();
    let (counts, skipped) = read(&text[..cut]);
    assert_eq!(counts.records, 1);
    assert_eq!(reasons(&skipped), [(SkipReason::IncompleteRecord, 1)]);
}

#[test]
fn an_array_without_records_is_empty_and_valid() {
    assert!(detect(EMPTY_ARRAY).is_some());
    let (counts, skipped) = read("[\n\n]\n");
    assert_eq!((counts.records, skipped.has_losses()), (0, false));
}

#[test]
fn chunk_size_does_not_change_the_result_for_surogate_logs() {
    let text = file(&[
        record("cmd", r#", "cmd": ["surogate", "sft"]"#),
        record(
            "abs-maxes",
            ", \"abs_maxes\": [\n{\"name\": \"w\", \"value\": inf},\n{\"name\": \"v\", \"value\": 1}]",
        ),
        record("step", r#", "loss": 1.5, "duration_ms": 12"#),
    ]);
    let (counts, _) = read_in_any_chunks(&FORMAT, text.as_bytes(), 1..text.len());
    assert_eq!(counts.records, 3);
}

#[test]
fn oversized_surogate_record_is_skipped_once_and_the_next_is_parsed() {
    let long = record("info", &format!(r#", "message": "{}""#, "x".repeat(20_000)));
    let text = file(&[record("step", ""), long, record("step", "")]);
    let mut recorder = Recorder::new(Run::default(), |_| {});
    let mut reader = LogReader::new(&FORMAT, ReadLimits { record_bytes: 4096 });
    let pieces = text.as_bytes().chunks(512);
    pieces.for_each(|piece| reader.push(piece, &mut recorder));
    reader.finish(&mut recorder);
    let (counts, skipped) = recorder.finish();
    assert_eq!(counts.records, 2);
    let found: Vec<_> = skipped.counts().map(|(reason, _)| reason).collect();
    assert_eq!(found, [SkipReason::RecordTooLong]);
}

#[test]
fn lines_of_a_container_are_not_records_of_surogate() {
    let line = r#"{"log":"step 10 | loss 2.5\n","stream":"stdout","time":"2026-11-21T12:00:00.123456789Z"}"#;
    assert_eq!((FORMAT.detect)(line.as_bytes()), None);
}

#[test]
fn the_first_record_and_an_option_identify_the_run() {
    let text = file(&[
        record("cmd", r#", "cmd": []"#),
        record("option", r#", "name": "run_name", "value": "demo""#),
        record("step", ""),
    ]);
    let header = identify(text.as_bytes());
    assert_eq!(header.run_name.as_deref(), Some("demo"));
    assert!(String::from_utf8(header.first_record).unwrap().contains("cmd"));
    assert_eq!(header.start, Some(LoggedTime::Local(1_795_220_320_978_996_216)));
}

#[test]
fn invalid_utf8_does_not_shift_offsets() {
    let complete = record("info", r#", "message": "@@@@@@@@""#);
    let malformed = complete.replace(r#""step": 3"#, r#""step": x"#);
    for (record, records, problems) in [(complete, 1, 0), (malformed, 0, 1)] {
        let mut bytes = file(&[record]).into_bytes();
        let strange = bytes.iter_mut().filter(|byte| **byte == b'@');
        strange.for_each(|byte| *byte = 0xff);
        let end = bytes.len() as u64;
        let (counts, skipped) = read_in_chunks(&FORMAT, &bytes, 7);
        assert_eq!((counts.records, skipped.problems().len()), (records, problems));
        assert!(
            skipped
                .problems()
                .iter()
                .all(|problem| problem.position.offset < end)
        );
    }
    let cut = "{\"log\": \"info\", \"time\": \"@@@@@@@@@@@@@@@@@@";
    let bytes: Vec<u8> = cut
        .bytes()
        .map(|byte| if byte == b'@' { 0xe5 } else { byte })
        .collect();
    let (_, skipped) = read_in_chunks(&FORMAT, &bytes, bytes.len());
    assert_eq!(skipped.counts().map(|(_, count)| count).sum::<u64>(), 1);
}

#[test]
fn numbers_and_other_fields_of_a_record_are_separated_in_their_order() {
    let text = record(
        "step",
        r#", "loss": 1.5, "novel": 2, "on": true, "step": 4, "list": [1, {"a": "b"}]"#,
    );
    let record = parse(&text).unwrap();
    let numbers = Numbers::new(NumberKind::Step, &record);
    let expected = [("loss", 1.5), ("novel", 2.0), ("step", 4.0)];
    let expected = expected.map(|(key, number)| (key.into(), FieldValue::Number(number)));
    assert_eq!(numbers.numbers, expected);
    let others: Vec<_> = numbers
        .others
        .iter()
        .map(|(key, value)| (*key, value.to_string()))
        .collect();
    assert_eq!(
        others,
        [
            ("on", "true".to_owned()),
            ("list", r#"[1, {"a": "b"}]"#.to_owned())
        ]
    );
}

#[test]
fn unmapped_fields_are_kept() {
    let read = Sampled::read(
        &FORMAT,
        &file(&[
            record("step", r#", "novel": 2, "on": true"#),
            record("step", r#", "novel": 2.5, "on": true"#),
            record("new", r#", "novel": 3"#),
            record("newer", r#", "novel": 4"#),
        ]),
    );
    assert_eq!(read.values("train.custom"), [2.0, 2.5, 3.0, 4.0]);
    assert_eq!(
        read.attributes("train.custom"),
        ["step", "step", "new", "newer"].map(|kind| format!("train.custom.name=surogate.{kind}.novel"))
    );
    assert_eq!(read.counts.events, 2);
}

#[test]
fn gpu_points_carry_the_uuid_after_the_model_record() {
    let gpu = |id: u32| record("gpu", &format!(r#", "id": {id}, "temperature": 61"#));
    let model = record(
        "gpu-model",
        r#", "id": 1, "uuid": "00112233445566778899aabbccddeeff""#,
    );
    let records = [gpu(0), gpu(1), model, gpu(0), gpu(1)];
    let read = Sampled::read(&FORMAT, &file(&records));
    let id = |index: u32, id: &str| format!("gpu.id={id} gpu.index=Int({index})");
    assert_eq!(
        read.attributes("gpu.temperature"),
        [
            id(0, "0"),
            id(1, "1"),
            id(0, "0"),
            id(1, "GPU-00112233-4455-6677-8899-aabbccddeeff")
        ]
    );
}

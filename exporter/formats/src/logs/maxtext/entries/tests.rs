//! Entries as the recorder writes them, in either order and cut anywhere.

use serde_json::Value;

use super::*;
use crate::logs::{
    LogReader, ReadLimits, ReadTime,
    sampled::{Sampled, read_in_chunks, reasons},
};
use pulsetrain_record::{Counts, ParseReport};

fn entry(payload: &str) -> String {
    format!(
        "{{\"insertId\":\"a\",\"jsonPayload\":{{\"job_name\":\"demo\",{payload}}},\"severity\":\"INFO\"}}"
    )
}

fn step(step: i64, secs: f64) -> String {
    entry(&format!("\"step_count\":{step},\"step_start_time\":{secs}"))
}

#[test]
fn step_lasts_until_the_next_start_minus_custom_badput_events() {
    let event = |key: &str, secs: f64| {
        entry(&format!(
            "\"custom_badput_event_type\":\"EVAL_STEP\",\"custom_badput_event_{key}_time\":{secs}"
        ))
    };
    let lines = [
        step(4, 1000.0),
        event("start", 1001.0),
        event("end", 1003.5),
        step(5, 1010.0),
        step(6, 1012.25),
    ];
    let read = Sampled::read(&FORMAT, &(lines.join("\n") + "\n"));
    assert_eq!(read.values("train.step.duration"), [7.5, 2.25]);
    assert_eq!(read.values("eval.duration"), [2.5]);
    assert_eq!(read.values("train.global_step"), [4.0, 5.0, 6.0]);
    assert_eq!((read.counts.spans, read.counts.records), (3, 5));
    assert!(!read.skipped.has_losses());
}

#[test]
fn newest_first_list_yields_the_same_values() {
    let entries = [step(4, 1000.0), step(5, 1002.0), step(6, 1005.0)];
    let newest_first: Vec<&str> = entries.iter().rev().map(String::as_str).collect();
    let list = format!("[\n  {}\n]\n", newest_first.join(",\n  "));
    let read = Sampled::read(&FORMAT, &list);
    assert_eq!(read.values("train.step.duration"), [2.0, 3.0]);
    assert_eq!(read.values("train.global_step"), [4.0, 5.0, 6.0]);
    assert!(!read.skipped.has_losses());
}

/// Reads windows of a growing file, and returns whether entries were buffered after each of them.
fn followed(windows: &[&str], silence_after: Option<usize>) -> (Counts, ParseReport, Vec<bool>) {
    let mut recorder = Recorder::new(pulsetrain_record::Run::default(), |_| {});
    let mut reader = LogReader::new(&FORMAT, ReadLimits::default());
    reader.set_time(ReadTime {
        unix_nanos: UnixNanos(1),
        is_live: true,
    });
    let mut held = Vec::new();
    for (number, window) in windows.iter().enumerate() {
        reader.push(window.as_bytes(), &mut recorder);
        held.push(reader.holds_records());
        if silence_after == Some(number) {
            reader.flush_buffered(&mut recorder);
        }
    }
    reader.finish(&mut recorder);
    let (counts, skipped) = recorder.finish();
    (counts, skipped, held)
}

#[test]
fn lines_in_newest_first_order_are_sorted_across_windows() {
    let lines: Vec<String> = (0..9)
        .rev()
        .map(|number| step(number, 1000.0 + number as f64) + "\n")
        .collect();
    let windows: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (counts, skipped, held) = followed(&windows, None);
    assert_eq!((counts.records, counts.spans), (9, 8));
    assert!(!skipped.has_losses());
    assert_eq!(held, [true; 9]);
}

#[test]
fn oldest_first_lines_are_held_back_only_until_the_second_line() {
    let lines: Vec<String> = (0..3)
        .map(|number| step(number, 1000.0 + number as f64) + "\n")
        .collect();
    let windows: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(followed(&windows, None).2, [true, false, false]);
}

#[test]
fn out_of_order_lines_after_the_wait_report_the_unmeasured_step() {
    let lines: Vec<String> = (0..4)
        .rev()
        .map(|number| step(number, 1000.0 + number as f64) + "\n")
        .collect();
    let (newer, older) = (lines[..2].concat(), lines[2..].concat());
    let (counts, skipped, _) = followed(&[&newer, &older], Some(0));
    assert_eq!((counts.records, counts.spans), (4, 2));
    assert_eq!(reasons(&skipped), [(SkipReason::IncompleteRecord, 1)]);
}

#[test]
fn no_step_duration_is_computed_across_a_restart_or_a_missing_start() {
    let begun = entry("\"tpu_init_start_time\":1500.0");
    let lines = [step(4, 1000.0), begun, step(5, 2000.0), step(7, 2004.0)];
    let read = Sampled::read(&FORMAT, &(lines.join("\n") + "\n"));
    assert_eq!(read.values("train.step.duration"), [0.0; 0]);
    assert_eq!(read.counts.spans, 0);
    assert_eq!(
        reasons(&read.skipped),
        [(SkipReason::Ignored("work_without_an_end"), 1)]
    );
}

#[test]
fn foreign_and_unknown_entries_are_reported() {
    let lines = [
        step(0, 1000.0),
        step(0, 1000.5).replace("demo", "other"),
        "{\"textPayload\":\"x\",\"severity\":\"INFO\"}".to_owned(),
        "no object".to_owned(),
        entry("\"novel_end_time\":1001.0"),
        entry("\"novel_start_time\":1002.0,\"size\":7"),
        entry("\"novel_end_time\":1003.0"),
    ];
    let read = Sampled::read(&FORMAT, &(lines.join("\n") + "\n"));
    assert_eq!(read.values("train.custom"), [7.0]);
    assert_eq!(read.counts.spans, 1);
    let mut counts: Vec<_> = read
        .skipped
        .counts()
        .map(|(reason, count)| (reason.as_str(), count))
        .collect();
    counts.sort_unstable();
    assert_eq!(
        counts,
        [
            ("entry_of_another_job", 1),
            ("entry_of_another_log", 1),
            ("unknown_name", 1),
            ("unrecognised_bytes", 1),
            ("work_without_a_start", 1),
        ]
    );
}

#[test]
fn entries_in_chunks_are_complete_and_the_last_may_be_truncated() {
    let list = serde_json::to_string_pretty(
        &(0..20)
            .map(|number| serde_json::from_str(&step(number, 1000.0 + number as f64)).expect("it is JSON"))
            .collect::<Vec<Value>>(),
    )
    .expect("it can be written");
    for len in [1, 7, 1000] {
        let (counts, skipped) = read_in_chunks(&FORMAT, &list.as_bytes()[..list.len() - 30], len);
        assert_eq!((counts.records, counts.spans), (19, 18), "{len}");
        assert_eq!(reasons(&skipped), [(SkipReason::IncompleteRecord, 1)]);
    }
}

#[test]
fn files_of_one_job_share_an_identity_regardless_of_their_first_entry() {
    let (first, later) = (
        identify(step(0, 1.0).as_bytes()),
        identify(step(9, 2.0).as_bytes()),
    );
    assert_eq!(first, later);
    assert_eq!(
        (first.run_name.as_deref(), first.is_complete()),
        (Some("demo"), true)
    );
    assert!(detect(step(0, 1.0).as_bytes()).is_some());
    assert!(detect(b"{\"job_name\":\"demo\",\"loss\":1}").is_none());
    assert!(identify(b"{\"job_name\":7}").run_name.is_none());
}

/// The state is limited for any content of a file.
#[test]
fn unfinished_work_is_evicted_and_counted() {
    let lines: Vec<String> = (0..1000)
        .map(|number| entry(&format!("\"w{number}_start_time\":{}", 1000 + number)))
        .collect();
    let read = Sampled::read(&FORMAT, &(lines.join("\n") + "\n" + &step(1, 3000.0) + "\n"));
    assert_eq!(
        reasons(&read.skipped),
        [(SkipReason::Ignored("work_without_an_end"), 1000)]
    );
}

use super::*;
use crate::logs::sampled::{Sampled, reasons};
use pulsetrain_mapping::MappingFile;
use pulsetrain_record::SkipReason;

fn mapping(yaml: &str) -> Mapping {
    MappingFile::parse(yaml).unwrap().build().unwrap()
}

fn read(format: &LogFormat, mapping: Mapping, text: &str) -> Sampled {
    Sampled::read_mapped(format, &Arc::new(mapping), text)
}

const LINES: &str = r#"starting up
{"ts": 1795262400500, "trainer": {"step": 10, "loss": 2.5, "iter_ms": 250}, "mem": 12.5, "loss_moe_lb": 0.5, "seen": 100, "novel": 7, "host": "a"}
{"ts": 1795262401500, "trainer": {"step": 20, "loss": NaN, "iter_ms": 300}, "mem": null, "loss_z": 0.25, "seen": 250, "novel": 8}
"#;

fn lines_mapping() -> Mapping {
    mapping(
        "step: trainer.step
time: ts
time_format: unix_ms
values:
  - {key: trainer.loss, metric: train.loss}
  - {key: trainer.iter_ms, metric: train.step.duration, unit: ms}
  - {key: mem, metric: memory.framework.allocated, unit: GiB}
  - {pattern: 'loss_(?<train.component>.+)', metric: train.loss_component}
  - {key: seen, metric: train.tokens, total: true}
",
    )
}

#[test]
fn json_lines_are_read_by_the_mapping() {
    let read = read(&JSON, lines_mapping(), LINES);
    let losses = read.values("train.loss");
    assert!(losses[0] == 2.5 && losses[1].is_nan());
    let durations = read.values("train.step.duration");
    assert!((durations[0] - 0.25).abs() < 1e-12 && (durations[1] - 0.3).abs() < 1e-12);
    assert_eq!(read.values("memory.framework.allocated"), [13_421_772_800.0]);
    assert_eq!(read.values("train.loss_component"), [0.5, 0.25]);
    assert_eq!(read.values("train.tokens"), [100.0, 250.0]);
    assert_eq!(read.values("train.global_step"), [10.0, 20.0]);
    assert_eq!(read.values("train.steps"), [1.0, 11.0]);
    assert_eq!(read.values("train.custom"), [7.0, 8.0]);
    assert_eq!(
        (read.counts.records, read.counts.spans, read.counts.events),
        (2, 2, 1)
    );
    let lines: Vec<_> = read
        .skipped
        .problems()
        .iter()
        .map(|problem| problem.position.line)
        .collect();
    assert_eq!(lines, [2, 2], "novel and host, once each");
}

#[test]
fn metric_names_and_common_keys_need_no_mapping() {
    let text = "{\"step\": 3, \"time\": \"2026-11-21T12:00:00Z\", \"train.loss\": 1.5, \"other\": 2}\n";
    let read = read(&JSON, Mapping::default(), text);
    assert_eq!(read.values("train.loss"), [1.5]);
    assert_eq!(read.values("train.global_step"), [3.0]);
    assert_eq!(read.values("train.custom"), [2.0]);
    assert_eq!(read.counts.events, 0);
}

#[test]
fn units_of_key_value_pairs_are_converted() {
    let mapping = mapping(
        r"line: '^(?<time>\S+ \S+) \[rank (?<rank>\d+)\] (?<record>.*)$$'
values:
  - {key: loss, metric: train.loss}
  - {key: dt, metric: train.step.duration}
  - {key: mfu, metric: train.mfu}
  - {key: tok/s, metric: train.throughput.tokens}
  - {key: phase, metric: train.phase}
",
    );
    let text = "2026-11-21 12:00:00,250 [rank 0] step=10 loss=2.5 dt=250ms mfu=41.5% tok/s=1.5k phase=plateau\n\
                2026-11-21 12:00:01,250 [rank 0] nothing here=1\n\
                step=11 loss=1\n\
                2026-11-21 12:00:02,250 [rank 0] step=20 loss=2 dt=12parsecs tok/s=2,500\n";
    let read = read(&KEY_VALUE, mapping, text);
    assert_eq!(read.values("train.loss"), [2.5, 2.0]);
    assert_eq!(read.values("train.step.duration"), [0.25]);
    assert_eq!(read.values("train.mfu"), [0.415]);
    assert_eq!(read.values("train.throughput.tokens"), [1500.0, 2500.0]);
    assert_eq!(
        read.values("train.phase").iter().sum::<f64>(),
        1.0,
        "one of the states holds"
    );
    assert_eq!(read.values("train.custom"), [0.0, 0.0], "the rank");
    assert_eq!((read.counts.records, read.counts.spans), (2, 1));
    let problems = read.skipped.problems();
    let parsecs = problems
        .iter()
        .find(|problem| problem.reason == SkipReason::MalformedRecord)
        .unwrap();
    assert!(parsecs.message.contains("12parsecs") && parsecs.position.line == 4);
}

#[test]
fn line_after_a_heading_that_skips_it_is_no_record_and_no_restart() {
    let mapping = mapping(
        r"line:
  - '^\[(?<step>\d+)\] loss (?<train.loss>\S+)$$'
  - '^(?<skip_next>best:)$$'",
    );
    let text = "[10] loss 3\n[20] loss 1\n[30] loss 2\nbest:\n[10] loss 1\n[40] loss 4\n";
    let read = read(&KEY_VALUE, mapping, text);
    assert_eq!(read.values("train.loss"), [3.0, 1.0, 2.0, 4.0]);
    assert_eq!(read.values("train.steps"), [1.0, 11.0, 21.0, 31.0]);
    assert!(read.values("train.custom").is_empty());
}

#[test]
fn bracketed_single_numbers_are_parsed_and_others_are_reported() {
    let mapping = || {
        mapping(
            "values: [{key: loss, metric: train.loss}, {key: lr, metric: train.learning_rate}, {key: mom, metric: train.epoch}]",
        )
    };
    let lines = "step=10, skipped=0, lr=[0.0003], mom=[(0.9, 0.95)] loss=[2.3]\n";
    let read_lines = read(&KEY_VALUE, mapping(), lines);
    assert_eq!(read_lines.values("train.learning_rate"), [0.0003]);
    assert_eq!(read_lines.values("train.loss"), [2.3]);
    let problems = read_lines.skipped.problems();
    let malformed = problems
        .iter()
        .find(|problem| problem.reason == SkipReason::MalformedRecord);
    assert!(malformed.is_some_and(|problem| problem.message.contains("(0.9, 0.95)")));
    let read_json = read(
        &JSON,
        mapping(),
        "{\"step\": 10, \"lr\": [0.0003], \"loss\": [2.3]}\n",
    );
    assert_eq!(read_json.values("train.learning_rate"), [0.0003]);
    let read_unmapped = read(&KEY_VALUE, Mapping::default(), lines);
    assert_eq!(read_unmapped.values("train.custom"), [0.0, 0.0003, 2.3]);
    assert_eq!(read_unmapped.counts.events, 1, "the pair is kept as text");
}

#[test]
fn the_first_record_of_the_mapping_identifies_the_run() {
    let own = mapping(r"line: 'step (?<step>\d+) \| loss (?<train.loss>\S+)'");
    let own = Arc::new(own);
    let first = |text: &str| KEY_VALUE.run_header(text.as_bytes(), &own).first_record;
    assert_eq!(first("starting: x\n"), b"", "a line with a colon is no record");
    let (one, other) = (
        "starting: x\nstep 1 | loss 2.5\n",
        "starting: x\nstep 1 | loss 3.5\n",
    );
    assert_eq!(first(one), &one.as_bytes()[..one.len() - 1]);
    assert_eq!(first(&format!("{one}step 2 | loss 1\n")), first(one));
    assert_ne!(first(one), first(other));
    let long = "x\n".repeat(200_000);
    assert_eq!(first(&long).len(), (256 << 10) - 3);
    assert_eq!(first(&long.replace('x', "\0")), b"", "this is no text");
}

#[test]
fn the_time_at_the_beginning_of_a_line_is_that_of_the_record() {
    let lines = "2026-01-02 10:00:00 INFO step=100 loss=2.31 dt=2.5s\n2026-01-02 10:05:00,500 INFO step=200 loss=2.3 dt=2.5s\n";
    let by_keys = mapping("values: [{key: dt, metric: train.step.duration}]");
    let read = read(&KEY_VALUE, by_keys, lines);
    let at = |text| crate::logs::time::unix_nanos(text).unwrap();
    let expected = [at("2026-01-02 10:00:00"), at("2026-01-02 10:05:00.5")];
    assert_eq!(read.times("train.global_step"), expected);
    assert_eq!(read.counts.spans, 2, "the end of each step is measured");
}

#[test]
fn values_dropped_by_the_mapping_are_counted() {
    let mapping = mapping(
        "unknown: drop
values:
  - {key: loss, metric: train.loss}
  - {key: debug, drop: true}
  - {key: v, custom: speed, factor: 10}
",
    );
    let read = read(
        &JSON,
        mapping,
        "{\"loss\": 1, \"debug\": 5, \"v\": 2, \"novel\": 1, \"text\": \"x\"}\n",
    );
    assert_eq!(read.values("train.custom"), [20.0]);
    assert_eq!((read.counts.points, read.counts.events), (2, 0));
    assert!(!read.skipped.has_losses());
    let left_out: u64 = read.skipped.counts().map(|(_, count)| count).sum();
    assert_eq!(left_out, 3);
}

#[test]
fn lines_with_values_that_no_pattern_matches_are_counted() {
    let unmatched = [(SkipReason::Ignored("unmatched_line"), 1)];
    for (trainer, log, expected) in [
        (
            "nanogpt",
            "iter 1: loss 2.5, time 12.5ms, mfu 40.00%\nstep 2 | loss 2.25 | lr 0.1\nsaving checkpoint 3\n",
            &unmatched[..],
        ),
        // The repeated line of the best round has no other values.
        (
            "lightgbm",
            "[2]\tvalid_1's l2: 2.5\nEarly stopping, best iteration is:\n[2]\tvalid_1's l2: 2.5\n",
            &[(SkipReason::Ignored("unread_line"), 1)],
        ),
    ] {
        let read = Sampled::read(crate::format_by_name(trainer).unwrap(), log);
        assert_eq!(reasons(&read.skipped), expected, "{trainer}");
        assert_eq!(read.counts.records, 1, "{trainer}");
    }
}

#[test]
fn attributes_come_from_keys_and_from_the_mapping() {
    let mapping = mapping(
        "values: [{key: r, metric: rl.trajectory_reward, attributes: {rl.statistic: mean}, attributes_from: {data.split: split}}]",
    );
    let read = read(
        &JSON,
        mapping,
        "{\"r\": 1, \"split\": \"train\"}\n{\"r\": 2, \"split\": \"eval\"}\n{\"r\": 3}\n",
    );
    let series: Vec<String> = read.attributes("rl.trajectory_reward");
    assert_eq!(
        series,
        [
            "data.split=train rl.statistic=mean",
            "data.split=eval rl.statistic=mean",
            "rl.statistic=mean"
        ]
    );
    // A key that is an attribute is known.
    assert_eq!((read.counts.events, read.skipped.counts().count()), (0, 0));
}

#[test]
fn values_that_are_neither_an_attribute_nor_a_kind_are_kept() {
    let mapping = mapping(
        "kind: type
values: [{key: r, metric: rl.masked_fraction, attributes_from: {rl.level: level}}]
",
    );
    let lines = [
        r#"{"r": 1, "level": "token"}"#,
        r#"{"loss": 2, "level": "token"}"#,
        r#"{"r": 3, "level": "x", "type": 4}"#,
    ];
    let read = read(&JSON, mapping, &lines.join("\n"));
    assert_eq!(read.values("rl.masked_fraction"), [1.0]);
    assert_eq!(read.values("train.custom"), [2.0, 3.0, 4.0]);
    assert_eq!(
        read.counts.events, 2,
        "`token` of the second line and `x` of the third"
    );
}

#[test]
fn second_key_of_a_gauge_in_a_record_is_kept_under_its_name() {
    let rows = "values: [{key: a, metric: train.loss}, {key: b, metric: train.loss}]";
    let read = read(&JSON, mapping(rows), "{\"a\": 1, \"b\": 2}\n{\"b\": 3}\n");
    assert_eq!(read.values("train.loss"), [1.0, 3.0]);
    assert_eq!(read.values("train.custom"), [2.0]);
    let rows = "values: [{pattern: '(?<data.name>.+)-(l1|l2)', metric: eval.loss}]";
    let line = "{\"a-l1\": 1, \"a-l2\": 2, \"b-l1\": 3}\n";
    let read = self::read(&JSON, mapping(rows), line);
    assert_eq!(read.values("eval.loss"), [1.0, 3.0]);
    assert_eq!(read.values("train.custom"), [2.0]);
}

/// A row can be for one kind of record.
#[test]
fn mapping_rows_can_be_restricted_to_one_record_kind() {
    let mapping = mapping(
        "kind: type
values: [{key: loss, metric: train.loss}]
records: {eval: [{key: loss, metric: eval.loss}]}
",
    );
    let lines =
        "{\"type\": \"train\", \"loss\": 2, \"step\": 1}\n{\"type\": \"eval\", \"loss\": 3, \"step\": 1}\n";
    let read = read(&JSON, mapping, lines);
    assert_eq!(
        (read.values("train.loss"), read.values("eval.loss")),
        (vec![2.0], vec![3.0])
    );
    assert_eq!(read.counts.events, 0, "the kind is known");
}

#[test]
fn run_header_does_not_depend_on_the_prefix_of_the_launcher() {
    let lines = ["\u{1b}[32mstarts\u{1b}[0m", "step=1 train.loss=2.5", ""];
    let header = |prefix: &str| {
        let text = lines.map(|line| format!("{prefix}{line}")).join("\n");
        KEY_VALUE
            .run_header(text.as_bytes(), &Arc::default())
            .first_record
    };
    let first = header("[rank0]: ");
    assert!(first.starts_with(b"starts\n"), "{first:?}");
    for prefix in ["[rank3]: ", "0: ", "12: ", "[default1]:", "(Actor pid=7) "] {
        assert_eq!(header(prefix), first, "{prefix}");
    }
}

#[test]
fn a_sentinel_is_not_measured() {
    let mapping = mapping("values: [{key: loss, metric: train.loss, sentinel: -1}]");
    let read = read(&JSON, mapping, "{\"loss\": -1}\n{\"loss\": 2}\n");
    assert_eq!(read.values("train.loss"), [2.0]);
    assert_eq!(reasons(&read.skipped), [(SkipReason::NotMeasured, 1)]);
}

#[test]
fn unmapped_keys_are_looked_up_again_with_their_prefix_replaced() {
    let mapping = mapping(
        "prefixes: {'train/': '', 'eval/': eval_}
values: [{key: loss, metric: train.loss}, {key: eval_loss, metric: eval.loss}]
",
    );
    let read = read(&JSON, mapping, "{\"train/loss\": 2, \"eval/loss\": 3}\n");
    assert_eq!(
        (read.values("train.loss"), read.values("eval.loss")),
        (vec![2.0], vec![3.0])
    );
}

#[test]
fn exact_keys_take_precedence_over_patterns() {
    let mapping = mapping("values: [{pattern: '.*', metric: train.epoch}, {key: loss, metric: train.loss}]");
    let read = read(&JSON, mapping, "{\"loss\": 1, \"epochs\": 2}\n");
    assert_eq!(
        (read.values("train.loss"), read.values("train.epoch")),
        (vec![1.0], vec![2.0])
    );
}

#[test]
fn row_without_its_first_cell_is_not_taken_for_a_header() {
    let text = "step,train.loss,state\n10,2.5,a\n,n/a,done\n20,2.25,b\n";
    let read = read(&CSV, Mapping::default(), text);
    assert_eq!(read.values("train.loss"), [2.5, 2.25]);
    assert_eq!(read.values("train.global_step"), [10.0, 20.0]);
}

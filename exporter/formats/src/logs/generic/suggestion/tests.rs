use super::*;
use crate::logs::sampled::Sampled;

fn suggested(log: &str) -> String {
    suggest_mapping("x.log", log.as_bytes(), ReadTime::default()).unwrap()
}

/// Returns the values that a suggestion delivers unedited.
fn read(format: &LogFormat, suggested: &str, log: &str) -> Sampled {
    let mapping = MappingFile::parse(suggested)
        .unwrap()
        .build()
        .unwrap_or_else(|faults| panic!("{faults:?}: {suggested}"));
    Sampled::read_mapped(format, &Arc::new(mapping), log)
}

fn has_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn every_key_is_listed_with_its_count_its_examples_and_its_use() {
    let line = |step: u32| format!("step {step} | loss {}.5 | temper {step} | mode warm\n", 9 - step);
    let log = (1..6).map(line).collect::<String>();
    let text = suggested(&log);
    has_all(
        &text,
        &[
            "\nextends: generic\n",
            "\n# step: step  # 5 x 1, 2, 3\n",
            "\n  - {key: loss, metric: train.loss}  # 5 x 8.5, 7.5, 6.5\n",
            "\n  # - {key: temper, metric: }  # 5 x 1, 2, 3; kept as train.custom\n",
            "\n#   train.loss: 5 points, 8.5 to 4.5\n",
            "\n#   train.global_step: 5 points, steps 1 to 5\n",
            "\n#   train.custom temper: 5 points, 1 to 5\n",
        ],
    );
    assert!(
        !text.contains("Lines left") && !text.contains("\nline:"),
        "{text}"
    );
}

#[test]
fn lines_that_the_reader_leaves_get_patterns_with_the_names_of_their_numbers() {
    let block = |step: u32| {
        format!(
            "2031-05-06 10:00:0{step} INFO step {step} loss {}.5\n\
             2031-05-06 10:00:0{step} INFO evicted {step}1 pages from shelf north (pressure 0.{step})\n\
             ready\n",
            9 - step
        )
    };
    let log = (1..5).map(block).collect::<String>();
    let text = suggested(&log);
    has_all(
        &text,
        &[
            "\n  # 4 x evicted 11 pages from shelf north (pressure 0.1)\n",
            "(?<evicted>",
            "(?<pressure>",
            "\n  # - {key: pressure, metric: }  # 4 x 0.1, 0.2, 0.3; kept as train.custom\n",
            "\n#   train.custom pressure: 4 points, 0.1 to 0.4\n",
            "\n# Lines left: 4, such as\n#   4 x ready\n",
        ],
    );
    let read = read(&GENERIC, &text, &log);
    assert_eq!(read.values("train.loss"), [8.5, 7.5, 6.5, 5.5]);
    let mut kept = read.values("train.custom");
    kept.sort_by(f64::total_cmp);
    assert_eq!(kept, [0.1, 0.2, 0.3, 0.4, 11.0, 21.0, 31.0, 41.0]);
    let unused = SkipReason::Ignored("line_without_usual_key");
    assert!(read.skipped.counts().all(|(reason, _)| reason != unused));
    let own = Sampled::read(&GENERIC, &log);
    assert_eq!(read.times("train.loss"), own.times("train.loss"));
}

#[test]
fn log_without_usual_keys_gets_its_steps_and_values_from_patterns() {
    let line = |step: u32| format!("after step {step} the drift is {step}.25 (cap 90)\n");
    let log = (1..9).map(line).collect::<String>();
    let text = suggested(&log);
    has_all(
        &text,
        &["\nstep: step\n", "(?<step>", "the_drift_is", "steps 1 to 8"],
    );
    let read = read(&GENERIC, &text, &log);
    assert_eq!(
        read.values("train.global_step"),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    );
    assert_eq!(read.values("train.custom").len(), 16);
}

#[test]
fn named_format_keeps_its_values_and_its_left_lines_get_patterns() {
    let log = include_str!("../../../../../../tests/corpus/trainers/nanogpt/train.log");
    let extra = "shards: 31 hot, 7 cold\n";
    let log: String = log.lines().flat_map(|line| [line, "\n", extra]).collect();
    let (format, _) = detect("x.log", log.as_bytes()).unwrap();
    assert_eq!(format.name, "nanogpt");
    let text = suggested(&log);
    has_all(
        &text,
        &[
            "# nanogpt reads it: ",
            "\nextends: nanogpt\n",
            "(?<shards>",
            "train.custom shards: ",
        ],
    );
    let (own, mapped) = (Sampled::read(format, &log), read(format, &text, &log));
    for name in [
        "train.loss",
        "eval.loss",
        "train.step.duration",
        "train.global_step",
        "train.steps",
    ] {
        assert_eq!(own.values(name), mapped.values(name), "{name}");
    }
    assert!(own.values("train.loss").len() > 2);
}

#[test]
fn group_with_the_name_of_another_key_gets_another_name() {
    let block = |step: u32| format!("step {step} loss 2.5 heat {step}\nengine room reports heat {step}00\n");
    let text = suggested(&(1..6).map(block).collect::<String>());
    assert!(!text.contains("(?<heat>"), "{text}");
    has_all(&text, &["train.custom heat: 5 points, 1 to 5\n"]);
}

#[test]
fn every_text_gets_a_mapping_that_can_be_read() {
    for log in [
        "hello\n",
        "{\"a\": 1, \"b\": {\"c\": 2}}\n{\"a\": 2, \"b\": {\"c\": 3}}\n{\"a\": 3, \"b\": {\"c\": 4}}\n",
        "x,y\n1,2\n3,4\n",
        "\n\n",
    ] {
        let text = suggested(log);
        let mapping = MappingFile::parse(&text).unwrap().build().unwrap();
        assert!(mapping.format_name().is_some(), "{text}");
    }
    let lines = |step: u32| format!("{{\"step\": {step}, \"loss\": 2.5, \"a\\nb\": 1}}\n");
    let text = suggested(&(1..5).map(lines).collect::<String>());
    assert!(
        MappingFile::parse(&text).is_ok() && text.contains("train.custom a b: 4"),
        "{text}"
    );
    has_all(
        &suggested("x,y\n1,2\n3,4\n"),
        &[
            "\nformat: csv\n",
            "{key: x, metric: }  # 2 x 1, 3; kept",
            "train.custom y: 2 points, 2 to 4",
        ],
    );
    has_all(
        &suggested("gc {\"pause\": 1}\ngc {\"pause\": 2}\ngc {\"pause\": 4}\n"),
        &[
            "(?<record>",
            "{key: pause, metric: }",
            "train.custom pause: 3 points, 1 to 4",
        ],
    );
}

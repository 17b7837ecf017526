//! The lines that are records, and those that are not.

use super::{FORMAT, agree, read};
use crate::logs::sampled::Sampled;
use crate::logs::{ReadTime, generic::suggest_mapping};

#[test]
fn pipe_delimited_lines_with_units_are_parsed_without_configuration() {
    let read = read(
        "loading 3 shards\n\
         step 100 | loss 2.31 | lr 3e-4 | 1200 tok/s\n\
         step 200 | loss 2.25 | lr 2e-4 | 1.5k tok/s\n\
         saved checkpoint 200\n\
         step 300 | loss nan | lr 1e-4 | 1,210 tok/s\n",
    );
    assert_eq!(read.values("train.global_step"), [100.0, 200.0, 300.0]);
    let losses = read.values("train.loss");
    assert!(losses[..2] == [2.31, 2.25] && losses[2].is_nan());
    assert_eq!(read.values("train.learning_rate"), [3e-4, 2e-4, 1e-4]);
    assert_eq!(read.values("train.throughput.tokens"), [1200.0, 1500.0, 1210.0]);
    assert_eq!(read.counts.records, 3);
}

#[test]
fn dictionaries_and_nested_objects_are_parsed_without_configuration() {
    let read = read(
        "{'loss': 2.5, 'epoch': 0.1, 'step': 1}\n{'loss': 2.25, 'epoch': 0.2, 'step': 2}\n\
         {\"step\": 3, \"train\": {\"loss\": 2.0}, \"epoch\": 0.3}\n{'loss': 1.75, 'epoch': 0.4, 'step': 4}\n",
    );
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0, 1.75]);
    assert_eq!(read.values("train.epoch"), [0.1, 0.2, 0.3, 0.4]);
}

#[test]
fn text_of_other_programs_is_not_detected() {
    for text in [
        "10.0.0.1 - - [10/Oct/2026:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 2326\n".repeat(9),
        "for step in range(100):\n    loss = 0.5\n    lr = 0.1\n".repeat(9),
        "learning_rate: 0.001\nbatch_size: 32\nmax_steps: 1000\nloss: mse\ndropout: 0.1\n".to_owned(),
        "Collecting torch==2.1\n  Downloading torch-2.1.whl (670.2 MB)\n 45% 300/670 MB 12.5 MB/s eta 0:00:30\n"
            .repeat(9),
        "Map:  45%|####5     | 45/100 [00:31<01:38,  1.44 examples/s]\r".repeat(9),
        "step 10 loss 2.5\nstep 20 loss 2.25\n".to_owned(),
        "step 10 loss 2.5\n".repeat(9),
        String::new(),
    ] {
        assert!(!agree(text.as_bytes()), "{text}");
    }
}

#[test]
fn few_matching_lines_in_prose_do_not_make_a_training_log() {
    let mut text = "step 10 loss 2.5\n".to_owned();
    for step in [20, 30, 40] {
        text.push_str(&"prose without any number\n".repeat(40));
        text.push_str(&format!("step {step} loss 2.25\n"));
    }
    assert!(!agree(text.as_bytes()));
}

#[test]
fn line_with_loss_fields_of_any_name_is_a_record() {
    let read = read(
        "[0/5][0/15]\tLoss_D: 1.5\tLoss_G: 5.5\n[0/5][5/15]\tLoss_D: 1.25\tLoss_G: 5.25\n[0/5][10/15]\tLoss_D: 1\tLoss_G: 5\n",
    );
    assert_eq!(read.values("train.custom"), [1.5, 5.5, 1.25, 5.25, 1.0, 5.0]);
}

#[test]
fn line_of_the_source_is_no_value() {
    for prefix in [
        "2026-01-02 12:00:00.5 | INFO     | train:main:42 - ",
        "[gpu01] 2026-01-02 12:00:00,123 (trainer:737) INFO: ",
    ] {
        let line = |step: u32| format!("{prefix}step=1{step} loss=2.{step}\n");
        let read = Sampled::read(&FORMAT, &(1..4).map(line).collect::<String>());
        assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3], "{prefix}");
        assert!(read.values("train.custom").is_empty(), "{prefix}");
    }
}

#[test]
fn printed_settings_are_no_record() {
    let read = read(
        "Namespace(device=0, log_steps=1, lr=0.01, epochs=500, betas=(0.9, 0.99), loss=0.5)\n\
         step 10 loss 2.5 lr 0.1\nstep 20 loss 2.25 lr 0.1\nstep 30 loss 2 lr 0.1\n",
    );
    assert_eq!(read.values("train.global_step"), [10.0, 20.0, 30.0]);
    assert_eq!(read.values("train.learning_rate"), [0.1; 3]);
    let metrics = self::read(
        "Metrics(step=1, loss=2.5, acc=0.5)\nMetrics(step=2, loss=2.25, acc=0.5)\nMetrics(step=3, loss=2, acc=0.5)\n",
    );
    assert_eq!(metrics.values("train.loss"), [2.5, 2.25, 2.0]);
}

#[test]
fn text_under_a_key_of_a_metric_is_kept_in_the_event() {
    let line = |step: u32| format!("{{\"step\": {step}, \"loss\": 2.{step}, \"train_loss\": \"pending\"}}\n");
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.counts.events, 3);
}

#[test]
fn suggested_mapping_has_one_row_for_a_metric_of_two_keys() {
    let log = "step 1 train_loss 2.5\nstep 2 train_loss 2.25 loss 2.0\nstep 3 train_loss 2.0 loss 1.75\n";
    let mapping = suggest_mapping("x.log", log.as_bytes(), ReadTime::default()).unwrap();
    assert!(
        mapping.contains("\n  - {key: loss, metric: train.loss}"),
        "{mapping}"
    );
    assert!(
        mapping.contains("\n  # - {key: train_loss, metric: }"),
        "{mapping}"
    );
}

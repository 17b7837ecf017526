//! Records over several lines below a line with their step.

use super::read;
use crate::logs::sampled::reasons;
use pulsetrain_record::SkipReason;

/// Returns a log with a block for each of four steps.
fn blocks(block: impl Fn(u32) -> String) -> String {
    (1..5).map(block).collect()
}

#[test]
fn values_below_a_step_belong_to_it() {
    for log in [
        blocks(|step| {
            format!(
                "~~~~~~ Iteration {step}/80 ~~~~~~\n▷ Sampling 512 prompts from the pool...\n🚀 Optimization:\n  ▪ loss: 0.{step}5\n  \
                 ▪ grad_norm: 1.{step} (clipped 2.0)\n  ▪ Temperature: 0.9\n"
            )
        }),
        blocks(|step| {
            format!(
                "##### [node_7] - SUMMARY ITERATION {step} #####\n  learner/total_loss: 0.{step}5\n  learner/grad_norm: 1.{step}\n  \
                 sampler/queue: 3.0\n######\nexported 12 files at iteration {step}\n"
            )
        }),
        blocks(|step| {
            format!(
                "╭────── Step {step} ──────╮\n│ loss: 0.{step}5         │\n│ grad_norm: 1.{step}     │\n╰──────────────────╯\n"
            )
        }),
    ] {
        let read = read(&log);
        assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0, 4.0], "{log}");
        assert_eq!(read.values("train.loss"), [0.15, 0.25, 0.35, 0.45], "{log}");
        assert_eq!(read.values("train.grad_norm"), [1.1, 1.2, 1.3, 1.4], "{log}");
    }
}

#[test]
fn blocks_of_epochs_with_a_time_in_every_line_are_read() {
    let log = blocks(|epoch| {
        format!(
            "2026-05-04 10:0{epoch}:00.5: Epoch {epoch}\n2026-05-04 10:0{epoch}:01.5: learning rate: 0.00{epoch}\n\
             writing to /data/fold_2\n2026-05-04 10:0{epoch}:40.5: train_loss 1.{epoch}\n\
             2026-05-04 10:0{epoch}:41.5: val_loss 2.{epoch}\n2026-05-04 10:0{epoch}:42.5: Epoch time: 40.5 s\n"
        )
    });
    let read = read(&log);
    assert_eq!(read.values("train.epoch"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read.values("train.learning_rate"), [0.001, 0.002, 0.003, 0.004]);
    assert_eq!(read.values("train.loss"), [1.1, 1.2, 1.3, 1.4]);
    assert_eq!(read.values("eval.loss"), [2.1, 2.2, 2.3, 2.4]);
}

#[test]
fn values_next_to_the_step_are_of_the_record_that_continues_below() {
    let log = blocks(|step| {
        format!(
            "INFO Training, Step: {step}, Parts: chamfer=0.{step} plddt=0.5\n     violation=3.5 loss=1.{step}\n"
        )
    });
    let read = read(&log);
    assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read.values("train.loss"), [1.1, 1.2, 1.3, 1.4]);
    assert_eq!(read.values("train.custom").len(), 12);
}

#[test]
fn known_value_after_a_record_belongs_to_its_step() {
    let log = blocks(|step| {
        format!("loss = 2.{step}, step = {step}00 (12.5 sec)\nsteps/sec: 8.{step}\nSaved files: 3\n")
    });
    let read = read(&log);
    assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3, 2.4]);
    assert_eq!(read.values("train.throughput.steps"), [8.1, 8.2, 8.3, 8.4]);
    assert_eq!(read.values("train.custom"), [3.0; 4]);
}

#[test]
fn settings_and_sentences_begin_no_block() {
    for head in [
        "Warmup steps: 100",
        "max step 500",
        "steps: 9",
        "Saving checkpoint at step 5",
        "step_size: 3",
    ] {
        let log = format!(
            "{head}\nmomentum: 0.9\n{}",
            blocks(|step| format!("step {step} loss 2.{step}\n"))
        );
        let read = read(&log);
        assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0, 4.0], "{head}");
        assert!(read.values("train.custom").is_empty(), "{head}");
    }
}

#[test]
fn lines_of_two_handlers_are_recorded_once() {
    let twice =
        |message: &str| format!("INFO:trainer:{message}\nI0504 10:00:01.5 77 loop.py:12] {message}\n");
    let log = blocks(|step| {
        twice(&format!("step {step} step_time 0.5s"))
            + &twice(&format!("{{'loss': 2.{step}, 'learning_rate': 0.5}}"))
    });
    let doubled = read(&log);
    assert_eq!(doubled.values("train.loss"), [2.1, 2.2, 2.3, 2.4]);
    assert_eq!(doubled.values("train.learning_rate"), [0.5; 4]);
    assert_eq!(
        reasons(&doubled.skipped),
        [(SkipReason::Ignored("repeated_line"), 16)]
    );
    let same = read("loss: 2.5 acc: 0.5\nloss: 2.5 acc: 0.5\nloss: 2.25 acc: 0.5\nloss: 2.0 acc: 0.5\n");
    assert_eq!(same.values("train.loss"), [2.5, 2.5, 2.25, 2.0]);
}

//! The numbers of steps.

use super::{FORMAT, read};
use crate::logs::sampled::Sampled;

#[test]
fn batch_counters_that_restart_each_epoch_become_global_steps() {
    let read = read(
        "Epoch 1/10 | Batch 100/500 | Loss 2.5\nEpoch 1/10 | Batch 400/500 | Loss 2.25\n\
         Epoch 2/10 | Batch 100/500 | Loss 2\nEpoch 3/10 | Batch 100/500 | Loss 1.75\n",
    );
    assert_eq!(read.values("train.global_step"), [100.0, 400.0, 600.0, 1100.0]);
    assert_eq!(read.values("train.epoch"), [1.0, 1.0, 2.0, 3.0]);
}

#[test]
fn epoch_local_counter_without_a_total_continues_at_its_interval() {
    let read = read(
        "epoch 1 step 100 loss 2.5\nepoch 1 step 200 loss 2.25\nepoch 2 step 100 loss 2\nepoch 2 step 200 loss 1.75\n",
    );
    assert_eq!(read.values("train.global_step"), [100.0, 200.0, 300.0, 400.0]);
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0, 1.75]);
    // From 0, as with `enumerate`.
    let from_zero = self::read(
        "epoch 0 | step 0 | loss 2.5\nepoch 0 | step 20 | loss 2.25\nepoch 1 | step 0 | loss 2\nepoch 1 | step 20 | loss 1.75\n",
    );
    assert_eq!(from_zero.values("train.global_step"), [0.0, 20.0, 40.0, 60.0]);
    // The interval is unknown, the last one is shorter, a run is resumed, and an epoch is missing.
    for (steps, known) in [
        (&[(0, 7), (1, 7), (2, 7)][..], 1),
        (&[(0, 100), (0, 200), (0, 201), (1, 100)], 3),
        (&[(0, 100), (0, 200), (0, 300), (1, 210)], 3),
        (&[(0, 100), (0, 200), (2, 100), (2, 200)], 2),
    ] {
        let line = |(epoch, step): &(u32, u32)| format!("epoch {epoch} | step {step} | loss 2.5\n");
        let read = Sampled::read(&FORMAT, &steps.iter().map(line).collect::<String>());
        let all: Vec<f64> = steps.iter().map(|(_, step)| f64::from(*step)).collect();
        assert_eq!(read.values("train.global_step"), all[..known], "{steps:?}");
    }
    let batches = "epoch 1 batch 100 loss 2.5\nepoch 1 batch 200 loss 2.25\nepoch 2 batch 100 loss 2\n";
    let batches = Sampled::read(&FORMAT, batches);
    assert_eq!(batches.values("train.global_step"), [100.0, 200.0, 300.0]);
    assert!(batches.values("train.custom").is_empty());
}

#[test]
fn step_numbers_with_a_k_suffix_are_parsed() {
    let read = read("step 1k loss 2.5\nstep 1.5k loss 2.25\nstep 2k loss 2\n");
    assert_eq!(read.values("train.global_step"), [1000.0, 1500.0, 2000.0]);
}

#[test]
fn number_before_a_line_is_its_step_unless_it_is_a_rank() {
    let read =
        read("0: loss 2.5, lr 0.1\n100: loss 2.25, lr 0.1\n200: loss 2, lr 0.1\n300: loss 1.75, lr 0.1\n");
    // In a log that grows, the first number can be the rank 0.
    assert_eq!(read.values("train.global_step"), [100.0, 200.0, 300.0]);
    let ranks = "0: step 1 loss 2.5\n1: step 1 loss 2.5\n0: step 2 loss 2\n1: step 2 loss 2\n";
    let ranks = Sampled::read(&FORMAT, ranks);
    assert_eq!(ranks.values("train.loss").len(), 4);
    assert!(ranks.values("train.custom").is_empty());
    let dated = "1714557600.5 step 1 loss 2.5\n1714557601.5 step 2 loss 2\n1714557602.5 step 3 loss 1\n";
    assert_eq!(
        Sampled::read(&FORMAT, dated).values("train.global_step"),
        [1.0, 2.0, 3.0]
    );
}

#[test]
fn values_in_lines_below_a_heading_belong_to_its_step() {
    let block = |step: u32, loss: f64| {
        format!(
            "2026-11-20 10:00:0{step} olmo:967 INFO [step={step}/1000,epoch=0]\n    train/CrossEntropyLoss={loss}\n    \
             throughput/device/tokens_per_second=23,46{step}\n    optim/norm_of_blocks=1.5\n"
        )
    };
    let read = read(&(1..4).map(|step| block(step, 2.5)).collect::<String>());
    assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0]);
    assert_eq!(read.values("train.epoch"), [0.0; 3]);
    assert_eq!(read.values("train.loss"), [2.5; 3]);
    assert_eq!(read.values("train.custom").len(), 6);
    // A sentence is not a heading, and a line with its own step begins the next block.
    let sentence = "Saving checkpoint at step 3/1000\n  Uploaded 3 files\nGPU temperature: 71\n";
    assert_eq!(Sampled::read(&FORMAT, sentence).counts.records, 0);
    let steps = "[step=3/1000]\n  loss: 2.5\n  step: 4\n  loss: 2.25\n";
    assert_eq!(
        Sampled::read(&FORMAT, steps).values("train.global_step"),
        [3.0, 4.0]
    );
}

#[test]
fn number_between_a_label_and_its_value_is_an_index() {
    let line = |step: u32| {
        format!("Train loss {step} 2.{step} Grad Norm 1.5 2.5s/it\nValidation loss {step}:  3.{step}\n")
    };
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3]);
    assert_eq!(read.values("eval.loss"), [3.1, 3.2, 3.3]);
    assert_eq!(read.values("train.grad_norm"), [1.5; 3]);
    // Two values of one metric.
    let both = self::read("step 1 acc 0.5 0.5\nstep 2 acc 0.75 0.5\nstep 3 acc 1.0 0.75\n");
    assert_eq!(both.values("train.accuracy"), [0.5, 0.75, 1.0]);
}

#[test]
fn aligned_total_of_a_count_is_read() {
    let read = read(
        "| epoch   1 |   200/  400 batches | loss 2.5\n| epoch   1 |   400/  400 batches | loss 2.25\n\
         | epoch   2 |   200/  400 batches | loss 2.0\n",
    );
    assert_eq!(read.values("train.global_step"), [200.0, 400.0, 600.0]);
}

#[test]
fn lower_number_of_another_counter_is_no_step() {
    let read = read(
        "iter 10: loss 2.5\niter 20: loss 2.25\nstep 2: val loss 2.75\niter 30: loss 2.0\niter 40: loss 1.75\n\
         step 4: val loss 2.5\niter 50: loss 1.5\n",
    );
    assert_eq!(read.values("train.global_step"), [10.0, 20.0, 30.0, 40.0, 50.0]);
    assert_eq!(read.values("eval.loss"), [2.75, 2.5]);
    // A restart has more than one lower number in a row.
    let restarted = self::read(
        "global_step=50 loss=1.5\nstep=1 loss=2.5\nstep=2 loss=2.25\nstep=3 loss=2.0\nstep=4 loss=1.75\n",
    );
    assert_eq!(restarted.values("train.global_step"), [50.0, 2.0, 3.0, 4.0]);
    let both = self::read(
        "iter 10 loss 2.5\niter 20 loss 2.25\nstep 2 iter 30 loss 2.0\nstep 3 iter 40 loss 1.75\n",
    );
    assert_eq!(both.values("train.global_step"), [10.0, 20.0, 30.0, 40.0]);
}

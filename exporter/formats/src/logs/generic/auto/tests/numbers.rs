//! The metric of a number, by its label and unit.

use super::read;
use crate::logs::sampled::reasons;
use pulsetrain_record::SkipReason;

#[test]
fn per_device_throughput_is_not_recorded_as_total_throughput() {
    let read = read(
        "step=1 loss=2 perf/tokens_per_sec_per_gpu=100 perf/tflops=250\n\
         step=2 loss=1.5 perf/tokens_per_second_per_device=200 tflops=300\n\
         step=3 loss=1.25 perf/tokens_per_second_per_device=200 tflops=300\n",
    );
    assert!(read.values("train.throughput.tokens").is_empty());
    assert_eq!(
        read.values("train.throughput.tokens_per_device"),
        [100.0, 200.0, 200.0]
    );
    assert_eq!(
        read.values("train.throughput.flops_per_device"),
        [2.5e14, 3e14, 3e14]
    );
}

#[test]
fn time_without_a_unit_is_not_a_step_duration() {
    let custom = |time: &str, unit: &str| {
        let line = |step| format!("step {step} loss 2.{step} | {time}{step}{unit}\n");
        let read = read(&(1..5).map(line).collect::<String>());
        assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3, 2.4]);
        read.values("train.custom")
    };
    assert_eq!(custom("time=12", ""), [121.0, 122.0, 123.0, 124.0]);
    assert_eq!(custom("time: 12:30:0", ""), [0.0; 0]);
    assert_eq!(custom("eval took 35", " ms"), [351.0, 352.0, 353.0, 354.0]);
    // Those are durations of steps.
    assert_eq!(custom("time 12", "ms"), [0.0; 0]);
    assert_eq!(custom("data_time 0.5 time 12", ""), [0.0; 0]);
}

#[test]
fn second_number_of_a_metric_is_kept_as_custom_without_becoming_the_metric() {
    let two_keys = read(
        "step 1 loss 2.5 train_acc: 45.5% acc: 47.0%\nstep 2 loss 2.25 acc: 48.0%\nstep 3 loss 2 acc: 49.0%\n",
    );
    assert_eq!(two_keys.values("train.accuracy"), [0.455]);
    assert_eq!(two_keys.values("train.custom"), [47.0, 48.0, 49.0]);
    // The same key twice in one record does not change the key's later values.
    let one_key = read("step 1 loss 2.5 loss 9\nstep 2 loss 2.25\nstep 3 loss 2\n");
    assert_eq!(one_key.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(one_key.values("train.custom"), [9.0]);
}

#[test]
fn key_with_the_name_of_its_metric_takes_precedence() {
    let read = read(
        "step 1 cross_entropy_loss 2.1 loss 2.2\nstep 2 cross_entropy_loss 2.0 loss 2.1\nstep 3 cross_entropy_loss 1.9 loss 2\n",
    );
    assert_eq!(read.values("train.loss"), [2.2, 2.1, 2.0]);
    assert_eq!(read.values("train.custom"), [2.1, 2.0, 1.9]);
    let alone = self::read(
        "{'step_loss': 0.5, 'lr': 0.1}\n{'step_loss': 0.25, 'lr': 0.1}\n{'step_loss': 0.125, 'lr': 0.1}\n",
    );
    assert_eq!(alone.values("train.loss"), [0.5, 0.25, 0.125]);
}

#[test]
fn rate_with_another_label_is_not_the_throughput_of_training() {
    let line = |step: u32| {
        format!("step {step} | loss 2.{step} | prefill speed: 5000 tok/s | tokens per second 1000\n")
    };
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.throughput.tokens"), [1000.0; 3]);
    assert_eq!(read.values("train.custom"), [5000.0; 3]);
}

#[test]
fn numbers_with_neighbouring_labels_keep_their_own() {
    let read = read(
        "INFO:root:step = 1, Speed: 1010.5 samples/sec, 621.3 lr: 0.001, 17.5 loss: 2.5\n\
         INFO:root:step = 2, Speed: 1012.5 samples/sec, 621.3 lr: 0.001, 17.5 loss: 2.25 (4500/10000) 7/9\n\
         INFO:root:step = 3, Speed: 1014.5 samples/sec, 621.3 lr: 0.001, 17.5 loss: 2.0\n",
    );
    assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0]);
    assert_eq!(read.values("train.throughput.samples"), [1010.5, 1012.5, 1014.5]);
    assert_eq!(read.values("train.learning_rate"), [0.001; 3]);
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert!(read.values("train.epoch").is_empty());
    assert!(read.values("train.custom").is_empty());
}

#[test]
fn counts_with_a_k_suffix_and_times_of_epochs_are_kept_as_custom() {
    let read = read(
        "epoch 1: loss 2.5, time 62.5s, fps 1.5k\nepoch 2: loss 2.25, time 61.5s, fps 1.25k\nepoch 3: loss 2, time 61s, fps 1k\n",
    );
    assert_eq!(read.values("train.epoch"), [1.0, 2.0, 3.0]);
    assert_eq!(
        read.values("train.custom"),
        [62.5, 1500.0, 61.5, 1250.0, 61.0, 1000.0]
    );
    assert!(read.values("train.step.duration").is_empty());
}

#[test]
fn estimate_without_a_value_is_not_measured() {
    let read = read(
        "step 1 | loss 2.5 | 12.5ms | mfu -100.00%\nstep 2 | loss 2.25 | 12.5ms | mfu 40.00%\nstep 3 | loss 2 | 12.5ms | mfu 41.00%\n",
    );
    assert_eq!(read.values("train.mfu"), [0.4, 0.41]);
    assert!(read.values("train.custom").is_empty());
}

#[test]
fn text_in_brackets_belongs_to_the_label_before_it() {
    let read = read(
        "step 1 | Acc (%): 50 time (sec): 0.5 Loss (avg) 2.5 lr (x1e-4): 1.1 Val loss (mean): 3.5 loss (val): 9.5\n\
         step 2 | Acc (%): 52 time (sec): 0.25 Loss (avg) 2.25 lr (x1e-4): 1.0 Val loss (mean): 3.25 loss (val): 9.25\n\
         step 3 | Acc (%): 50 time (sec): 0.5 Loss (avg) 2.0 lr (x1e-4): 0.9 Val loss (mean): 3.0 loss (val): 9.0\n",
    );
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(read.values("eval.loss"), [3.5, 3.25, 3.0]);
    assert_eq!(read.values("train.accuracy"), [0.5, 0.52, 0.5]);
    assert!(read.values("train.learning_rate").is_empty());
    // The time since the start of the epoch, and a second value of a metric.
    assert_eq!(
        read.values("train.custom"),
        [0.5, 1.1, 9.5, 0.25, 1.0, 9.25, 0.5, 0.9, 9.0]
    );
}

#[test]
fn numbers_without_a_label_are_counted() {
    let line = |step: u32| format!("7 | loss 2.{step} (2.5) | 490.5/s | 1200/900 tok/s; lr: 0.1\n");
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3]);
    assert_eq!(read.values("train.learning_rate"), [0.1; 3]);
    assert!(read.values("train.global_step").is_empty());
    let unlabelled = SkipReason::Ignored("unlabelled_number");
    assert_eq!(reasons(&read.skipped), [(unlabelled, 6)]);
}

#[test]
fn rate_of_data_is_no_duration() {
    let read = read(
        "step 1 loss 2.5, FW: 3.5 s, BW: 412.5 GB/sec\nstep 2 loss 2.25, FW: 3 s, BW: 410 GB/sec\n\
         step 3 loss 2, FW: 3 s, BW: 411 GB/sec\n",
    );
    assert_eq!(read.values("perf.forward_time"), [3.5, 3.0, 3.0]);
    assert!(read.values("perf.backward_time").is_empty());
    // The words after a number can be the next label.
    let label = self::read(
        "step 1 loss 2.5 step_time 0.5 tok/s 1201\nstep 2 loss 2.25 step_time 0.25 tok/s 1202\n\
         step 3 loss 2 step_time 0.5 tok/s 1203\n",
    );
    assert_eq!(label.values("train.step.duration"), [0.5, 0.25, 0.5]);
}

//! Lines as MaxText printed them, of this release and of older ones.

use super::*;
use crate::logs::sampled::{Sampled, check};

const CASES: &str = "
## a step has values and a span
I1121 00:33:13.748022 140413477075840 metric_logger.py:230] completed step: 7, seconds: 0.014, \
TFLOP/s/device: 0.001, Tokens/s/device: 4629.965, total_weights: 128, loss: 6.012, lm_loss: 6.012, \
perplexity: 408.227, moe_lb_loss: 0.021199
-> train.loss 6.012, train.loss_component 6.012 0.021199, train.throughput.flops_per_device 1e9, train.global_step 7
-> spans 1, points 10

## lines of older releases have no prefix and no span
completed step: 0, seconds: 24.604, TFLOP/s/device: 31.079, Tokens/s/device: 499.5, total_weights: 48000, loss: 10.8
[Rampup Batch Size Phase], completed step: 1, seconds: 0.3, total_weights: 10, loss: nan
-> train.global_step 0 1, train.loss 10.8 nan, spans 0

## evaluations are not steps
Completed eval step: 0, seconds: 12.429, running loss=5.917, running perplexity=371.2, running total_weights=128.0
Completed eval after train step 20, loss=5.917, perplexity=371.203, total_weights=384.0, avg_z_loss=0.000, \
avg_moe_lb_loss=0.021, avg_mtp_acceptance_rate=46.5%
-> eval.loss 5.917 5.917, eval.accept_ratio 0.465, train.global_step, points 10

## memory of devices and of the host
Total memory size: 100.4 GB, Output size: 44.6 GB, Temp size: 55.8 GB, Argument size: 44.6 GB, Host temp size: 0.0 GB.

Memstats: After params initialized:
\tUsing (GB) 44.63 / 95.74 (46.615835%) on TPU_0(process=0,(0,0,0,0))

RAMstats: After params initialized:
\tUsing (GB) 4.5 / 400.0 (1.125%) -->  Available:395.0
-> memory.estimate.size 107803679130 47888885350 59914793779 47888885350 0
-> memory.framework.limit 102800042230, memory.host.used 4.5GiB
-> memory.host.available 395GiB

## estimates in bytes, as a cluster of early 2025 printed them, each line once for all hosts
(run_maxtext_train pid=80538, ip=10.130.0.12) Output size: 1657041920, temp size: 4907988480, \
argument size: 1657366016, host temp size: 0, in bytes.
-> memory.estimate.size 1657041920 4907988480 1657366016 0

## unavailable memory is not measured

Memstats: After params initialized:
\tMemstats unavailable, error: 'NoneType' object is not subscriptable

RAMstats: After params initialized:
\tRAM stats unavailable, error: x
-> skipped not_measured=2, points 0

## a step of a distillation has two lines
I1121 01:00:05.000000 140 train_distill.py:483] Distillation metrics | total_loss=2.31 hard_loss=2.5 soft_loss=1.9 \
student_perplexity=12.18 moe_lb_loss=0.021
I1121 01:00:05.100000 140 train_distill.py:392] step 5 | step_time=1.23s | TFLOPs/s/device: 100.00 (student=60.00, \
teacher=40.00)
-> train.loss 2.31, train.perplexity 12.18, train.global_step 5, train.throughput.flops_per_device 100e12
-> train.loss_component 2.5 1.9 0.021, perf.phase_flops_per_device 60e12 40e12, spans 1, records 2

## operations of inference are not those of training
Per prefill step per device:\x20
 \tTotal TFLOPs: 1.50\x20
 \t\tLearnable weight TFLOPs: 1.40\x20
-> points 0, records 0

## lifecycle lines are events
System Information: Jax Backend: PJRT C API
TFRT TPU v6 lite
Num_devices: 4, shape (1, 1, 4)
I1121 01:00:05.000000 140 checkpointing.py:451] Started an asynchronous checkpoint save for step 5
Starting eval after train step 20
Training stopped: Target loss self.config.target_eval_loss=2.0 is achieved.
-> events 6, points 1
";

#[test]
fn lines_have_their_values() {
    check(&FORMAT, CASES);
}

/// The lines of `train.py` up to June 2025, and those of `metric_logger.py` up to April 2026.
#[test]
fn results_of_evaluations_of_older_releases_are_read() {
    for (line, points) in [
        (
            "average loss after step=20: eval_loss=5.917, total_weights=384.0",
            2,
        ),
        (
            "average loss after step=20: eval_step_count=3, eval_loss=5.917, total_weights=384.0",
            3,
        ),
        (
            "eval metrics after step: 20, loss=5.917, total_weights=384.0, step_time_seconds=0.312",
            3,
        ),
        (
            "I0301 00:33:13.748022 1404 metric_logger.py:128] eval metrics after step: 20, loss=5.917, total_weights=384.0, \
             avg_mtp_loss=0.110, avg_mtp_acceptance_rate=41.25%",
            4,
        ),
    ] {
        let read = Sampled::read(&FORMAT, &format!("{line}\n"));
        assert_eq!(read.values("eval.loss"), [5.917], "{line}");
        assert_eq!(read.values("eval.total_weights"), [384.0], "{line}");
        assert_eq!(read.counts.points, points, "{line}");
        assert!(
            lines::detect::<MaxText>(line.as_bytes()).is_none(),
            "it has no end"
        );
        let recognised = lines::detect::<MaxText>(format!("{line}\n").as_bytes());
        assert_eq!(recognised, Some("lines of evaluations as MaxText prints them"));
    }
}

#[test]
fn maxtext_run_is_identified_by_its_configuration_lines() {
    let text = "x\nI1121 00:33:07.297127 140 pyconfig.py:584] Config param abort_on_inf_loss: True\n\
                I1121 00:33:07.297127 140 pyconfig.py:584] Config param run_name: demo\n";
    let identity = identify(text.as_bytes());
    assert_eq!(identity.run_name.as_deref(), Some("demo"));
    assert!(identity.first_record.ends_with(b"abort_on_inf_loss: True"));
    let read = Sampled::read(&FORMAT, text);
    assert_eq!((read.counts.events, read.counts.points), (2, 0));
}

#[test]
fn metrics_file_keys_are_mapped() {
    let read = Sampled::read(
        &metrics_file::FORMAT,
        "{\"learning/loss\": NaN, \"perf/step_time_seconds\": 2.5, \"novel/key\": 1.5, \"step\": 3.0, \"run_name\": \"demo\"}\n\
         {\"eval/avg_loss\": 5.5, \"step\": 0.0, \"run_name\": \"demo\"}\n{\"learning/lo",
    );
    assert!(read.values("train.loss")[0].is_nan());
    assert_eq!(
        (read.values("train.steps"), read.values("eval.loss")),
        (vec![1.0], vec![5.5])
    );
    assert_eq!(read.values("train.custom"), [1.5]);
    assert!(read.skipped.has_losses());
}

/// Each window of `gcs_metrics` is a file, and begins with another record.
#[test]
fn metrics_windows_with_one_run_name_share_an_identity() {
    let of = |text: &str| (metrics_file::FORMAT.identify)(text.as_bytes());
    let first = of("{\"learning/loss\": 6.5, \"step\": 0.0, \"run_name\": \"demo\"}\n");
    let second = of("{\"learning/loss\": 6.1, \"step\": 5.0, \"run_name\": \"demo\"}\n");
    assert_eq!(
        (first.run_name.as_deref(), first.is_complete()),
        (Some("demo"), true)
    );
    assert_eq!(first, second);
    let other = of("{\"learning/loss\": 6.5, \"step\": 0.0, \"run_name\": \"other\"}\n");
    assert_ne!(first, other);
    let nameless = of("{\"learning/loss\": 6.5, \"step\": 0.0, \"run_name\": \"\"}\n");
    assert!(nameless.is_complete() && nameless.run_name.is_none());
}

#[test]
fn lines_of_pythons_default_logging_handler_are_parsed() {
    let line = "INFO:absl:completed step: 3, seconds: 0.5, TFLOP/s/device: 1.0, Tokens/s/device: 2.0, total_weights: 8, loss: 6.5\n";
    let read = Sampled::read(&FORMAT, line);
    assert_eq!((read.values("train.loss"), read.counts.spans), (vec![6.5], 0));
    assert!(lines::detect::<MaxText>(line.as_bytes()).is_some());
}

/// As they were in releases before May 2025 (`MaxText/train.py`, `ml_goodput_measurement/src/monitoring.py`).
#[test]
fn keys_of_older_releases_map_to_the_current_metrics() {
    let read = Sampled::read(
        &metrics_file::FORMAT,
        "{\"learning/loss\": 6.5, \"learning/dpo_reward_accuracy\": 0.625, \"goodput\": 93.5, \"step\": 3.0, \"run_name\": \"demo\"}\n",
    );
    assert_eq!(read.values("train.accuracy"), [0.625]);
    assert_eq!(read.values("train.goodput"), [0.935]);
    assert_eq!(read.values("train.custom"), [0.0; 0]);
}

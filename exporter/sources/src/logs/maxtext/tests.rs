//! Lines as MaxText printed them, of this release and of older ones.

use super::*;
use crate::logs::sampled::Sampled;

#[test]
fn a_step_line_gives_its_values_at_its_own_time() {
    let read = Sampled::read(
        &FORMAT,
        "I1121 00:33:13.748022 140413477075840 metric_logger.py:230] completed step: 7, seconds: 0.014, \
         TFLOP/s/device: 0.001, Tokens/s/device: 4629.965, total_weights: 128, loss: 6.012, lm_loss: 6.012, \
         perplexity: 408.227, moe_lb_loss: 0.021199\n",
    );
    assert_eq!(read.values("train.loss"), [6.012]);
    assert_eq!(read.values("train.loss_component"), [6.012, 0.021199]);
    assert_eq!(read.values("train.throughput.flops_per_device"), [0.001 * 1e12]);
    assert_eq!(read.values("train.global_step"), [7.0]);
    assert_eq!((read.counts.spans, read.counts.points), (1, 10));
    assert!(!read.skipped.has_losses());
}

#[test]
fn lines_of_older_releases_have_no_prefix_and_make_no_span() {
    let read = Sampled::read(
        &FORMAT,
        "completed step: 0, seconds: 24.604, TFLOP/s/device: 31.079, Tokens/s/device: 499.5, total_weights: 48000, loss: 10.8\n\
         [Rampup Batch Size Phase], completed step: 1, seconds: 0.3, total_weights: 10, loss: nan\n",
    );
    assert_eq!(read.values("train.global_step"), [0.0, 1.0]);
    assert!(read.values("train.loss")[1].is_nan());
    assert_eq!(read.counts.spans, 0);
}

#[test]
fn evaluations_are_no_steps() {
    let read = Sampled::read(
        &FORMAT,
        "Completed eval step: 0, seconds: 12.429, running loss=5.917, running perplexity=371.2, running total_weights=128.0\n\
         Completed eval after train step 20, loss=5.917, perplexity=371.203, total_weights=384.0, avg_z_loss=0.000, \
         avg_moe_lb_loss=0.021, avg_mtp_acceptance_rate=46.5%\n",
    );
    assert_eq!(read.values("eval.loss"), [5.917, 5.917]);
    assert_eq!(read.values("eval.accept_ratio"), [0.465]);
    assert_eq!(read.values("train.global_step"), [0.0; 0]);
    assert_eq!(read.counts.points, 10);
}

#[test]
fn memory_is_told_by_device_and_by_host() {
    let read = Sampled::read(
        &FORMAT,
        "Total memory size: 100.4 GB, Output size: 44.6 GB, Temp size: 55.8 GB, Argument size: 44.6 GB, Host temp size: 0.0 GB.\n\
         \nMemstats: After params initialized:\n\
         \tUsing (GB) 44.63 / 95.74 (46.615835%) on TPU_0(process=0,(0,0,0,0))\n\
         \nRAMstats: After params initialized:\n\
         \tUsing (GB) 4.5 / 400.0 (1.125%) -->  Available:395.0\n",
    );
    assert_eq!(read.values("memory.estimate.size").len(), 5);
    assert_eq!(
        read.values("memory.framework.limit"),
        [(95.74 * (1_u64 << 30) as f64).trunc()]
    );
    assert_eq!(read.values("memory.host.used"), [4.5 * (1_u64 << 30) as f64]);
}

#[test]
fn the_run_is_known_by_its_configuration() {
    let text = "x\nI1121 00:33:07.297127 140 pyconfig.py:584] Config param abort_on_inf_loss: True\n\
                I1121 00:33:07.297127 140 pyconfig.py:584] Config param run_name: demo\n";
    let identity = identify(text.as_bytes());
    assert_eq!(identity.run_name.as_deref(), Some("demo"));
    assert!(identity.first_record.ends_with(b"abort_on_inf_loss: True"));
    let read = Sampled::read(&FORMAT, text);
    assert_eq!((read.counts.events, read.counts.points), (2, 0));
}

#[test]
fn the_metrics_file_is_read_by_its_keys() {
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

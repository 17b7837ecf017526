//! Bars and lines as TorchSpec drew and printed them.

use super::*;
use crate::logs::sampled::Sampled;

const BAR: &str = "Training:  50%|█████     | 20/40 [00:03<00:03,  5.99step/s, loss=1.053, acc=0.713, acc_len=2.45, thru=44.3, \
                   I=91.7, T=86.7, wait=0.1s, pool=0, epoch=1/2]";
const TIMED: &str = "[2026-11-21 00:21:27,088] loop.py:340 INFO TIMING step=20: step=0.081s data=0.020s compute=0.060s \
                     [fwd=0.018s bwd=0.033s opt=0.009s] dispatch=0.054s";

#[test]
fn a_bar_with_a_line_glued_to_it_gives_both() {
    let read = Sampled::read(&FORMAT, &format!("\r{BAR}{TIMED}\n"));
    assert_eq!(read.values("train.loss"), [1.053]);
    assert_eq!(
        (read.values("train.eta"), read.values("train.progress")),
        (vec![3.0], vec![0.5])
    );
    assert_eq!(read.values("train.step.duration"), [0.081]);
    assert_eq!(read.values("train.steps"), [1.0]);
    assert_eq!((read.counts.records, read.counts.spans), (2, 1));
    assert!(!read.skipped.has_losses());
}

#[test]
fn a_wait_is_counted_once_a_step() {
    let read = Sampled::read(&FORMAT, &format!("{TIMED}\n{BAR}\r{BAR}\r"));
    assert_eq!(read.values("perf.dispatch_wait"), [0.054]);
    assert_eq!(read.values("train.loss").len(), 1);
}

#[test]
fn the_bar_without_performance_metrics_and_the_slow_one_are_read() {
    let read = Sampled::read(
        &FORMAT,
        "Training:   5%|▌         | 2/40 [1:00:03<?,  1.25s/step, loss=2.500, thru=48.0, epoch=1/2]",
    );
    assert_eq!(read.values("train.elapsed_time"), [3603.0]);
    assert_eq!(read.values("train.throughput.steps"), [0.8]);
    assert_eq!(read.values("perf.bottleneck"), [0.0; 0]);
}

#[test]
fn the_bottleneck_is_read_as_the_documentation_reads_it() {
    let holding = |values: &str, timing: &str| {
        let bar = format!("Training: 5%|▌ | 21/40 [00:03<00:03, 5.9step/s, {values}]");
        let parser = TorchSpec {
            timing: Timing {
                step: Some(20),
                step_secs: 1.0,
                data_secs: if timing == "data" { 0.9 } else { 0.1 },
                compute_secs: if timing == "even" { 0.1 } else { 0.25 },
            },
            ..TorchSpec::default()
        };
        parser.bottleneck(&Bar::parse(&bar).unwrap())
    };
    assert_eq!(
        holding("thru=8.2, I=8.5, T=15.3, wait=2.1s, pool=0", "even"),
        Some("inference")
    );
    assert_eq!(
        holding("thru=12.1, I=25.0, T=12.3, wait=0.0s, pool=48", "even"),
        Some("training")
    );
    assert_eq!(
        holding("thru=12.1, I=25.0, T=12.3, wait=0.0s, pool=48", "data"),
        Some("data")
    );
    assert_eq!(
        holding("thru=12.1, I=25.0, T=12.3, wait=0.0s, pool=48", "compute"),
        Some("compute")
    );
    assert_eq!(
        holding("thru=12.1, I=12.5, T=12.3, wait=0.0s, pool=4", "even"),
        Some("none")
    );
    assert_eq!(
        holding("thru=12.1, I=0.0, T=12.3, wait=0.0s, pool=4", "even"),
        None
    );
}

#[test]
fn evaluations_and_a_full_pool_are_read() {
    let read = Sampled::read(
        &FORMAT,
        "[2026-11-21 00:21:27,088] loop.py:1 INFO Step 20 eval: loss=1.234, acc=0.500, sim_acc_len=2.10\n\
         [2026-11-21 00:21:27,090] m.py:1 WARNING Sample pool full, pausing generation: pool_size=64/64\n\
         [2026-11-21 00:21:28,090] m.py:1 INFO Pool capacity available after 1.5s\n",
    );
    assert_eq!(read.values("eval.loss"), [1.234]);
    assert_eq!(read.values("perf.sample_pool_size"), [64.0]);
    assert_eq!(read.values("perf.backpressure_wait"), [1.5]);
}

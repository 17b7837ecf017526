//! Lines of every kind as the console prints them.

use super::*;
use crate::logs::sampled::Sampled;

#[test]
fn step_line_yields_values_spike_and_phase() {
    let read = Sampled::read(
        &FORMAT,
        ":: step      22 [ 10.0%] \\ loss 2.1348 | norm !9.7500 | 130.0k tps |   126 ms | kd 0.5000 | sol 68.3 | eta 01h02m | converging\n",
    );
    assert_eq!(read.values("train.loss"), [2.1348]);
    assert_eq!(read.values("train.grad_norm"), [9.75]);
    assert_eq!(read.values("train.throughput.tokens"), [130_000.0]);
    assert_eq!(read.values("train.eta"), [3720.0]);
    assert_eq!(read.values("train.anomalies"), [1.0]);
    assert!(read.values("train.phase").contains(&1.0));
    assert!(!read.skipped.has_losses());
    assert!(read.skipped.counts().next().is_none());
}

#[test]
fn non_finite_loss_is_recorded() {
    let read = Sampled::read(
        &FORMAT,
        ":: step 3 [ 10.0%] / loss nan | norm     inf | 130.0k tps |   126 ms\n\
         \x1b[1m>> eval                      loss 2.9659 | gap +nan | 140.0k tps |   234 ms\x1b[22m\n",
    );
    assert!(read.values("train.loss")[0].is_nan() && read.values("eval.gap")[0].is_nan());
    assert_eq!(read.values("train.grad_norm"), [f64::INFINITY]);
    assert_eq!(read.values("eval.duration"), [0.234]);
}

#[test]
fn two_line_gpu_reading_is_parsed() {
    let read = Sampled::read(
        &FORMAT,
        "[G] step     5 [gpu  1] | power  620 W   | temp  61 / 87°C | clock 1755 MHz\n\
         Mem Usage 15570 MiB | PCI↓  176 MiB/s| PCI↑   24 MiB/s\n",
    );
    assert_eq!(read.values("gpu.power"), [620.0]);
    assert_eq!(read.values("gpu.temperature_limit"), [87.0]);
    assert_eq!(read.values("gpu.memory.used"), [15570.0 * 1_048_576.0]);
    assert_eq!((read.counts.records, read.counts.points), (2, 7));
}

#[test]
fn reinforcement_learning_line_is_parsed() {
    let read = Sampled::read(
        &FORMAT,
        "step=3 loss=0.0125 grad_norm=0.5 lr=1e-06 kl=0.01 masked=3.5% tokens=512 micro_batches=4 vtc=480 expected=1.0 time=2.50s\n",
    );
    assert_eq!(read.values("rl.masked_fraction"), [0.035]);
    assert_eq!(
        (read.values("train.tokens"), read.values("train.step.duration")),
        (vec![512.0], vec![2.5])
    );
    assert_eq!(read.counts.points, 12);
}

#[test]
fn console_with_only_evaluation_lines_is_detected() {
    let text =
        "\u{1b}[1m>> eval                      loss 2.9659 | gap   +nan | 140.0k tps |   234 ms\u{1b}[22m\n";
    assert!((FORMAT.detect)(text.as_bytes()).is_some());
    let read = Sampled::read(&FORMAT, text);
    assert_eq!(read.values("eval.loss"), [2.9659]);
    assert!(read.values("eval.gap")[0].is_nan());
    assert_eq!((read.counts.records, read.counts.points), (1, 4));
}

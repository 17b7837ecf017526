//! Lines of every kind as the console prints them.

use super::*;
use crate::logs::sampled::{Sampled, check};

const CASES: &str = "
## a step with a spike and a phase
:: step      22 [ 10.0%] \\ loss 2.1348 | norm !9.7500 | 130.0k tps |   126 ms | kd 0.5000 | sol 68.3 | eta 01h02m | converging
-> train.loss 2.1348, train.grad_norm 9.75, train.throughput.tokens 130000, train.eta 3720, train.anomalies 1
-> train.phase{train.phase=converging} 1, skipped

## numbers that are not finite
:: step 3 [ 10.0%] / loss nan | norm     inf | 130.0k tps |   126 ms
\x1b[1m>> eval                      loss 2.9659 | gap +nan | 140.0k tps |   234 ms\x1b[22m
-> train.loss nan, eval.gap nan, train.grad_norm inf, eval.duration 0.234

## the two lines of a GPU
[G] step     5 [gpu  1] | power  620 W   | temp  61 / 87°C | clock 1755 MHz
Mem Usage 15570 MiB | PCI↓  176 MiB/s| PCI↑   24 MiB/s
-> gpu.power 620, gpu.temperature_limit 87, gpu.memory.used 16326328320, records 2, points 7

## a step of reinforcement learning
step=3 loss=0.0125 grad_norm=0.5 lr=1e-06 kl=0.01 masked=3.5% tokens=512 micro_batches=4 vtc=480 expected=1.0 time=2.50s
-> rl.masked_fraction 0.035, train.tokens 512, train.step.duration 2.5, points 12
";

#[test]
fn lines_have_their_values() {
    check(&FORMAT, CASES);
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

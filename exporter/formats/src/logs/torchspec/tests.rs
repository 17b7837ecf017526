//! Bars and lines as TorchSpec drew and printed them.

use super::*;
use crate::logs::sampled::{Sampled, reasons};

const BAR: &str = "Training:  50%|█████     | 20/40 [00:03<00:03,  5.99step/s, loss=1.053, acc=0.713, acc_len=2.45, thru=44.3, \
                   I=91.7, T=86.7, wait=0.1s, pool=0, epoch=1/2]";
const TIMED: &str = "[2026-11-21 00:21:27,088] loop.py:340 INFO TIMING step=20: step=0.081s data=0.020s compute=0.060s \
                     [fwd=0.018s bwd=0.033s opt=0.009s] dispatch=0.054s";

#[test]
fn progress_bar_followed_by_a_log_line_yields_both() {
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
fn dispatch_wait_is_counted_once_per_step() {
    let read = Sampled::read(&FORMAT, &format!("{TIMED}\n{BAR}\r{BAR}\r"));
    assert_eq!(read.values("perf.dispatch_wait"), [0.054]);
    assert_eq!(read.values("train.loss").len(), 1);
}

#[test]
fn bar_without_performance_metrics_or_with_seconds_per_step_is_parsed() {
    let read = Sampled::read(
        &FORMAT,
        "Training:   5%|▌         | 2/40 [1:00:03<?,  1.25s/step, loss=2.500, thru=48.0, epoch=1/2]",
    );
    assert_eq!(read.values("train.elapsed_time"), [3603.0]);
    assert_eq!(read.values("train.throughput.steps"), [0.8]);
    assert_eq!(read.values("perf.bottleneck"), [0.0; 0]);
}

/// The state that is read last; `None` if no state was read.
fn bottleneck(text: &str) -> Option<String> {
    Sampled::read(&FORMAT, text).state("perf.bottleneck")
}

fn bar(step: u32, values: &str) -> String {
    format!(
        "\rTraining:  10%|== | {step}/40 [00:03<00:03,  1.00step/s, loss=0.350, acc=0.830, {values}, epoch=1/10]"
    )
}

/// "thru=12.1, I=18.5, T=13.2, wait=0.1s, pool=24" is the bar of the documentation, without an opinion on it.
#[test]
fn the_bar_reveals_the_bottleneck_of_each_documented_scenario() {
    for (values, state) in [
        ("thru=8.2, I=8.5, T=15.3, wait=2.1s, pool=0", "inference"),
        ("thru=12.1, I=25.0, T=12.3, wait=0.0s, pool=48", "training"),
        ("thru=12.1, I=18.5, T=13.2, wait=0.1s, pool=24", "training"),
        ("thru=12.1, I=12.5, T=12.3, wait=0.0s, pool=4", "none"),
    ] {
        assert_eq!(bottleneck(&bar(4, values)).as_deref(), Some(state), "{values}");
    }
    let timed = "[2026-11-21 00:21:27,088] loop.py:340 INFO TIMING step=20: step=1.200s data=0.900s compute=0.250s dispatch=0.000s\n";
    let text = format!(
        "{timed}{}",
        bar(21, "thru=12.1, I=25.0, T=12.3, wait=0.0s, pool=48")
    );
    assert_eq!(bottleneck(&text).as_deref(), Some("data"));
}

/// The bar of the recorded run shows 0.1 s for a wait of 0.054 s, in steps of 0.09 s.
#[test]
fn bottleneck_follows_the_exact_wait_where_a_line_has_it() {
    let timed = "[2026-11-21 00:21:27,244] loop.py:340 INFO TIMING step=3: step=0.090s data=0.026s compute=0.063s dispatch=0.054s\n";
    let shown = bar(3, "thru=32.8, I=88.0, T=88.6, wait=0.1s, pool=0");
    let start = "[2026-11-21 00:21:26,892] loop.py:222 INFO Starting: num_steps=40, global_batch_size=8\n";
    assert_eq!(
        bottleneck(&format!("{start}{timed}{shown}")).as_deref(),
        Some("none")
    );
    let later = bar(4, "thru=32.8, I=88.0, T=88.6, wait=0.1s, pool=0");
    assert_eq!(
        bottleneck(&format!("{start}{timed}{later}")).as_deref(),
        Some("inference")
    );
}

/// "When perf metrics are disabled, the bar shows only thru (pipeline throughput)."
#[test]
fn without_performance_metrics_no_bottleneck_is_recorded() {
    assert_eq!(bottleneck(&bar(4, "thru=48.0")), None);
}

#[test]
fn long_wait_without_inference_throughput_is_an_inference_bottleneck() {
    let starved = bar(1, "thru=0.0, I=0.0, T=80.0, wait=0.9s, pool=0");
    assert_eq!(bottleneck(&starved).as_deref(), Some("inference"));
    let started = "[2026-11-21 00:21:26,892] loop.py:222 INFO Starting: num_steps=40, global_batch_size=8\n";
    // A step of 8 samples takes a tenth of a second here.
    for (wait, state) in [("0.2s", Some("inference")), ("0.0s", None)] {
        let text = format!(
            "{started}{}",
            bar(1, &format!("thru=0.0, I=0.0, T=80.0, wait={wait}, pool=0"))
        );
        assert_eq!(bottleneck(&text).as_deref(), state);
    }
}

#[test]
fn growing_pool_without_inference_throughput_is_a_training_bottleneck() {
    let growing = |sizes: [u32; 5]| -> String {
        let bars = (1..).zip(sizes);
        bars.map(|(step, size)| bar(step, &format!("thru=0.0, I=0.0, T=80.0, wait=0.0s, pool={size}")))
            .collect()
    };
    assert_eq!(
        bottleneck(&growing([0, 8, 16, 24, 32])).as_deref(),
        Some("training")
    );
    assert_eq!(bottleneck(&growing([8, 0, 8, 0, 8])), None);
}

#[test]
fn evaluations_and_generation_backpressure_are_parsed() {
    let read = Sampled::read(
        &FORMAT,
        "[2026-11-21 00:21:27,088] loop.py:1 INFO Step 20 eval: loss=1.234, acc=0.500, sim_acc_len=2.10\n\
         [2026-11-21 00:21:27,090] m.py:1 WARNING Sample pool full, pausing generation: pool_size=65/64\n\
         [2026-11-21 00:21:37,090] m.py:1 INFO Still waiting for pool capacity (waited 10.0s): pool_size=64/64\n\
         [2026-11-21 00:21:38,590] m.py:1 INFO Pool capacity available after 11.5s, pool_size=60/64\n\
         [2026-11-21 00:21:39,090] m.py:1 INFO Pool wait aborted (shutdown requested) after 0.5s\n\
         [2026-11-21 00:21:40,090] loop.py:1 INFO Saving checkpoint at step 20...\n",
    );
    assert_eq!(read.values("eval.loss"), [1.234]);
    assert_eq!(read.values("perf.sample_pool_size"), [65.0, 64.0, 60.0]);
    assert_eq!(read.values("perf.sample_pool_limit"), [64.0, 64.0, 64.0]);
    assert_eq!(read.values("perf.backpressure_wait"), [11.5, 0.5]);
    assert_eq!((read.counts.records, read.counts.events), (6, 1));
    assert!(!read.skipped.has_losses());
}

/// The trainer and the loop both report the passes of some steps, in either order. Most steps are reported by only one of them.
#[test]
fn the_passes_of_a_step_are_recorded_once() {
    let passes = |step: u32, ms: &str| {
        format!(
            "(TrainActor pid=7) [2026-11-21 00:21:27,080] t.py:1 INFO COMPUTE_BREAKDOWN step={step}: forward={ms}ms backward=40.5ms\n"
        )
    };
    let timed = |fwd: &str| TIMED.replace("fwd=0.018s bwd=0.033s", fwd) + "\n";
    for (text, forward, left_out) in [
        (passes(19, "18.4") + &timed("fwd=0.018s bwd=0.040s"), 0.0184, 2),
        (timed("fwd=0.018s bwd=0.040s") + &passes(19, "18.4"), 0.018, 2),
        (timed("fwd=0.000s bwd=0.000s") + &passes(20, "18.4"), 0.0184, 2),
    ] {
        let read = Sampled::read(&FORMAT, &text);
        assert_eq!(read.values("perf.forward_time"), [forward], "{text}");
        assert_eq!(read.values("perf.backward_time").len(), 1, "{text}");
        assert_eq!(
            read.skipped.counts().map(|(_, count)| count).collect::<Vec<_>>(),
            [left_out]
        );
        assert!(!read.skipped.has_losses());
    }
}

#[test]
fn unknown_inference_capacity_is_not_recorded() {
    let read = Sampled::read(&FORMAT, &bar(1, "thru=0.0, I=0.0, T=80.2, wait=0.0s, pool=8"));
    assert_eq!(read.values("perf.infer_capacity"), [0.0; 0]);
    assert_eq!(read.values("perf.train_capacity"), [80.2]);
    assert_eq!(read.values("perf.throughput"), [0.0]);
}

#[test]
fn weight_sync_lasts_from_save_to_cleanup_unless_it_failed() {
    let line = |secs: &str, message: &str| format!("[2026-11-21 00:21:{secs},000] loop.py:1 {message}\n");
    let begun = line("10", "INFO Step 500: saving draft model to /tmp/w");
    let over = line("16", "INFO Cleaned up temp dir /tmp/w");
    let read = Sampled::read(&FORMAT, &(begun.clone() + &over + &over));
    assert_eq!(read.values("perf.weight_sync_time"), [6.0]);
    assert_eq!((read.counts.spans, read.counts.events), (1, 3));
    let failed = line("12", "ERROR Step 500: weight sync failed, skipping");
    let read = Sampled::read(&FORMAT, &(begun + &failed + &over));
    assert_eq!(read.values("perf.weight_sync_time"), [0.0; 0]);
    assert_eq!((read.counts.spans, read.counts.events), (0, 3));
}

/// Every rank of a job in one log: each has bars, steps and passes of its own.
#[test]
fn deduplication_is_separate_for_each_rank() {
    let text = format!("[Rank 0]: {TIMED}\n[Rank 1]: {TIMED}\n[Rank 1]: {BAR}\n[Rank 0]: {BAR}\n");
    let read = Sampled::read(&FORMAT, &text);
    assert_eq!(read.values("perf.dispatch_wait"), [0.054; 2]);
    assert_eq!(read.values("train.loss"), [1.053; 2]);
    assert_eq!(read.counts.spans, 2);
}

/// tqdm truncates its line to the width of the terminal, and no other line has the rest.
#[test]
fn progress_bar_truncated_by_the_terminal_is_parsed_up_to_the_edge() {
    let cut = "\rTraining:  50%|▌| 20/40 [00:03<00:03,  5.99step/s, loss=1.053, acc=0.713, acc_len=2.4\r";
    let read = Sampled::read(&FORMAT, &format!("{TIMED}\n{cut}"));
    assert_eq!(read.values("train.loss"), [1.053]);
    assert_eq!(read.values("train.accuracy"), [0.713]);
    assert_eq!(read.values("train.elapsed_time"), [3.0]);
    assert_eq!(
        reasons(&read.skipped),
        [(SkipReason::Ignored("cut_by_the_terminal"), 1)]
    );
}

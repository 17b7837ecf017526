//! Two outputs of one run, which different readers read, have the same values up to the precision of the coarser output.

use crate::Imported;

/// A line has the formats and the files of a coarse and a fine output. A line after it has a series of both, the number of its
/// values, and their precision: `.4` for four decimals, `4` for four digits.
///
/// The outputs of MaxText are of separate runs with one seed: values of training agree, durations do not.
const OUTPUTS: &str = "
kempnerforge kempnerforge/dense.stdout tensorboard kempnerforge/tensorboard/events.out.tfevents.1795219833.vm.31790.0
train.global_step 13 7
train.loss 13 .4
train.learning_rate 13 3
train.grad_norm 13 .3
train.throughput.tokens 13 .0
train.mfu 13 .3
train.step.duration 13 .2
eval.loss 3 .4
eval.perplexity 3 .4

maxtext maxtext/demo.stderr maxtext-metrics maxtext/demo.metrics.jsonl
train.global_step 12 7
train.loss 12 .3
train.loss_component{train.component=lm} 12 .3
train.perplexity 12 .3
train.total_weights 12 7

maxtext maxtext/demo.stderr tensorboard maxtext/tensorboard/events.out.tfevents.1795221261.vm
train.global_step 12 7
train.loss 12 .3
train.loss_component{train.component=lm} 12 .3
train.perplexity 12 .3
train.total_weights 12 7

tensorboard maxtext/tensorboard/events.out.tfevents.1795221261.vm maxtext-metrics maxtext/demo.metrics.jsonl
train.learning_rate 12 7
train.grad_norm 12 7
train.raw_grad_norm 12 7
train.param_norm 12 7

surogate-console surogate/console_dense.log surogate surogate/training_dense.json
train.global_step 30 7
train.loss 30 .4
train.grad_norm 30 .4
train.step.duration 30 7
eval.loss 3 .4
eval.duration 3 7

surogate-console surogate/console_moe.log surogate surogate/training_moe.json
train.global_step 30 7
train.loss 30 .4
train.grad_norm 30 .4
train.step.duration 30 7
eval.loss 3 .4
eval.duration 3 7

hf-trainer hf-trainer/stdout.log hf-trainer-state hf-trainer/trainer_state.json
train.loss 4 4
train.grad_norm 4 4
train.learning_rate 4 4
eval.loss 2 4
eval.duration 2 4
eval.throughput.samples 2 4

hf-trainer hf-trainer/stdout.log tensorboard hf-trainer/tensorboard/events.out.tfevents.1795221025.vm.20360.0
train.loss 4 4
train.grad_norm 4 4
train.learning_rate 4 4
eval.loss 2 4
eval.duration 2 4
eval.throughput.samples 2 4
";

/// Returns the largest difference between a value and its rounded form. An event file has 32 bits of each number.
fn tolerance(precision: &str, value: f64) -> f64 {
    let half = |digits: &str| 0.5 / 10_f64.powi(digits.parse().expect("a number of digits"));
    let rounding = match precision.strip_prefix('.') {
        Some(decimals) => half(decimals),
        None => half(precision) * 10.0 * value.abs(),
    };
    rounding + 1e-6 * value.abs()
}

#[test]
fn two_outputs_of_one_run_agree_in_each_series() {
    let mut outputs = None;
    for line in OUTPUTS.lines().filter(|line| !line.is_empty()) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [coarse, coarse_file, fine, fine_file] => {
                outputs = Some([Imported::new(coarse, coarse_file), Imported::new(fine, fine_file)]);
            }
            [series, count, precision] => {
                let outputs = outputs.as_ref().expect("a series follows its outputs");
                let [coarse, fine] = outputs.each_ref().map(|output| output.series(series));
                let count: usize = count.parse().expect("a number of values");
                assert_eq!((coarse.len(), fine.len()), (count, count), "{line}");
                let is_near =
                    |(coarse, fine): (&f64, &f64)| (coarse - fine).abs() <= tolerance(precision, *fine);
                assert!(
                    coarse.iter().zip(&fine).all(is_near),
                    "{line}: {coarse:?} and {fine:?}"
                );
            }
            _ => panic!("{line} has other columns"),
        }
    }
}

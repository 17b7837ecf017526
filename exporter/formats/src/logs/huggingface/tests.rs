//! Lines that the Trainer and TRL print. The crate's integration tests have complete logs.

use super::*;
use crate::logs::sampled::{Sampled, reasons};

fn read(text: &str) -> Sampled {
    Sampled::read(&FORMAT, text)
}

#[test]
fn quoted_and_bare_numbers_of_both_versions_are_parsed() {
    let read = read(
        "{'loss': '4.471', 'grad_norm': '1.063', 'epoch': '0.3125', 'num_input_tokens_seen': 640}\n\
         100%|##| 2/2 [00:01<00:00]{'loss': nan, 'learning_rate': 4e-05, 'epoch': 0.5, 'num_input_tokens_seen': 700, 'novel': 1}\n\
         {'some': 'other', 'dictionary': 1}\n\
         {'loss': 'inf', 'grad_norm': '-inf', 'learning_rate': 'nan', 'epoch': '1'}\n",
    );
    let losses = read.values("train.loss");
    assert!(losses[0] == 4.471 && losses[1].is_nan() && losses[2] == f64::INFINITY);
    assert_eq!(read.values("train.grad_norm"), [1.063, f64::NEG_INFINITY]);
    assert!(read.values("train.learning_rate")[1].is_nan());
    assert_eq!(read.values("train.tokens"), [640.0, 700.0]);
    assert_eq!(read.values("train.custom"), [1.0]);
    assert_eq!(read.counts.records, 3);
}

#[test]
fn evaluations_of_several_data_sets_are_separate_series() {
    let read = read(
        "{'eval_squad_loss': 1.5, 'eval_squad_f1': 0.5, 'eval_squad_runtime': 2.0, 'eval_squad_samples_per_second': 8.0, 'epoch': 1.0}\n\
         {'test_loss': '2.5', 'test_runtime': '3', 'test_samples_per_second': '9', 'epoch': '1'}\n\
         {'eval_loss': 3.5, 'eval_runtime': 4.0, 'eval_samples_per_second': 10.0, 'eval_model_preparation_time': 0.002}\n",
    );
    assert_eq!(read.values("eval.loss"), [1.5, 2.5, 3.5]);
    assert_eq!(
        read.attributes("eval.loss"),
        ["data.name=squad", "data.name=test", ""]
    );
    assert_eq!(read.values("eval.throughput.samples"), [8.0, 9.0, 10.0]);
    assert_eq!(read.values("train.epoch"), [1.0, 1.0]);
    assert_eq!(
        read.attributes("train.custom"),
        [
            "train.custom.name=hf_trainer.eval_squad_f1",
            "train.custom.name=hf_trainer.eval_model_preparation_time"
        ]
    );
    assert_eq!(read.counts.records, 3);
}

#[test]
fn dictionary_without_a_loss_is_parsed() {
    // PPO has no keys of its own, and version 4.0 ends with only the epoch.
    let read = read(
        "{'eps': 2, 'objective/rlhf_reward': 0.5, 'loss/policy_avg': 0.25, 'val/ratio': 1.0, 'lr': 3e-06, 'episode': 64, 'epoch': 0.1}\n\
         {'epoch': 3.0}\n",
    );
    assert_eq!(read.values("rl.trajectory_reward"), [0.5]);
    assert_eq!(read.values("rl.policy_loss"), [0.25]);
    assert_eq!(read.values("train.learning_rate"), [3e-6]);
    assert_eq!(read.values("train.epoch"), [0.1, 3.0]);
    assert_eq!(read.values("rl.throughput.rollouts"), [2.0]);
    assert_eq!(read.values("rl.rollouts"), [64.0]);
}

#[test]
fn grpo_and_dpo_keys_are_mapped_to_metrics() {
    let read = read(
        "{'loss': 0.1, 'num_tokens': 100.0, 'reward': 1.5, 'reward_std': 0.5, 'rewards/format/mean': 0.75, 'rewards/format/std': 0.25, \
         'kl': 0.01, 'entropy': 2.0, 'completions/mean_length': 32.0, 'completions/clipped_ratio': 0.125, 'clip_ratio/region_mean': 0.0625, \
         'step_time': 4.0, 'epoch': 0.1}\n\
         {'loss': 0.1, 'num_tokens': 150.0, 'rewards/chosen': 0.5, 'rewards/accuracies': 0.875, 'logps/chosen': -7.0, 'epoch': 0.2}\n\
         {'eval_loss': 0.2, 'eval_rewards/chosen': 0.4, 'eval_rewards/accuracies': 0.5, 'eval_num_tokens': 150.0, 'eval_runtime': 1.0, 'epoch': 0.2}\n",
    );
    assert_eq!(read.values("train.real_tokens"), [100.0, 150.0]);
    assert_eq!(
        read.attributes("rl.reward_component"),
        [
            "rl.component=format rl.statistic=mean",
            "rl.component=format rl.statistic=std",
            "rl.component=chosen rl.statistic=mean",
            "rl.component=chosen data.split=eval rl.statistic=mean"
        ]
    );
    assert_eq!(read.values("rl.reward_component"), [0.75, 0.25, 0.5, 0.4]);
    assert_eq!(read.values("train.accuracy"), [0.875]);
    assert_eq!(read.values("eval.accuracy"), [0.5]);
    assert_eq!(read.values("rl.completion_clip_ratio"), [0.125]);
    assert_eq!(read.values("rl.policy_clip_fraction"), [0.0625]);
    assert_eq!(read.values("train.step.duration"), [4.0]);
    assert_eq!(read.values("rl.logp"), [-7.0]);
    assert_eq!(
        read.attributes("rl.logp"),
        ["rl.component=chosen rl.statistic=mean"]
    );
    assert_eq!(read.values("train.custom"), [150.0]);
}

#[test]
fn numpy_and_tensor_literals_are_parsed_as_numbers() {
    let read = read(
        "{'loss': np.float64(0.5), 'grad_norm': tensor(1.25, device='cuda:0'), 'epoch': 1.0, 'history': array([1, 2])}\n",
    );
    assert_eq!(read.values("train.loss"), [0.5]);
    assert_eq!(read.values("train.grad_norm"), [1.25]);
    assert_eq!(read.counts.events, 1);
    assert!(!read.skipped.has_losses());
}

#[test]
fn interleaved_output_of_two_processes_is_parsed_and_torn_records_are_reported() {
    let read = read(
        "{'loss': 1.0, 'epoch': 0.1}{'loss': 2.0, 'epoch': 0.1}\n\n\
         {'loss': 3.0, 'gra{'loss': 4.0, 'epoch': 0.2}\n\
         {'loss': <object>, 'epoch': 0.3}\n",
    );
    assert_eq!(read.values("train.loss"), [1.0, 2.0, 4.0]);
    let losses: Vec<_> = read
        .skipped
        .counts()
        .filter(|(reason, _)| reason.is_loss())
        .collect();
    assert_eq!(losses, [(SkipReason::MalformedRecord, 2)]);
}

#[test]
fn settings_under_headings_become_options_and_repeats_are_deduplicated() {
    let read = read(
        "[INFO|trainer.py:2409] 2026-11-21 00:20:58,123 >> ***** Running training *****\n\
         [INFO|trainer.py:2410] 2026-11-21 00:20:58,123 >>   Num examples = 1,000\n\
         [transformers]   Total optimization steps = 20\n\
         ***** Running Evaluation *****\n  Num examples = 64\n  Batch size = 8\n\
         {'eval_loss': 1.0, 'eval_runtime': 2.0, 'epoch': 1.0}\n\
         ***** Running Evaluation *****\n  Num examples = 64\n  Batch size = 8\n\
         ***** eval metrics *****\n  epoch          =        1.0\n  eval_loss      =     1.0\n  eval_samples   =         64\n  perplexity     =     2.5\n",
    );
    assert_eq!(read.counts.events, 5);
    assert_eq!(read.values("eval.perplexity"), [2.5]);
    assert_eq!(read.values("eval.loss"), [1.0]);
    let duplicates = (SkipReason::Ignored(DUPLICATE), 4);
    assert_eq!(reasons(&read.skipped), [duplicates]);
}

#[test]
fn hugging_face_dictionaries_are_detected_and_foreign_ones_are_not() {
    let is_known = |text: &str| (FORMAT.detect)(text.as_bytes()).is_some();
    for text in [
        "  0%|  | 0/9 [00:00<?, ?it/s]{'loss': 1.0, 'learning_rate': 4e-05, 'epoch': 0.1}\n",
        "{'eval_squad_loss': '1.5', 'eval_squad_runtime': '2', 'eval_squad_samples_per_second': '8', 'epoch': '1'}\n",
        "[rank0]:{'loss': 1.0, 'grad_norm': 2.0, 'learning_rate': 4e-05, 'epoch': 0.1}\n",
        "{'eps': 2, 'objective/kl': 0.5, 'epoch': 0.1}\n",
    ] {
        assert!(is_known(text), "{text}");
    }
    for text in [
        "{'lr': 0.1, 'epoch': 10, 'batch_size': 32}\n",
        "{'loss': 'mse', 'epochs': 3}\n",
        "{'loss': 1.0, 'epoch': 'first'}\n",
        "{'loss': 1.0, 'epoch': 0.1}\n",
        "{'step': 1, 'loss': 1.0, 'lr': 0.1, 'epoch': 0.1}\n",
        "{'epoch': 1, 'loss': 1.0, 'learning_rate': 0.1, 'accuracy': 0.5}\n",
        "{'loss': 1.0, 'learning_rate': 0.1, 'epoch': 1, 'step': 10}\n",
    ] {
        assert!(!is_known(text), "{text}");
    }
}

#[test]
fn completed_steps_are_read_if_a_trainer_prints_them() {
    let read = read(
        "{'loss': 1.0, 'epoch': 0.5, 'global_step/max_steps': '3/12', 'percentage': '25.00%', 'elapsed_time': '1m 2s'}\n\
         {'eval_loss': 2.0, 'eval_runtime': 1.0, 'epoch': 0.5, 'global_step/max_steps': '3/12'}\n\
         {'loss': 1.0, 'epoch': 1.0, 'global_step/max_steps': 'unknown'}\n",
    );
    assert_eq!(read.values("train.global_step"), [3.0]);
    assert_eq!(read.values("train.progress"), [0.25, 0.25]);
    assert_eq!(read.counts.events, 2, "the texts");
}

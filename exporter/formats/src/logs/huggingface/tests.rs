//! Lines that the Trainer and TRL print. The crate's integration tests have complete logs.

use super::*;
use crate::logs::sampled::check;

const CASES: &str = "
## bare numbers of version 4 and quoted ones of version 5
{'loss': '4.471', 'grad_norm': '1.063', 'epoch': '0.3125', 'num_input_tokens_seen': 640}
100%|##| 2/2 [00:01<00:00]{'loss': nan, 'learning_rate': 4e-05, 'epoch': 0.5, 'num_input_tokens_seen': 700, 'novel': 1}
{'some': 'other', 'dictionary': 1}
{'loss': 'inf', 'grad_norm': '-inf', 'learning_rate': 'nan', 'epoch': '1'}
-> train.loss 4.471 nan inf, train.grad_norm 1.063 -inf, train.learning_rate 4e-5 nan, train.tokens 640 700
-> train.custom 1, records 3

## evaluations of several data sets
{'eval_squad_loss': 1.5, 'eval_squad_f1': 0.5, 'eval_squad_runtime': 2.0, 'eval_squad_samples_per_second': 8.0, 'epoch': 1.0}
{'test_loss': '2.5', 'test_runtime': '3', 'test_samples_per_second': '9', 'epoch': '1'}
{'eval_loss': 3.5, 'eval_runtime': 4.0, 'eval_samples_per_second': 10.0, 'eval_model_preparation_time': 0.002}
-> eval.loss 1.5 2.5 3.5, eval.loss{data.name=squad} 1.5, eval.loss{data.name=test} 2.5, eval.loss{} 3.5
-> eval.throughput.samples 8 9 10, train.epoch 1 1, train.custom 0.5 0.002
-> train.custom{train.custom.name=hf_trainer.eval_squad_f1} 0.5
-> train.custom{train.custom.name=hf_trainer.eval_model_preparation_time} 0.002, records 3

## dictionaries without a loss: PPO has no keys of its own, and version 4.0 ends with only the epoch
{'eps': 2, 'objective/rlhf_reward': 0.5, 'loss/policy_avg': 0.25, 'val/ratio': 1.0, 'lr': 3e-06, 'episode': 64, 'epoch': 0.1}
{'epoch': 3.0}
-> rl.trajectory_reward 0.5, rl.policy_loss 0.25, train.learning_rate 3e-6, train.epoch 0.1 3
-> rl.throughput.rollouts 2, rl.rollouts 64

## keys of GRPO and DPO
{'loss': 0.1, 'num_tokens': 100.0, 'reward': 1.5, 'reward_std': 0.5, 'rewards/format/mean': 0.75, 'rewards/format/std': 0.25, \
'kl': 0.01, 'entropy': 2.0, 'completions/mean_length': 32.0, 'completions/clipped_ratio': 0.125, 'clip_ratio/region_mean': 0.0625, \
'step_time': 4.0, 'epoch': 0.1}
{'loss': 0.1, 'num_tokens': 150.0, 'rewards/chosen': 0.5, 'rewards/accuracies': 0.875, 'logps/chosen': -7.0, 'epoch': 0.2}
{'eval_loss': 0.2, 'eval_rewards/chosen': 0.4, 'eval_rewards/accuracies': 0.5, 'eval_num_tokens': 150.0, 'eval_runtime': 1.0, 'epoch': 0.2}
-> train.real_tokens 100 150, rl.reward_component 0.75 0.25 0.5 0.4
-> rl.reward_component{rl.component=format,rl.statistic=mean} 0.75
-> rl.reward_component{rl.component=format,rl.statistic=std} 0.25
-> rl.reward_component{rl.component=chosen,rl.statistic=mean} 0.5
-> rl.reward_component{rl.component=chosen,data.split=eval,rl.statistic=mean} 0.4, train.accuracy 0.875
-> eval.accuracy 0.5, rl.completion_clip_ratio 0.125, rl.policy_clip_fraction 0.0625, train.step.duration 4
-> rl.logp -7, rl.logp{rl.component=chosen,rl.statistic=mean} -7, train.custom 150

## numbers of NumPy and tensors
{'loss': np.float64(0.5), 'grad_norm': tensor(1.25, device='cuda:0'), 'epoch': 1.0, 'history': array([1, 2])}
-> train.loss 0.5, train.grad_norm 1.25, events 1

## the output of two processes, and torn records
{'loss': 1.0, 'epoch': 0.1}{'loss': 2.0, 'epoch': 0.1}

{'loss': 3.0, 'gra{'loss': 4.0, 'epoch': 0.2}
{'loss': <object>, 'epoch': 0.3}
-> train.loss 1 2 4, losses malformed_record=2

## settings and results under headings, some of them again
[INFO|trainer.py:2409] 2026-11-21 00:20:58,123 >> ***** Running training *****
[INFO|trainer.py:2410] 2026-11-21 00:20:58,123 >>   Num examples = 1,000
[transformers]   Total optimization steps = 20
***** Running Evaluation *****
  Num examples = 64
  Batch size = 8
{'eval_loss': 1.0, 'eval_runtime': 2.0, 'epoch': 1.0}
***** Running Evaluation *****
  Num examples = 64
  Batch size = 8
***** eval metrics *****
  epoch          =        1.0
  eval_loss      =     1.0
  eval_samples   =         64
  perplexity     =     2.5
-> events 7, eval.perplexity 2.5, eval.loss 1, skipped said_again=4

## completed steps, and the texts of each record in an event
{'loss': 1.0, 'epoch': 0.5, 'global_step/max_steps': '3/12', 'percentage': '25.00%', 'elapsed_time': '1m 2s'}
{'eval_loss': 2.0, 'eval_runtime': 1.0, 'epoch': 0.5, 'global_step/max_steps': '3/12'}
{'loss': 1.0, 'epoch': 1.0, 'global_step/max_steps': 'unknown'}
-> train.global_step 3, train.progress 0.25 0.25, events 2
";

#[test]
fn dictionaries_have_their_values() {
    check(&FORMAT, CASES);
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

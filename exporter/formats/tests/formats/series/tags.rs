//! The expected series of every tag of the event files and the wandb file.

/// One row a line: `tag -> metric attribute=value * factor`. `total` marks the total of a counter.
pub(crate) const TAGS: &str = "
train/loss -> train.loss
train/grad_norm -> train.grad_norm
train/lr -> train.learning_rate
train/tokens_per_sec -> train.throughput.tokens
train/mfu -> train.mfu
train/step_time_sec -> train.step.duration
gpu/allocated_gb -> memory.framework.allocated * 1073741824
gpu/peak_gb -> memory.framework.peak * 1073741824
gpu/reserved_gb -> memory.framework.reserved * 1073741824
gpu/mem_utilization -> memory.framework.utilization
smoothed/loss -> train.smoothed.loss
smoothed/tokens_per_sec -> train.smoothed.throughput
smoothed/mfu -> train.smoothed.mfu
smoothed/step_time -> train.smoothed.step_time
eval/loss -> eval.loss
eval/perplexity -> eval.perplexity

train/learning_rate -> train.learning_rate
train/epoch -> train.epoch
train/num_input_tokens_seen -> train.tokens * total
train/train_runtime -> train.elapsed_time
train/train_tokens_per_second -> train.throughput.tokens
train/train_samples_per_second -> train.throughput.samples
train/train_steps_per_second -> train.throughput.steps
train/total_flos -> train.completed_flops * total
train/train_loss -> train.mean_loss
eval/runtime -> eval.duration
eval/samples_per_second -> eval.throughput.samples
eval/steps_per_second -> eval.throughput.steps

learning/loss -> train.loss
learning/lm_loss -> train.loss_component train.component=lm
learning/z_loss -> train.loss_component train.component=z
learning/moe_lb_loss -> train.loss_component train.component=moe_lb
learning/indexer_loss -> train.loss_component train.component=indexer
learning/mtp_loss -> train.loss_component train.component=mtp
learning/perplexity -> train.perplexity
learning/total_weights -> train.total_weights
learning/grad_norm -> train.grad_norm
learning/raw_grad_norm -> train.raw_grad_norm
learning/param_norm -> train.param_norm
learning/current_learning_rate -> train.learning_rate
perf/step_time_seconds -> train.step.duration
perf/per_device_tokens -> train.step_tokens_per_device
perf/per_device_tflops -> train.flops_per_step_per_device * 1e12
perf/per_device_tflops_per_sec -> train.throughput.flops_per_device * 1e12
perf/per_device_tokens_per_sec -> train.throughput.tokens_per_device

train/avg_loss -> train.loss
train/avg_acc -> train.accuracy
train/simulated_acc_len -> train.accept_length
train/ploss_0 -> train.loss_component train.component=draft train.draft_position=0
train/ploss_1 -> train.loss_component train.component=draft train.draft_position=1
train/ploss_2 -> train.loss_component train.component=draft train.draft_position=2
train/acc_0 -> train.accuracy train.draft_position=0
train/acc_1 -> train.accuracy train.draft_position=1
train/acc_2 -> train.accuracy train.draft_position=2
perf/step_time -> perf.step_time
perf/data_time -> perf.data_time
perf/compute_time -> perf.compute_time
perf/forward_time -> perf.forward_time
perf/backward_time -> perf.backward_time
perf/optimizer_time -> perf.optimizer_time
perf/dispatch_wait -> perf.dispatch_wait
perf/train_capacity -> perf.train_capacity
perf/infer_capacity -> perf.infer_capacity
perf/infer_batch_time -> perf.infer_batch_time
inference/e2e_latency_avg -> inference.latency inference.statistic=mean
inference/e2e_latency_min -> inference.latency inference.statistic=min
inference/e2e_latency_max -> inference.latency inference.statistic=max
inference/prompt_tokens_avg -> inference.prompt_tokens inference.statistic=mean
inference/completion_tokens_avg -> inference.completion_tokens inference.statistic=mean
inference/spec_accept_rate_avg -> inference.speculative.accept_ratio inference.statistic=mean
inference/spec_accept_length_avg -> inference.speculative.accept_length inference.statistic=mean

actor/train/loss -> train.loss
actor/eval/loss -> eval.loss
actor/train/perplexity -> train.perplexity
actor/eval/perplexity -> eval.perplexity
actor/train/learning_rate -> train.learning_rate
actor/train/grad_norm -> train.grad_norm
actor/train/kl_loss -> train.loss_component train.component=kl
actor/eval/kl_loss -> eval.loss_component train.component=kl
actor/MODE/kl -> rl.kl data.split=MODE
actor/MODE/ppo_kl -> rl.policy_kl data.split=MODE
actor/MODE/entropy -> rl.entropy data.split=MODE
actor/MODE/pg_clipfrac -> rl.policy_clip_fraction data.split=MODE
actor/MODE/pg_clipfrac_lower -> rl.policy_clip_lower_fraction data.split=MODE
actor/MODE/reduced_pg_loss -> rl.policy_loss data.split=MODE
actor/MODE/advantage/abs_mean -> rl.advantage data.split=MODE rl.statistic=abs_mean
actor/MODE/is_ratio/mean -> rl.importance_ratio data.split=MODE rl.statistic=mean
actor/MODE/is_ratio/max -> rl.importance_ratio data.split=MODE rl.statistic=max
actor/MODE/is_ratio/min -> rl.importance_ratio data.split=MODE rl.statistic=min
actor/MODE/advantage/max -> rl.advantage data.split=MODE rl.statistic=max
actor/MODE/advantage/min -> rl.advantage data.split=MODE rl.statistic=min
actor/MODE/sampler_is/weight_mean -> rl.sampler_importance_weight data.split=MODE rl.statistic=mean
actor/MODE/sampler_is/weight_min -> rl.sampler_importance_weight data.split=MODE rl.statistic=min
rewards/MODE/sum -> rl.trajectory_reward data.split=MODE rl.statistic=sum
rewards/MODE/mean -> rl.trajectory_reward data.split=MODE rl.statistic=mean
rewards/MODE/min -> rl.trajectory_reward data.split=MODE rl.statistic=min
rewards/MODE/max -> rl.trajectory_reward data.split=MODE rl.statistic=max
rewards/MODE/score/mean -> rl.score data.split=MODE rl.statistic=mean
rewards/MODE/score/max -> rl.score data.split=MODE rl.statistic=max
rewards/MODE/score/min -> rl.score data.split=MODE rl.statistic=min
rewards/MODE/reward_len -> rl.reward_component data.split=MODE rl.component=reward_len
rewards/MODE/reward_idx -> rl.reward_component data.split=MODE rl.component=reward_idx
completions/MODE/mean_length -> rl.completion_length data.split=MODE rl.statistic=mean
completions/MODE/max_length -> rl.completion_length data.split=MODE rl.statistic=max
completions/MODE/min_length -> rl.completion_length data.split=MODE rl.statistic=min
global/train/actor_dequeue_time -> rl.actor_dequeue_time
perf/train/global_step_time -> perf.global_step_time
perf/train/weight_sync_time -> perf.weight_sync_time
perf/train/rollout_idle_time -> perf.rollout_idle_time
perf/train/first_micro_batch_rollout_time -> perf.first_micro_batch_rollout_time
perf/train/STAT/rollout_time -> perf.rollout_time perf.statistic=STAT
perf/train/STAT/refer_inference_time -> perf.refer_inference_time perf.statistic=STAT
perf/train/STAT/actor_train_time -> perf.actor_train_time perf.statistic=STAT
perf/train/STAT/actor_train_step_time -> perf.actor_train_step_time perf.statistic=STAT
perf/train/STAT/between_micro_batch_gap_time -> perf.between_micro_batch_gap_time perf.statistic=STAT

goodput/goodput -> train.goodput * 0.01
badput/tpu_initialization -> train.badput train.badput.cause=tpu_initialization * 0.01
badput/data_loading_sync -> train.badput train.badput.cause=data_loading_sync * 0.01
badput/custom_badput_events/eval_step -> train.badput train.badput.cause=custom_badput_events train.badput.event=eval_step * 0.01
badput/other -> train.badput train.badput.cause=other * 0.01
step_deviation -> train.step.deviation
";

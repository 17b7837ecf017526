//! The expected series of every name in the text samples, one table a format.
//!
//! `name -> metric attribute=value @state-attribute * factor`, one a line; `total` marks the total of a counter.

pub(crate) const SUROGATE: &str = "
dataset.files -> data.files
dataset.tokens -> data.tokens
dataset.file_index -> data.file_index
dataset.chunk_index -> data.chunk_index
dataset.seed -> data.seed
sol.blocks -> train.flops_per_token train.flops.part=blocks
sol.lm_head -> train.flops_per_token train.flops.part=lm_head
sol.attention -> train.flops_per_token train.flops.part=attention
sol.tps -> train.expected_throughput
sol.tf32_peak -> gpu.peak_flops gpu.precision=tf32 * 1e12
sol.bf16_peak -> gpu.peak_flops gpu.precision=bf16 * 1e12
sol.fp16_peak -> gpu.peak_flops gpu.precision=fp16 * 1e12
sol.fp8_peak -> gpu.peak_flops gpu.precision=fp8 * 1e12
allocator.device -> memory.segment.size memory.kind=device
allocator.managed -> memory.segment.size memory.kind=managed
allocator.pinned -> memory.segment.size memory.kind=pinned
allocator.pageable -> memory.segment.size memory.kind=pageable
step.epoch -> train.epoch
step.step_tokens -> train.tokens
step.duration_ms -> train.step.duration * 0.001
step.norm -> train.grad_norm
step.loss -> train.loss
step.lr -> train.learning_rate
step.phase -> train.phase @train.phase
step.moe_aux_loss -> moe.aux_loss
step.moe_z_loss -> moe.z_loss
step.moe_load_imbalance -> moe.load_imbalance
step.moe_expert_utilization -> moe.expert_utilization
step.moe_active_experts -> moe.active_experts
step.moe_max_expert_fraction -> moe.max_expert_fraction
step.moe_min_active_expert_fraction -> moe.min_active_expert_fraction
step.moe_load_cv -> moe.load_cv
step.moe_router_entropy -> moe.router_entropy
step.moe_router_confidence -> moe.router_confidence
moe.aux_loss -> moe.aux_loss
moe.z_loss -> moe.z_loss
moe.load_imbalance -> moe.load_imbalance
moe.expert_utilization -> moe.expert_utilization
moe.active_experts -> moe.active_experts
moe.max_expert_fraction -> moe.max_expert_fraction
moe.min_active_expert_fraction -> moe.min_active_expert_fraction
moe.load_cv -> moe.load_cv
moe.router_entropy -> moe.router_entropy
moe.router_confidence -> moe.router_confidence
eval.epoch -> train.epoch
eval.eval_tokens -> eval.tokens
eval.duration_ms -> eval.duration * 0.001
eval.loss -> eval.loss
gpu.clock -> gpu.clock.frequency gpu.clock.domain=sm * 1e6
gpu.max_clock -> gpu.clock.limit gpu.clock.domain=sm gpu.clock.limit_kind=max * 1e6
gpu.fan -> gpu.fan.speed_ratio * 0.01
gpu.power -> gpu.power gpu.power.reading=derived * 0.001
gpu.power_limit -> gpu.power_limit gpu.power.limit_kind=enforced * 0.001
gpu.temperature -> gpu.temperature
gpu.temp_slowdown -> gpu.temperature_limit gpu.temperature.limit_kind=slowdown
gpu.gpu_util -> gpu.utilization gpu.task=general * 0.01
gpu.mem_util -> gpu.memory.activity * 0.01
gpu.throttle -> gpu.throttle.active @gpu.throttle.reason
gpu.dram_free -> gpu.memory.free
gpu.pcie_rx -> gpu.pcie.throughput gpu.io.direction=receive
gpu.pcie_tx -> gpu.pcie.throughput gpu.io.direction=transmit
train/loss -> train.loss
train/norm -> train.grad_norm
train/lr -> train.learning_rate
train/epoch -> train.epoch
train/duration_ms -> train.step.duration * 0.001
train/tokens_per_second -> train.throughput.tokens
train/phase -> train.phase @train.phase
eval/loss -> eval.loss
eval/epoch -> train.epoch
eval/duration_ms -> eval.duration * 0.001
eval/tokens_per_second -> eval.throughput.tokens
";

pub(crate) const SUROGATE_CONSOLE: &str = "
% -> train.custom train.custom.name=surogate.epoch_progress * 0.01
step loss -> train.loss
step norm -> train.grad_norm
step spike -> train.anomalies train.anomaly.type=grad_norm_spike
step tps -> train.throughput.tokens
step ms -> train.step.duration * 0.001
step aux -> moe.aux_loss
step imbal -> moe.load_imbalance
step util -> moe.expert_utilization
step hot -> moe.max_expert_fraction
step ent -> moe.router_entropy
step sol -> train.sol * 0.01
step eta -> train.eta
step phase -> train.phase @train.phase
eval loss -> eval.loss
eval gap -> eval.gap
eval tps -> eval.throughput.tokens
eval ms -> eval.duration * 0.001
power -> gpu.power gpu.power.reading=derived
temp -> gpu.temperature
temp limit -> gpu.temperature_limit gpu.temperature.limit_kind=slowdown
clock -> gpu.clock.frequency gpu.clock.domain=sm * 1e6
Mem Usage -> gpu.memory.used * 1048576
Memory limit -> gpu.memory.limit * 1048576
PCI↓ -> gpu.pcie.throughput gpu.io.direction=receive * 1048576
PCI↑ -> gpu.pcie.throughput gpu.io.direction=transmit * 1048576
Peak BF16 -> gpu.peak_flops gpu.precision=bf16
Blocks -> train.flops_per_token train.flops.part=blocks
LM-Head -> train.flops_per_token train.flops.part=lm_head
Attention -> train.flops_per_token train.flops.part=attention
SOL -> train.expected_throughput
tokens of a split -> data.tokens
";

pub(crate) const MAXTEXT: &str = "
seconds -> train.step.duration
TFLOP/s/device -> train.throughput.flops_per_device * 1e12
Tokens/s/device -> train.throughput.tokens_per_device
total_weights -> train.total_weights
loss -> train.loss
lm_loss -> train.loss_component train.component=lm
perplexity -> train.perplexity
moe_lb_loss -> train.loss_component train.component=moe_lb
main_model_loss -> train.loss_component train.component=main_model
mtp_loss -> train.loss_component train.component=mtp
indexer_loss -> train.loss_component train.component=indexer
dpo_loss -> train.loss_component train.component=dpo
reward_accuracy -> train.accuracy train.component=dpo
live slice count -> run.active_slices
eval seconds -> eval.duration
eval running loss -> eval.loss
eval running perplexity -> eval.perplexity
eval running total_weights -> eval.total_weights
eval running mtp_loss -> eval.loss_component train.component=mtp
eval running mtp_acceptance_rate -> eval.accept_ratio * 0.01
eval loss -> eval.loss
eval perplexity -> eval.perplexity
eval total_weights -> eval.total_weights
eval avg_z_loss -> eval.loss_component train.component=z
eval avg_moe_lb_loss -> eval.loss_component train.component=moe_lb
eval avg_mtp_loss -> eval.loss_component train.component=mtp
eval avg_mtp_acceptance_rate -> eval.accept_ratio * 0.01
eval dpo_reward_accuracy -> eval.accuracy train.component=dpo
eval avg_indexer_loss -> eval.loss_component train.component=indexer
eval step_time_seconds -> eval.duration
eval eval_loss -> eval.loss
eval eval_step_count -> eval.steps
step_time -> train.step.duration
TFLOPs/s/device -> train.throughput.flops_per_device * 1e12
student -> perf.phase_flops_per_device perf.phase=student * 1e12
teacher -> perf.phase_flops_per_device perf.phase=teacher * 1e12
total_loss -> train.loss
hard_loss -> train.loss_component train.component=hard
soft_loss -> train.loss_component train.component=soft
kl_div_T1 -> train.teacher_kl
student_perplexity -> train.perplexity
teacher_perplexity -> train.teacher_perplexity
out_proj_feature_loss -> train.loss_component train.component=feature
teacher_moe_lb_loss -> train.custom train.custom.name=maxtext.teacher_moe_lb_loss
RAMstats used -> memory.host.used * 1073741824
RAMstats limit -> memory.host.limit * 1073741824
RAMstats available -> memory.host.available * 1073741824
Memstats used -> memory.framework.allocated * 1073741824
Memstats limit -> memory.framework.limit * 1073741824
Memstats share -> memory.framework.utilization * 0.01
goodput -> train.goodput * 0.01
Badput due to TPU initialization -> train.badput train.badput.cause=tpu_initialization * 0.01
Badput due to data loading -> train.badput train.badput.cause=data_loading_sync * 0.01
Badput due to checkpoint save -> train.badput train.badput.cause=unproductive_checkpoint_save_time * 0.01
Badput due to step evaluation -> train.badput train.badput.cause=custom_badput_events train.badput.event=eval_step * 0.01
Badput from unknown source -> train.badput train.badput.cause=other * 0.01
number parameters -> run.parameters * 1e9
Num_devices -> run.devices
 Total TFLOPs -> train.flops_per_step_per_device * 1e12
learnable weight flops -> train.flops_share train.flops.part=weights * 0.01
attention flops -> train.flops_share train.flops.part=attention * 0.01
bytes output size -> memory.estimate.size memory.estimate.part=output * 1073741824
bytes temp size -> memory.estimate.size memory.estimate.part=temp * 1073741824
bytes argument size -> memory.estimate.size memory.estimate.part=argument * 1073741824
bytes host temp size -> memory.estimate.size memory.estimate.part=host_temp * 1073741824
Total estimated memory size -> memory.estimate.size memory.estimate.part=total * 1073741824
estimated output size -> memory.estimate.size memory.estimate.part=output * 1073741824
estimated temp size -> memory.estimate.size memory.estimate.part=temp * 1073741824
estimated argument size -> memory.estimate.size memory.estimate.part=argument * 1073741824
Estimated host temp size -> memory.estimate.size memory.estimate.part=host_temp * 1073741824
";

pub(crate) const GOODPUT: &str = "
step -> train.step.duration
data -> perf.data_time perf.clock=host
eval -> eval.duration
active_slices -> run.active_slices
total_slices -> run.slices
available_slices -> run.available_slices
";

pub(crate) const KEMPNERFORGE: &str = "
Model -> run.parameters
loss -> train.loss
lr -> train.learning_rate
grad_norm -> train.grad_norm
tok/s -> train.throughput.tokens
mfu -> train.mfu * 0.01
mem -> memory.framework.peak * 1073741824
mem total -> memory.framework.limit * 1073741824
step_time -> train.step.duration
eval/loss -> eval.loss
eval/perplexity -> eval.perplexity
";

pub(crate) const TORCHSPEC: &str = "
n/total -> train.progress
elapsed -> train.elapsed_time
remaining -> train.eta
step/s -> train.throughput.steps
loss -> train.loss
acc -> train.accuracy
acc_len -> train.accept_length
thru -> perf.throughput
I -> perf.infer_capacity
T -> perf.train_capacity
wait -> perf.dispatch_wait
pool -> perf.sample_pool_size
epoch -> train.epoch
TIMING step -> train.step.duration
TIMING data -> perf.data_time perf.clock=host
TIMING compute -> perf.compute_time perf.clock=cuda_event
TIMING fwd -> perf.forward_time perf.clock=cuda_event
TIMING bwd -> perf.backward_time perf.clock=cuda_event
TIMING opt -> perf.optimizer_time perf.clock=cuda_event
TIMING dispatch -> perf.dispatch_wait
BREAKDOWN forward -> perf.forward_time perf.clock=cuda_event
BREAKDOWN backward -> perf.backward_time perf.clock=cuda_event
eval loss -> eval.loss
eval acc -> eval.accuracy
eval sim_acc_len -> eval.accept_length
pool limit -> perf.sample_pool_limit
global batch size -> train.batch_size
pool wait -> perf.backpressure_wait
";

pub(crate) const TUNIX: &str = "
training loss -> train.loss
training perplexity -> train.perplexity
eval loss -> eval.loss
eval perplexity -> eval.perplexity
Compiled train_step cache size -> train.custom train.custom.name=tunix.compiled_train_steps
";

pub(crate) const HF_TRAINER: &str = "
loss -> train.loss
grad_norm -> train.grad_norm
learning_rate -> train.learning_rate
epoch -> train.epoch
num_input_tokens_seen -> train.tokens * total
train_runtime -> train.elapsed_time
train_tokens_per_second -> train.throughput.tokens
train_samples_per_second -> train.throughput.samples
train_steps_per_second -> train.throughput.steps
train_loss -> train.mean_loss
total_flos -> train.completed_flops * total
eval_loss -> eval.loss
eval_runtime -> eval.duration
eval_samples_per_second -> eval.throughput.samples
eval_steps_per_second -> eval.throughput.steps
eval_math_loss -> eval.loss data.name=math
eval_math_runtime -> eval.duration data.name=math
eval_math_samples_per_second -> eval.throughput.samples data.name=math
eval_math_steps_per_second -> eval.throughput.steps data.name=math
progress -> train.progress
num_tokens -> train.real_tokens * total
entropy -> rl.entropy rl.statistic=mean
step_time -> train.step.duration
reward -> rl.trajectory_reward rl.statistic=mean
reward_std -> rl.trajectory_reward rl.statistic=std
kl -> rl.kl rl.statistic=mean
rewards/format_reward/mean -> rl.reward_component rl.component=format_reward rl.statistic=mean
rewards/format_reward/std -> rl.reward_component rl.component=format_reward rl.statistic=std
rewards/accuracy_reward/mean -> rl.reward_component rl.component=accuracy_reward rl.statistic=mean
rewards/accuracy_reward/std -> rl.reward_component rl.component=accuracy_reward rl.statistic=std
completions/mean_length -> rl.completion_length rl.statistic=mean
completions/min_length -> rl.completion_length rl.statistic=min
completions/max_length -> rl.completion_length rl.statistic=max
completions/clipped_ratio -> rl.completion_clip_ratio
completions/mean_terminated_length -> rl.selected_length rl.selection=terminated rl.statistic=mean
completions/min_terminated_length -> rl.selected_length rl.selection=terminated rl.statistic=min
completions/max_terminated_length -> rl.selected_length rl.selection=terminated rl.statistic=max
frac_reward_zero_std -> rl.zero_variance_fraction
clip_ratio/low_mean -> rl.policy_clip_lower_fraction
clip_ratio/low_min -> train.custom train.custom.name=hf_trainer.clip_ratio/low_min
clip_ratio/high_mean -> rl.policy_clip_upper_fraction
clip_ratio/high_max -> train.custom train.custom.name=hf_trainer.clip_ratio/high_max
clip_ratio/region_mean -> rl.policy_clip_fraction
eval_num_tokens -> train.custom train.custom.name=hf_trainer.eval_num_tokens
eval_reward -> rl.trajectory_reward rl.statistic=mean data.split=eval
eval_reward_std -> rl.trajectory_reward rl.statistic=std data.split=eval
eval_rewards/format_reward/mean -> rl.reward_component rl.component=format_reward rl.statistic=mean data.split=eval
eval_kl -> rl.kl rl.statistic=mean data.split=eval
eval_entropy -> rl.entropy rl.statistic=mean data.split=eval
eval_completions/mean_length -> rl.completion_length rl.statistic=mean data.split=eval
";

pub(crate) const TORCHTITAN: &str = "
loss -> train.loss
grad_norm -> train.grad_norm
memory GiB -> memory.framework.reserved * 1073741824
memory % -> memory.framework.utilization * 0.01
tps -> train.throughput.tokens_per_device
tflops -> train.throughput.flops_per_device * 1e12
mfu -> train.mfu * 0.01
progress -> train.progress
total parameters -> run.parameters
peak -> gpu.peak_flops gpu.precision=bf16
capacity -> memory.framework.limit * 1073741824
checkpoint -> perf.checkpoint_time
validate loss -> eval.loss
validate memory GiB -> memory.framework.reserved * 1073741824
validate memory % -> memory.framework.utilization * 0.01
validate tps -> eval.throughput.tokens_per_device
local_valid_tokens -> train.real_tokens
global_valid_tokens -> train.total_weights
num_trainable_tokens -> train.real_tokens
batch_size -> train.batch_size
";

pub(crate) const MEGATRON: &str = "
iteration -> train.progress
consumed samples -> train.samples * total
elapsed time per iteration (ms) -> train.step.duration * 0.001
throughput per GPU (TFLOP/s/GPU) -> train.throughput.flops_per_device * 1e12
learning rate -> train.learning_rate
global batch size -> train.batch_size
lm loss -> train.loss
loss scale -> train.loss_scale
grad norm -> train.grad_norm
num zeros -> train.zero_grads
params norm -> train.param_norm
number of skipped iterations -> train.skipped_steps
number of nan iterations -> train.anomalies train.anomaly.type=nonfinite
";

/// The series of logs of no system without a mapping: the name of a metric is that metric.
pub(crate) const ANY: &str = "
train.loss -> train.loss
";

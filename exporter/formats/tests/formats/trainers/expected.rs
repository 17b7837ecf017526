//! The logged values of each sample, in units of the registry.

/// The samples in `trainers/` with the values of their series, in the order of the log.
pub(super) const SAMPLES: &str = "
verl/console.log verl
train.global_step -> 1 2 3
rl.trajectory_reward{rl.statistic=mean} -> 0.625 0.75 0.875
rl.trajectory_reward{rl.statistic=max} -> 2 nan 2
rl.policy_loss -> -0.0125 -0.025 -0.0375
rl.entropy{rl.statistic=mean} -> 0.4375 0.4375 0.4375
rl.completion_length{rl.statistic=mean} -> 512.75 512.75 512.75
train.learning_rate -> 1e-6 1e-6 1e-6
train.grad_norm -> 0.625 1.25 1.875
train.tokens -> 819200 819200 819200
train.throughput.tokens_per_device -> 1234.5 2469 3703.5
train.step.duration -> 31.5 32.5 33.5
train.mfu -> 0.325 0.325 0.325
perf.rollout_time -> 12.25 12.25 12.25
memory.framework.peak -> 48.5GiB 48.5GiB 48.5GiB
eval.accuracy{data.name=openai/gsm8k} -> 0.6875 0.6875 0.6875

verl/sft.log verl
train.global_step -> 1 2 3
train.loss -> 2.5 1.25 1.125
train.learning_rate -> 2e-5 4e-5 2e-5
train.tokens -> 65536 65536
train.step.duration -> 3.5
eval.loss -> 2.125

nanogpt/train.log nanogpt
train.global_step -> 0 10 20
train.loss -> 4.2696 3.6446 3.0196
train.step.duration -> 0.13575 0.13575 0.13575
# The first line has -100 %: no estimate yet.
train.mfu -> 0.1713 0.1713
eval.loss -> 4.2823 3.4823
data.loss{data.name=train,data.split=train} -> 4.2874 3.2874

nanochat/base_train.log nanochat
train.global_step -> 10 20 30
train.loss -> 6.125 3.0625 2.041667
train.step.duration -> 0.48012 0.48012 0.48012
train.throughput.tokens -> 1091982 1091982 1091982
train.mfu -> 0.4791 0.4791 0.4791
train.progress -> 0.0005 0.0009 0.0014
train.elapsed_time -> 300 600 900
train.eta -> 10272 10272
train.epoch -> 1 1 1
data.file_index{data.split=train} -> 1 2 3
data.chunk_index{data.split=train} -> 20 40 60
eval.bpb -> 1.015625
eval.accuracy{data.name=CORE} -> 0.2125

nanochat/chat_sft.log nanochat
train.global_step -> 1 2
train.loss -> 1.25 0.625
train.mfu -> 0.4025 0.4025
train.throughput.tokens -> 1000000 1000000
eval.bpb -> 0.5
eval.accuracy{data.name=ChatCORE} -> 0.25
eval.accuracy{data.name=ChatCORE_cat} -> 0.125

nanochat/chat_rl.log nanochat
train.global_step -> 0 1
train.loss -> 0.03125 0.03125
rl.trajectory_reward{rl.statistic=mean} -> 0.5 0.375 0.5 0.625
rl.completion_length{rl.statistic=mean} -> 128.5 128.5

deepspeed/train.log deepspeed
train.global_step -> 10 20 30
train.learning_rate -> 0.0003 0.0006 0.0009
train.skipped_steps -> 0 1 1
train.throughput.samples -> 42.5 43.5 44.5
memory.framework.allocated -> 12.25GiB 12.25GiB 12.25GiB
memory.framework.peak -> 30.5GiB 30.5GiB 30.5GiB
perf.forward_time -> 0.122 0.122 0.122
perf.backward_time -> 0.245 0.245 0.245
perf.optimizer_time -> 0.03025 0.03125 0.03225
perf.phase_time{perf.phase=bwd_allreduce} -> 0.005 0.005 0.005

deepspeed/pipeline.log deepspeed
train.global_step -> 10 20
train.loss -> 2.25 2
train.step.duration -> 0.375 0.375
train.throughput.samples -> 170.667 170.667
train.loss_component{train.component=lm} -> 2 2
perf.phase_time{perf.phase=pipe_recv_grad} -> 0.0045 0.0045

llamafactory/trainer_log.jsonl llamafactory
train.global_step -> 5 10 15
train.loss -> 2 1.5 1
train.learning_rate -> 1e-5 5e-6 3.3333333333333333e-6
train.epoch -> 0.625 1.25 1.875 1.875 1.875
train.progress -> 0.25 0.5 0.75 0.75 0.75
train.elapsed_time -> 155 310 465 465 466
train.eta -> 3723 3723 3723 155 156
train.throughput.tokens -> 1875.25 1875.25 1875.25
train.tokens -> 20480 20480 20480
memory.framework.peak -> 10.5GiB 10.5GiB 10.5GiB
rl.trajectory_reward{rl.statistic=mean} -> 1.25 2.5 3.75
eval.loss -> 1.125
eval.loss{data.name=predict} -> 1.25

lightning/metrics.csv lightning
train.global_step -> 49 99 149 99
train.loss -> 2.01 1.51 1.01
train.accuracy -> 0.549 0.599 0.649
train.learning_rate -> 3e-4 3e-4 3e-4
train.throughput.samples -> 80 80 80
train.throughput.tokens -> 40960 40960 40960
train.throughput.tokens_per_device -> 20480 20480 20480
train.mfu -> 0.40625 0.40625 0.40625
eval.loss -> 1.875
eval.accuracy -> 0.5625
memory.framework.allocated -> 1GiB

lightning/version_1.csv lightning
train.global_step -> 9 19
train.loss -> 0.875 0.75
eval.loss -> 0.8125

torchtune/log_1767340800.txt torchtune
train.global_step -> 1 2 3 4
train.loss -> 1.5 0.75 0.5 0.5
train.learning_rate -> 2e-5 4e-5 6e-5 1e-5
train.throughput.tokens_per_device -> 1235.5 1236.5 1237.5 900
memory.framework.peak -> 20.5GiB 20.5GiB 20.5GiB
train.grad_norm -> 0.75 0.75 0.75
eval.loss -> 1.25
train.loss_component{train.component=kd} -> 0.25

torchtune/dpo.jsonl torchtune
train.global_step -> 1 2
train.loss -> 0.6875 0.6875
train.accuracy{train.component=dpo} -> 0.75 0.75
rl.reward_component{rl.component=chosen,rl.statistic=mean} -> 0.125 0.25
rl.logp{rl.component=rejected,rl.statistic=mean} -> -140.25 -140.25

torchtune/ppo.txt torchtune
train.global_step -> 1
rl.score{rl.statistic=mean} -> 0.5
rl.policy_loss -> -0.03125
rl.policy_kl{rl.statistic=mean} -> 0.001953125

torchtune/grpo.txt torchtune
train.global_step -> 1
rl.trajectory_reward{rl.statistic=mean} -> 0.75
train.loss_component{train.component=kl} -> 0.0625

openrlhf/ppo.log openrlhf
train.global_step -> 1 2
rl.policy_loss -> -0.0125 -0.025
rl.value_loss -> 0.1875 0.1875
rl.trajectory_reward{rl.statistic=mean} -> 0.625 0.75
rl.kl{rl.statistic=mean} -> 0.001953125 0.001953125
train.learning_rate -> 5e-7 5e-7
train.step.duration -> 46 46
perf.rollout_time -> 20.5 20.5
perf.phase_time{perf.phase=make_experience} -> 8.5 8.5
eval.accuracy{data.name=gsm8k} -> 0.6875 0.6875

openrlhf/sft.log openrlhf
train.loss -> 2.5 1.25 0.833 0.625 0.625
train.learning_rate -> 5e-6 5e-6 5e-6 5e-6 5e-6
train.grad_norm -> 1.25 1.25 1.25 1.25 1.25

openrlhf/dpo.log openrlhf
train.loss -> 0.688 0.344 0.229 0.172 0.172
train.accuracy -> 0.625 0.625 0.625 0.625 0.625
rl.reward_component{rl.component=rejected,rl.statistic=mean} -> -0.25 -0.25 -0.25 -0.25 -0.25

litgpt/pretrain.log litgpt
train.global_step -> 2 4 6
train.loss -> 3.25 3 2.75
train.step.duration -> 0.25 0.25 0.25
train.eta -> 118 116 114
eval.loss -> 2.625
eval.duration -> 1.5

litgpt/lora.log litgpt
train.global_step -> 1 2
train.loss -> 2 1
train.step.duration -> 0.1255 0.1255

litgpt/metrics.csv lightning
train.global_step -> 1 3 5
train.loss -> 3.25 3 2.75
train.learning_rate -> 2e-4 4e-4 6e-4
train.tokens -> 8192 8192 8192
train.step.duration -> 0.25 0.25 0.25
train.eta -> 118.75 116.75 114.75
train.mfu -> 0.25 0.25 0.25
eval.loss -> 2.625
eval.perplexity -> 13.804574

composer/console.log composer
train.global_step -> 10 20
train.loss -> 1.875 1.25
train.loss_component{train.component=moe_lb} -> 0.0625 0.0625
train.learning_rate -> 0.0003 0.0003
train.tokens -> 655360 655360
train.throughput.tokens -> 163840 163840
train.mfu -> 0.4063 0.4063
train.eta -> 5400 5400
memory.framework.peak -> 18.5e9 18.5e9
eval.loss{data.name=eval} -> 2.25

composer/file.log composer
train.global_step -> 10 20
train.loss -> 1.875 1.25
train.grad_norm -> 1.25 1.25
eval.perplexity{data.name=eval} -> 9.4877

llmc/train_gpt2cu.log llmc
train.global_step -> 1 2 3
train.loss -> 10 9 8
train.grad_norm -> 15.5 7.75 5.1667
train.learning_rate -> 8.57e-7 1.71e-6 2.57e-6
train.step.duration -> 0.30325 0.30325 0.30325
train.mfu -> -1 0.515 0.515
train.throughput.tokens -> 1728743 1728743 1728743
eval.loss -> 9.125
eval.accuracy{data.name=HellaSwag} -> 0.244075

llmc/main.log llmc
train.global_step -> 0 1 2 250
train.loss -> 10.9987 10.8125
train.learning_rate -> 1e-6 2e-6
train.grad_norm -> 15.31 14.25
eval.loss -> 11.0234 6.4531
eval.accuracy{data.name=HellaSwag} -> 0.2463

llmc/train_gpt2py.log llmc
train.global_step -> 1 2
train.loss -> 4.5 3.5
train.step.duration -> 0.05625 0.05625
train.throughput.tokens -> 4551 4551

llmc/train_gpt2c.log llmc
train.global_step -> 0 1
train.loss -> 5.356189 4.301069
train.step.duration -> 1.2505 1.10025

keras/tensorflow2.log keras
train.global_step -> 32 64 128 160 256
train.loss -> 2.5 2.25 2 1.5 1.25
train.step.duration -> 0.04 0.04
eval.loss -> 1.75 1.125
train.eta -> 3 2 3

lightning/steps.csv lightning
train.global_step -> 9 19 29 39
train.loss -> 2.5 2.25 2
train.learning_rate -> 0.001
eval.loss -> 2.375 2.125
eval.accuracy -> 0.5 0.625

keras/fit.log keras
train.global_step -> 1 2 3 4 5 6 7 8
train.loss -> 2.5 2.5 2.5 2.5 1.25 1.25 1.25 1.25
eval.loss -> 3 1.5
eval.accuracy -> 0.1875 0.375

keras/fit_verbose2.log keras
train.loss -> 2.5 1.25
train.global_step -> 4 8
train.accuracy -> 0.25 0.5

trl/sft.log hf-trainer
train.loss -> 2.5 1.25
train.accuracy -> 0.625 0.625
train.real_tokens -> 1000 1000
eval.loss -> 1.5
eval.accuracy -> 0.5

trl/grpo.log hf-trainer
rl.trajectory_reward{rl.statistic=mean} -> 0.625 0.75
rl.reward_component{rl.component=accuracy_reward,rl.statistic=std} -> 0.25 0.25
rl.selected_length{rl.selection=terminated,rl.statistic=mean} -> 120.25 120.25
rl.zero_variance_fraction -> 0.25 0.25
rl.policy_clip_upper_fraction -> 0.015625 0.015625
rl.tool_calls{rl.statistic=mean} -> 1.5 1.5
train.step.duration -> 12.5 12.5

trl/dpo.log hf-trainer
train.accuracy{train.component=dpo} -> 0.75 0.75
rl.reward_component{rl.component=chosen,rl.statistic=mean} -> 0.125 0.25
rl.logp{rl.component=chosen,rl.statistic=mean} -> -128.5 -128.5
rl.logit{rl.component=rejected,rl.statistic=mean} -> -1.25 -1.25
rl.logp{data.split=eval,rl.component=rejected,rl.statistic=mean} -> -140.25

trl/reward.log hf-trainer
train.accuracy -> 0.75 0.75
rl.trajectory_reward{rl.statistic=max} -> 2 2
rl.reward_component{rl.component=margins,rl.statistic=mean} -> 0.5 0.5

trl/ppo.log hf-trainer
rl.kl{rl.statistic=mean} -> 0.125 0.125
rl.policy_loss -> -0.0625 -0.0625
train.learning_rate -> 3e-6 3e-6

axolotl/train.log hf-trainer
train.loss -> 2.5 1.25
train.perplexity -> 12.18249 3.49034
train.tokens -> 1024 1024
train.throughput.tokens_per_device -> 1234.5 1234.5
memory.framework.peak_active -> 20.5GiB 20.5GiB 20.5GiB
memory.framework.peak -> 20.25GiB 20.25GiB 20.25GiB
memory.framework.peak_reserved -> 22.5GiB 22.5GiB 22.5GiB
eval.perplexity -> 4.48169

axolotl/orpo.log hf-trainer
train.loss -> 0.75 0.375
train.loss_component{train.component=odds_ratio} -> 0.5 0.25
rl.log_odds -> 0.5 1
train.custom{train.custom.name=hf_trainer.chosen_geometric_mean} -> -1.25 -1.25

ms-swift/logging.jsonl hf-trainer
train.global_step -> 5 10 12
train.loss -> 2 1.5
train.accuracy -> 0.625 0.625 0.625
train.elapsed_time -> 32 65 67 80.5 80
train.eta -> 4000 4000 13 0
memory.framework.reserved -> 10.5GiB 10.5GiB 10.5GiB 10.5GiB
train.smoothed.step_time -> 6.5 6.5 6.7 6.7
eval.loss -> 1.875
eval.accuracy -> 0.5625

ms-swift/megatron.jsonl hf-trainer
train.global_step -> 5 10
train.loss -> 2 1.5
train.progress -> 0.05 0.1
train.loss_component{train.component=moe_lb} -> 0.03125 0.03125

megatron-bridge/train.log megatron
train.global_step -> 1 2 3
train.loss -> 9.5 8.5 7.5
train.learning_rate -> 3e-4 6e-4 9e-4
train.step.duration -> 1.0005 1.0005 1.0005
train.loss_component{train.component=mtp} -> 9.5 9.5 9.5
train.loss_component{train.component=moe_lb} -> 1.0625 1.0625 1.0625

easyr1/experiment_log.jsonl easyr1
train.global_step -> 1 2 3
rl.policy_loss -> -0.0125 -0.025 -0.0375
train.step.duration -> 29.375 55.375 29.375
train.learning_rate -> 1e-6 1e-6 1e-6
train.tokens -> 1e5 1e5 1e5

unsloth/grpo.log hf-trainer
train.loss -> 0.125 0.25
train.learning_rate -> 5e-6 5e-6
rl.trajectory_reward{rl.statistic=mean} -> 0.5 1

unsloth/rollout.log hf-trainer
rl.sampler_kl{rl.kl_estimator=k1,rl.statistic=mean} -> 0.001 0.001
rl.sampler_kl{rl.kl_estimator=k3,rl.statistic=mean} -> 0.0005 0.001
rl.sampler_kl{rl.kl_estimator=k3,rl.statistic=max} -> 0.25 0.25
rl.effective_sample_ratio -> 0.96875 0.96875
rl.masked_fraction -> 0.03125 0.03125
rl.masked_fraction{rl.level=sequence} -> 0.0625 0.125

trl/cispo.log hf-trainer
rl.policy_clip_upper_fraction -> 0.5 0.25

nemo/train.log nemo
train.global_step -> 0 1 2
train.loss -> 11.25 11.12 11
train.learning_rate -> 5e-6 1e-5 1.5e-5
train.step.duration -> 4.75 4.75 4.75
train.throughput.tokens -> 8192
eval.loss -> 10.75

nv-one-logger/onelogger.log nv-one-logger
train.loss -> 2.5 1.25
train.tokens -> 655360 655360
train.attempt_throughput{train.attempt_statistic=mean} -> 131072 131072
train.checkpoint_size -> 1e9

nccl-inspector/node-1-pid1639453.log nccl-inspector
comm.operation_time{comm.group=DP Group 0,comm.operation=AllReduce} -> 0.061974
comm.bus_bandwidth{comm.group=DP Group 0,comm.operation=ReduceScatter} -> 485.119099e9
comm.message_size{comm.group=unknown,comm.operation=Send} -> 536870912

nccl-inspector/node-2-pid1639454.log nccl-inspector
comm.bus_bandwidth{comm.algorithm=RING,comm.group=DP Group 0,comm.operation=AllReduce,comm.protocol=SIMPLE} -> 469.762048e9 469.762048e9
comm.operation_time{comm.algorithm=NVLS,comm.group=DP Group 0,comm.operation=AllGather,comm.protocol=LL128} -> 0.0005 0.0005
comm.message_size{comm.group=DP Group 0,comm.operation=Send} -> 16777216 16777216
comm.dropped_operations{comm.group=DP Group 0,comm.kind=collective} -> 0 3

rccl-inspector/node-3-pid438776.log nccl-inspector
comm.operation_time{comm.operation=ReduceScatter} -> 0.041057
comm.message_size{comm.operation=AllReduce} -> 1073741824
comm.algorithm_bandwidth{comm.operation=AllGather} -> 1073.741824e9
comm.bus_bandwidth{comm.operation=AllReduce} -> 234.881024e9

nemo-lens/console.jsonl nemo-lens
# The SDK exports the last value of a gauge twice more when it ends.
train.global_step -> 1 2 3
train.loss -> 2.5 2.25 2 2 2
train.smoothed.step_time -> 0.25 0.5 0.75
train.throughput.flops_per_device -> 400.5e12 400.5e12 400.5e12 400.5e12 400.5e12
train.skipped_steps -> 1 0 0 0
memory.framework.peak -> 71.5GiB 71.5GiB 71.5GiB 71.5GiB 71.5GiB
rl.trajectory_reward{rl.statistic=mean} -> 0.25 0.5 0.75 0.75 0.75
rl.kl -> 0.0625 0.0625 0.0625 0.0625 0.0625
inference.prompt_tokens{inference.statistic=mean} -> 128 128 128
inference.completion_tokens{inference.statistic=mean} -> 64 64 64
train.grad_norm -> 0.5 0.5 0.5 0.5 0.5

nemo-lens/rl.jsonl nemo-lens
train.grad_norm -> 0.25 0.25 0.25
train.learning_rate -> 1e-6 1e-6 1e-6
train.throughput.tokens -> 1500 1500 1500
rl.kl -> 0.0625 0.0625 0.0625

xgboost/binary.log xgboost
train.global_step -> 0 10 20 29
train.loss -> 0.53357 0.21914 0.15477 0.12261
eval.loss{data.name=eval} -> 0.57268 0.39903 0.41859 0.42706
train.custom{train.custom.name=eval-auc} -> 0.87716 0.91610 0.91289 0.91248

xgboost/multiclass.log xgboost
train.global_step -> 0 1 2
train.loss -> 0.87658 0.74293 0.65368
eval.loss{data.name=eval} -> 0.92837 0.82481 0.76676
train.custom{train.custom.name=train-merror} -> 0.19 0.18333 0.19

xgboost/rank.log xgboost
train.global_step -> 0 1 2
train.loss ->
train.custom{train.custom.name=eval-map@5} -> 0.808 0.74889 0.816

lightgbm/regression.log lightgbm
# Without the last line, which is that of the best round.
train.global_step -> 10 20 30
train.loss -> 2.22132 1.22457 0.957874
eval.loss{data.name=valid_1} -> 2.62892 1.5899 1.382

lightgbm/binary.log lightgbm
train.global_step -> 1 2 3
train.loss -> 0.633183 0.58732 0.546104
eval.loss{data.name=valid_1} -> 0.65217 0.607695 0.57321
train.custom{train.custom.name=valid_1's auc} -> 0.870935 0.89161 0.905058

lightgbm/multiclass.log lightgbm
train.loss -> 1.0021 0.926807 0.865081
eval.loss{data.name=valid_1} -> 1.01115 0.935284 0.876522

lightgbm/rank.log lightgbm
train.global_step -> 1 2 3
train.custom{train.custom.name=valid_1's ndcg@5} -> 0.850581 0.888652 0.901772

lightgbm/r2.log lightgbm
train.loss -> 5.46855 4.8152 4.28034
train.custom{train.custom.name=training's r2} -> 0.128648 0.232752 0.317976

catboost/train.log catboost
train.global_step -> 0 10 20 29
train.loss -> 2.1493748 1.0893641 0.9505521 0.8824398
eval.loss{data.name=test} -> 2.3412281 1.2142476 1.1126541 1.0975408
train.elapsed_time -> 0.0464 0.0484 0.0504 0.0546
train.eta -> 1.34 0.0836 0.0216 0

catboost/auc.log catboost
train.global_step -> 0 1 2
train.loss ->
eval.loss ->
train.custom{train.custom.name=test} -> 0.8220612 0.8337359 0.8967391
train.custom{train.custom.name=test1} -> 0.7858290 0.7912485 0.8719390

scikit-learn/mlp.log scikit-learn
train.global_step -> 1 2 3 4
train.loss -> 0.81506962 0.77192135 0.73555765 0.70506552
train.custom{train.custom.name=validation_score} -> 0.3 0.325 0.325 0.425

scikit-learn/sgd.log scikit-learn
train.epoch -> 1 2 3
train.loss -> 7.449433 5.394202 4.239513
train.param_norm -> 22.71 31.64 19.64
train.samples -> 400 400 400
train.grad_norm ->
train.custom{train.custom.name=nnzs} -> 5 5 5
train.custom{train.custom.name=bias} -> -0.711329 4.831035 -0.641322
train.custom{train.custom.name=objective} -> 7.541514 5.460212 4.278772

scikit-learn/gradient_boosting.log scikit-learn
train.global_step -> 1 2 3 4 5 6 7 8 9 10 20 30
train.loss -> 4.7545 5.0258 3.9936 3.8443 3.4374 2.8959 2.8839 2.4871 2.4348 2.4619 1.0555 0.8101
train.eta -> 0.03 0.08 0.06 0.05 0.04 0.03 0.04 0.04 0.03 0.03 0.01 0

scikit-learn/hist_gradient_boosting.log scikit-learn
train.global_step -> 1 2 3
train.loss -> 2.89446 2.48943 2.17601
eval.loss -> 2.15621 1.85627 1.66333
train.custom{train.custom.name=trees} -> 1 1 1
train.custom{train.custom.name=leaves} -> 14 15 15
train.custom{train.custom.name=max_depth} -> 6 7 7
train.step.duration -> 0.004 0.001 0.001

scikit-learn/hist_scores.log scikit-learn
train.global_step -> 1 2 3
train.loss ->
train.custom{train.custom.name=val_score} -> 0.725 0.775 0.825

stable-baselines3/ppo.log stable-baselines3
train.global_step -> 2048 4000 4096 6144
rl.trajectory_reward{rl.statistic=mean} -> 21.5 22.5 23.5
rl.trajectory_reward{data.split=eval,rl.statistic=mean} -> 150
rl.turns{rl.statistic=mean} -> 21.5 22.5 23.5
rl.policy_loss -> -0.0156 -0.0156
rl.value_loss -> 25.2 16.8
rl.policy_kl{rl.statistic=mean} -> 0.00391 0.0026
train.loss_component{train.component=entropy} -> -0.688 -0.688
train.loss -> 3.25 2.17
train.learning_rate -> 0.0003 0.0003
train.throughput.steps -> 1190 1180 1170

stable-baselines3/a2c.log stable-baselines3
train.global_step -> 500 1000 1500
rl.policy_loss -> 1.5 0.75 0.5
rl.value_explained_variance -> -0.25 -0.25 -0.25

stable-baselines3/dqn.log stable-baselines3
train.global_step -> 400 800 1200
train.loss -> 0.5 0.25 0.167
rl.rollouts -> 4 4 4
train.elapsed_time -> 1 2 3

stable-baselines3/sac.log stable-baselines3
train.global_step -> 800 1600 2400
rl.policy_loss -> -12.5 -25 -37.5
rl.value_loss -> 0.75 0.375 0.25
train.loss_weight{train.component=entropy} -> 0.5 0.25 0.167

clu/lm1b.log clu
train.global_step -> 100 200 300
train.loss -> 6.5 5.5 4.5
train.accuracy -> 0.125 0.25 0.375
train.learning_rate -> 0.0005 0.001 0.0015
train.throughput.steps -> 9.75 10 10.25
train.elapsed_time -> 12.5 25 37.5
eval.loss -> 6.75 5.75 4.75
eval.accuracy -> 0.0625 0.125 0.1875

clu/collections.log clu
train.global_step -> 10 20 30
train.loss -> 2.5 2.25 2
eval.loss -> 2.75 2.5 2.25
eval.accuracy -> 0.25 0.25 0.25
";

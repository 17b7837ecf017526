//! The logged values of each sample, in units of the registry.

use super::Sample;

const GIB: f64 = 1_073_741_824.0;
const NAN: f64 = f64::NAN;

/// The samples with the values of their series, in the order of the log.
pub(super) const SAMPLES: &[Sample] = &[
    Sample {
        file: "verl/console.log",
        format: "verl",
        series: &[
            ("train.global_step", &[1.0, 2.0, 3.0]),
            ("rl.reward{rl.statistic=mean}", &[0.625, 0.75, 0.875]),
            ("rl.reward{rl.statistic=max}", &[2.0, NAN, 2.0]),
            ("rl.policy_loss", &[-0.0125, -0.025, -0.0375]),
            ("rl.entropy{rl.statistic=mean}", &[0.4375, 0.4375, 0.4375]),
            (
                "rl.completion_length{rl.statistic=mean}",
                &[512.75, 512.75, 512.75],
            ),
            ("train.learning_rate", &[1e-6, 1e-6, 1e-6]),
            ("train.grad_norm", &[0.625, 1.25, 1.875]),
            ("train.tokens", &[819_200.0, 819_200.0, 819_200.0]),
            ("train.throughput.tokens_per_device", &[1234.5, 2469.0, 3703.5]),
            ("train.step.duration", &[31.5, 32.5, 33.5]),
            ("train.mfu", &[0.325, 0.325, 0.325]),
            ("perf.rollout_time", &[12.25, 12.25, 12.25]),
            ("memory.framework.peak", &[48.5 * GIB, 48.5 * GIB, 48.5 * GIB]),
            ("eval.accuracy{data.name=openai/gsm8k}", &[0.6875, 0.6875, 0.6875]),
        ],
    },
    Sample {
        file: "verl/sft.log",
        format: "verl",
        series: &[
            ("train.global_step", &[1.0, 2.0, 3.0]),
            ("train.loss", &[2.5, 1.25, 1.125]),
            ("train.learning_rate", &[2e-5, 4e-5, 2e-5]),
            ("train.tokens", &[65_536.0, 65_536.0]),
            ("train.step.duration", &[3.5]),
            ("eval.loss", &[2.125]),
        ],
    },
    Sample {
        file: "nanogpt/train.log",
        format: "nanogpt",
        series: &[
            ("train.global_step", &[0.0, 10.0, 20.0]),
            ("train.loss", &[4.2696, 3.6446, 3.0196]),
            ("train.step.duration", &[0.13575, 0.13575, 0.13575]),
            ("train.mfu", &[-1.0, 0.1713, 0.1713]),
            ("eval.loss", &[4.2823, 3.4823]),
            ("data.loss{data.name=train,data.split=train}", &[4.2874, 3.2874]),
        ],
    },
    Sample {
        file: "nanochat/base_train.log",
        format: "nanochat",
        series: &[
            ("train.global_step", &[10.0, 20.0, 30.0]),
            ("train.loss", &[6.125, 3.0625, 2.041_667]),
            ("train.step.duration", &[0.480_12, 0.480_12, 0.480_12]),
            (
                "train.throughput.tokens",
                &[1_091_982.0, 1_091_982.0, 1_091_982.0],
            ),
            ("train.mfu", &[0.4791, 0.4791, 0.4791]),
            ("train.progress", &[0.0005, 0.0009, 0.0014]),
            ("train.elapsed_time", &[300.0, 600.0, 900.0]),
            ("train.eta", &[10_272.0, 10_272.0]),
            ("train.epoch", &[1.0, 1.0, 1.0]),
            ("data.file_index{data.split=train}", &[1.0, 2.0, 3.0]),
            ("data.chunk_index{data.split=train}", &[20.0, 40.0, 60.0]),
            ("eval.bpb", &[1.015_625]),
            ("eval.accuracy{data.name=CORE}", &[0.2125]),
        ],
    },
    Sample {
        file: "nanochat/chat_sft.log",
        format: "nanochat",
        series: &[
            ("train.global_step", &[1.0, 2.0]),
            ("train.loss", &[1.25, 0.625]),
            ("train.mfu", &[0.4025, 0.4025]),
            ("train.throughput.tokens", &[1_000_000.0, 1_000_000.0]),
            ("eval.bpb", &[0.5]),
            ("eval.accuracy{data.name=ChatCORE}", &[0.25]),
            ("eval.accuracy{data.name=ChatCORE_cat}", &[0.125]),
        ],
    },
    Sample {
        file: "nanochat/chat_rl.log",
        format: "nanochat",
        series: &[
            ("train.global_step", &[0.0, 1.0]),
            ("train.loss", &[0.031_25, 0.031_25]),
            ("rl.reward{rl.statistic=mean}", &[0.5, 0.375, 0.5, 0.625]),
            ("rl.completion_length{rl.statistic=mean}", &[128.5, 128.5]),
        ],
    },
    Sample {
        file: "deepspeed/train.log",
        format: "deepspeed",
        series: &[
            ("train.global_step", &[10.0, 20.0, 30.0]),
            ("train.learning_rate", &[0.0003, 0.0006, 0.0009]),
            ("train.skipped_steps", &[0.0, 1.0, 1.0]),
            ("train.throughput.samples", &[42.5, 43.5, 44.5]),
            (
                "memory.framework.allocated",
                &[12.25 * GIB, 12.25 * GIB, 12.25 * GIB],
            ),
            ("memory.framework.peak", &[30.5 * GIB, 30.5 * GIB, 30.5 * GIB]),
            ("perf.forward_time", &[0.122, 0.122, 0.122]),
            ("perf.backward_time", &[0.245, 0.245, 0.245]),
            ("perf.optimizer_time", &[0.030_25, 0.031_25, 0.032_25]),
            (
                "perf.phase_time{perf.phase=bwd_allreduce}",
                &[0.005, 0.005, 0.005],
            ),
        ],
    },
    Sample {
        file: "deepspeed/pipeline.log",
        format: "deepspeed",
        series: &[
            ("train.global_step", &[10.0, 20.0]),
            ("train.loss", &[2.25, 2.0]),
            ("train.step.duration", &[0.375, 0.375]),
            ("train.throughput.samples", &[170.667, 170.667]),
            ("train.loss_component{train.component=lm}", &[2.0, 2.0]),
            ("perf.phase_time{perf.phase=pipe_recv_grad}", &[0.0045, 0.0045]),
        ],
    },
    Sample {
        file: "llamafactory/trainer_log.jsonl",
        format: "llamafactory",
        series: &[
            ("train.global_step", &[5.0, 10.0, 15.0]),
            ("train.loss", &[2.0, 1.5, 1.0]),
            ("train.learning_rate", &[1e-5, 5e-6, 5e-5 / 15.0]),
            ("train.epoch", &[0.625, 1.25, 1.875, 1.875, 1.875]),
            ("train.progress", &[0.25, 0.5, 0.75, 0.75, 0.75]),
            ("train.elapsed_time", &[155.0, 310.0, 465.0, 465.0, 466.0]),
            ("train.eta", &[3723.0, 3723.0, 3723.0, 155.0, 156.0]),
            ("train.throughput.tokens", &[1875.25, 1875.25, 1875.25]),
            ("train.tokens", &[20_480.0, 20_480.0, 20_480.0]),
            ("memory.framework.peak", &[10.5 * GIB, 10.5 * GIB, 10.5 * GIB]),
            ("rl.reward{rl.statistic=mean}", &[1.25, 2.5, 3.75]),
            ("eval.loss", &[1.125]),
            ("eval.loss{data.name=predict}", &[1.25]),
        ],
    },
    Sample {
        file: "lightning/metrics.csv",
        format: "lightning",
        series: &[
            ("train.global_step", &[49.0, 99.0, 149.0, 99.0]),
            ("train.loss", &[2.01, 1.51, 1.01]),
            ("train.accuracy", &[0.549, 0.599, 0.649]),
            ("train.learning_rate", &[3e-4, 3e-4, 3e-4]),
            ("train.throughput.samples", &[80.0, 80.0, 80.0]),
            ("train.throughput.tokens", &[40_960.0, 40_960.0, 40_960.0]),
            (
                "train.throughput.tokens_per_device",
                &[20_480.0, 20_480.0, 20_480.0],
            ),
            ("train.mfu", &[0.406_25, 0.406_25, 0.406_25]),
            ("eval.loss", &[1.875]),
            ("eval.accuracy", &[0.5625]),
            ("memory.framework.allocated", &[GIB]),
        ],
    },
    Sample {
        file: "lightning/version_1.csv",
        format: "lightning",
        series: &[
            ("train.global_step", &[9.0, 19.0]),
            ("train.loss", &[0.875, 0.75]),
            ("eval.loss", &[0.8125]),
        ],
    },
    Sample {
        file: "torchtune/log_1767340800.txt",
        format: "torchtune",
        series: &[
            ("train.global_step", &[1.0, 2.0, 3.0, 4.0]),
            ("train.loss", &[1.5, 0.75, 0.5, 0.5]),
            ("train.learning_rate", &[2e-5, 4e-5, 6e-5, 1e-5]),
            (
                "train.throughput.tokens_per_device",
                &[1235.5, 1236.5, 1237.5, 900.0],
            ),
            ("memory.framework.peak", &[20.5 * GIB, 20.5 * GIB, 20.5 * GIB]),
            ("train.grad_norm", &[0.75, 0.75, 0.75]),
            ("eval.loss", &[1.25]),
            ("train.loss_component{train.component=kd}", &[0.25]),
        ],
    },
    Sample {
        file: "torchtune/dpo.jsonl",
        format: "torchtune",
        series: &[
            ("train.global_step", &[1.0, 2.0]),
            ("train.loss", &[0.6875, 0.6875]),
            ("train.accuracy{train.component=dpo}", &[0.75, 0.75]),
            (
                "rl.reward_component{rl.component=chosen,rl.statistic=mean}",
                &[0.125, 0.25],
            ),
            (
                "rl.logp{rl.component=rejected,rl.statistic=mean}",
                &[-140.25, -140.25],
            ),
        ],
    },
    Sample {
        file: "torchtune/ppo.txt",
        format: "torchtune",
        series: &[
            ("train.global_step", &[1.0]),
            ("rl.score{rl.statistic=mean}", &[0.5]),
            ("rl.policy_loss", &[-0.031_25]),
            ("rl.policy_kl{rl.statistic=mean}", &[0.001_953_125]),
        ],
    },
    Sample {
        file: "torchtune/grpo.txt",
        format: "torchtune",
        series: &[
            ("train.global_step", &[1.0]),
            ("rl.reward{rl.statistic=mean}", &[0.75]),
            ("train.loss_component{train.component=kl}", &[0.0625]),
        ],
    },
    Sample {
        file: "openrlhf/ppo.log",
        format: "openrlhf",
        series: &[
            ("train.global_step", &[1.0, 2.0]),
            ("rl.policy_loss", &[-0.0125, -0.025]),
            ("rl.value_loss", &[0.1875, 0.1875]),
            ("rl.reward{rl.statistic=mean}", &[0.625, 0.75]),
            ("rl.kl{rl.statistic=mean}", &[0.001_953_125, 0.001_953_125]),
            ("train.learning_rate", &[5e-7, 5e-7]),
            ("train.step.duration", &[46.0, 46.0]),
            ("perf.rollout_time", &[20.5, 20.5]),
            ("perf.phase_time{perf.phase=make_experience}", &[8.5, 8.5]),
            ("eval.accuracy{data.name=gsm8k}", &[0.6875, 0.6875]),
        ],
    },
    Sample {
        file: "openrlhf/sft.log",
        format: "openrlhf",
        series: &[
            ("train.loss", &[2.5, 1.25, 0.833, 0.625, 0.625]),
            ("train.learning_rate", &[5e-6, 5e-6, 5e-6, 5e-6, 5e-6]),
            ("train.grad_norm", &[1.25, 1.25, 1.25, 1.25, 1.25]),
        ],
    },
    Sample {
        file: "openrlhf/dpo.log",
        format: "openrlhf",
        series: &[
            ("train.loss", &[0.688, 0.344, 0.229, 0.172, 0.172]),
            ("train.accuracy", &[0.625, 0.625, 0.625, 0.625, 0.625]),
            (
                "rl.reward_component{rl.component=rejected,rl.statistic=mean}",
                &[-0.25, -0.25, -0.25, -0.25, -0.25],
            ),
        ],
    },
    Sample {
        file: "litgpt/pretrain.log",
        format: "litgpt",
        series: &[
            ("train.global_step", &[2.0, 4.0, 6.0]),
            ("train.loss", &[3.25, 3.0, 2.75]),
            ("train.step.duration", &[0.25, 0.25, 0.25]),
            ("train.eta", &[118.0, 116.0, 114.0]),
            ("eval.loss", &[2.625]),
            ("eval.duration", &[1.5]),
        ],
    },
    Sample {
        file: "litgpt/lora.log",
        format: "litgpt",
        series: &[
            ("train.global_step", &[1.0, 2.0]),
            ("train.loss", &[2.0, 1.0]),
            ("train.step.duration", &[0.1255, 0.1255]),
        ],
    },
    Sample {
        file: "litgpt/metrics.csv",
        format: "lightning",
        series: &[
            ("train.global_step", &[1.0, 3.0, 5.0]),
            ("train.loss", &[3.25, 3.0, 2.75]),
            ("train.learning_rate", &[2e-4, 4e-4, 6e-4]),
            ("train.tokens", &[8192.0, 8192.0, 8192.0]),
            ("train.step.duration", &[0.25, 0.25, 0.25]),
            ("train.eta", &[118.75, 116.75, 114.75]),
            ("train.mfu", &[0.25, 0.25, 0.25]),
            ("eval.loss", &[2.625]),
            ("eval.perplexity", &[13.804_574]),
        ],
    },
    Sample {
        file: "composer/console.log",
        format: "composer",
        series: &[
            ("train.global_step", &[10.0, 20.0]),
            ("train.loss", &[1.875, 1.25]),
            ("train.loss_component{train.component=moe_lb}", &[0.0625, 0.0625]),
            ("train.learning_rate", &[0.0003, 0.0003]),
            ("train.tokens", &[655_360.0, 655_360.0]),
            ("train.throughput.tokens", &[163_840.0, 163_840.0]),
            ("train.mfu", &[0.4063, 0.4063]),
            ("train.eta", &[5400.0, 5400.0]),
            ("memory.framework.peak", &[18.5e9, 18.5e9]),
            ("eval.loss{data.name=eval}", &[2.25]),
        ],
    },
    Sample {
        file: "composer/file.log",
        format: "composer",
        series: &[
            ("train.global_step", &[10.0, 20.0]),
            ("train.loss", &[1.875, 1.25]),
            ("train.grad_norm", &[1.25, 1.25]),
            ("eval.perplexity{data.name=eval}", &[9.4877]),
        ],
    },
    Sample {
        file: "llmc/train_gpt2cu.log",
        format: "llmc",
        series: &[
            ("train.global_step", &[1.0, 2.0, 3.0]),
            ("train.loss", &[10.0, 9.0, 8.0]),
            ("train.grad_norm", &[15.5, 7.75, 5.1667]),
            ("train.learning_rate", &[8.57e-7, 1.71e-6, 2.57e-6]),
            ("train.step.duration", &[0.303_25, 0.303_25, 0.303_25]),
            ("train.mfu", &[-1.0, 0.515, 0.515]),
            (
                "train.throughput.tokens",
                &[1_728_743.0, 1_728_743.0, 1_728_743.0],
            ),
            ("eval.loss", &[9.125]),
            ("eval.accuracy{data.name=HellaSwag}", &[0.244_075]),
        ],
    },
    Sample {
        file: "llmc/main.log",
        format: "llmc",
        series: &[
            ("train.global_step", &[0.0, 1.0, 2.0, 250.0]),
            ("train.loss", &[10.9987, 10.8125]),
            ("train.learning_rate", &[1e-6, 2e-6]),
            ("train.grad_norm", &[15.31, 14.25]),
            ("eval.loss", &[11.0234, 6.4531]),
            ("eval.accuracy{data.name=HellaSwag}", &[0.2463]),
        ],
    },
    Sample {
        file: "llmc/train_gpt2py.log",
        format: "llmc",
        series: &[
            ("train.global_step", &[1.0, 2.0]),
            ("train.loss", &[4.5, 3.5]),
            ("train.step.duration", &[0.056_25, 0.056_25]),
            ("train.throughput.tokens", &[4551.0, 4551.0]),
        ],
    },
    Sample {
        file: "llmc/train_gpt2c.log",
        format: "llmc",
        series: &[
            ("train.global_step", &[0.0, 1.0]),
            ("train.loss", &[5.356_189, 4.301_069]),
            ("train.step.duration", &[1.2505, 1.100_25]),
        ],
    },
    Sample {
        file: "keras/tensorflow2.log",
        format: "keras",
        series: &[
            ("train.global_step", &[32.0, 64.0, 128.0, 160.0, 256.0]),
            ("train.loss", &[2.5, 2.25, 2.0, 1.5, 1.25]),
            ("train.step.duration", &[0.04, 0.04]),
            ("eval.loss", &[1.75, 1.125]),
            ("train.eta", &[3.0, 2.0, 3.0]),
        ],
    },
    Sample {
        file: "lightning/steps.csv",
        format: "lightning",
        series: &[
            ("train.global_step", &[9.0, 19.0, 29.0, 39.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("train.learning_rate", &[0.001]),
            ("eval.loss", &[2.375, 2.125]),
            ("eval.accuracy", &[0.5, 0.625]),
        ],
    },
    Sample {
        file: "keras/fit.log",
        format: "keras",
        series: &[
            ("train.global_step", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
            ("train.loss", &[2.5, 2.5, 2.5, 2.5, 1.25, 1.25, 1.25, 1.25]),
            ("eval.loss", &[3.0, 1.5]),
            ("eval.accuracy", &[0.1875, 0.375]),
        ],
    },
    Sample {
        file: "keras/fit_verbose2.log",
        format: "keras",
        series: &[
            ("train.loss", &[2.5, 1.25]),
            ("train.global_step", &[4.0, 8.0]),
            ("train.accuracy", &[0.25, 0.5]),
        ],
    },
    Sample {
        file: "nccl-inspector/node-1-pid1639453.log",
        format: "nccl-inspector",
        series: &[
            (
                "comm.operation_time{comm.group=DP Group 0,comm.operation=AllReduce}",
                &[0.061_974],
            ),
            (
                "comm.bus_bandwidth{comm.group=DP Group 0,comm.operation=ReduceScatter}",
                &[485.119_099e9],
            ),
            (
                "comm.message_size{comm.group=unknown,comm.operation=Send}",
                &[536_870_912.0],
            ),
        ],
    },
    Sample {
        file: "trl/sft.log",
        format: "hf-trainer",
        series: &[
            ("train.loss", &[2.5, 1.25]),
            ("train.accuracy", &[0.625, 0.625]),
            ("train.real_tokens", &[1000.0, 1000.0]),
            ("eval.loss", &[1.5]),
            ("eval.accuracy", &[0.5]),
        ],
    },
    Sample {
        file: "trl/grpo.log",
        format: "hf-trainer",
        series: &[
            ("rl.reward{rl.statistic=mean}", &[0.625, 0.75]),
            (
                "rl.reward_component{rl.component=accuracy_reward,rl.statistic=std}",
                &[0.25, 0.25],
            ),
            (
                "rl.selected_length{rl.selection=terminated,rl.statistic=mean}",
                &[120.25, 120.25],
            ),
            ("rl.zero_variance_fraction", &[0.25, 0.25]),
            ("rl.policy_clip_upper_fraction", &[0.015_625, 0.015_625]),
            ("rl.tool_calls{rl.statistic=mean}", &[1.5, 1.5]),
            ("train.step.duration", &[12.5, 12.5]),
        ],
    },
    Sample {
        file: "trl/dpo.log",
        format: "hf-trainer",
        series: &[
            ("train.accuracy{train.component=dpo}", &[0.75, 0.75]),
            (
                "rl.reward_component{rl.component=chosen,rl.statistic=mean}",
                &[0.125, 0.25],
            ),
            (
                "rl.logp{rl.component=chosen,rl.statistic=mean}",
                &[-128.5, -128.5],
            ),
            (
                "rl.logit{rl.component=rejected,rl.statistic=mean}",
                &[-1.25, -1.25],
            ),
            (
                "rl.logp{data.split=eval,rl.component=rejected,rl.statistic=mean}",
                &[-140.25],
            ),
        ],
    },
    Sample {
        file: "trl/reward.log",
        format: "hf-trainer",
        series: &[
            ("train.accuracy", &[0.75, 0.75]),
            ("rl.reward{rl.statistic=max}", &[2.0, 2.0]),
            (
                "rl.reward_component{rl.component=margins,rl.statistic=mean}",
                &[0.5, 0.5],
            ),
        ],
    },
    Sample {
        file: "trl/ppo.log",
        format: "hf-trainer",
        series: &[
            ("rl.kl{rl.statistic=mean}", &[0.125, 0.125]),
            ("rl.policy_loss", &[-0.0625, -0.0625]),
            ("train.learning_rate", &[3e-6, 3e-6]),
        ],
    },
    Sample {
        file: "axolotl/train.log",
        format: "hf-trainer",
        series: &[
            ("train.loss", &[2.5, 1.25]),
            ("train.perplexity", &[12.182_49, 3.490_34]),
            ("train.tokens", &[1024.0, 1024.0]),
            ("train.throughput.tokens_per_device", &[1234.5, 1234.5]),
            ("memory.framework.peak", &[20.5 * GIB, 20.5 * GIB, 20.5 * GIB]),
            ("eval.perplexity", &[4.481_69]),
        ],
    },
    Sample {
        file: "ms-swift/logging.jsonl",
        format: "hf-trainer",
        series: &[
            ("train.global_step", &[5.0, 10.0, 12.0]),
            ("train.loss", &[2.0, 1.5]),
            ("train.accuracy", &[0.625, 0.625, 0.625]),
            ("train.elapsed_time", &[32.0, 65.0, 67.0, 80.5, 80.0]),
            ("train.eta", &[4000.0, 4000.0, 13.0, 0.0]),
            (
                "memory.framework.reserved",
                &[10.5 * GIB, 10.5 * GIB, 10.5 * GIB, 10.5 * GIB],
            ),
            ("train.smoothed.step_time", &[6.5, 6.5, 6.7, 6.7]),
            ("eval.loss", &[1.875]),
            ("eval.accuracy", &[0.5625]),
        ],
    },
    Sample {
        file: "ms-swift/megatron.jsonl",
        format: "hf-trainer",
        series: &[
            ("train.global_step", &[5.0, 10.0]),
            ("train.loss", &[2.0, 1.5]),
            ("train.progress", &[0.05, 0.1]),
            (
                "train.loss_component{train.component=moe_lb}",
                &[0.031_25, 0.031_25],
            ),
        ],
    },
    Sample {
        file: "megatron-bridge/train.log",
        format: "megatron",
        series: &[
            ("train.global_step", &[1.0, 2.0, 3.0]),
            ("train.loss", &[9.5, 8.5, 7.5]),
            ("train.learning_rate", &[3e-4, 6e-4, 9e-4]),
            ("train.step.duration", &[1.0005, 1.0005, 1.0005]),
            ("train.loss_component{train.component=mtp}", &[9.5, 9.5, 9.5]),
            (
                "train.loss_component{train.component=moe_lb}",
                &[1.0625, 1.0625, 1.0625],
            ),
        ],
    },
    Sample {
        file: "easyr1/experiment_log.jsonl",
        format: "easyr1",
        series: &[
            ("train.global_step", &[1.0, 2.0, 3.0]),
            ("rl.policy_loss", &[-0.0125, -0.025, -0.0375]),
            ("train.step.duration", &[29.375, 55.375, 29.375]),
            ("train.learning_rate", &[1e-6, 1e-6, 1e-6]),
            ("train.tokens", &[1e5, 1e5, 1e5]),
        ],
    },
    Sample {
        file: "unsloth/grpo.log",
        format: "hf-trainer",
        series: &[
            ("train.loss", &[0.125, 0.25]),
            ("train.learning_rate", &[5e-6, 5e-6]),
            ("rl.reward{rl.statistic=mean}", &[0.5, 1.0]),
        ],
    },
    Sample {
        file: "trl/cispo.log",
        format: "hf-trainer",
        series: &[("rl.policy_clip_upper_fraction", &[0.5, 0.25])],
    },
];

//! The contents of the samples of NVIDIA's trainers and loggers, and of AMD's port of one.

use super::Sample;

pub(super) const NVIDIA: &[Sample] = &[
    Sample {
        file: "nemo/train.log",
        format: "nemo",
        series: &[
            ("train.global_step", &[0.0, 1.0, 2.0]),
            ("train.loss", &[11.25, 11.12, 11.0]),
            ("train.learning_rate", &[5e-6, 1e-5, 1.5e-5]),
            ("train.step.duration", &[4.75, 4.75, 4.75]),
            ("train.throughput.tokens", &[8192.0]),
            ("eval.loss", &[10.75]),
        ],
    },
    Sample {
        file: "nv-one-logger/onelogger.log",
        format: "nv-one-logger",
        series: &[
            ("train.loss", &[2.5, 1.25]),
            ("train.tokens", &[655_360.0, 655_360.0]),
            (
                "train.attempt_throughput{train.attempt_statistic=mean}",
                &[131_072.0, 131_072.0],
            ),
            ("train.checkpoint_size", &[1e9]),
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
        file: "nccl-inspector/node-2-pid1639454.log",
        format: "nccl-inspector",
        series: &[
            (
                "comm.bus_bandwidth{comm.algorithm=RING,comm.group=DP Group 0,comm.operation=AllReduce,comm.protocol=SIMPLE}",
                &[469.762_048e9, 469.762_048e9],
            ),
            (
                "comm.operation_time{comm.algorithm=NVLS,comm.group=DP Group 0,comm.operation=AllGather,comm.protocol=LL128}",
                &[0.000_5, 0.000_5],
            ),
            (
                "comm.message_size{comm.group=DP Group 0,comm.operation=Send}",
                &[16_777_216.0, 16_777_216.0],
            ),
            (
                "comm.dropped_operations{comm.group=DP Group 0,comm.kind=collective}",
                &[0.0, 3.0],
            ),
        ],
    },
    Sample {
        file: "rccl-inspector/node-3-pid438776.log",
        format: "nccl-inspector",
        series: &[
            ("comm.operation_time{comm.operation=ReduceScatter}", &[0.041_057]),
            ("comm.message_size{comm.operation=AllReduce}", &[1_073_741_824.0]),
            (
                "comm.algorithm_bandwidth{comm.operation=AllGather}",
                &[1_073.741_824e9],
            ),
            ("comm.bus_bandwidth{comm.operation=AllReduce}", &[234.881_024e9]),
        ],
    },
    Sample {
        file: "nemo-lens/console.jsonl",
        format: "nemo-lens",
        // The SDK exports the last value of a gauge twice more when it ends.
        series: &[
            ("train.global_step", &[1.0, 2.0, 3.0]),
            ("train.loss", &[2.5, 2.25, 2.0, 2.0, 2.0]),
            ("train.smoothed.step_time", &[0.25, 0.5, 0.75]),
            ("train.throughput.flops_per_device", &[400.5e12; 5]),
            ("train.skipped_steps", &[1.0, 0.0, 0.0, 0.0]),
            ("memory.framework.peak", &[71.5 * 1_073_741_824.0; 5]),
            ("rl.reward{rl.statistic=mean}", &[0.25, 0.5, 0.75, 0.75, 0.75]),
            ("rl.kl", &[0.0625; 5]),
            ("inference.prompt_tokens{inference.statistic=mean}", &[128.0; 3]),
            (
                "inference.completion_tokens{inference.statistic=mean}",
                &[64.0; 3],
            ),
        ],
    },
];

//! Which of the console's numbers is which metric.

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use crate::logs::row::{Row, row};

const MIB: f64 = (1_u64 << 20) as f64;

const fn part(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_FLOPS_PART, Out::Text(name))
}

const fn direction(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_IO_DIRECTION, Out::Text(name))
}

const fn precision(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_PRECISION, Out::Text(name))
}

const fn split(name: &'static str) -> Attribute<'static> {
    (&attribute::DATA_SPLIT, Out::Text(name))
}

const MEAN: &[Attribute<'static>] = &[(&attribute::RL_STATISTIC, Out::Text("mean"))];

/// How much of the epoch is done, which no metric of ours is.
pub(super) const EPOCH: Row = row("%", &metric::TRAIN_CUSTOM).divided_by(100.0).with(&[(
    &attribute::TRAIN_CUSTOM_NAME,
    Out::Text("surogate.epoch_progress"),
)]);

/// Of the beginning of a step.
pub(super) static HEAD: &[Row] = &[EPOCH];

/// Of a step.
pub(super) static STEP: &[Row] = &[
    row("loss", &metric::TRAIN_LOSS).on_span(&attribute::TRAIN_LOSS),
    row("norm", &metric::TRAIN_GRAD_NORM).on_span(&attribute::TRAIN_GRAD_NORM),
    row("tps", &metric::TRAIN_THROUGHPUT_TOKENS),
    row("ms", &metric::TRAIN_STEP_DURATION).divided_by(1e3),
    row("kd", &metric::TRAIN_LOSS_COMPONENT).with(&[(&attribute::TRAIN_COMPONENT, Out::Text("kd"))]),
    row("aux", &metric::MOE_AUX_LOSS),
    row("imbal", &metric::MOE_LOAD_IMBALANCE),
    row("util", &metric::MOE_EXPERT_UTILIZATION),
    row("hot", &metric::MOE_MAX_EXPERT_FRACTION),
    row("ent", &metric::MOE_ROUTER_ENTROPY),
    row("sol", &metric::TRAIN_SOL).divided_by(100.0),
    row("eta", &metric::TRAIN_ETA),
];

/// Of an evaluation.
pub(super) static EVAL: &[Row] = &[
    row("loss", &metric::EVAL_LOSS),
    row("gap", &metric::EVAL_GAP),
    row("tps", &metric::EVAL_THROUGHPUT_TOKENS),
    row("ms", &metric::EVAL_DURATION).divided_by(1e3),
];

/// Of the two lines of a GPU.
pub(super) static GPU: &[Row] = &[
    row("power", &metric::GPU_POWER).with(&[(&attribute::GPU_POWER_READING, Out::Text("derived"))]),
    row("temp", &metric::GPU_TEMPERATURE),
    row("temp limit", &metric::GPU_TEMPERATURE_LIMIT)
        .with(&[(&attribute::GPU_TEMPERATURE_LIMIT_KIND, Out::Text("slowdown"))]),
    row("clock", &metric::GPU_CLOCK_FREQUENCY)
        .times(1e6)
        .with(&[(&attribute::GPU_CLOCK_DOMAIN, Out::Text("sm"))]),
    row("Mem Usage", &metric::GPU_MEMORY_USED).times(MIB),
    row("PCI↓", &metric::GPU_PCIE_THROUGHPUT)
        .times(MIB)
        .with(&[direction("receive")]),
    row("PCI↑", &metric::GPU_PCIE_THROUGHPUT)
        .times(MIB)
        .with(&[direction("transmit")]),
];

/// Of a step of reinforcement learning.
pub(super) static GRPO: &[Row] = &[
    row("loss", &metric::TRAIN_LOSS).on_span(&attribute::TRAIN_LOSS),
    row("grad_norm", &metric::TRAIN_GRAD_NORM).on_span(&attribute::TRAIN_GRAD_NORM),
    row("lr", &metric::TRAIN_LEARNING_RATE).on_span(&attribute::TRAIN_LEARNING_RATE),
    row("kl", &metric::RL_KL).with(MEAN),
    row("masked", &metric::RL_MASKED_FRACTION).divided_by(100.0),
    row("tokens", &metric::TRAIN_TOKENS),
    row("micro_batches", &metric::TRAIN_MICRO_BATCHES),
    row("vtc", &metric::TRAIN_REAL_TOKENS),
    row("expected", &metric::TRAIN_LOSS_SCALE),
    row("time", &metric::TRAIN_STEP_DURATION),
];

/// Of what is printed before the first step.
pub(super) static HEADING: &[Row] = &[
    row("Peak TF32", &metric::GPU_PEAK_FLOPS).with(&[precision("tf32")]),
    row("Peak BF16", &metric::GPU_PEAK_FLOPS).with(&[precision("bf16")]),
    row("Peak FP16", &metric::GPU_PEAK_FLOPS).with(&[precision("fp16")]),
    row("Peak FP8", &metric::GPU_PEAK_FLOPS).with(&[precision("fp8")]),
    row("Blocks", &metric::TRAIN_FLOPS_PER_TOKEN).with(&[part("blocks")]),
    row("LM-Head", &metric::TRAIN_FLOPS_PER_TOKEN).with(&[part("lm_head")]),
    row("Attention", &metric::TRAIN_FLOPS_PER_TOKEN).with(&[part("attention")]),
    row("SOL", &metric::TRAIN_EXPECTED_THROUGHPUT),
    row("train", &metric::DATA_TOKENS).with(&[split("train")]),
    row("eval", &metric::DATA_TOKENS).with(&[split("eval")]),
    row("Memory used", &metric::GPU_MEMORY_USED).times(MIB),
    row("Memory limit", &metric::GPU_MEMORY_LIMIT).times(MIB),
];

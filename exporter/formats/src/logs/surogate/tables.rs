//! Which field of a record is which metric, in which unit.

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, event, metric};

use crate::logs::{
    Covered,
    coverage::{self, covered},
    row::{Row, row},
};

/// Fields of a `step` record; those of a mixture of experts follow the others.
pub(super) static STEP: &[Row] = &[
    row("epoch", &metric::TRAIN_EPOCH).on_span(&attribute::TRAIN_EPOCH),
    row("step_tokens", &metric::TRAIN_TOKENS).on_span(&attribute::TRAIN_TOKENS),
    row("duration_ms", &metric::TRAIN_STEP_DURATION).divided_by(1e3),
    row("norm", &metric::TRAIN_GRAD_NORM).on_span(&attribute::TRAIN_GRAD_NORM),
    row("loss", &metric::TRAIN_LOSS).on_span(&attribute::TRAIN_LOSS),
    row("lr", &metric::TRAIN_LEARNING_RATE).on_span(&attribute::TRAIN_LEARNING_RATE),
    row("kd_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[(&attribute::TRAIN_COMPONENT, Out::Text("kd"))]),
    row("moe_aux_loss", &metric::MOE_AUX_LOSS).on_span(&attribute::MOE_AUX_LOSS),
    row("moe_z_loss", &metric::MOE_Z_LOSS).on_span(&attribute::MOE_Z_LOSS),
    row("moe_load_imbalance", &metric::MOE_LOAD_IMBALANCE).on_span(&attribute::MOE_LOAD_IMBALANCE),
    row("moe_expert_utilization", &metric::MOE_EXPERT_UTILIZATION)
        .on_span(&attribute::MOE_EXPERT_UTILIZATION),
    row("moe_active_experts", &metric::MOE_ACTIVE_EXPERTS).on_span(&attribute::MOE_ACTIVE_EXPERTS),
    row("moe_max_expert_fraction", &metric::MOE_MAX_EXPERT_FRACTION)
        .on_span(&attribute::MOE_MAX_EXPERT_FRACTION),
    row(
        "moe_min_active_expert_fraction",
        &metric::MOE_MIN_ACTIVE_EXPERT_FRACTION,
    )
    .on_span(&attribute::MOE_MIN_ACTIVE_EXPERT_FRACTION),
    row("moe_load_cv", &metric::MOE_LOAD_CV).on_span(&attribute::MOE_LOAD_CV),
    row("moe_router_entropy", &metric::MOE_ROUTER_ENTROPY).on_span(&attribute::MOE_ROUTER_ENTROPY),
    row("moe_router_confidence", &metric::MOE_ROUTER_CONFIDENCE).on_span(&attribute::MOE_ROUTER_CONFIDENCE),
];

/// Fields of a `moe` record.
pub(super) static MOE: &[Row] = &[
    row("aux_loss", &metric::MOE_AUX_LOSS),
    row("z_loss", &metric::MOE_Z_LOSS),
    row("expert_utilization", &metric::MOE_EXPERT_UTILIZATION),
    row("load_imbalance", &metric::MOE_LOAD_IMBALANCE),
    row("active_experts", &metric::MOE_ACTIVE_EXPERTS),
    row("max_expert_fraction", &metric::MOE_MAX_EXPERT_FRACTION),
    row(
        "min_active_expert_fraction",
        &metric::MOE_MIN_ACTIVE_EXPERT_FRACTION,
    ),
    row("load_cv", &metric::MOE_LOAD_CV),
    row("router_entropy", &metric::MOE_ROUTER_ENTROPY),
    row("router_confidence", &metric::MOE_ROUTER_CONFIDENCE),
];

/// Fields of an `eval` record.
pub(super) static EVAL: &[Row] = &[
    row("epoch", &metric::TRAIN_EPOCH).on_span(&attribute::TRAIN_EPOCH),
    row("eval_tokens", &metric::EVAL_TOKENS).on_span(&attribute::EVAL_TOKENS),
    row("duration_ms", &metric::EVAL_DURATION).divided_by(1e3),
    row("loss", &metric::EVAL_LOSS).on_span(&attribute::EVAL_LOSS),
];

/// Fields of a `dataset` record.
pub(super) static DATASET: &[Row] = &[
    row("files", &metric::DATA_FILES),
    row("tokens", &metric::DATA_TOKENS),
    row("file_index", &metric::DATA_FILE_INDEX),
    row("chunk_index", &metric::DATA_CHUNK_INDEX),
    row("seed", &metric::DATA_SEED),
];

/// Fields of a `sol` (speed of light) record; -1 where a figure is not known.
pub(super) static SOL: &[Row] = &[
    row("blocks", &metric::TRAIN_FLOPS_PER_TOKEN)
        .with(&[(&attribute::TRAIN_FLOPS_PART, Out::Text("blocks"))]),
    row("lm_head", &metric::TRAIN_FLOPS_PER_TOKEN)
        .with(&[(&attribute::TRAIN_FLOPS_PART, Out::Text("lm_head"))]),
    row("attention", &metric::TRAIN_FLOPS_PER_TOKEN)
        .with(&[(&attribute::TRAIN_FLOPS_PART, Out::Text("attention"))]),
    row("tps", &metric::TRAIN_EXPECTED_THROUGHPUT).unless(-1.0),
    row("tf32_peak", &metric::GPU_PEAK_FLOPS)
        .times(1e12)
        .unless(-1.0)
        .with(&[precision("tf32")]),
    row("bf16_peak", &metric::GPU_PEAK_FLOPS)
        .times(1e12)
        .unless(-1.0)
        .with(&[precision("bf16")]),
    row("fp16_peak", &metric::GPU_PEAK_FLOPS)
        .times(1e12)
        .unless(-1.0)
        .with(&[precision("fp16")]),
    row("fp8_peak", &metric::GPU_PEAK_FLOPS)
        .times(1e12)
        .unless(-1.0)
        .with(&[precision("fp8")]),
];

const fn precision(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_PRECISION, Out::Text(name))
}

/// Numeric fields of a `gpu` record; -1 where the driver does not say.
pub(super) static GPU: &[Row] = &[
    row("clock", &metric::GPU_CLOCK_FREQUENCY)
        .times(1e6)
        .with(&[domain("sm")]),
    row("max_clock", &metric::GPU_CLOCK_LIMIT)
        .times(1e6)
        .with(&[domain("sm"), (&attribute::GPU_CLOCK_LIMIT_KIND, Out::Text("max"))]),
    row("fan", &metric::GPU_FAN_SPEED_RATIO).divided_by(100.0),
    row("power", &metric::GPU_POWER)
        .divided_by(1e3)
        .with(&[(&attribute::GPU_POWER_READING, Out::Text("derived"))]),
    row("power_limit", &metric::GPU_POWER_LIMIT)
        .divided_by(1e3)
        .with(&[(&attribute::GPU_POWER_LIMIT_KIND, Out::Text("enforced"))]),
    row("temperature", &metric::GPU_TEMPERATURE),
    row("temp_slowdown", &metric::GPU_TEMPERATURE_LIMIT)
        .with(&[(&attribute::GPU_TEMPERATURE_LIMIT_KIND, Out::Text("slowdown"))]),
    row("gpu_util", &metric::GPU_UTILIZATION)
        .with(&[(&attribute::GPU_TASK, Out::Text("general"))])
        .divided_by(100.0)
        .unless(-1.0),
    row("mem_util", &metric::GPU_MEMORY_ACTIVITY)
        .divided_by(100.0)
        .unless(-1.0),
    row("dram_free", &metric::GPU_MEMORY_FREE),
    row("pcie_rx", &metric::GPU_PCIE_THROUGHPUT).with(&[direction("receive")]),
    row("pcie_tx", &metric::GPU_PCIE_THROUGHPUT).with(&[direction("transmit")]),
];

const fn domain(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_CLOCK_DOMAIN, Out::Text(name))
}

const fn direction(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_IO_DIRECTION, Out::Text(name))
}

/// What becomes of every field, as the coverage table says it.
pub(super) fn coverage() -> Vec<Covered> {
    let rules = [
        covered(
            "step.step",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by one a record",
        ),
        covered(
            "option.max_steps",
            metric::TRAIN_PROGRESS.name,
            "the share of them that is done, at every step",
        ),
        covered(
            "option.num_epochs",
            metric::TRAIN_PROGRESS.name,
            "without `max_steps`: each has as many steps as `step.step_tokens` go into `dataset.tokens`",
        ),
        covered(
            "step.phase",
            metric::TRAIN_PHASE.name,
            "the state set is in this state",
        ),
        covered(
            "gpu.throttle",
            metric::GPU_THROTTLE_ACTIVE.name,
            "the state set is in this state",
        ),
        covered("gpu-model", event::RUN_GPU_MODEL.name, "one event a GPU"),
        covered(
            "allocator.stats",
            metric::MEMORY_SEGMENT_SIZE.name,
            "one series a segment and kind of memory",
        ),
        covered(
            "abs-maxes",
            event::TRAIN_TENSOR_ABS_MAX.name,
            "one event with all tensors",
        ),
        covered("cmd", event::RUN_COMMAND.name, "one event"),
        covered("option", event::RUN_OPTION.name, "one event an option"),
        covered("info", event::RUN_MESSAGE.name, "one event a message"),
    ];
    let mut all = coverage::tables(&[STEP, MOE, EVAL, DATASET, SOL, GPU]);
    all.extend(rules);
    all
}

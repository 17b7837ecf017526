//! torchtitan (`torchtitan/components/metrics.py`): units stand in the tags.

use pulsetrain_semconv::metric;

use super::{
    row::{TagRow, keep, tag, total},
    system::{System, seen},
};

pub(super) const SYSTEM: System = System {
    name: "torchtitan",
    signs: &["loss_metrics/{}", "time_metrics/{}", "throughput(tps)", "mfu(%)"],
    rows: ROWS,
    texts: &[],
    seen_in_events: seen!(
        "an event file",
        "torchtitan",
        "loss_metrics/global_avg_loss, throughput(tps) ..."
    ),
    seen_in_wandb: seen!(
        "a wandb file",
        "torchtitan",
        "loss_metrics/global_avg_loss, throughput(tps) ..."
    ),
};

const GIB: f64 = (1u64 << 30) as f64;

static ROWS: &[TagRow] = &[
    tag("loss_metrics/global_avg_loss", &metric::TRAIN_LOSS),
    tag("loss_metrics/global_max_loss", &metric::TRAIN_MAX_LOSS),
    tag("grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("throughput(tps)", &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE),
    // As older versions called it.
    tag("wps", &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE),
    tag("tflops", &metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE).times(1e12),
    tag("mfu(%)", &metric::TRAIN_MFU).divided_by(100.0),
    // Of one optimizer; several have several rates.
    tag("lr/AdamW", &metric::TRAIN_LEARNING_RATE),
    tag("lr/Adam", &metric::TRAIN_LEARNING_RATE),
    keep("lr/{}"),
    total("n_tokens_seen", &metric::TRAIN_TOKENS),
    tag("time_metrics/end_to_end(s)", &metric::TRAIN_STEP_DURATION),
    tag("time_metrics/data_loading(s)", &metric::PERF_DATA_TIME),
    keep("time_metrics/data_loading(%)"),
    tag("memory/max_active(GiB)", &metric::MEMORY_FRAMEWORK_PEAK).times(GIB),
    keep("memory/max_active(%)"),
    // As on the console, which has only these of the memory.
    tag("memory/max_reserved(GiB)", &metric::MEMORY_FRAMEWORK_RESERVED).times(GIB),
    tag("memory/max_reserved(%)", &metric::MEMORY_FRAMEWORK_UTILIZATION).divided_by(100.0),
    total(
        "memory/num_alloc_retries",
        &metric::MEMORY_FRAMEWORK_ALLOC_RETRIES,
    ),
    total("memory/num_ooms", &metric::MEMORY_FRAMEWORK_OOMS),
    tag("validation_metrics/loss", &metric::EVAL_LOSS),
    tag(
        "validation_metrics/throughput(tps)",
        &metric::EVAL_THROUGHPUT_TOKENS_PER_DEVICE,
    ),
    tag(
        "validation_metrics/memory/max_active(GiB)",
        &metric::MEMORY_FRAMEWORK_PEAK,
    )
    .times(GIB),
    keep("validation_metrics/memory/max_active(%)"),
    tag(
        "validation_metrics/memory/max_reserved(GiB)",
        &metric::MEMORY_FRAMEWORK_RESERVED,
    )
    .times(GIB),
    tag(
        "validation_metrics/memory/max_reserved(%)",
        &metric::MEMORY_FRAMEWORK_UTILIZATION,
    )
    .divided_by(100.0),
];

//! The two lines a step of a distillation (`trainers/post_train/distillation/train_distill.py`), which are none of the metric
//! logger's: `step 5 | step_time=1.23s | TFLOPs/s/device: 100.00 (student=60.00, teacher=40.00)` and
//! `Distillation metrics | total_loss=2.31 hard_loss=2.5`.

use pulsetrain_semconv::metric;

use super::tables::{component, custom};
use crate::logs::{
    fields::{Field, Value},
    number_text,
    printed::Signs,
    row::{Row, row},
};

/// What they call their numbers. Losses that are weighed into the total one are kept under their own names.
pub(super) static ROWS: &[Row] = &[
    row("step_time", &metric::TRAIN_STEP_DURATION),
    row("TFLOPs/s/device", &metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE).times(1e12),
    row("student", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.student_tflops_per_sec")]),
    row("teacher", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.teacher_tflops_per_sec")]),
    row("total_loss", &metric::TRAIN_LOSS),
    row("hard_loss", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.hard_loss")]),
    row("soft_loss", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.soft_loss")]),
    row("kl_div_T1", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.kl_div_T1")]),
    row("student_perplexity", &metric::TRAIN_PERPLEXITY),
    row("teacher_perplexity", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.teacher_perplexity")]),
    row("out_proj_feature_loss", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.out_proj_feature_loss")]),
    row("moe_lb_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("moe_lb")]),
    row("teacher_moe_lb_loss", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.teacher_moe_lb_loss")]),
];

const METRICS: &str = "Distillation metrics | ";
const OF_METRICS: Signs = Signs {
    between: " ",
    within: b"=",
};

/// What a line says, and at which step where it says that.
pub(super) fn fields(text: &str) -> Option<(Option<i64>, Vec<Field<'_>>)> {
    if let Some(metrics) = text.strip_prefix(METRICS) {
        let fields = OF_METRICS.fields(metrics);
        return Some((
            None,
            fields.map(|field| (field.key.into(), field.value(&[]))).collect(),
        ));
    }
    let (step, rest) = text.strip_prefix("step ")?.split_once(" | step_time=")?;
    let (secs, rest) = rest.split_once("s | TFLOPs/s/device: ")?;
    let (both, each) = rest.split_once(" (")?;
    let of = |key: &'static str, text: &str| Some((key.into(), Value::Number(number_text::any(text)?)));
    let mut fields = vec![of("step_time", secs)?, of("TFLOPs/s/device", both)?];
    let each = each.strip_suffix(')')?.split(", ");
    fields.extend(each.filter_map(|part| {
        let (key, number) = part.split_once('=')?;
        Some((key.into(), Value::of(number)))
    }));
    Some((Some(step.parse().ok()?), fields))
}

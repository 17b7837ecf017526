//! The lines about goodput: the one with which the library ends its uploads (`ml_goodput_measurement/src/monitoring.py`), and
//! those that its documentation has programs print. All are in percent.

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use crate::logs::{
    fields::{Field, Value},
    number_text,
    row::{Row, row},
};

const fn cause(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_BADPUT_CAUSE, Out::Text(name))
}

const fn badput(key: &'static str, attributes: &'static [Attribute<'static>]) -> Row {
    row(key, &metric::TRAIN_BADPUT).divided_by(100.0).with(attributes)
}

const fn event(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_BADPUT_EVENT, Out::Text(name))
}

/// What the lines call their percentages.
pub(super) static ROWS: &[Row] = &[
    row("total goodput", &metric::TRAIN_GOODPUT).divided_by(100.0),
    badput("Badput due to TPU initialization", &[cause("tpu_initialization")]),
    badput("Badput due to training preparation", &[cause("training_prep")]),
    badput("Badput due to program startup", &[cause("program_startup")]),
    badput("Badput due to data loading", &[cause("data_loading_sync")]),
    badput(
        "Badput due to wasted progress from disruption",
        &[cause("wasted_progress_from_disruption")],
    ),
    badput(
        "Badput due to infrastructure recovery from disruption",
        &[cause("infrastructure_recovery_from_disruption")],
    ),
    badput(
        "Badput due to checkpoint save",
        &[cause("unproductive_checkpoint_save_time")],
    ),
    badput(
        "Badput due to checkpoint restore",
        &[cause("unproductive_checkpoint_restore_time")],
    ),
    badput(
        "Badput due to step evaluation",
        &[cause("custom_badput_events"), event("eval_step")],
    ),
    badput(
        "Badput due to SDC checks",
        &[cause("custom_badput_events"), event("sdc_check")],
    ),
    badput("Badput from unknown source", &[cause("other")]),
];

const FINAL: &str = "Final goodput query and upload for job: ";
const COMPLETED: &str = " completed with total goodput: ";

/// What a line says of goodput, and at which step.
pub(super) fn fields(text: &str) -> Option<(Option<i64>, Vec<Field<'_>>)> {
    if let Some(rest) = text.strip_prefix(FINAL) {
        let (_, rest) = rest.rsplit_once(COMPLETED)?;
        let (goodput, step) = rest.split_once("%, last step: ")?;
        let field = ("total goodput".into(), Value::of(goodput));
        return Some((step.trim().parse().ok(), vec![field]));
    }
    let (key, value) = text.split_once(": ")?;
    let percent = number_text::any(value.strip_suffix('%')?)?;
    let key = match key {
        "Goodput" | "Total job goodput" => "total goodput",
        _ => ROWS.iter().map(Row::key).find(|known| *known == key)?,
    };
    Some((None, vec![(key.into(), Value::Number(percent))]))
}

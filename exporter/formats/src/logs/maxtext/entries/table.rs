//! What becomes of the entries, for the coverage table in the documentation.

use pulsetrain_semconv::{attribute, metric, span};

use super::timeline::COUNTS;
use crate::logs::{
    Covered,
    coverage::{self, covered},
};

/// What becomes of the entries.
pub(super) fn coverage() -> Vec<Covered> {
    let rules = [
        covered(
            "jsonPayload",
            "(the entry)",
            "what `_CloudLogger.write_cloud_logging_entry` of `ml_goodput_measurement/src/goodput.py` is given, in a `LogEntry` of \
             Cloud Logging or alone, a line each or in a list, oldest or newest first",
        ),
        covered("job_name", attribute::TRAIN_RUN_NAME.name, "of the resource"),
        covered(
            "step_count",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by the steps since the entry before",
        ),
        covered(
            "step_start_time",
            span::TRAIN_STEP.name,
            "until the next step begins",
        ),
        covered(
            "step_start_time",
            metric::TRAIN_STEP_DURATION.name,
            "until the next step begins, without the trainer's own events, `s`",
        ),
        covered(
            "data_loading_start_time, data_loading_end_time",
            span::PERF_DATA.name,
            "inside the span of the step that it lies in",
        ),
        covered(
            "data_loading_start_time, data_loading_end_time",
            metric::PERF_DATA_TIME.name,
            "from the one to the other, `s`",
        ),
        covered("job_start_time, job_end_time", span::TRAIN_RUN.name, "one span"),
        covered(
            "tpu_init_start_time, tpu_init_end_time",
            span::RUN_INIT.name,
            "one span, train.badput.cause=tpu_initialization",
        ),
        covered(
            "training_prep_start_time, training_prep_end_time",
            span::RUN_INIT.name,
            "one span, train.badput.cause=training_prep",
        ),
        covered(
            "custom_badput_event_* of type eval_step",
            span::EVAL_RUN.name,
            "one span, and `eval.duration`",
        ),
        covered(
            "custom_badput_event_*, elastic_wait_*, elastic_reinit_*, any other *_start_time and *_end_time",
            span::PERF_STAGE.name,
            "one span, `perf.stage` is its type or its name",
        ),
        covered(
            "a start without an end, an end without a start, entries of other jobs and other logs",
            "(left out)",
            "",
        ),
    ];
    coverage::tables(&[COUNTS]).into_iter().chain(rules).collect()
}

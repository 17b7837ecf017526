//! The coverage rows of the entries, for the documentation.

use pulsetrain_mapping::{CoverageRow, RecordTable, coverage_rules};
use pulsetrain_semconv::{attribute, metric, span};

use super::timeline::COUNTS;

/// Returns the coverage rows of the entries.
pub(super) fn coverage() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        "jsonPayload" =>
            "(the entry)", "the argument of `_CloudLogger.write_cloud_logging_entry` \
             (`ml_goodput_measurement/src/goodput.py`), in a `LogEntry` of Cloud Logging or alone, one a line or in a list, \
             oldest or newest first";
        "job_name" => attribute::TRAIN_RUN_NAME.name, "of the resource";
        CoverageRow::step("step_count", "entry");
        "step_start_time" => span::TRAIN_STEP.name, "until the next step begins";
        "step_start_time" =>
            metric::TRAIN_STEP_DURATION.name, "until the next step begins, without the trainer's own events, `s`";
        "data_loading_start_time, data_loading_end_time" => span::PERF_DATA.name, "inside the span of its step";
        "data_loading_start_time, data_loading_end_time" =>
            metric::PERF_DATA_TIME.name, "the time between both, `s`";
        "job_start_time, job_end_time" => span::TRAIN_RUN.name, "one span";
        "tpu_init_start_time, tpu_init_end_time" =>
            span::RUN_INIT.name, "one span, train.badput.cause=tpu_initialization";
        "training_prep_start_time, training_prep_end_time" =>
            span::RUN_INIT.name, "one span, train.badput.cause=training_prep";
        "custom_badput_event_* of type eval_step" => span::EVAL_RUN.name, "one span, and `eval.duration`";
        "custom_badput_event_*, elastic_wait_*, elastic_reinit_*, any other *_start_time and *_end_time" =>
            span::PERF_STAGE.name, "one span, `perf.stage` is its type or its name";
        "a start without an end, an end without a start, entries of other jobs and other logs" =>
            "(left out)", "";
    };
    RecordTable::coverage_of(&[&COUNTS], rules)
}

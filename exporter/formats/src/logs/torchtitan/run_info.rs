//! Parses the lines between the steps: the size of the model, the number of steps, and the duration of checkpoints
//! (`torchtitan/trainer.py`, `torchtitan/components/checkpointer`).

use pulsetrain_mapping::{CoverageRow, coverage_rules, number_text, record_option};
use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue as Out},
};
use pulsetrain_semconv::{self as semconv, attribute, metric, span};

use crate::logs::spans;
use pulsetrain_record::{Recorder, ids};

const GIB: f64 = (1_u64 << 30) as f64;

/// The precision of the peak that the MFU refers to, independent of the model's.
const BF16: &[Attribute<'static>] = &[(&attribute::GPU_PRECISION, Out::Text("bf16"))];

/// Facts about the run.
#[derive(Debug, Default)]
pub(super) struct RunInfo {
    /// The total number of steps.
    total_steps: Option<f64>,
}

impl RunInfo {
    /// Records the progress of the run, if the number of steps is known.
    pub(super) fn step(&self, step: i64, time_unix_nanos: UnixNanos, recorder: &mut Recorder<'_>) {
        if let Some(total) = self.total_steps {
            recorder.record(&metric::TRAIN_PROGRESS, time_unix_nanos, step as f64 / total, &[]);
        }
    }

    /// Parses a message that is not a step. Returns whether it has a value.
    pub(super) fn message(
        &mut self,
        text: &str,
        time: impl FnOnce(&mut Recorder<'_>) -> UnixNanos,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        if let Some((before, "")) = text.split_once(" total parameters") {
            let Some(parameters) = before.rsplit(' ').next().and_then(number_text::any) else {
                return false;
            };
            let time = time(recorder);
            recorder.record(&metric::RUN_PARAMETERS, time, parameters, &[]);
        } else if let Some((_, flops)) = text.split_once("Peak FLOPS used for computing MFU: ") {
            let Some(flops) = number_text::any(flops) else {
                return false;
            };
            let time = time(recorder);
            recorder.record(&metric::GPU_PEAK_FLOPS, time, flops, BF16);
        } else if let Some(gib) = capacity(text) {
            let time = time(recorder);
            recorder.record(&metric::MEMORY_FRAMEWORK_LIMIT, time, gib * GIB, &[]);
        } else if let Some((settings, rest)) = text.split_once("total steps ") {
            let words = rest.split(' ').next().and_then(number_text::any);
            self.total_steps = words.filter(|steps| *steps > 0.0);
            let time = time(recorder);
            options(settings, self.total_steps, time, recorder);
        } else if let Some((span, secs)) = checkpoint(text) {
            let time = time(recorder);
            record(span, secs, time, recorder);
        } else {
            return false;
        }
        true
    }
}

/// `CUDA capacity: NVIDIA H100 with 95.04GiB memory`.
fn capacity(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once(" capacity: ")?;
    let (_, size) = rest.strip_suffix("GiB memory")?.rsplit_once(" with ")?;
    number_text::any(size)
}

/// Records `local batch size 8, global batch size 64, sequence length 2048, ` as options, and the steps.
fn options(
    settings: &str,
    total_steps: Option<f64>,
    time_unix_nanos: UnixNanos,
    recorder: &mut Recorder<'_>,
) {
    let settings = settings
        .rsplit_once(" with ")
        .map_or(settings, |(_, settings)| settings);
    for (name, value) in settings
        .split(", ")
        .filter_map(|setting| setting.rsplit_once(' '))
    {
        if let Some(number) = number_text::any(value) {
            record_option(name, Out::Int(number as i64), time_unix_nanos, recorder);
        }
    }
    if let Some(steps) = total_steps {
        record_option("total steps", Out::Int(steps as i64), time_unix_nanos, recorder);
    }
}

/// `Finished saving the checkpoint (or staging if async is enabled)in 1.20 seconds.`
fn checkpoint(text: &str) -> Option<(&'static semconv::Span, f64)> {
    let is_load = text.contains("Finished loading the ");
    let is_save = [
        "Finished saving the checkpoint",
        "Finished staging the checkpoint",
    ]
    .iter()
    .any(|begin| text.contains(begin));
    let secs = if is_load || is_save {
        text.rsplit_once("in ")?.1.strip_suffix(" seconds.")?
    } else {
        let (_, secs) = text.split_once("Last step checkpoint completed in ")?;
        secs.strip_suffix('s')?
    };
    let span = if is_load {
        &span::TRAIN_CHECKPOINT_LOAD
    } else {
        &span::TRAIN_CHECKPOINT_SAVE
    };
    Some((
        span,
        number_text::any(secs).filter(|secs| secs.is_finite() && *secs >= 0.0)?,
    ))
}

fn record(span: &'static semconv::Span, secs: f64, end_unix_nanos: UnixNanos, recorder: &mut Recorder<'_>) {
    if span.name == span::TRAIN_CHECKPOINT_SAVE.name {
        recorder.record(&metric::PERF_CHECKPOINT_TIME, end_unix_nanos, secs, &[]);
    }
    let run = recorder.run();
    let span_id = ids::work_span(run, "console", span.name, end_unix_nanos.0, 0);
    let ids = (ids::lifecycle_trace(run), span_id);
    spans::ended(span, ids, (end_unix_nanos, secs), &[], recorder);
}

pub(super) fn coverage() -> [CoverageRow; 7] {
    coverage_rules! {
        "... total parameters" => metric::RUN_PARAMETERS.name, "as it is, `{parameter}`";
        "Peak FLOPS used for computing MFU" => metric::GPU_PEAK_FLOPS.name, "as it is, `{flop}/s`";
        "... capacity: ... with N GiB memory" =>
            metric::MEMORY_FRAMEWORK_LIMIT.name, "times 1.073741824e9, `By`";
        "total steps" => metric::TRAIN_PROGRESS.name, "the completed share, at every step";
        "the settings before total steps" => semconv::event::RUN_OPTION.name, "one event a setting";
        "Finished saving the checkpoint ... in N seconds." =>
            span::TRAIN_CHECKPOINT_SAVE.name, "a span, and `perf.checkpoint_time`";
        "Finished loading the checkpoint in N seconds." => span::TRAIN_CHECKPOINT_LOAD.name, "a span";
    }
}

//! Parses TorchSpec's standard error: a progress bar, redrawn with carriage returns and mixed with log lines
//! (`torchspec/controller/loop.py`, `torchspec/controller/inference_manager.py`).
//!
//! Log lines have their time. A bar has the seconds since the start, and its time is not before that of the previous line.

mod bar;
mod breakdown;
mod pool;
mod progress;
mod tables;
mod weight_sync;

use pulsetrain_mapping::{Field, FieldValue, MetricMapper, RecordMeta, number_text, record_option};
use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};
use pulsetrain_semconv::{attribute, event, metric};

use super::delimited::Delimiters;
use super::delimited::split;
use super::lines::{self, Line, LineFormat};
use super::{LogFormat, literal, spans, time};
use bar::Bar;
use pool::PoolLine;
use progress::{StepProgress, Timing};
use pulsetrain_record::{LoggedTime, Recorder, SkipReason};

/// The row of TorchSpec in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "torchspec",
    brief: "standard error of TorchSpec",
    framework: "torchspec",
    coverage: tables::coverage,
    ..lines::row::<TorchSpec>()
};

/// The beginnings of lifecycle messages.
const MESSAGES: [&str; 16] = [
    "Training completed: ",
    "Epoch ",
    "Max steps reached",
    "Saving ",
    "Dataset exhausted, reloading ",
    "Pool insufficient for dispatch ",
    "Resuming from step ",
    "Resumed best eval score: ",
    "New best checkpoint: ",
    "Saved checkpoint to ",
    "Removing old checkpoint: ",
    "Flow control disabled: ",
    "Eval inference not ready yet ",
    "Step ",
    "Engine ",
    "Cleaned up temp dir ",
];

/// Parses TorchSpec's lines.
#[derive(Debug, Default)]
struct TorchSpec {
    fields: MetricMapper,
    progress: StepProgress,
}

impl LineFormat for TorchSpec {
    fn signature(text: &str) -> Option<&'static str> {
        if text.contains(TIMING) && text.contains(" dispatch=") {
            return Some("lines with \"TIMING step=\" and \"dispatch=\"");
        }
        let is_bar = text.contains("thru=") && Bar::numbers(text).and_then(Bar::parse).is_some();
        is_bar.then_some("a progress bar with \"thru=\"")
    }

    fn is_complete(text: &str) -> bool {
        text.trim_end().ends_with(']')
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let logged = log_start(line.text);
        let bar = &line.text[..logged.map_or(line.text.len(), |(start, _)| start)];
        let has_bar = Bar::numbers(bar).is_some_and(|numbers| self.bar(numbers, line, recorder));
        let is_record = logged.is_some_and(|(start, time)| {
            let time = recorder.instant(time);
            self.logged(&line.text[start + TIME..], time, line, recorder)
        });
        if has_bar && is_record {
            recorder.end_of_record();
        }
        has_bar || is_record
    }
}

const TIMING: &str = "TIMING step=";

/// The levels before a message.
const LEVELS: [&str; 3] = [" INFO ", " WARNING ", " ERROR "];

/// The delimiters of a line with "TIMING".
const TIMES: Delimiters = Delimiters { pair: " ", key: b"=" };

/// The delimiters of a line with "eval:".
const EVAL: Delimiters = Delimiters {
    pair: ", ",
    key: b"=:",
};

/// Returns the offset of a log line and its time: `[2026-11-21 00:21:27,088] loop.py:340 INFO ...`.
fn log_start(text: &str) -> Option<(usize, LoggedTime)> {
    memchr::memchr_iter(b'[', text.as_bytes()).find_map(|at| Some((at, logged_time(&text[at..])?)))
}

/// The length of a time with its bracket.
const TIME: usize = 24;

fn logged_time(text: &str) -> Option<LoggedTime> {
    time::logged(text.get(1..TIME)?)
}

impl TorchSpec {
    /// Records a bar and returns whether the text is one.
    fn bar(&mut self, numbers: &str, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Self { fields, progress } = self;
        let Some(mut bar) = Bar::parse(numbers) else {
            return false;
        };
        let step = bar.step;
        if progress.last_bar.replace(step) == Some(step) {
            recorder.skip_value(SkipReason::Ignored("bar_drawn_again"));
            return true;
        }
        let meta = line.meta_at(progress.bar_time(&bar, line), Some(step));
        if step > 0 {
            fields.step(meta.time_unix_nanos, step, recorder);
        }
        progress.pool.observe(bar.number("pool"));
        let reading = progress.reading(&bar);
        // The previous line has it with milliseconds.
        let is_wait_recorded =
            progress.timing.step == Some(step) && bar.fields.iter().any(|(key, _)| key == "wait");
        if is_wait_recorded {
            recorder.skip_value(SkipReason::Ignored("wait_told_by_timing"));
            bar.fields.retain(|(key, _)| key != "wait");
        }
        if bar.is_cut {
            recorder.skip_value(SkipReason::Ignored("cut_by_the_terminal"));
        }
        fields.record(&tables::BAR, meta, &bar.fields, &[], recorder);
        if let Some(verdict) = reading.and_then(|reading| reading.bottleneck()) {
            let (metric, attribute) = (&metric::PERF_BOTTLENECK, &attribute::PERF_BOTTLENECK);
            recorder.record_state(metric, attribute, meta.time_unix_nanos, verdict, &[]);
        }
        true
    }

    fn logged(
        &mut self,
        text: &str,
        time_unix_nanos: UnixNanos,
        line: &Line<'_>,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        // A line may be older than the bar before it, within the same second.
        self.progress.last_time = self.progress.last_time.max(Some(time_unix_nanos));
        let meta = line.meta_at(time_unix_nanos, None);
        if let Some((_, timing)) = text.split_once(TIMING) {
            return self.timing(timing, meta, recorder);
        }
        let mut levels = LEVELS.iter();
        let Some((_, message)) = levels.find_map(|level| text.split_once(level)) else {
            return false;
        };
        self.message(message, meta, recorder)
    }

    /// Records the fields after "TIMING" and returns whether the text has them.
    fn timing(&mut self, text: &str, meta: RecordMeta, recorder: &mut Recorder<'_>) -> bool {
        let Self { fields, progress } = self;
        let Some((step, times)) = times(text) else {
            return false;
        };
        let secs = |key| literal::number(&times, key);
        progress.timing = Timing {
            step: Some(step),
            step_secs: secs("step"),
            data_secs: secs("data"),
            compute_secs: secs("compute"),
            dispatch_secs: secs("dispatch"),
        };
        let meta = RecordMeta {
            step: Some(step),
            ..meta
        };
        fields.step(meta.time_unix_nanos, step, recorder);
        let spans = if progress.passes_of == Some(step) {
            // The line of the passes has them with tenths of a millisecond.
            let mut others = times;
            others.retain(|(key, _)| key != "fwd" && key != "bwd");
            recorder.skip_values(SkipReason::Ignored(breakdown::DUPLICATE), 2);
            fields.record(&tables::TIMING, meta, &others, &[], recorder)
        } else {
            fields.record(&tables::TIMING, meta, &times, &[], recorder)
        };
        if let Some(duration) = progress.timing.step_secs {
            spans::step(step, meta.time_unix_nanos, duration, &spans.step, recorder);
        }
        true
    }

    /// Records the forward and backward pass of a step, unless the line with its other times came first.
    fn passes(
        &mut self,
        step: i64,
        values: &[Field<'_>],
        meta: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        if self.progress.timing.step == Some(step) {
            recorder.skip_values(SkipReason::Ignored(breakdown::DUPLICATE), values.len() as u64);
            return true;
        }
        self.progress.passes_of = Some(step);
        self.fields
            .record(&tables::BREAKDOWN, meta, values, &[], recorder);
        true
    }

    fn message(&mut self, message: &str, meta: RecordMeta, recorder: &mut Recorder<'_>) -> bool {
        let fields: Vec<Field<'_>>;
        if let Some(options) = message.strip_prefix("Starting: ") {
            self.progress.start = Some(meta.time_unix_nanos);
            let size = split(options, ", ", "=").find(|(name, _)| *name == "global_batch_size");
            self.progress.global_batch_size = size.and_then(|(_, size)| number_text::any(size));
            if let Some(size) = self.progress.global_batch_size {
                recorder.record(&metric::TRAIN_BATCH_SIZE, meta.time_unix_nanos, size, &[]);
            }
            options_events(options, meta, recorder);
            return true;
        } else if let Some((step, values)) = eval(message) {
            let values = EVAL.fields(values);
            fields = values.map(|value| (value.key.into(), value.value(&[]))).collect();
            let meta = RecordMeta {
                step: Some(step),
                ..meta
            };
            self.fields.record(&tables::EVAL, meta, &fields, &[], recorder);
            return true;
        } else if let Some(values) = message.strip_prefix("eval: ") {
            // The loop repeats it with the step.
            let values = EVAL.fields(values).count() as u64;
            recorder.skip_values(SkipReason::Ignored("eval_told_with_its_step"), values);
            return true;
        } else if let Some((step, values)) = breakdown::parse(message) {
            return self.passes(step, &values, meta, recorder);
        } else if let Some(waited) = PoolLine::parse(message) {
            if waited.is_ongoing {
                recorder.skip_value(SkipReason::Ignored("wait_not_over"));
            }
            fields = waited.fields;
        } else if MESSAGES.iter().any(|begin| message.starts_with(begin)) {
            let body = Some(Out::Text(message));
            recorder.record_event(&event::RUN_MESSAGE, meta.time_unix_nanos, body, &[]);
            self.progress
                .weight_sync
                .line(message, meta.time_unix_nanos, recorder);
            return true;
        } else {
            return false;
        }
        self.fields
            .record(&tables::BACKPRESSURE, meta, &fields, &[], recorder);
        true
    }
}

/// `Step 20 eval: loss=1.234, acc=0.500, sim_acc_len=2.10`.
fn eval(message: &str) -> Option<(i64, &str)> {
    let (step, values) = message.strip_prefix("Step ")?.split_once(" eval: ")?;
    Some((step.parse().ok()?, values))
}

/// `2: step=0.081s data=0.020s compute=0.060s [fwd=0.018s bwd=0.033s opt=0.009s] dispatch=0.000s`.
fn times(text: &str) -> Option<(i64, Vec<Field<'_>>)> {
    let (step, times) = text.split_once(": ")?;
    let step = number_text::count(step)? as i64;
    let fields = TIMES.fields(times).map(|time| {
        let key = time.key.strip_prefix('[').unwrap_or(time.key);
        let text = time.text.strip_suffix(']').unwrap_or(time.text);
        (key.into(), FieldValue::measured(text, SECONDS))
    });
    Some((step, fields.collect()))
}

/// The unit of times.
const SECONDS: &[&str] = &["s"];

fn options_events(options: &str, meta: RecordMeta, recorder: &mut Recorder<'_>) {
    for (name, value) in split(options, ", ", "=") {
        let value = number_text::any(value).map_or(Out::Text(value), |number| Out::Int(number as i64));
        record_option(name, value, meta.time_unix_nanos, recorder);
    }
}

#[cfg(test)]
mod tests;

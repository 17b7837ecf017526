//! Parses torchtitan's console line: `step:  1  loss: 12.26000  grad_norm:  1.9000  memory: 30.10GiB(38.00%)  tps: 3,200  mfu:
//! 18.21%` after `[titan] <time> - root - INFO -` (`torchtitan/components/metrics.py`). [`structured`] parses its JSON lines.

mod run_info;
pub(super) mod structured;

use pulsetrain_mapping::{CoverageRow, Field, FieldValue, MetricMapper, RecordTable, number_text};
use pulsetrain_otlp::UnixNanos;

use self::run_info::RunInfo;
use super::lines::{self, Line, LineFormat};
use super::{LogFormat, time};
use pulsetrain_record::{LoggedTime, Recorder, SkipReason};

/// The row of torchtitan's console in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "torchtitan",
    brief: "console lines of torchtitan",
    framework: "torchtitan",
    coverage: coverage_table,
    ..lines::row::<TorchTitan>()
};

static STEP: RecordTable = RecordTable::new("torchtitan", "step");

static VALIDATION: RecordTable = RecordTable::new("torchtitan", "validation");

/// Parses torchtitan's lines.
#[derive(Debug, Default)]
struct TorchTitan {
    fields: MetricMapper,
    run_info: RunInfo,
}

impl LineFormat for TorchTitan {
    fn signature(text: &str) -> Option<&'static str> {
        from_step(text)
            .and_then(step_fields)
            .map(|_| "lines with \"step:\", \"loss:\" and \"memory:\"")
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let text = from_step(line.text);
        let Some((step, fields)) = text.and_then(step_fields) else {
            return self.other(line, recorder);
        };
        let before = text.map_or("", |text| &line.text[..line.text.len() - text.len()]);
        let is_validation = before.ends_with("validate ");
        let meta = line.meta_at(time_of(line, recorder), Some(step));
        if !is_validation {
            self.fields.step(meta.time_unix_nanos, step, recorder);
            self.run_info.step(step, meta.time_unix_nanos, recorder);
        }
        let rows = if is_validation { &VALIDATION } else { &STEP };
        self.fields.record(rows, meta, &fields, &[], recorder);
        true
    }
}

impl TorchTitan {
    /// Parses a line that is not a step.
    fn other(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        if step_text(line.text).is_some() {
            recorder.report(SkipReason::MalformedRecord, line.position(), || {
                "the line of a step is garbled; two processes may have written at once".to_owned()
            });
            return false;
        }
        let Some((_, message)) = line.text.strip_prefix("[titan] ").and_then(|text| {
            // The time, the logger and the level precede the message.
            let mut parts = text.splitn(4, " - ");
            parts.nth(2).zip(parts.next())
        }) else {
            return false;
        };
        let time = |recorder: &mut Recorder<'_>| time_of(line, recorder);
        self.run_info.message(message.trim_ascii_end(), time, recorder)
    }
}

/// Returns the time of a line.
fn time_of(line: &Line<'_>, recorder: &mut Recorder<'_>) -> UnixNanos {
    match logged_time(line.text) {
        Some(time) => recorder.instant(time),
        None => line.read_time(),
    }
}

/// `[titan] 2026-11-21 00:21:27,088 - root - INFO - `.
fn logged_time(text: &str) -> Option<LoggedTime> {
    let text = text.strip_prefix("[titan] ")?;
    time::logged(text.split_once(" - ").map_or(text, |(time, _)| time).trim_ascii())
}

/// Returns the step and the fields of a line: each key has a colon before its value.
fn step_fields(text: &str) -> Option<(i64, Vec<Field<'_>>)> {
    let mut words = step_text(text)?.split_ascii_whitespace();
    let (mut step, mut fields) = (None, Vec::new());
    while let Some(key) = words.next() {
        let key = key.strip_suffix(':')?;
        let value = words.next()?;
        match key {
            "step" => step = number_text::count(value),
            "memory" => memory(value, &mut fields),
            _ => fields.push((key.into(), FieldValue::measured(value, &["%"]))),
        }
    }
    Some((step? as i64, fields))
}

/// Returns the text from the step on.
fn from_step(text: &str) -> Option<&str> {
    Some(&text[text.find("step:")?..])
}

/// Returns the text from the step on, if the line has the signature of a step.
fn step_text(text: &str) -> Option<&str> {
    let text = from_step(text)?;
    (text.contains("loss:") && text.contains("memory:")).then_some(text)
}

/// `30.10GiB(38.00%)`.
fn memory<'l>(text: &'l str, fields: &mut Vec<Field<'l>>) {
    let (size, share) = text.split_once('(').unwrap_or((text, ""));
    for (key, number) in [
        ("memory GiB", size.trim_end_matches("GiB")),
        ("memory %", share.trim_end_matches("%)")),
    ] {
        if let Some(number) = number_text::any(number) {
            fields.push((key.into(), FieldValue::Number(number)));
        }
    }
}

fn coverage_table() -> Vec<CoverageRow> {
    let step = CoverageRow::step("step", "line");
    RecordTable::coverage_of(
        &[&STEP, &VALIDATION],
        [step].into_iter().chain(run_info::coverage()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::sampled::check;

    const CASES: &str = "
## lines between the steps
[titan] 2026-11-21 00:21:27,088 - root - INFO - CUDA capacity: NVIDIA H100 with 95.00GiB memory
[titan] 2026-11-21 00:21:27,088 - root - INFO - \x1b[34mModel llama3 8B \x1b[31msize: 8,030,261,248 total parameters\x1b[39m
[titan] 2026-11-21 00:21:27,088 - root - INFO - Peak FLOPS used for computing MFU: 9.890e+14
[titan] 2026-11-21 00:21:27,088 - root - INFO - Trainer is initialized with local batch size 8, global batch size 64, \
gradient accumulation steps 1, sequence length 2048, total steps 40 (warmup 2)
[titan] 2026-11-21 00:21:27,088 - root - INFO - Finished loading the checkpoint in 2.50 seconds.
[titan] 2026-11-21 00:21:27,088 - root - INFO - Training starts at step 11
[titan] 2026-11-21 00:21:27,088 - root - INFO - step: 10  loss:  7.2000  memory: 30.10GiB(38.00%)  wps: 3,200  mfu: 18.21%
[titan] 2026-11-21 00:21:27,088 - root - INFO - Finished saving the checkpoint (or staging if async is enabled)in 1.25 seconds.
[titan] 2026-11-21 00:21:27,088 - root - INFO - Last step checkpoint completed in 0.75s
[titan] 2026-11-21 00:21:27,088 - root - INFO - step: 20  loss:  6.2000  memory: step: 20  loss: 30.10GiB(38.00%)  tps
-> run.parameters 8030261248, gpu.peak_flops 9.89e14, memory.framework.limit 95GiB, train.progress 0.25
-> train.throughput.tokens_per_device 3200, perf.checkpoint_time 1.25 0.75, spans 3, events 5
-> losses malformed_record=1

## coloured lines of a step and a validation
[titan] 2026-11-21 00:21:27,088 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: 12.26000  \x1b[38;2;1;2;3mgrad_norm:  1.9000  \
memory: 30.10GiB(38.00%)  tps: 3,200  tflops: 180.12  mfu: N/A\x1b[39m
[titan] 2026-11-21 00:21:28,088 - root - INFO - validate step: 10  loss:  5.2000  memory: 30.10GiB(38.00%)  tps: 3,200
-> train.loss 12.26, train.throughput.tokens_per_device 3200, train.mfu, eval.loss 5.2
-> memory.framework.utilization 0.38 0.38
";

    #[test]
    fn lines_have_their_values() {
        check(&FORMAT, CASES);
    }
}

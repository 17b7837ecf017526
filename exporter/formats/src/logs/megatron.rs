//! Parses Megatron-LM's training line: ` [time] iteration 10/ 100 | consumed samples: 1280 | ... | lm loss: 1.0E+01 |`
//! (`megatron/training/training.py`), printed by the last rank, and its line of an evaluation. Megatron-Bridge prints the same
//! lines.

use pulsetrain_mapping::{CoverageRow, Field, FieldValue, MetricMapper, RecordTable, number_text};

use pulsetrain_otlp::{UnixNanos, write::AttributeValue};
use pulsetrain_semconv::attribute;

use super::lines::{self, Line, LineFormat};
use super::{LogFormat, literal, spans, time};
use pulsetrain_record::{LoggedTime, Recorder};

/// The row of Megatron-LM in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "megatron",
    brief: "training lines of Megatron-LM and Megatron-Bridge",
    framework: "megatron",
    coverage: coverage_table,
    ..lines::row::<Megatron>()
};

const ELAPSED: &str = "elapsed time per iteration (ms)";

/// The rows of the line. Power and energy are means over unnamed GPUs, so no GPU metric takes them.
static ITERATION: RecordTable = RecordTable::new("megatron", "iteration");
static EVALUATION: RecordTable = RecordTable::new("megatron", "evaluation");

/// Parses Megatron-LM's lines.
#[derive(Debug, Default)]
struct Megatron {
    fields: MetricMapper,
    last_step: Option<i64>,
    /// The time of the last iteration, if it has one.
    last_time: Option<UnixNanos>,
}

impl LineFormat for Megatron {
    fn signature(text: &str) -> Option<&'static str> {
        iteration(text).map(|_| "lines with \"iteration\" and \"elapsed time per iteration (ms):\"")
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some(found) = iteration(line.text) else {
            return self.evaluation(line, recorder);
        };
        let time = found.time.map(|time| recorder.instant(time));
        let meta = line.meta_at(time.unwrap_or_else(|| line.read_time()), Some(found.step));
        self.last_time = time;
        self.fields.step(meta.time_unix_nanos, found.step, recorder);
        let spans = self.fields.record(&ITERATION, meta, &found.fields, &[], recorder);
        // Between lines further apart the time is a mean, so no iteration is known to have ended with the line.
        let is_next = self.last_step.replace(found.step) == found.step.checked_sub(1);
        let elapsed = literal::number(&found.fields, ELAPSED);
        if let Some(ms) = elapsed.filter(|_| is_next && found.time.is_some()) {
            spans::step(found.step, meta.time_unix_nanos, ms / 1e3, &spans.step, recorder);
        }
        true
    }
}

impl Megatron {
    /// Records ` validation loss at iteration 1000 on test set | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 | `
    /// (`evaluate_and_print_results`). Without the name of a set, it is of the validation during training.
    fn evaluation(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some((place, rest)) = line
            .text
            .trim_start()
            .strip_prefix("validation loss at iteration ")
            .and_then(|rest| rest.split_once('|'))
        else {
            return false;
        };
        let (step, set) = match place.split_once(" on ") {
            Some((step, set)) => (step, set.trim().strip_suffix(" set")),
            None => (place, None),
        };
        let Ok(step) = step.trim().parse() else {
            return false;
        };
        // The line has no time. It follows that of the iteration.
        let time = self.last_time.filter(|_| !line.is_live());
        let meta = line.meta_at(time.unwrap_or_else(|| line.read_time()), Some(step));
        let set = set.map(|set| (&attribute::DATA_NAME, AttributeValue::Text(set)));
        let fields: Vec<_> = fields(rest).collect();
        self.fields
            .record(&EVALUATION, meta, &fields, set.as_slice(), recorder);
        true
    }
}

/// Returns the fields between bars: `lm loss: 1.0E+01 | grad norm: 1.2 |`.
fn fields(text: &str) -> impl Iterator<Item = Field<'_>> {
    text.split('|').filter_map(|part| {
        let (key, value) = part.rsplit_once(':')?;
        Some((key.trim().into(), FieldValue::parse(value.trim())))
    })
}

struct Iteration<'a> {
    time: Option<LoggedTime>,
    step: i64,
    fields: Vec<Field<'a>>,
}

fn iteration(text: &str) -> Option<Iteration<'_>> {
    let (before, rest) = text.split_once("iteration ")?;
    let (number, rest) = rest.split_once('|')?;
    if !rest.contains(ELAPSED) {
        return None;
    }
    let (step, total) = number.split_once('/')?;
    let step: i64 = step.trim().parse().ok()?;
    let total = number_text::any(total.trim()).filter(|total| *total > 0.0);
    let progress = total.map(|total| ("iteration".into(), FieldValue::Number(step as f64 / total)));
    Some(Iteration {
        time: time::logged(before.trim().trim_start_matches('[').trim_end_matches(']')),
        step,
        fields: progress.into_iter().chain(fields(rest)).collect(),
    })
}

fn coverage_table() -> Vec<CoverageRow> {
    let step = CoverageRow::step("iteration n", "line");
    RecordTable::coverage_of(&[&ITERATION, &EVALUATION], [step])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::sampled::Sampled;

    const LINE: &str = " [2026-01-01 00:00:00.000000] iteration       10/     100 | consumed samples:         1280 | \
                        elapsed time per iteration (ms): 123.4 | throughput per GPU (TFLOP/s/GPU): 400.1 | learning rate: 1.000000E-04 | \
                        global batch size:   128 | lm loss: 1.0E+01 | loss scale: 1.0 | grad norm: 1.234 | \
                        number of skipped iterations:   0 | number of nan iterations:   0 |\n";

    #[test]
    fn megatron_line_is_converted_to_registry_units() {
        let second = LINE.replace("10/", "11/").replace("1280", "1408");
        // GPT-NeoX writes an underscore.
        let second = second.replace("lm loss", "lm_loss");
        let read = Sampled::read(&FORMAT, &format!("{LINE}{second}"));
        assert_eq!(read.values("train.step.duration").len(), 2);
        assert_eq!(read.values("train.samples"), [1280.0, 1408.0]);
        assert_eq!(read.values("train.throughput.flops_per_device")[0], 400.1 * 1e12);
        assert_eq!(
            (read.values("train.loss"), read.values("train.progress")),
            (vec![10.0, 10.0], vec![0.1, 0.11])
        );
        assert_eq!(read.counts.spans, 1);
        assert!(!read.skipped.has_losses() && read.skipped.counts().next().is_none());
    }

    #[test]
    fn evaluation_line_has_loss_perplexity_and_the_name_of_its_set() {
        let evaluations = " validation loss at iteration 10 | lm loss value: 2.500000E+00 | lm loss PPL: 1.218249E+01 | \n \
                           validation loss at iteration 10 on test set | lm loss value: 2.750000E+00 | mtp loss value: 0.5 | \n";
        let read = Sampled::read(&FORMAT, &format!("{LINE}{evaluations}"));
        assert_eq!(read.values("eval.loss"), [2.5, 2.75]);
        assert_eq!(read.attributes("eval.loss"), ["", "data.name=test"]);
        assert_eq!(read.values("eval.perplexity"), [12.18249]);
        assert_eq!(read.times("eval.perplexity"), read.times("train.loss"));
        assert_eq!(read.values("train.custom"), [0.5]);
    }
}

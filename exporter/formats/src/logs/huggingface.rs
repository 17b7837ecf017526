//! Parses the standard output of Hugging Face's Trainer: one Python dictionary a line. Version 4 prints numbers, version 5
//! prints strings. [`keys`] maps the keys, [`state`] parses `trainer_state.json`.

mod headings;
mod keys;
pub(super) mod state;

use pulsetrain_mapping::{CoverageRow, Field, FieldValue, RecordTable, coverage_rules, duration};
use pulsetrain_semconv::{event, metric};

use self::{
    headings::Headings,
    keys::{Dictionaries, ROWS},
};
use super::generic::{is_evaluation, object_prefix};
use super::lines::{self, Line, LineFormat};
use super::{LogFormat, literal};
use pulsetrain_record::{Recorder, SkipReason};

/// The row of the Trainer's standard output in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "hf-trainer",
    brief: "standard output of Hugging Face's Trainer, TRL, axolotl, Unsloth and ms-swift, and logging.jsonl of ms-swift",
    framework: "hf_trainer",
    coverage: coverage_of_output,
    ..lines::row::<Console>()
};

/// Parses the dictionaries.
#[derive(Debug, Default)]
struct Console {
    dictionaries: Dictionaries,
    headings: Headings,
}

/// The reason of a value that a dictionary has already reported.
const DUPLICATE: &str = "said_again";

impl LineFormat for Console {
    fn signature(text: &str) -> Option<&'static str> {
        // Dictionaries of other trainers, such as GraphGym, are after a word: `val: {...}`. The Trainer names evaluations in the keys.
        let before = begin(text).map_or("", |start| &text[..start]);
        let is_of_split = object_prefix(before).and_then(is_evaluation).is_some();
        let is_of_trainer = !is_of_split
            && objects(text).any(|(text, object)| object.is_some_and(|fields| is_signature(text, &fields)));
        is_of_trainer.then_some("a Python dictionary with the keys of the Trainer")
    }

    fn is_complete(text: &str) -> bool {
        text.ends_with('}')
    }

    fn is_record_start(text: &str) -> bool {
        begin(text) == Some(0)
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let mut is_record = false;
        for (text, object) in objects(line.text) {
            match object {
                Some(mut fields) if is_logged(text, &fields) => {
                    let done = take_done(&mut fields);
                    read_durations(&mut fields);
                    let meta = line.meta(done.map(|(step, _)| step));
                    if let Some((step, share)) = done {
                        self.dictionaries.step(meta.time_unix_nanos, step, recorder);
                        recorder.record(&metric::TRAIN_PROGRESS, meta.time_unix_nanos, share, &[]);
                    }
                    self.dictionaries.record(meta, fields, recorder);
                    is_record = true;
                }
                None if MALFORMED.iter().any(|part| text.contains(part)) => {
                    recorder.report(SkipReason::MalformedRecord, line.position(), || {
                        "the dictionary of the Trainer is incomplete or has a value that is neither number nor text".to_owned()
                    });
                }
                _ => {}
            }
        }
        is_record || self.headings.line(line, &mut self.dictionaries, recorder)
    }
}

/// Parts of a malformed dictionary that identify it as one of the Trainer's.
const MALFORMED: [&str; 3] = ["'epoch':", "{'loss':", "_loss':"];

/// The maximum number of malformed dictionaries in a line. The rest of the line is skipped.
const MAX_MALFORMED: u32 = 8;

/// Iterates over the dictionaries in a line, each with its text, and `None` if it is malformed. A progress bar may precede one,
/// and two processes may print into one line.
fn objects(text: &str) -> impl Iterator<Item = (&str, Option<Vec<Field<'_>>>)> {
    let (mut rest, mut malformed) = (text, 0);
    std::iter::from_fn(move || {
        let start = begin(rest).filter(|_| malformed < MAX_MALFORMED)?;
        let text = &rest[start..];
        let object = literal::object(text);
        // A malformed dictionary ends at the beginning of the next one.
        let len = match &object {
            Some((_, len)) => *len,
            None => {
                malformed += 1;
                begin(&text[1..]).map_or(text.len(), |next| next + 1)
            }
        };
        rest = &text[len..];
        Some((&text[..len], object.map(|(fields, _)| fields)))
    })
}

/// Returns the offset of the first dictionary of a text, in Python or JSON syntax.
fn begin(text: &str) -> Option<usize> {
    let mut opens = memchr::memchr_iter(b'{', text.as_bytes());
    opens.find(|at| matches!(text.as_bytes().get(at + 1), Some(b'\'' | b'"')))
}

/// The keys under which ms-swift logs the completed steps, as `'10/12'`: with transformers, and with Megatron.
const DONE: [&str; 2] = ["global_step/max_steps", "iteration"];

/// The key that all records of ms-swift have, in its output and in `logging.jsonl`.
const MS_SWIFT: &str = "train_speed(s/it)";

/// Removes the field of the completed steps. Returns the steps and their share of all steps.
fn take_done(fields: &mut Vec<Field<'_>>) -> Option<(i64, f64)> {
    let position = fields.iter().position(|(key, _)| DONE.contains(&key.as_ref()))?;
    let FieldValue::Text(text) = &fields[position].1 else {
        return None;
    };
    let (done, all) = text.split_once('/')?;
    let (done, all) = (done.parse::<i64>().ok()?, all.parse::<i64>().ok()?);
    let share = (all > 0).then(|| done as f64 / all as f64)?;
    fields.remove(position);
    Some((done, share))
}

/// Converts the durations of ms-swift, such as `'1h 2m 3s'`, to numbers.
fn read_durations(fields: &mut [Field<'_>]) {
    for (key, value) in fields {
        if let FieldValue::Text(text) = value
            && [keys::ELAPSED, keys::REMAINING].contains(&key.as_ref())
            && let Some(seconds) = duration::seconds(text)
        {
            *value = FieldValue::Number(seconds);
        }
    }
}

/// Returns whether a dictionary was logged by the Trainer. All have the epoch, except an evaluation before any training. JSON
/// counts only from ms-swift, because other programs write an epoch into JSON too.
fn is_logged(text: &str, fields: &[Field<'_>]) -> bool {
    let is_of_swift = fields.iter().any(|(key, _)| key == MS_SWIFT);
    if is_of_swift || text.starts_with("{\"") {
        return is_of_swift;
    }
    let is_epoch = |(key, value): &Field<'_>| key == "epoch" && value.number().is_some();
    fields.iter().any(is_epoch) || has_speed(fields)
}

/// Returns whether a dictionary has the time and the throughput of an evaluation or of the run.
fn has_speed(fields: &[Field<'_>]) -> bool {
    let has_end = |end: &str| fields.iter().any(|(key, _)| key.ends_with(end));
    has_end("_runtime") && has_end("_samples_per_second")
}

/// Keys of the step in the dictionaries of other programs. The Trainer prints none.
const STEPS: [&str; 2] = ["step", "global_step"];

/// Returns whether only the Trainer logs such a dictionary: the loss first, then the learning rate and the epoch without a
/// step; the time and the throughput of an evaluation or of the run; an objective of PPO; or the keys of ms-swift. Programs of
/// users print a loss and an epoch too.
fn is_signature(text: &str, fields: &[Field<'_>]) -> bool {
    let position = |name: &str| fields.iter().position(|(key, _)| key == name);
    let is_loss = |(key, _): &Field<'_>| key == "loss" || key.ends_with("_loss");
    let rate = position("learning_rate");
    let is_training = fields.first().is_some_and(is_loss)
        && rate.is_some()
        && rate < position("epoch")
        && STEPS.iter().all(|step| position(step).is_none());
    let is_of_ppo = |(key, _): &Field<'_>| key.starts_with("objective/");
    is_logged(text, fields)
        && (is_training || has_speed(fields) || position(MS_SWIFT).is_some() || fields.iter().any(is_of_ppo))
}

fn coverage_of_output() -> Vec<CoverageRow> {
    let others = coverage_rules! {
        "global_step/max_steps, iteration" => "train.global_step, train.progress", "from ms-swift: `10/12`";
        "`name = value` under ***** Running training *****" =>
            event::RUN_OPTION.name, "one event a setting, `training.Num examples` ...";
        "perplexity under ***** eval metrics *****" => metric::EVAL_PERPLEXITY.name, "as it is";
        "*_samples under ***** ... metrics *****" => event::RUN_OPTION.name, "one event";
        "the rest of ***** ... metrics *****" =>
            "(left out: said_again; a dictionary has it with more digits)", "";
    };
    RecordTable::coverage_of(&[&ROWS], others)
}

fn coverage_of_state() -> Vec<CoverageRow> {
    let others = coverage_rules! {
        CoverageRow::step("step", "entry");
        "global_step / max_steps" => metric::TRAIN_PROGRESS.name, "the completed share";
        "max_steps, num_train_epochs, train_batch_size, logging_steps, eval_steps, save_steps, trial_name, trial_params" =>
            event::RUN_OPTION.name, "one event a setting";
        "best_model_checkpoint" => event::TRAIN_CUSTOM_RECORD.name, "in the body of one event";
        "epoch, global_step, num_input_tokens_seen of the state itself" =>
            "(left out: said_again; the last entry of the history has them)", "";
        "is_*, stateful_callbacks" => "(left out: trainer_bookkeeping)", "";
        "an entry of log_history that was already recorded" =>
            "(not recorded again)", "a follower reads the states of all checkpoints of a run as one, also after a kill \
             (`--state`); an import records each file completely, so import the last";
        "null" => "(left out: not_measured)", "in an entry of log_history";
    };
    RecordTable::coverage_of(&[&ROWS], others)
}

#[cfg(test)]
mod tests;

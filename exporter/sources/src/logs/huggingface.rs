//! What the Trainer of Hugging Face's transformers prints: one Python dictionary a line on standard output, whose numbers
//! are numbers in version 4 and strings in version 5. [`state`] reads `trainer_state.json`.

pub(super) mod state;

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use super::{
    Begin, Covered, LogFormat, coverage,
    fields::{Field, Fields, Written},
    lines::{self, Line, LineFormat, LineParser},
    literal,
    row::{Row, row},
};
use crate::{Recorder, cut};

/// The row of the Trainer's standard output in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "hf-trainer",
    brief: "standard output of Hugging Face's Trainer",
    framework: "hf_trainer",
    shrinks: true,
    recognise: lines::recognise::<Dictionaries>,
    identify: lines::identify::<Dictionaries>,
    parser: Begin::Known(|| Box::new(LineParser::<Dictionaries>::default())),
    coverage: || coverage::tables(&[ROWS]),
};

const fn statistic(name: &'static str) -> Attribute<'static> {
    (&attribute::RL_STATISTIC, Out::Text(name))
}

/// The keys of the dictionaries, TRL's among them.
static ROWS: &[Row] = &[
    row("loss", &metric::TRAIN_LOSS),
    row("grad_norm", &metric::TRAIN_GRAD_NORM),
    row("learning_rate", &metric::TRAIN_LEARNING_RATE),
    row("epoch", &metric::TRAIN_EPOCH),
    row("num_input_tokens_seen", &metric::TRAIN_TOKENS).running_total(),
    row("train_runtime", &metric::TRAIN_ELAPSED_TIME),
    row("train_tokens_per_second", &metric::TRAIN_THROUGHPUT_TOKENS),
    row("train_samples_per_second", &metric::TRAIN_THROUGHPUT_SAMPLES),
    row("train_steps_per_second", &metric::TRAIN_THROUGHPUT_STEPS),
    row("train_loss", &metric::TRAIN_MEAN_LOSS),
    row("total_flos", &metric::TRAIN_COMPLETED_FLOPS).running_total(),
    row("mean_token_accuracy", &metric::TRAIN_ACCURACY),
    row("eval_loss", &metric::EVAL_LOSS),
    row("eval_accuracy", &metric::EVAL_ACCURACY),
    row("eval_perplexity", &metric::EVAL_PERPLEXITY),
    row("eval_runtime", &metric::EVAL_DURATION),
    row("eval_samples_per_second", &metric::EVAL_THROUGHPUT_SAMPLES),
    row("eval_steps_per_second", &metric::EVAL_THROUGHPUT_STEPS),
    row("reward", &metric::RL_REWARD).with(&[statistic("mean")]),
    row("reward_std", &metric::RL_REWARD).with(&[statistic("std")]),
    row("kl", &metric::RL_KL).with(&[statistic("mean")]),
    row("completions/mean_length", &metric::RL_COMPLETION_LENGTH).with(&[statistic("mean")]),
    row("completions/min_length", &metric::RL_COMPLETION_LENGTH).with(&[statistic("min")]),
    row("completions/max_length", &metric::RL_COMPLETION_LENGTH).with(&[statistic("max")]),
];

/// Reads the dictionaries.
#[derive(Debug)]
struct Dictionaries {
    fields: Fields,
}

impl Default for Dictionaries {
    fn default() -> Self {
        Self {
            fields: Fields::of("hf_trainer"),
        }
    }
}

impl LineFormat for Dictionaries {
    fn sign(text: &str) -> Option<&'static str> {
        dictionary(text).map(|_| "a Python dictionary with 'epoch' and a loss or a run time")
    }

    fn is_whole(text: &str) -> bool {
        text.ends_with('}')
    }

    fn is_begun(text: &str) -> bool {
        text.starts_with("{'")
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some(fields) = dictionary(line.text) else {
            return false;
        };
        let written = Written {
            time_unix_nanos: line.read_time(),
            step: None,
            place: line.place(),
        };
        self.fields.record(ROWS, written, &fields, &[], recorder);
        true
    }
}

/// The dictionary in a line; a progress bar may stand before it.
fn dictionary(text: &str) -> Option<Vec<Field<'_>>> {
    let (fields, _) = literal::object(&text[cut::find(text, "{'")?..])?;
    let has = |name: &str| fields.iter().any(|(key, _)| cut::same(key, name));
    let is_ours = has("epoch")
        && ["loss", "eval_loss", "train_runtime", "eval_runtime"]
            .iter()
            .any(|key| has(key));
    is_ours.then_some(fields)
}

/// What becomes of the keys of both outputs.
fn coverage_of_state() -> Vec<Covered> {
    let step = coverage::covered(
        "step",
        metric::TRAIN_GLOBAL_STEP.name,
        "as it is; `train.steps` grows by the steps since the entry before",
    );
    coverage::tables(&[ROWS]).into_iter().chain([step]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::sampled::Sampled;

    #[test]
    fn numbers_of_both_versions_are_read() {
        let read = Sampled::read(
            &FORMAT,
            "{'loss': '4.471', 'grad_norm': '1.063', 'epoch': '0.3125', 'num_input_tokens_seen': 640}\n\
             100%|##| 2/2 [00:01<00:00]{'loss': nan, 'learning_rate': 4e-05, 'epoch': 0.5, 'num_input_tokens_seen': 700, 'novel': 1}\n\
             {'some': 'other', 'dictionary': 1}\n",
        );
        let losses = read.values("train.loss");
        assert!(losses[0] == 4.471 && losses[1].is_nan());
        assert_eq!(read.values("train.tokens"), [640.0, 700.0]);
        assert_eq!(read.values("train.custom"), [1.0]);
        assert_eq!(read.counts.records, 2);
    }
}

//! The part of a program or of a model that the values of a line are of: a task, a process without a rank, a layer.
//!
//! Values of two parts never share a series. The index of a layer is always a part of the names after it. The name of a speaker,
//! such as `[task A]`, is one once another speaker has the same step or a later one under the same key: until then it can be the name
//! of a logger or of a stage. The first speaker of a key keeps it.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use pulsetrain_mapping::{Field, FieldValue, split};
use pulsetrain_record::Rank;

use super::{
    record::Records,
    record_keys::MAX_KEYS,
    text::{TextLines, is_context},
};
use crate::logs::prefix::is_level;

/// Words before the index of a part of a model.
const PIECES: [&str; 6] = ["layer", "block", "head", "expert", "module", "codebook"];

/// Words before the index or the name of a speaker.
const SPEAKERS: [&str; 12] = [
    "task", "agent", "player", "env", "fold", "worker", "device", "domain", "dataset", "role", "client",
    "member",
];

/// Words before a speaker in brackets, in addition to [`SPEAKERS`].
const PROCESSES: [&str; 6] = ["process", "trainer", "actor", "learner", "node", "job"];

/// Words of a bracket that are not the name of a speaker.
const PLACES: [&str; 9] = [
    "step",
    "epoch",
    "iter",
    "iteration",
    "batch",
    "update",
    "episode",
    "round",
    "run",
];

/// The most letters of a name.
const MAX_NAME: usize = 32;

/// The speakers of a log without a rank.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The last speaker and step of each key, from the first line with a speaker on.
    owners: HashMap<String, Owner>,
    /// The speakers whose values have their name.
    separate: HashSet<String>,
    has_speakers: bool,
}

/// The speaker that a key belongs to.
#[derive(Clone, Debug)]
struct Owner {
    speaker: String,
    step: Option<f64>,
}

impl TextLines {
    /// Names the values of a record, whose keys were looked up, by the part that they are of.
    pub(super) fn name_parts(&mut self, text: &str, fields: &mut [Field<'_>]) {
        let mut is_renamed = self.name_pieces(fields);
        let speaker = speaker_of_line(text).or_else(|| speaker_of_fields(fields));
        if speaker.is_none() && !self.parts.has_speakers {
            if is_renamed {
                self.keep_renamed(fields);
            }
            return;
        }
        let step = self.records.keys.step().and_then(|step| fields[step].1.number());
        let speaker = speaker.unwrap_or_default();
        if self.is_other_speaker(&speaker, step, fields) {
            self.parts.separate.insert(speaker.clone());
        }
        self.parts.has_speakers = true;
        if self.parts.separate.contains(&speaker) {
            for (key, value) in fields.iter_mut() {
                if value.number().is_some() && !self.keys.is_step(key) && !self.keys.is_epoch(key) {
                    *key = Cow::Owned([&speaker, SEPARATOR, key].concat());
                    is_renamed = true;
                }
            }
        }
        if is_renamed {
            self.keep_renamed(fields);
        }
    }

    /// Returns whether a named speaker has a step that another one already had under the same key, and records the speakers.
    fn is_other_speaker(&mut self, speaker: &str, step: Option<f64>, fields: &[Field<'_>]) -> bool {
        let mut is_other = false;
        for (number, (key, _)) in fields.iter().enumerate() {
            let info = self.records.keys.info_mut(number);
            let is_value = info.state.metric().is_some_and(|metric| !is_context(metric));
            if !is_value || info.step().is_some() {
                continue;
            }
            let was_used = info.outcome.is_mapped;
            let key = self.records.mapping.spelling(key).into_owned();
            let parts = &mut self.parts;
            let first = || Owner {
                speaker: String::new(),
                step: self.records.last_step(),
            };
            let known = parts.owners.get(&key).cloned();
            let owner = known.or_else(|| (was_used && !parts.has_speakers).then(first));
            let is_after = |owner: &Owner| match (owner.step, step) {
                (Some(last), Some(step)) => step > last,
                _ => false,
            };
            let is_of_other = owner
                .as_ref()
                .is_some_and(|owner| owner.speaker != speaker && !is_after(owner));
            is_other |= is_of_other && !speaker.is_empty();
            if !is_of_other && !parts.separate.contains(speaker) && parts.owners.len() < MAX_KEYS {
                let speaker = speaker.to_owned();
                parts.owners.insert(key, Owner { speaker, step });
            }
        }
        is_other
    }

    /// Adds the index of a part of the model to the keys after it: `layer 0 grad_norm 0.5`. Returns whether there is one.
    fn name_pieces(&mut self, fields: &mut [Field<'_>]) -> bool {
        let mut piece: Option<String> = None;
        let mut is_renamed = false;
        for (key, value) in fields.iter_mut() {
            if split::is_one_of(&PIECES, key)
                && let Some(index) = value.integer()
            {
                piece = Some(format!("{}_{index}", key.to_ascii_lowercase()));
            } else if let Some(piece) = &piece
                && value.number().is_some()
                && !self.keys.is_step(key)
                && !self.keys.is_epoch(key)
            {
                *key = Cow::Owned([piece, SEPARATOR, key].concat());
                is_renamed = true;
            }
        }
        is_renamed
    }

    /// Looks up renamed keys, which no rule knows.
    fn keep_renamed(&mut self, fields: &[Field<'_>]) {
        self.records.look_up(fields);
        for (number, (key, _)) in fields.iter().enumerate() {
            if key.contains(SEPARATOR) && self.parts.is_named(key) {
                self.records.keys.info_mut(number).state.resolved = None;
            }
        }
    }
}

impl Records {
    /// Returns the rank of a record under the key that the mapping names.
    pub(super) fn rank(&self, fields: &[Field<'_>]) -> Option<Rank> {
        let (_, value) = self.field(fields, self.mapping.rank()?)?;
        value.integer().map(Rank::OfJob)
    }

    /// Removes the rank and the role under the keys that the mapping names, and adds the role to the keys of a record.
    pub(super) fn name_role(&self, fields: &mut Vec<Field<'_>>) {
        let [rank, role] = [self.mapping.rank(), self.mapping.role()];
        let name = role
            .and_then(|role| self.field(fields, role))
            .and_then(|(_, value)| match value {
                FieldValue::Text(text) => name_of(text),
                FieldValue::Number(_) => value.integer().map(|number| number.to_string()),
            });
        let is_used = |key: &str, value: &FieldValue<'_>| {
            rank == Some(key) && value.integer().is_some() || role == Some(key) && name.is_some()
        };
        fields.retain(|(key, value)| !is_used(key, value));
        let Some(name) = &name else { return };
        let others = [self.mapping.time(), self.mapping.kind()];
        for (key, _) in fields {
            let is_own = self.mapping.step_rank(key).is_none() && !others.contains(&Some(key.as_ref()));
            if is_own {
                *key = Cow::Owned([name, SEPARATOR, key].concat());
            }
        }
    }

    fn field<'f, 'a>(&self, fields: &'f [Field<'a>], key: &str) -> Option<&'f Field<'a>> {
        fields.iter().find(|(name, _)| name == key)
    }
}

impl Parts {
    /// Returns whether a key begins with the name of a separate speaker or of a part of a model.
    fn is_named(&self, key: &str) -> bool {
        let Some((name, _)) = key.split_once(SEPARATOR) else {
            return false;
        };
        let is_piece = name
            .rsplit_once('_')
            .is_some_and(|(word, _)| split::is_one_of(&PIECES, word));
        is_piece || self.separate.contains(name)
    }
}

/// The text between the name of a part and a key.
const SEPARATOR: &str = ".";

/// Returns the speaker in the brackets or before the bar that a line begins with: `[task A] `, `worker[critic] `, `critic | `.
fn speaker_of_line(text: &str) -> Option<String> {
    let text = text.trim_start();
    let name = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => {
            let end = text.find(|letter: char| !is_of_name(letter))?;
            let rest = &text[end..];
            match rest.strip_prefix('[') {
                Some(inside) if is_process(&text[..end]) => inside.split_once(']')?.0,
                _ => rest
                    .trim_start_matches(' ')
                    .starts_with("| ")
                    .then(|| &text[..end])?,
            }
        }
    };
    name_of(name)
}

fn is_process(word: &str) -> bool {
    split::is_one_of(&SPEAKERS, word) || split::is_one_of(&PROCESSES, word)
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-')
}

/// Returns a name as a part of a key, if it can be that of a speaker: a word, with others or with a number.
fn name_of(text: &str) -> Option<String> {
    let words: Vec<&str> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let is_level = |word: &&str| is_level(&word.to_ascii_uppercase());
    let is_place = |word: &&str| {
        let stem = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
        split::is_one_of(&PLACES, stem) || split::is_evaluation(stem).is_some()
    };
    let is_name = text.starts_with(char::is_alphabetic)
        && text.len() <= MAX_NAME
        && words.len() <= 3
        && text.chars().all(|letter| is_of_name(letter) || letter == ' ')
        && !words.iter().any(is_place)
        && !words.iter().any(is_level);
    is_name.then(|| words.join("_").to_lowercase())
}

/// Returns the speaker that a field of a record names: `task=1`, `"role": "critic"`.
fn speaker_of_fields(fields: &[Field<'_>]) -> Option<String> {
    fields.iter().find_map(|(key, value)| {
        let word = SPEAKERS.iter().find(|word| word.eq_ignore_ascii_case(key))?;
        let name = match value {
            FieldValue::Text(text) => name_of(text)?,
            FieldValue::Number(_) => value.integer()?.to_string(),
        };
        Some(match name.starts_with(|first: char| first.is_ascii_digit()) {
            true => format!("{word}_{name}"),
            false => name,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::{
        generic::{GENERIC, KEY_VALUE},
        sampled::{Sampled, reasons},
    };
    use pulsetrain_mapping::MappingFile;
    use pulsetrain_record::SkipReason;
    use std::sync::Arc;

    fn read(lines: &[&str]) -> Sampled {
        Sampled::read(&GENERIC, &(lines.join("\n") + "\n"))
    }

    #[test]
    fn second_speaker_of_a_step_has_its_name() {
        for [first, second, name] in [
            ["[task A] step S loss V", "[task B] step S loss V", "task_b.loss"],
            [
                "worker[actor] step S | loss V",
                "worker[critic] step S | loss V",
                "critic.loss",
            ],
            [
                "student | step S | loss V",
                "teacher | step S | loss V",
                "teacher.loss",
            ],
            ["task=1 step=S loss=V", "task=2 step=S loss=V", "task_2.loss"],
            ["step S loss V", "[draft model] step S loss V", "draft_model.loss"],
        ] {
            let line =
                |form: &str, step: u32, value: &str| form.replace('S', &step.to_string()).replace('V', value);
            let lines: Vec<String> = (1..5)
                .flat_map(|step| {
                    [
                        line(first, step, &format!("{step}.5")),
                        line(second, step, &format!("7{step}.5")),
                    ]
                })
                .collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let found = read(&lines);
            assert_eq!(found.values("train.loss"), [1.5, 2.5, 3.5, 4.5], "{first}");
            let names = found.attributes("train.custom");
            assert!(
                names.contains(&format!("train.custom.name={name}")),
                "{first}: {names:?}"
            );
            assert_eq!(found.values("train.global_step"), [1.0, 2.0, 3.0, 4.0], "{first}");
        }
    }

    #[test]
    fn stages_and_loggers_keep_their_series() {
        let lines = [
            "[warmup] step 1 loss 3.5",
            "[warmup] step 2 loss 3.25",
            "[main] step 3 loss 3.0",
            "[main] step 4 loss 2.5",
        ];
        assert_eq!(read(&lines).values("train.loss"), [3.5, 3.25, 3.0, 2.5]);
    }

    #[test]
    fn values_of_a_layer_have_its_index() {
        let found = read(&[
            "step 10 layer 0 grad_norm 0.5 layer 1 grad_norm 0.75",
            "step 10 loss 2.5 grad_norm 1.25",
            "step 20 layer 0 grad_norm 0.25 layer 1 grad_norm 0.125",
            "step 20 loss 2.25 grad_norm 1.5",
            "step 30 loss 2.0 grad_norm 1.75",
        ]);
        assert_eq!(found.values("train.grad_norm"), [1.25, 1.5, 1.75]);
        let names = found.attributes("train.custom");
        assert!(
            names.contains(&"train.custom.name=layer_1.grad_norm".to_owned()),
            "{names:?}"
        );
    }

    #[test]
    fn step_with_two_values_of_a_series_is_reported() {
        let found = read(&[
            "step 1 loss 2.5",
            "step 1 loss 7.5",
            "step 2 loss 2.25",
            "step 2 loss 2.25",
            "step 3 loss 2.0",
        ]);
        assert!(reasons(&found.skipped).contains(&(SkipReason::RepeatedStep, 1)));
        let message = &found.skipped.problems()[0].message;
        assert_eq!(message, "step 1 came twice with different values of train.loss");
        assert_eq!(found.values("train.loss"), [2.5, 7.5, 2.25, 2.0]);
    }

    #[test]
    fn mapping_names_the_rank_and_the_role() {
        let yaml = "rank: node
role: part
values: [{key: loss, metric: train.loss}, {key: critic.loss, metric: rl.value_loss}]
";
        let mapping = Arc::new(MappingFile::parse(yaml).unwrap().build().unwrap());
        let text = "step=1 node=0 loss=2.5\nstep=1 node=1 loss=3.5\nstep=1 node=0 part=critic loss=4.5\n";
        let found = Sampled::read_mapped(&KEY_VALUE, &mapping, text);
        assert_eq!(found.values("rl.value_loss"), [4.5]);
        let mut losses = found.values("train.loss");
        losses.sort_by(f64::total_cmp);
        assert_eq!(losses, [2.5, 3.5]);
        assert_eq!(found.values("train.custom"), [0.0; 0]);
    }

    #[test]
    fn names_of_speakers_are_parsed() {
        for (line, speaker) in [
            ("[task A] step 10 loss 2.5", Some("task_a")),
            ("[critic] step 10 loss 2.5", Some("critic")),
            ("worker[critic] step 10 loss 2.5", Some("critic")),
            ("critic | step 10 loss 2.5", Some("critic")),
            ("[student-2] loss 2.5", Some("student_2")),
            ("[step 10] loss 2.5", None),
            ("[10/100] loss 2.5", None),
            ("[eval] loss 2.5", None),
            ("[train] loss 2.5", None),
            ("Epoch3 | loss 2.5", None),
            ("step 10 | loss 2.5", None),
            ("loss[mel] 2.5", None),
            ("[INFO] loss 2.5", None),
        ] {
            assert_eq!(speaker_of_line(line).as_deref(), speaker, "{line}");
        }
    }
}

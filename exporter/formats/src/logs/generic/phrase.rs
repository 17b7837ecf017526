//! The rule table of the words before a number, and the split of the text before a number into context and phrase. The complete
//! phrase is the key, whatever separates it from the number; only words that this table names may be dropped from it.

use super::{
    labelled::{Labelled, LabelledNumber},
    printed_number::next_token,
    section::{is_evaluation, is_one_of},
};

/// Words of statistic. With one of them a number is not the value of a step.
const STATISTICS: &[&str] = &[
    "mean",
    "avg",
    "average",
    "std",
    "stddev",
    "var",
    "variance",
    "min",
    "max",
    "minimum",
    "maximum",
    "best",
    "worst",
    "lowest",
    "highest",
    "peak",
    "median",
    "percentile",
    "total",
    "sum",
    "num",
    "number",
    "count",
    "last",
    "prev",
    "previous",
    "first",
    "initial",
    "init",
    "final",
    "target",
    "running",
    "ema",
    "smoothed",
    "delta",
    "change",
    "slowest",
    "fastest",
    "expected",
    "planned",
    "skipped",
    "remaining",
    "left",
    "max.",
    "log",
];

/// Words of scope: of another part of the program than the step of training, or of another counter.
const SCOPES: &[&str] = &[
    "env",
    "environment",
    "data",
    "dataset",
    "loader",
    "compile",
    "gen",
    "generation",
    "generate",
    "decode",
    "prefill",
    "rollout",
    "rollouts",
    "host",
    "cpu",
    "per",
    "episode",
    "episodes",
    "game",
    "agent",
    "warmup",
    "save",
    "saving",
    "checkpoint",
    "logging",
    "accumulation",
    "accum",
    "inner",
    "mini",
    "micro",
    "ppo",
    "frame",
    "frames",
    "sync",
    "wait",
    "idle",
    "disk",
    "swap",
    "every",
    "until",
    "since",
    "in",
    "of",
];

/// Words of role: of one of several models or losses.
const ROLES: &[&str] = &[
    "critic",
    "actor",
    "policy",
    "value",
    "reward",
    "ref",
    "reference",
    "teacher",
    "student",
    "discriminator",
    "generator",
    "aux",
    "auxiliary",
    "encoder",
    "decoder",
    "expert",
    "draft",
    "target",
    "d",
    "g",
];

/// Words of quantity, which belong to the phrase of the number after them.
const QUANTITIES: &[&str] = &[
    "loss",
    "grad",
    "gradient",
    "param",
    "weight",
    "update",
    "norm",
    "learning",
    "rate",
    "lr",
    "step",
    "iter",
    "iteration",
    "epoch",
    "batch",
    "time",
    "mem",
    "memory",
    "token",
    "tokens",
    "sample",
    "samples",
    "acc",
    "accuracy",
    "entropy",
    "kl",
    "clip",
    "return",
    "score",
    "length",
    "mb",
    "gb",
];

/// Words of a sentence before a phrase, which can be dropped: `Finished with loss = 2.5`.
const MESSAGE: &[&str] = &[
    "the",
    "a",
    "with",
    "and",
    "has",
    "have",
    "got",
    "is",
    "was",
    "now",
    "done",
    "finished",
    "complete",
    "completed",
    "ended",
    "end",
    "started",
    "starting",
    "after",
    "at",
    "on",
    "for",
    "current",
    "currently",
    "new",
    "results",
    "result",
    "reached",
    "reports",
    "took",
    "summary",
    "stats",
    "status",
    "progress",
];

/// Words before a number that names a process: `rank0`, `worker-3`.
const SPEAKERS: [&str; 9] = [
    "rank", "worker", "node", "host", "gpu", "device", "process", "proc", "trainer",
];

/// Returns whether a word changes what the words after it mean, so that it cannot be dropped: `best epoch`, `env steps`, `p99`.
pub(super) fn is_qualifier(word: &str) -> bool {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    [STATISTICS, SCOPES, ROLES]
        .iter()
        .any(|words| is_one_of(words, word))
        || is_numbered(word)
}

/// Returns whether a word is a name with a number: `p99`, `top5`, `top-5`.
fn is_numbered(word: &str) -> bool {
    let name = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let name_only = name.trim_end_matches(['-', '_']);
    name.len() < word.len()
        && name_only.chars().all(char::is_alphabetic)
        && !name_only.is_empty()
        && !is_one_of(&SPEAKERS, name_only)
}

/// Returns whether a word belongs to the phrase after it in a log whose keys have one word.
fn is_of_phrase(word: &str) -> bool {
    is_qualifier(word) || is_one_of(QUANTITIES, word) || is_evaluation(word).is_some()
}

/// Returns whether a line begins with a message before its pairs of one word: `Worker done step=1 loss=2`. Such pairs follow
/// each other with only a space between.
pub(super) fn is_message_before_pairs(line: &str) -> bool {
    let is_pair = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        !name.is_empty() && name.len() + 1 < word.len()
    };
    let mut words = line.split_ascii_whitespace().map(is_pair);
    let mut before = false;
    line.contains('=') && words.any(|is_pair| std::mem::replace(&mut before, is_pair) && is_pair)
}

/// The text between the name of a phase and a key of it.
pub(super) const PHASE: &str = " phase ";

/// The most words of the name of a phase, and of a key in a line that is not a record.
const MAX_WORDS: usize = 3;

/// The most words of a line that are of no phrase: a logger, a unit.
const MAX_OTHER_WORDS: usize = 2;

/// Returns the phase of the program that the values after it are of: `Generation` in `Generation => Latency: 4.5s, TFLOPs: 3`.
pub(super) fn phase_of(context: &str) -> Option<&str> {
    let phase = context.split_once("=>")?.0.trim();
    let is_name = !phase.is_empty()
        && phase
            .chars()
            .all(|letter| letter.is_alphabetic() || matches!(letter, ' ' | '-'));
    (is_name && phase.split_whitespace().count() <= MAX_WORDS).then_some(phase)
}

/// Returns whether a line has nothing but numbers under keys, each after a colon or an equals sign.
pub(super) fn are_only_values(numbers: &[Labelled<'_>], line: &str) -> bool {
    let words = |text: &str| {
        text.split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .count()
    };
    let is_value = |number: &Labelled<'_>| {
        let is_number = matches!(number.number, LabelledNumber::Value(..)) && !number.is_progress;
        let is_key = number.label.contains(char::is_alphabetic)
            && number.label.split_whitespace().count() <= MAX_WORDS;
        is_number && is_key && number.is_delimited && words(number.context) <= MAX_OTHER_WORDS
    };
    let end = line
        .rfind(|last: char| last.is_ascii_digit())
        .map_or(0, |at| at + 1);
    !numbers.is_empty() && numbers.iter().all(is_value) && words(&line[end..]) <= MAX_OTHER_WORDS
}

/// Splits the text before a number into context and label, and returns whether `=` follows the label. `has_message` is whether a
/// message can be before the first key.
pub(super) fn label_of(before: &str, has_message: bool) -> (&str, &str, bool) {
    let trimmed = without_delimiters(before);
    let separator = &before[trimmed.len()..];
    let is_assigned = separator.contains('=');
    // A delimiter directly before the number leaves it without a label, except the brackets of `Loss (avg)`.
    let name = qualified(trimmed).map(|(name, _)| name);
    let start = delimiters(&before[..name.unwrap_or(trimmed).len()])
        .last()
        .map_or(0, |(_, end)| end);
    let mut label = trimmed[start..].trim_start_matches(is_margin);
    if is_assigned {
        label = without_words(after_text_value(label), is_level);
        if has_message && separator.starts_with('=') && name.is_none() {
            label = key_after_message(label);
        }
    }
    (&before[..trimmed.len() - label.len()], label, is_assigned)
}

/// Strips the pair with a text before a label: `mode=train` in `mode=train loss`.
fn after_text_value(label: &str) -> &str {
    let Some((_, after)) = label.rsplit_once('=') else {
        return label;
    };
    let words = after.trim_start().split_once(char::is_whitespace);
    words.map_or(after, |(_, words)| words.trim_start_matches(is_margin))
}

/// Returns the last word of a text, with the words before it that belong to its phrase.
fn key_after_message(text: &str) -> &str {
    let mut start = text.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
    while let Some(before) = text
        .get(..start)
        .map(str::trim_end)
        .filter(|before| !before.is_empty())
    {
        let word = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        if !is_of_phrase(&before[word..]) {
            break;
        }
        start = word;
    }
    &text[start..]
}

/// Strips leading words that are not names: levels, times, source locations.
pub(super) fn without_noise(label: &str) -> &str {
    // The default of Python's logging: `INFO:root:loss = 2.5`.
    let mut parts = label.splitn(3, ':');
    if let (Some(level), Some(logger), Some(rest)) = (parts.next(), parts.next(), parts.next())
        && is_level(level)
        && is_evaluation(logger) != Some(true)
    {
        return rest.trim_start();
    }
    let is_noise = |word: &str| {
        let has_number = word.contains(|letter: char| letter.is_ascii_digit() || letter == ':');
        is_level(word) || has_number && !is_numbered(word)
    };
    without_words(label, is_noise)
}

/// Strips leading words that are not names, and the words of a sentence.
pub(super) fn without_message(label: &str) -> &str {
    without_words(without_noise(label), |word| is_one_of(MESSAGE, word))
}

fn without_words(label: &str, is_dropped: impl Fn(&str) -> bool) -> &str {
    let mut rest = label;
    while let Some((word, after)) = rest.split_once(char::is_whitespace) {
        if !is_dropped(word) {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

fn is_level(word: &str) -> bool {
    word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_uppercase()) && !is_of_phrase(word)
}

/// Iterates over a text without its first n words, for n = 0, 1, 2 and so on.
pub(super) fn tails(text: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(text), |rest| {
        let (_, after) = rest.split_once(char::is_whitespace)?;
        Some(after.trim_start())
    })
}

/// Iterates over a text without its first n words, as long as none of these changes the meaning of the rest.
pub(super) fn tails_of_same_meaning(text: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(text), |rest| {
        let (word, after) = rest.split_once(char::is_whitespace)?;
        (!is_qualifier(word)).then(|| after.trim_start())
    })
}

fn without_delimiters(label: &str) -> &str {
    let is_delimiter = |letter: char| letter.is_whitespace() || LABEL_DELIMITERS.contains(&letter);
    let trimmed = label.trim_end_matches(is_delimiter);
    // The line of an arrow: `loss -> 2.5`.
    match label[trimmed.len()..].starts_with('>') {
        true => trimmed.trim_end_matches('-').trim_end_matches(is_delimiter),
        false => trimmed,
    }
}

/// Splits a label such as `Loss (avg)` or `Time (s)` into its name and the text in brackets.
pub(super) fn qualified(label: &str) -> Option<(&str, &str)> {
    let (name, qualifier) = label.strip_suffix(')')?.rsplit_once('(')?;
    let trimmed = name.trim_end();
    let is_name = trimmed.len() < name.len() && trimmed.ends_with(|last: char| !is_margin(last));
    let is_qualifier = !qualifier.is_empty() && next_token(qualifier, 0).is_none();
    (is_name && is_qualifier).then_some((trimmed, qualifier))
}

/// The characters between a label and its number.
const LABEL_DELIMITERS: [char; 16] = [
    '=', '>', ':', '(', '[', '{', '<', '"', '\'', '~', '→', '*', '`', '≈', '↑', '↓',
];

/// Returns whether a character surrounds labels.
pub(super) fn is_margin(letter: char) -> bool {
    letter.is_whitespace() || !letter.is_alphanumeric() && !matches!(letter, '_' | '%' | '@')
}

/// Iterates over the delimiters between labels: a bar, a comma, a bracket, a tab, ` - ` or `: `.
pub(super) fn delimiters(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let bytes = text.as_bytes();
    let space = move |at: usize| bytes.get(at).is_none_or(u8::is_ascii_whitespace);
    text.char_indices().filter_map(move |(at, letter)| {
        let ends = match letter {
            '|' | ',' | ';' | '[' | ']' | '{' | '}' | '<' | '>' | '\t' => true,
            '(' => !is_call(text, at),
            ')' => {
                let from = text.floor_char_boundary(at.saturating_sub(MAX_WORD));
                let open = text[from..at].rfind('(');
                open.is_none_or(|open| !is_call(text, from + open))
            }
            '-' | '*' => at > 0 && space(at - 1) && space(at + 1),
            ':' => space(at + 1) && at + 1 < text.len(),
            letter => !letter.is_ascii() && !letter.is_alphanumeric(),
        };
        ends.then(|| (at, at + letter.len_utf8()))
    })
}

/// The longest text in a bracket that is part of a word.
const MAX_WORD: usize = 256;

/// Returns whether a bracket is part of a word, as in `Epoch(train)`.
fn is_call(text: &str, open: usize) -> bool {
    text[..open].ends_with(char::is_alphanumeric)
}

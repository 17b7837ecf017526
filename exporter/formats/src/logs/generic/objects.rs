//! Finds the objects in a printed line: `step=1 grad_norm={'a': 1.5} mfu=41%`, `val: {"loss": 2.5}`.

use pulsetrain_mapping::Field;
use std::borrow::Cow;

use super::section::is_evaluation;
use crate::logs::literal;

/// The most words before an object that can name its split. More words are a sentence.
const MAX_WORDS_OF_SPLIT: usize = 4;

/// A line with its objects.
#[derive(Debug, Default)]
pub(super) struct PrintedLine<'a> {
    /// The text before, between and after the objects.
    pub(super) texts: Vec<&'a str>,
    /// The fields of the objects. After `name=`, their keys begin with the name.
    pub(super) fields: Vec<Field<'a>>,
    pub(super) has_object: bool,
}

impl<'a> PrintedLine<'a> {
    pub(super) fn parse(line: &'a str) -> Self {
        let mut parsed = Self::default();
        let mut rest = line;
        while let Some((start, len, fields)) = object_in(rest) {
            let before = &rest[..start];
            let name = before.trim_end().strip_suffix('=').map(last_word);
            parsed
                .fields
                .extend(fields.into_iter().map(|(key, value)| match name {
                    Some(name) => (Cow::Owned([name, ".", &key].concat()), value),
                    None => (key, value),
                }));
            parsed.texts.push(before);
            parsed.has_object = true;
            rest = &rest[start + len..];
        }
        parsed.texts.push(rest);
        parsed
    }
}

fn last_word(text: &str) -> &str {
    let is_outside = |letter: char| letter.is_whitespace() || ",;|([{".contains(letter);
    text.trim_end().rsplit(is_outside).next().unwrap_or_default()
}

/// Returns the first object in a line and its offset.
pub(super) fn object(text: &str) -> Option<(usize, Vec<Field<'_>>)> {
    object_in(text).map(|(start, _, fields)| (start, fields))
}

fn object_in(text: &str) -> Option<(usize, usize, Vec<Field<'_>>)> {
    let start = object_start(text)?;
    let mut fields = Vec::new();
    let object = literal::read(&text[start..], literal::DEPTH, &mut fields)?;
    Some((start, object.len, fields))
}

fn object_start(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut starts = memchr::memchr_iter(b'{', bytes);
    starts.find(|start| matches!(bytes.get(start + 1), Some(b'"' | b'\'')))
}

/// Returns whether the object in a line lacks its end. An object that is printed over several lines ends a line with a comma or
/// a bracket.
pub(super) fn is_truncated(text: &str) -> bool {
    let opened = text.bytes().filter(|byte| *byte == b'{').count();
    let closed = text.bytes().filter(|byte| *byte == b'}').count();
    let continues = text.trim_end().ends_with([',', '{', '[', '(']);
    opened > closed && !continues && object_start(text).is_some() && object(text).is_none()
}

/// Returns the word before an object: `val` in `val: {'loss': 0.7}`.
pub(in crate::logs) fn object_prefix(before: &str) -> Option<&str> {
    let prefix = before.trim_end().strip_suffix(':')?;
    prefix.rsplit(char::is_whitespace).next()
}

/// Returns whether the words before an object name an evaluation: `eval {"loss": 2.5}`, `Eval metrics: {'loss': 2.5}`. `None` if
/// they name neither one nor training.
pub(super) fn split_of_object(before: &str) -> Option<bool> {
    let last = before.rsplit([']', '|', ')']).next().unwrap_or_default();
    let words = last
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let splits: Vec<bool> = words.iter().filter_map(|word| is_evaluation(word)).collect();
    let is_clear = words.len() <= MAX_WORDS_OF_SPLIT && splits.windows(2).all(|pair| pair[0] == pair[1]);
    splits.first().copied().filter(|_| is_clear)
}

//! Detects the format of an input by its first bytes.

use std::sync::Arc;

use pulsetrain_record::{Recorder, Run};

use super::{Begin, FORMATS, LogFormat, LogReader, ReadLimits, encoding, generic, trainers};
use crate::FormatError;

/// The format whose signs the first bytes of an input bear, with the sign.
///
/// # Errors
/// [`FormatError::UnknownFormat`] where there is none, [`FormatError::Compressed`] or [`FormatError::Utf16`] where that is why,
/// [`FormatError::AmbiguousFormat`] where there are several.
pub fn recognise(input: &str, head: &[u8]) -> Result<(&'static LogFormat, &'static str), FormatError> {
    let text = encoding::without_mark(head);
    let mut candidates: Vec<_> = FORMATS
        .iter()
        .filter(|format| !matches!(format.parser, Begin::Embedded { .. }) && !format.is_fallback())
        .filter_map(|format| Some((format, (format.recognise)(text)?)))
        .collect();
    if candidates.is_empty() {
        candidates = trainers(text);
    }
    let fallback = || {
        let mut formats = FORMATS.iter().filter(|format| format.is_fallback());
        formats.find_map(|format| Some((format, (format.recognise)(text)?)))
    };
    match candidates[..] {
        [] if encoding::unreadable(input, head).is_none()
            && let Some(found) = fallback() =>
        {
            Ok(found)
        }
        [] => Err(
            encoding::unreadable(input, head).unwrap_or_else(|| FormatError::UnknownFormat {
                name: input.to_owned(),
                instead: generic::instead(input, text),
            }),
        ),
        [one] => Ok(one),
        _ => Err(FormatError::AmbiguousFormat {
            name: input.to_owned(),
            candidates: candidates
                .iter()
                .map(|(format, sign)| format!("{} ({sign})", format.name))
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// The trainers whose mappings detect the first bytes of an input, with the sign. Their patterns take longer than the signs of all
/// other formats together.
fn trainers(head: &[u8]) -> Vec<(&'static LogFormat, &'static str)> {
    let printed = trainers::printed(head);
    let is_of = |format: &&LogFormat| match format.parser {
        Begin::Embedded { detects, .. } => detects(&printed),
        _ => false,
    };
    let formats = FORMATS.iter().filter(is_of);
    formats.map(|format| (format, trainers::DETECTED)).collect()
}

/// Every parser on a whole input that it may not have been made for; for fuzzing.
#[doc(hidden)]
pub fn parse_with_every_format(bytes: &[u8]) {
    for format in FORMATS {
        let mut recorder = Recorder::new(Run::default(), |_| {});
        (format.recognise)(bytes);
        format.identity(bytes, &Arc::default());
        let mut reader = LogReader::new(format, ReadLimits::default());
        let (first, second) = bytes.split_at(bytes.len() / 2);
        reader.push(first, &mut recorder);
        reader.push(second, &mut recorder);
        reader.finish(&mut recorder);
        recorder.finish();
    }
}

//! Detects the format of an input by its first bytes.

use std::sync::Arc;

use pulsetrain_record::{Recorder, Run};

use super::{
    FORMATS, LogFormat, LogReader, ParserFactory, ReadLimits, encoding,
    generic::{self, FormatHint},
    layers::each_layer,
    trainers,
};
use crate::FormatError;

/// Returns the format that detects the first bytes of an input, and the signature that it found.
///
/// # Errors
/// [`FormatError::UnknownFormat`] if no format detects the input. [`FormatError::Compressed`] or [`FormatError::Utf16`] if its
/// encoding is the reason. [`FormatError::AmbiguousFormat`] if several formats do.
pub fn detect(input: &str, head: &[u8]) -> Result<(&'static LogFormat, &'static str), FormatError> {
    let bytes = encoding::without_byte_order_mark(head);
    let text = &*encoding::without_zeros(bytes);
    let mut candidates = named(bytes);
    if candidates.is_empty() && text.len() < bytes.len() {
        candidates = named(text);
    }
    if candidates.is_empty() {
        let found = each_layer(text).map(|(layers, inner)| {
            let mut found = named(&inner);
            found.retain(|(format, _)| LogReader::new(format, ReadLimits::default()).set_layers(layers));
            found
        });
        candidates = found
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default();
    }
    let fallback = || {
        let mut formats = FORMATS.iter().filter(|format| format.is_fallback());
        formats.find_map(|format| Some((format, (format.detect)(text)?)))
    };
    match candidates[..] {
        [] if encoding::unreadable(input, head).is_none()
            && let Some(found) = fallback() =>
        {
            Ok(found)
        }
        [] => Err(encoding::unreadable(input, head).unwrap_or_else(|| {
            let FormatHint { found, next } = generic::format_hint(input, text);
            FormatError::UnknownFormat {
                name: input.to_owned(),
                found,
                next,
            }
        })),
        [one] => Ok(one),
        _ => Err(FormatError::AmbiguousFormat {
            name: input.to_owned(),
            candidates: candidates
                .iter()
                .map(|(format, signature)| format!("{} ({signature})", format.name))
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// Returns the formats of known trainers that detect the first bytes of an input, with their signatures.
fn named(text: &[u8]) -> Vec<(&'static LogFormat, &'static str)> {
    let found: Vec<_> = FORMATS
        .iter()
        .filter(|format| !matches!(format.parser, ParserFactory::Embedded { .. }) && !format.is_fallback())
        .filter_map(|format| Some((format, (format.detect)(text)?)))
        .collect();
    match found.is_empty() {
        true => trainers(text),
        false => found,
    }
}

/// Returns the trainers whose mappings detect the first bytes of an input, with the signature. Their patterns cost more than
/// the signatures of all other formats together.
fn trainers(head: &[u8]) -> Vec<(&'static LogFormat, &'static str)> {
    let printed = trainers::printed(head);
    let is_of = |format: &&LogFormat| match format.parser {
        ParserFactory::Embedded { detects, .. } => detects(&printed),
        _ => false,
    };
    let formats = FORMATS.iter().filter(is_of);
    formats.map(|format| (format, trainers::DETECTED)).collect()
}

/// Runs every parser on an input of any format; for fuzzing.
#[doc(hidden)]
pub fn parse_with_every_format(bytes: &[u8]) {
    for format in FORMATS {
        let mut recorder = Recorder::new(Run::default(), |_| {});
        (format.detect)(bytes);
        format.run_header(bytes, &Arc::default());
        let mut reader = LogReader::new(format, ReadLimits::default());
        let (first, second) = bytes.split_at(bytes.len() / 2);
        reader.push(first, &mut recorder);
        reader.push(second, &mut recorder);
        reader.finish(&mut recorder);
        recorder.finish();
    }
}

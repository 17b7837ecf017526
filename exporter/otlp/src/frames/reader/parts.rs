//! Frames that are parts of a protobuf message. The message is not length-delimited and ends with the input, or it exceeds the
//! limit for a message.
//!
//! A part ends between two resources. A resource that exceeds the limit is split between its scopes, and such a scope between
//! its spans, metrics or log records; each part repeats the resource and the scope. The schema URL follows the items in the
//! encoding: if a scope or a resource is split, only its last part has the schema URL.

use std::io::Read;

use super::{Form, Frame, FrameRead, FrameReader, Next};
use crate::{
    frames::error::{FrameError, FrameErrorKind},
    wire::{Reader, WireError, WireErrorKind},
    write::Buffer,
};

/// The target size of the items in a part; a single larger item is a part of its own.
const PART: usize = 4 << 20;

/// The maximum size of a tag and a length.
const FIELD_HEAD: usize = 15;

/// The divisor for the room for items: an enclosing field may use up at most one such share.
const ENCLOSING_SHARE_DIVISOR: usize = 2;

/// The number of the field that is split at each level: resources, scopes, items.
const CUT_FIELDS: [u32; 3] = [1, 2, 2];

/// A message that is being split: the data, a resource or a scope.
#[derive(Debug)]
pub(super) struct Level {
    /// The offset of its end in the input.
    end: u64,
    /// Its other fields so far.
    head: Vec<u8>,
}

impl Level {
    /// Creates a level for a message that ends at an offset; `u64::MAX` is the end of the input.
    pub(super) fn until(end: u64) -> Self {
        Self {
            end,
            head: Vec::new(),
        }
    }
}

/// The next step in a message that is being split.
enum Step {
    /// An item of this size, which is added to the current part.
    Item(usize),
    /// An item that exceeds the limit for a part: the size of its tag and length, and the offset of its end.
    Enter(usize, u64),
    /// Any other field.
    Head(usize),
    /// The end of the message.
    Leave,
    /// An error; the bytes that it is about are skipped.
    Fault(FrameError),
}

impl<R: Read> FrameReader<R> {
    /// Reads the next part of the message at the window.
    pub(super) fn next_part(&mut self) -> Next {
        let (mut items, mut offset) = (Vec::new(), self.window.offset());
        while let Some(depth) = self.levels.len().checked_sub(1) {
            let room = self.room();
            match self.step(depth, room) {
                Step::Head(size) if items.is_empty() || items.len() + size <= room => {
                    let field = &self.window.pending()[..size];
                    self.levels[depth].head.extend_from_slice(field);
                    self.window.consume(size);
                }
                Step::Item(size) if items.is_empty() || items.len() + size <= PART.min(room) => {
                    if items.is_empty() {
                        offset = self.window.offset();
                    }
                    if size > PART {
                        items = self.window.take(size);
                    } else {
                        items.extend_from_slice(&self.window.pending()[..size]);
                        self.window.consume(size);
                    }
                }
                Step::Fault(error) if items.is_empty() => return Err(error),
                Step::Fault(error) => {
                    self.pending_error = Some(error);
                    return self.decode_part(items, offset);
                }
                // Later fields of the message, such as the schema URL of the resource, belong to the same part.
                Step::Leave if depth > 0 && !items.is_empty() => {
                    items = self.in_level(depth, items);
                    self.levels.pop();
                }
                _ if !items.is_empty() => return self.decode_part(items, offset),
                Step::Item(_) | Step::Head(_) => {}
                Step::Enter(head, end) => {
                    self.window.consume(head);
                    self.levels.push(Level::until(end));
                }
                Step::Leave => drop(self.levels.pop()),
            }
        }
        match self.form {
            Form::Binary => self.next_binary(),
            _ => Ok(FrameRead::End),
        }
    }

    /// Returns the number of bytes for items in a part: the limit minus the enclosing messages.
    fn room(&self) -> usize {
        let around = self.levels.iter().map(|level| level.head.len() + FIELD_HEAD);
        let around = around.sum::<usize>().saturating_sub(FIELD_HEAD);
        self.max_bytes().allowed.saturating_sub(around)
    }

    /// Decodes a part into a frame: its items in their enclosing messages.
    fn decode_part(&self, items: Vec<u8>, offset: u64) -> Next {
        let levels = (0..self.levels.len()).rev();
        let part = levels.fold(items, |part, depth| self.in_level(depth, part));
        match self.decode_protobuf(part) {
            Ok(FrameRead::Frame(frame)) => Ok(FrameRead::Frame(Frame { offset, ..frame })),
            Ok(found) => Ok(found),
            Err(kind) => Err(FrameError {
                offset,
                ..self.error(kind)
            }),
        }
    }

    /// Wraps items in their message with its other fields, as a field of the enclosing message.
    fn in_level(&self, depth: usize, items: Vec<u8>) -> Vec<u8> {
        let message = match self.levels[depth].head.as_slice() {
            [] => items,
            head => [head, &items].concat(),
        };
        let Some(outer) = depth.checked_sub(1) else {
            return message;
        };
        let mut field = Buffer::with_capacity(message.len() + FIELD_HEAD);
        field.delimited(CUT_FIELDS[outer], &message);
        field.into_vec()
    }

    /// Inspects the next field, and reads it if it is not split itself.
    fn step(&mut self, depth: usize, room: usize) -> Step {
        let left = self.levels[depth].end - self.window.offset();
        if left == 0 {
            return Step::Leave;
        }
        let is_filled = match self.window.fill_to(FIELD_HEAD) {
            Ok(is_filled) => is_filled,
            Err(error) => return self.end_of_input(Some(error)),
        };
        if self.window.pending().is_empty() && depth == 0 && self.levels[0].end == u64::MAX {
            return Step::Leave;
        }
        let (number, head, size) = match field_head(self.window.pending()) {
            Ok(field) if field.2 as u64 <= left => field,
            Err(error) if error.kind == WireErrorKind::Truncated && !is_filled => {
                return self.end_of_input(None);
            }
            Ok(_) => return self.broken(WireErrorKind::Truncated),
            Err(error) => return self.broken(error.kind),
        };
        let is_item = number == Some(CUT_FIELDS[depth]);
        let can_enter = is_item && depth + 1 < CUT_FIELDS.len();
        let enter = Step::Enter(head, self.window.offset().saturating_add(size as u64));
        let most = if is_item {
            room
        } else {
            room / ENCLOSING_SHARE_DIVISOR
        };
        if size > most {
            return if can_enter { enter } else { self.too_large(size) };
        }
        match self.window.fill_to(size) {
            Ok(true) if is_item => Step::Item(size),
            Ok(true) => Step::Head(size),
            // The complete items of the truncated field are used.
            _ if can_enter => enter,
            Ok(false) => self.end_of_input(None),
            Err(error) => self.end_of_input(Some(error)),
        }
    }

    /// Returns the step for an input that ends in the middle of a message.
    fn end_of_input(&mut self, error: Option<std::io::Error>) -> Step {
        let complete_until = self.window.offset();
        Step::Fault(match error {
            Some(error) => self.read_error(error),
            None => self.last_error(FrameErrorKind::TornText { complete_until }),
        })
    }

    /// Skips a field that exceeds the limit.
    fn too_large(&mut self, size: usize) -> Step {
        let error = self.error(FrameErrorKind::FieldTooLarge(self.max_bytes()));
        self.skip(size, error)
    }

    /// Skips the rest of the message that is being split, since its fields cannot be read.
    fn broken(&mut self, kind: WireErrorKind) -> Step {
        let kind = FrameErrorKind::Broken(kind);
        match self.levels.last() {
            Some(level) if level.end != u64::MAX => {
                let rest = level.end - self.window.offset();
                let error = self.error(kind);
                self.skip(usize::try_from(rest).unwrap_or(usize::MAX), error)
            }
            _ => Step::Fault(self.last_error(kind)),
        }
    }

    fn skip(&mut self, size: usize, error: FrameError) -> Step {
        match self.window.skip(size) {
            Ok(true) => Step::Fault(error),
            Ok(false) => self.end_of_input(None),
            Err(error) => self.end_of_input(Some(error)),
        }
    }
}

/// Returns the number of a field if it may be a message, the size of its tag and length, and its total size.
fn field_head(bytes: &[u8]) -> Result<(Option<u32>, usize, usize), WireError> {
    let mut reader = Reader::new(bytes);
    let tag = reader.tag()?;
    if tag & 7 != 2 {
        reader.value(tag)?;
        return Ok((None, 0, reader.position()));
    }
    let length = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
    let head = reader.position();
    Ok((Some(tag >> 3), head, head.saturating_add(length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Signal,
        frames::{append_binary, append_json_line},
        json,
        limits::Limits,
    };

    const SPAN: &str = r#"{"name":"a","startTimeUnixNano":"1","endTimeUnixNano":"2"}"#;

    /// A message with `resources` resources, each with `scopes` scopes of `spans` spans.
    fn message(resources: usize, scopes: usize, spans: usize) -> Vec<u8> {
        let scope = format!(
            r#"{{"scope":{{"name":"meter"}},"spans":[{}],"schemaUrl":"u"}}"#,
            vec![SPAN; spans].join(",")
        );
        let resource = format!(
            r#"{{"resource":{{"attributes":[{{"key":"host","value":{{"stringValue":"h"}}}}]}},"scopeSpans":[{}]}}"#,
            vec![scope; scopes].join(",")
        );
        let text = format!(r#"{{"resourceSpans":[{}]}}"#, vec![resource; resources].join(","));
        let mut bytes = Vec::new();
        json::decode(text.as_bytes(), &Limits::default(), &mut bytes).unwrap();
        bytes
    }

    fn limits(bytes: usize) -> Limits {
        Limits {
            bytes,
            ..Limits::default()
        }
    }

    /// Returns the frames and the errors of an input with a limit of 300 bytes for a message.
    fn read(input: &[u8]) -> (Vec<Frame>, Vec<String>) {
        let (mut frames, mut errors) = (Vec::new(), Vec::new());
        for frame in FrameReader::new(input, limits(300)).in_pieces() {
            match frame {
                Ok(frame) => frames.push(frame),
                Err(error) => errors.push(error.to_string()),
            }
        }
        (frames, errors)
    }

    fn spans(frames: &[Frame]) -> u64 {
        frames.iter().map(|frame| frame.counts.items).sum()
    }

    #[test]
    fn oversized_message_is_split_and_each_part_repeats_its_resource_and_scope() {
        for (resources, scopes, count) in [(40, 1, 3), (1, 40, 3), (1, 1, 120), (2, 3, 20), (1, 1, 1)] {
            let (message, small) = (message(resources, scopes, count), message(1, 1, 1));
            let mut framed = Vec::new();
            append_binary(&message, &mut framed).unwrap();
            append_binary(&small, &mut framed).unwrap();
            for (input, more) in [(&message, 0), (&framed, 1)] {
                let (frames, errors) = read(input);
                assert_eq!(errors, [""; 0]);
                assert_eq!(spans(&frames), (resources * scopes * count + more) as u64);
                for frame in frames {
                    assert_eq!(frame.signal, Signal::Traces);
                    assert!(frame.bytes.len() < 400);
                    let mut line = Vec::new();
                    append_json_line(frame.signal, &frame.bytes, &mut line).unwrap();
                    let line = String::from_utf8(line).unwrap();
                    assert!(line.contains("\"host\"") && line.contains("\"meter\""), "{line}");
                }
            }
        }
    }

    #[test]
    fn schema_urls_of_a_split_resource_and_scope_are_in_the_last_part() {
        let message = message(1, 1, 40);
        let mut reader = Reader::new(&message);
        reader.tag().unwrap();
        let resource = [reader.delimited().unwrap(), b"\x1a\x08resource"].concat();
        let mut with_url = Buffer::default();
        with_url.delimited(1, &resource);
        let (frames, errors) = read(with_url.as_slice());
        assert_eq!(errors, [""; 0]);
        assert_eq!(spans(&frames), 40);
        let lines: Vec<String> = (frames.iter())
            .map(|frame| {
                let mut line = Vec::new();
                append_json_line(frame.signal, &frame.bytes, &mut line).unwrap();
                String::from_utf8(line).unwrap()
            })
            .collect();
        let (last, others) = lines.split_last().unwrap();
        assert!(
            last.contains("\"schemaUrl\":\"resource\"") && last.contains("\"schemaUrl\":\"u\""),
            "{last}"
        );
        assert!(!others.is_empty() && others.iter().all(|line| !line.contains("schemaUrl")));
    }

    #[test]
    fn message_within_the_limit_is_one_frame_with_unchanged_bytes() {
        let message = message(3, 2, 2);
        let frames: Vec<Frame> = FrameReader::new(message.as_slice(), Limits::default())
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(frames.len(), 1);
        assert_eq!((&frames[0].bytes, frames[0].offset), (&message, 0));
    }

    #[test]
    fn truncated_oversized_message_yields_complete_spans_and_the_offset_of_the_cut() {
        for (resources, scopes, count) in [(3, 2, 2), (1, 1, 9)] {
            let message = message(resources, scopes, count);
            let (all, _) = read(&message);
            let mut seen = 0;
            for end in 60..message.len() {
                let (frames, errors) = read(&message[..end]);
                let found = spans(&frames);
                assert!(found >= seen && found <= spans(&all), "{end}");
                seen = found;
                // A message may end between two resources.
                let is_border = message[end] == 0x0a && errors.is_empty();
                assert!(is_border || errors.len() == 1, "{end}: {errors:?}");
                assert!(
                    errors.iter().all(|error| error.contains("before byte ")),
                    "{errors:?}"
                );
            }
            assert_eq!(seen, spans(&all));
        }
    }

    #[test]
    fn oversized_span_is_skipped_and_reported_and_the_others_are_read() {
        let mut message = message(1, 1, 2);
        let mut text = Vec::new();
        append_json_line(Signal::Traces, &message, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let text = text.replacen("\"a\"", &format!("\"{}\"", "a".repeat(1_000)), 1);
        message.clear();
        json::decode(text.as_bytes(), &Limits::default(), &mut message).unwrap();
        let (frames, errors) = read(&message);
        assert_eq!(spans(&frames), 1);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].contains("more than 300 bytes and is left out"),
            "{errors:?}"
        );
    }

    #[test]
    fn malformed_resource_does_not_hide_the_next_message() {
        let good = message(2, 1, 60);
        let mut framed = Vec::new();
        append_binary(&good, &mut framed).unwrap();
        let second = 4 + good.len() / 2;
        // The tag of the second resource's first field gets a wire type that does not exist.
        let length = 1 + good[1..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
        framed[second + length] |= 7;
        append_binary(&message(1, 1, 1), &mut framed).unwrap();
        let (frames, errors) = read(&framed);
        assert_eq!(spans(&frames), 61, "{errors:?}");
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("the rest of this part"), "{errors:?}");
    }
}

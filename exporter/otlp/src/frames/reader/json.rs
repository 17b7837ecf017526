//! Reads frames of OTLP/JSON: one object a line, or objects over several lines.

use std::io::Read;

use super::{Form, Frame, FrameRead, FrameReader, Next};
use crate::{
    frames::{
        error::{FrameError, FrameErrorKind},
        text::{ObjectEnd, begins_otlp, blank_len},
        window::Line,
    },
    json::{self, Dialect, Pieces},
    limits::Limits,
};

/// The number of bytes of a second line that are checked for the beginning of an object.
const LOOK_AHEAD: usize = 64;

impl<R: Read> FrameReader<R> {
    /// Detects JSON lines or documents: text is a document if its first line ends inside the object and the next line begins
    /// no object.
    pub(super) fn form_of_text(&mut self) -> Result<Form, FrameError> {
        self.skip_blank()?;
        let limit = self.max_text();
        let Line::Complete {
            length,
            is_ended: true,
        } = self.find_line(limit)?
        else {
            return Ok(Form::Lines);
        };
        if ObjectEnd::default()
            .find(&self.window.pending()[..length])
            .is_some()
        {
            return Ok(Form::Lines);
        }
        self.fill_to(length + LOOK_AHEAD)?;
        let next_line = &self.window.pending()[length..];
        Ok(if begins_otlp(next_line) {
            Form::Lines
        } else {
            Form::Documents
        })
    }

    /// Returns whether text that does not begin with an object begins with an array of objects. Consumes its bracket.
    pub(super) fn begins_array(&mut self) -> Result<bool, FrameError> {
        self.skip_blank()?;
        if self.window.pending().first() != Some(&b'[') {
            return Ok(false);
        }
        self.fill_to(LOOK_AHEAD)?;
        let inside = self.window.pending()[1..].trim_ascii_start();
        if !matches!(inside.first(), Some(b'{' | b']')) {
            return Ok(false);
        }
        self.consume_text(1);
        Ok(true)
    }

    /// Reads the next line that is not blank as a frame.
    pub(super) fn next_line(&mut self) -> Next {
        self.skip_blank()?;
        let line = match self.find_line(self.max_text()) {
            Ok(line) => line,
            Err(error) => return self.torn_text(error),
        };
        match line {
            Line::None => Ok(FrameRead::End),
            Line::TooLong if self.can_be_read_in_pieces() => self.next_piece(),
            Line::TooLong => {
                let error = self.error(FrameErrorKind::TooLarge(self.max_bytes()));
                let skipped = self.window.skip_line();
                skipped.map_err(|error| self.read_error(error))?;
                self.line += 1;
                Err(error)
            }
            Line::Complete { length, is_ended } => {
                let found = self.decode_text(length, !is_ended);
                self.consume_text(length + usize::from(is_ended));
                found
            }
        }
    }

    /// Reads the next object, over any number of lines, as a frame.
    pub(super) fn next_document(&mut self) -> Next {
        self.skip_brackets()?;
        if self.is_array && self.window.pending().is_empty() {
            return Err(self.last_error(FrameErrorKind::TornTail));
        }
        let (mut end, mut searched) = (ObjectEnd::default(), 0);
        loop {
            let pending = self.window.pending();
            if pending.first().is_some_and(|&byte| byte != b'{') {
                return Err(self.last_error(FrameErrorKind::NotOtlp));
            }
            if let Some(behind) = end.find(&pending[searched..]) {
                let length = searched + behind;
                if length > self.max_text() && self.can_be_read_in_pieces() {
                    return self.next_piece();
                }
                let found = self.decode_text(length, false);
                self.consume_text(length);
                return found;
            }
            searched = pending.len();
            if searched > self.max_text() {
                if self.can_be_read_in_pieces() {
                    return self.next_piece();
                }
                return Err(self.last_error(FrameErrorKind::TooLarge(self.max_bytes())));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) if searched == 0 => return Ok(FrameRead::End),
                Ok(false) => {
                    let error = self.last_error(FrameErrorKind::TornTail);
                    return self.torn_text(error);
                }
                Err(error) => return self.torn_text(error),
            }
        }
    }

    /// Consumes separators between two objects: commas, and the ends and beginnings of arrays.
    fn skip_brackets(&mut self) -> Result<(), FrameError> {
        loop {
            self.skip_blank()?;
            if !self.is_array {
                self.is_array = self.begins_array()?;
                if !self.is_array {
                    return Ok(());
                }
                continue;
            }
            match self.window.pending().first() {
                Some(b']') => self.is_array = false,
                Some(b',') => {}
                _ => return Ok(()),
            }
            self.consume_text(1);
        }
    }

    /// Returns the complete elements of truncated text at the window. The error follows, and then the iteration ends.
    pub(super) fn torn_text(&mut self, error: FrameError) -> Next {
        let pending = self.window.pending();
        let (rest, is_inside) = match &self.pieces {
            Some(pieces) => (pieces.rest(pending), pieces.is_inside()),
            None => (Pieces::default().rest(pending), false),
        };
        let text = &rest.text;
        let closed = text
            .starts_with(b"{")
            .then(|| json::close_truncated(text))
            .flatten();
        let Some((whole, cut)) = closed else {
            return Err(torn_error(error, is_inside.then_some(self.window.offset())));
        };
        match self.decode_json(&whole) {
            Ok((FrameRead::Frame(frame), unknown_fields)) => {
                self.unknown_fields += unknown_fields;
                let complete_until = (self.window.offset() + cut as u64).saturating_add_signed(rest.shift);
                self.pending_error = Some(torn_error(error, Some(complete_until)));
                Ok(FrameRead::Frame(frame))
            }
            _ => Err(error),
        }
    }

    /// Decodes the text at the window; truncated text at the end of the input is a torn tail.
    fn decode_text(&mut self, length: usize, is_last: bool) -> Next {
        let text = &self.window.pending()[..length];
        let found = self.decode_json(text);
        match found {
            Ok((found, unknown_fields)) => {
                self.unknown_fields += unknown_fields;
                Ok(found)
            }
            Err(FrameErrorKind::Json(error)) => {
                let lines = error.line_column(text).0 as u64 - 1;
                let is_torn = is_last && ObjectEnd::default().find(text).is_none();
                if is_torn {
                    let error = self.last_error(FrameErrorKind::TornTail);
                    return self.torn_text(error);
                }
                let error = self.error(FrameErrorKind::Json(error));
                Err(FrameError {
                    line: error.line.map(|line| line + lines),
                    ..error
                })
            }
            Err(kind) => Err(self.error(kind)),
        }
    }

    /// Decodes text into a frame, and returns the number of its unknown fields.
    pub(super) fn decode_json(&self, text: &[u8]) -> Result<(FrameRead, u64), FrameErrorKind> {
        let limits = Limits {
            // The text is within the limit for the input.
            bytes: text.len(),
            ..self.limits.clone()
        };
        let mut bytes = Vec::with_capacity(text.len() / 2);
        let decoded = match json::decode(text, &limits, &mut bytes) {
            Err(error) if self.accepts_protobuf_json => {
                let stored = json::decode_dialect(text, Dialect::Stored, &limits, &mut bytes);
                self.protobuf_json
                    .update(|count| count + u64::from(stored.is_ok()));
                stored.map_err(|_| error)?
            }
            decoded => decoded?,
        };
        let found = match decoded.signal {
            Some(_) if bytes.is_empty() => FrameRead::Empty,
            Some(signal) => FrameRead::Frame(Frame {
                signal,
                bytes,
                offset: self.window.offset(),
                counts: decoded.counts,
            }),
            None if decoded.unknown_fields == 0 => FrameRead::Empty,
            None => return Err(FrameErrorKind::NoSignal),
        };
        if let Some(field) = decoded.first_unknown {
            self.first_unknown
                .get_or_init(|| (field.name, self.window.offset()));
        }
        Ok((found, decoded.unknown_fields))
    }

    /// Consumes white space and a byte order mark.
    fn skip_blank(&mut self) -> Result<(), FrameError> {
        loop {
            let blank = blank_len(self.window.pending());
            self.consume_text(blank);
            if !self.window.pending().is_empty() || !self.fill()? {
                return Ok(());
            }
        }
    }

    pub(super) fn consume_text(&mut self, count: usize) {
        let consumed = &self.window.pending()[..count];
        self.line += memchr::memchr_iter(b'\n', consumed).count() as u64;
        self.window.consume(count);
    }

    fn find_line(&mut self, limit: usize) -> Result<Line, FrameError> {
        let line = self.window.find_line(limit);
        line.map_err(|error| self.read_error(error))
    }
}

/// Adds the offset of the first incomplete element to the error of truncated input.
fn torn_error(error: FrameError, complete_until: Option<u64>) -> FrameError {
    let kind = match (error.kind, complete_until) {
        (FrameErrorKind::TornTail, Some(complete_until)) => FrameErrorKind::TornText { complete_until },
        (kind, _) => kind,
    };
    FrameError { kind, ..error }
}

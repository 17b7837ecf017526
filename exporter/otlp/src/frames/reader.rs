//! Reads the frames of an input in order, and continues after a bad frame.

use std::{
    cell::{Cell, OnceCell},
    io::Read,
};

use super::{
    error::{FrameError, FrameErrorKind},
    input::Input,
    text,
    unframed::is_unframed,
    window::Window,
};
use crate::{
    Signal,
    json::Pieces,
    limits::{Counts, Exceeded, Limit, Limits},
};

mod binary;
mod json;
mod parts;
mod pieces;

use self::parts::Level;

/// The number of bytes at the start of a message that show whether it is length-delimited.
const UNFRAMED_HEAD: usize = 1 << 10;

/// One message of an input, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The signal.
    pub signal: Signal,
    /// The message as protobuf, regardless of the format of the input.
    pub bytes: Vec<u8>,
    /// The offset of the message in the decompressed input, in bytes.
    pub offset: u64,
    /// The counts of its content.
    pub counts: Counts,
}

/// Iterates over the frames of an input, up to its end or to an error that cannot be skipped.
///
/// At most one frame is in memory, within the limits. If text is truncated, its complete spans, metrics and log records are
/// returned as a frame, and then the error. Empty messages have no signal; they are counted and not returned.
///
/// ```
/// # use pulsetrain_otlp::{frames::FrameReader, limits::Limits};
/// let file = "{\"resourceLogs\":[{}]}\nnot JSON\n{\"resourceSpans\":[{}]}\n";
/// let frames: Vec<_> = FrameReader::new(file.as_bytes(), Limits::default()).collect();
/// assert!(frames[0].is_ok() && frames[2].is_ok());
/// assert_eq!(frames[1].as_ref().unwrap_err().to_string(), "line 2: expected an object at byte 0");
/// ```
pub struct FrameReader<R: Read> {
    window: Window<Input<R>>,
    limits: Limits,
    form: Form,
    /// The number of the line that begins at the window.
    line: u64,
    empty_frames: u64,
    unknown_fields: u64,
    /// The name of the first unknown field, and the offset of its object.
    first_unknown: OnceCell<(String, u64)>,
    /// An error that follows the frame that was returned last.
    pending_error: Option<FrameError>,
    /// The protobuf message that is being split, innermost level last; empty outside such a message.
    levels: Vec<Level>,
    /// The state of objects that are read in pieces, if that is enabled.
    pieces: Option<Pieces>,
    /// Whether the objects are the elements of a JSON array.
    is_array: bool,
    /// Whether JSON in protobuf's own mapping is accepted, and the number of such objects so far.
    accepts_protobuf_json: bool,
    protobuf_json: Cell<u64>,
}

/// The format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Not yet known.
    Unknown,
    /// One JSON object a line.
    Lines,
    /// JSON objects over several lines, or in an array.
    Documents,
    /// Length-delimited messages.
    Binary,
    /// One protobuf message, up to the end of the input.
    Unframed,
    /// The end of the input.
    Ended,
}

/// The result of reading one frame.
enum FrameRead {
    Frame(Frame),
    /// An empty message.
    Empty,
    /// The end of the input.
    End,
}

type Next = Result<FrameRead, FrameError>;

impl<R: Read> FrameReader<R> {
    /// Creates a reader of an input. Nothing is read before the first call of `next`.
    pub fn new(input: R, limits: Limits) -> Self {
        Self {
            window: Window::new(Input::Unread(input)),
            limits,
            form: Form::Unknown,
            line: 1,
            empty_frames: 0,
            unknown_fields: 0,
            first_unknown: OnceCell::new(),
            pending_error: None,
            levels: Vec::new(),
            pieces: None,
            is_array: false,
            accepts_protobuf_json: false,
            protobuf_json: Cell::new(0),
        }
    }

    /// Also reads JSON in protobuf's own mapping, as `MessageToJson` writes it: ids in base64, enum values by name.
    pub fn accept_protobuf_json(mut self) -> Self {
        self.accepts_protobuf_json = true;
        self
    }

    /// Returns the number of objects in protobuf's own mapping so far.
    pub fn protobuf_json(&self) -> u64 {
        self.protobuf_json.get()
    }

    /// Also reads messages larger than the limit, as several frames. Length-delimited messages must be
    /// smaller than 144 MiB.
    pub fn in_pieces(mut self) -> Self {
        self.pieces = Some(Pieces::default());
        self
    }

    /// Returns the number of empty messages so far.
    pub fn empty_frames(&self) -> u64 {
        self.empty_frames
    }

    /// Returns the number of unknown OTLP/JSON fields that were ignored so far.
    pub fn unknown_fields(&self) -> u64 {
        self.unknown_fields
    }

    /// Returns the name of the first unknown OTLP/JSON field, and the offset of its object in the decompressed input.
    pub fn first_unknown(&self) -> Option<(&str, u64)> {
        let (name, offset) = self.first_unknown.get()?;
        Some((name.as_str(), *offset))
    }

    fn next_found(&mut self) -> Next {
        if let Some(error) = self.pending_error.take() {
            return Err(error);
        }
        if self.form == Form::Unknown
            && let Err(error) = self.find_form()
        {
            return self.torn_text(error);
        }
        if self.form != Form::Ended && self.pieces.as_ref().is_some_and(Pieces::is_inside) {
            return self.next_piece();
        }
        if self.form != Form::Ended && !self.levels.is_empty() {
            return self.next_part();
        }
        match self.form {
            Form::Lines => self.next_line(),
            Form::Documents => self.next_document(),
            Form::Binary => self.next_binary(),
            Form::Unknown | Form::Unframed | Form::Ended => Ok(FrameRead::End),
        }
    }

    fn find_form(&mut self) -> Result<(), FrameError> {
        let Some(first) = self.first_byte()? else {
            self.form = Form::Ended;
            return Ok(());
        };
        self.form = if self.is_unframed_at(0, usize::MAX)? {
            self.levels.push(Level::until(u64::MAX));
            Form::Unframed
        } else if first == b'{' {
            self.form_of_text()?
        } else if self.begins_array()? {
            self.is_array = true;
            Form::Documents
        } else if let Some(length) = self.first_length()?
            && (length <= self.max_bytes().allowed || self.can_cut(length)?)
        {
            Form::Binary
        } else {
            return Err(self.last_error(FrameErrorKind::NotOtlp));
        };
        Ok(())
    }

    /// Returns the first byte that is not white space.
    fn first_byte(&mut self) -> Result<Option<u8>, FrameError> {
        let limit = self.max_bytes().allowed;
        loop {
            let pending = self.window.pending();
            let blank = text::blank_len(pending);
            if blank > limit {
                return Err(self.last_error(FrameErrorKind::NotOtlp));
            }
            if pending.len() > blank.max(text::BOM.len()) || !self.fill()? {
                let pending = self.window.pending();
                return Ok(pending.get(text::blank_len(pending)).copied());
            }
        }
    }

    /// Returns the first four bytes as a length.
    fn first_length(&mut self) -> Result<Option<usize>, FrameError> {
        self.fill_to(4)?;
        let head = self.window.pending().first_chunk::<4>();
        Ok(head.map(|head| u32::from_be_bytes(*head) as usize))
    }

    /// Returns whether a protobuf message of up to `length` bytes begins at an offset in the window.
    fn is_unframed_at(&mut self, at: usize, length: usize) -> Result<bool, FrameError> {
        self.fill_to(at + 1)?;
        // From inputs of other formats, no more is read than necessary: they may be a pipe.
        if self.window.pending().get(at) != Some(&b'\n') {
            return Ok(false);
        }
        let length = length.min(UNFRAMED_HEAD);
        self.fill_to(at + length)?;
        let head = &self.window.pending()[at..];
        Ok(is_unframed(&head[..head.len().min(length)]))
    }

    /// Returns the largest allowed size of a frame and the limit that sets it.
    fn max_bytes(&self) -> Exceeded {
        let (limit, allowed) = if self.window.input().is_compressed() {
            (Limit::InflatedBytes, self.limits.inflated_bytes)
        } else {
            (Limit::Bytes, self.limits.bytes)
        };
        Exceeded { limit, allowed }
    }

    fn fill(&mut self) -> Result<bool, FrameError> {
        let filled = self.window.fill();
        filled.map_err(|error| self.read_error(error))
    }

    fn fill_to(&mut self, count: usize) -> Result<bool, FrameError> {
        let filled = self.window.fill_to(count);
        filled.map_err(|error| self.read_error(error))
    }

    /// Returns an error of the input itself, which ends the iteration. Truncated compressed input is a torn tail.
    fn read_error(&mut self, error: std::io::Error) -> FrameError {
        self.last_error(match error.kind() {
            std::io::ErrorKind::UnexpectedEof => FrameErrorKind::TornTail,
            _ => FrameErrorKind::Read(error),
        })
    }

    /// Returns an error and ends the iteration.
    pub(super) fn last_error(&mut self, kind: FrameErrorKind) -> FrameError {
        let error = self.error(kind);
        self.form = Form::Ended;
        error
    }

    /// Returns an error for the frame that begins at the window.
    pub(super) fn error(&self, kind: FrameErrorKind) -> FrameError {
        FrameError {
            kind,
            offset: self.window.offset(),
            line: matches!(self.form, Form::Lines | Form::Documents).then_some(self.line),
        }
    }
}

impl<R: Read> Iterator for FrameReader<R> {
    type Item = Result<Frame, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_found() {
                Ok(FrameRead::Frame(frame)) => return Some(Ok(frame)),
                Ok(FrameRead::Empty) => self.empty_frames += 1,
                Ok(FrameRead::End) => {
                    self.form = Form::Ended;
                    return None;
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<R: Read> std::fmt::Debug for FrameReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameReader")
            .field("form", &self.form)
            .field("offset", &self.window.offset())
            .finish_non_exhaustive()
    }
}

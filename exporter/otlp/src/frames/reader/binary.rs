//! Reads length-delimited protobuf; each message may be compressed separately.

use std::{borrow::Cow, io::Read};

use super::{Frame, FrameRead, FrameReader, Level, Next};
use crate::{
    Signal,
    check::check,
    frames::{
        error::{FrameError, FrameErrorKind},
        input::is_zstd,
        signal_of::signal_of,
    },
    limits::{Exceeded, Limit, Limits},
};

/// The size of a length prefix in bytes.
const HEAD: usize = 4;

/// From this length on, a length prefix may begin with the same byte as text.
const MAX_SPLIT_BYTES: usize = 144 << 20;

impl<R: Read> FrameReader<R> {
    /// Returns the next length-delimited message as a frame.
    pub(super) fn next_binary(&mut self) -> Next {
        let is_whole = self.fill_to(HEAD)?;
        let Some(head) = self.window.pending().first_chunk::<HEAD>() else {
            debug_assert!(!is_whole);
            return match self.window.pending() {
                [] => Ok(FrameRead::End),
                _ => Err(self.last_error(FrameErrorKind::TornTail)),
            };
        };
        let length = u32::from_be_bytes(*head) as usize;
        let most = self.max_bytes();
        if length > most.allowed {
            if self.can_cut(length)? {
                self.window.consume(HEAD);
                let end = self.window.offset() + length as u64;
                self.levels.push(Level::until(end));
                return self.next_part();
            }
            return Err(self.skip_message(length, most));
        }
        if !self.fill_to(HEAD + length)? {
            return Err(self.last_error(FrameErrorKind::TornTail));
        }
        let message = &self.window.pending()[HEAD..HEAD + length];
        let found = self.decode_message(message);
        let found = found.map_err(|kind| self.error(kind));
        self.window.consume(HEAD + length);
        let (found, unknown_fields) = found?;
        self.unknown_fields += unknown_fields;
        Ok(found)
    }

    /// Returns whether the message at the window, which exceeds the limit, is read in parts.
    pub(super) fn can_cut(&mut self, length: usize) -> Result<bool, FrameError> {
        Ok(self.pieces.is_some() && length < MAX_SPLIT_BYTES && self.is_unframed_at(HEAD, length)?)
    }

    /// Skips a message that is too large and returns the error.
    fn skip_message(&mut self, length: usize, most: Exceeded) -> FrameError {
        let error = self.error(FrameErrorKind::TooLarge(most));
        match self.window.skip(HEAD + length) {
            Ok(true) => error,
            Ok(false) => self.last_error(FrameErrorKind::TornTail),
            Err(fault) => self.read_error(fault),
        }
    }

    fn decode_message(&self, message: &[u8]) -> Result<(FrameRead, u64), FrameErrorKind> {
        let message = match is_zstd(message) {
            true => Cow::Owned(inflate(message, &self.limits)?),
            false => Cow::Borrowed(message),
        };
        // No white space is skipped first: the length prefix of a resource of 123 bytes begins with a line end and a brace.
        if message.first() == Some(&b'{') {
            return self.decode_json(&message);
        }
        Ok((self.decode_protobuf(message.into_owned())?, 0))
    }

    pub(super) fn decode_protobuf(&self, bytes: Vec<u8>) -> Result<FrameRead, FrameErrorKind> {
        let limits = Limits {
            // The message is within the limit for the input.
            bytes: bytes.len(),
            ..self.limits.clone()
        };
        let Some(signal) = signal_of(&bytes) else {
            // The outer layers are the same in all signals, so the descriptor of any of them counts the items.
            let counts = check(Signal::Traces, &bytes, &limits)?;
            return match counts.items {
                0 => Ok(FrameRead::Empty),
                _ => Err(FrameErrorKind::UnknownSignal),
            };
        };
        Ok(FrameRead::Frame(Frame {
            signal,
            counts: check(signal, &bytes, &limits)?,
            bytes,
            offset: self.window.offset(),
        }))
    }
}

/// Decompresses the message in a zstd frame.
fn inflate(frame: &[u8], limits: &Limits) -> Result<Vec<u8>, FrameErrorKind> {
    let allowed = limits.inflated_bytes;
    let mut message = Vec::new();
    let decoder = zstd::Decoder::with_buffer(frame).map_err(FrameErrorKind::Inflate)?;
    decoder
        .take(allowed as u64 + 1)
        .read_to_end(&mut message)
        .map_err(FrameErrorKind::Inflate)?;
    if message.len() > allowed {
        let limit = Limit::InflatedBytes;
        return Err(FrameErrorKind::TooLarge(Exceeded { limit, allowed }));
    }
    Ok(message)
}

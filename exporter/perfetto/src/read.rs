//! The reader: an iterator over the items of a trace, with interned strings, defaults and clocks resolved.
//!
//! `packets` splits an input into packets, `decoder` processes them one by one, and `sequence` keeps the state that they rely
//! on. `decode` turns packets into the values of `item`. `clock` converts times to the wall clock,
//! and `counters` values to absolute ones.

mod clock;
mod counters;
mod decode;
mod decoder;
mod error;
mod item;
mod packets;
mod sequence;

use std::io::Read;

use self::packets::Packets;
pub use self::{
    decoder::{ReadCounts, TraceDecoder},
    error::{ReadError, ReadErrorKind},
    item::{AnnotationData, CounterReading, EventKind, Item, LogItem, Time, TraceEvent, Track, TrackKind},
};
use crate::{WireError, field::packet, wire::Fields};

/// Reads a trace: an iterator over its items.
///
/// Gzip and zstd files and compressed packets are inflated. For a malformed packet the reader returns an error with the
/// packet's offset and reads the next one. For an input that ends inside a packet it returns an error with the offset at which
/// that packet begins, and then ends. It also ends after bytes that begin no packet, and after a packet above 256 MiB. At most
/// one packet is in memory.
///
/// ```
/// # use pulsetrain_perfetto::TraceReader;
/// let cut = b"\x0a\x02\x68\x01\x0a\x05\x68";
/// let read: Vec<_> = TraceReader::new(&cut[..]).collect();
/// assert_eq!(read[0].as_ref().unwrap_err().to_string(), "byte 4: the trace ends in the middle of a packet");
/// ```
#[derive(Debug)]
pub struct TraceReader<R: Read> {
    packets: Packets<R>,
    decoder: TraceDecoder,
}

impl<R: Read> TraceReader<R> {
    /// Creates a reader of an input. Nothing is read before the first call of `next`.
    pub fn new(input: R) -> Self {
        Self {
            packets: Packets::new(input),
            decoder: TraceDecoder::default(),
        }
    }

    /// Returns the counts of packets that were read and skipped so far.
    pub fn counts(&self) -> ReadCounts {
        self.decoder.counts()
    }
}

impl<R: Read> Iterator for TraceReader<R> {
    type Item = Result<Item, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.decoder.next_ready() {
                return Some(ready);
            }
            match self.packets.next_packet() {
                Ok(None) => return None,
                Ok(Some((offset, bytes))) => self.decoder.packet(&bytes, offset),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The fields of a packet that the reader uses.
#[derive(Default)]
struct Packet<'a> {
    timestamp: Option<u64>,
    clock_id: Option<u64>,
    sequence_id: u64,
    flags: u64,
    interned: Vec<&'a [u8]>,
    defaults: Option<&'a [u8]>,
    clocks: Option<&'a [u8]>,
    event: Option<&'a [u8]>,
    track: Option<&'a [u8]>,
    log: Option<&'a [u8]>,
    attributes: Option<&'a [u8]>,
    zlib: Option<&'a [u8]>,
    zstd: Option<&'a [u8]>,
}

impl<'a> Packet<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut packet = Self::default();
        for field in Fields::new(bytes) {
            let (number, value) = field?;
            match number {
                packet::TIMESTAMP => packet.timestamp = Some(value.number()),
                packet::TIMESTAMP_CLOCK_ID => packet.clock_id = Some(value.number()),
                packet::SEQUENCE_ID => packet.sequence_id = value.number(),
                packet::SEQUENCE_FLAGS => packet.flags = value.number(),
                packet::INTERNED_DATA => packet.interned.push(value.bytes()),
                packet::DEFAULTS => packet.defaults = Some(value.bytes()),
                packet::CLOCK_SNAPSHOT => packet.clocks = Some(value.bytes()),
                packet::TRACK_EVENT => packet.event = Some(value.bytes()),
                packet::TRACK_DESCRIPTOR => packet.track = Some(value.bytes()),
                packet::ANDROID_LOG => packet.log = Some(value.bytes()),
                packet::TRACE_ATTRIBUTES => packet.attributes = Some(value.bytes()),
                packet::COMPRESSED_PACKETS => packet.zlib = Some(value.bytes()),
                packet::ZSTD_COMPRESSED_PACKETS => packet.zstd = Some(value.bytes()),
                _ => {}
            }
        }
        Ok(packet)
    }

    /// Returns whether the packet does nothing but set up state.
    fn only_state(&self) -> bool {
        self.timestamp.is_none() && (!self.interned.is_empty() || self.defaults.is_some() || self.flags != 0)
    }
}

#[cfg(test)]
mod tests;

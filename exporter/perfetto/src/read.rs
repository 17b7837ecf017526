//! The reader: what a trace holds, one item after the other, with interned strings, defaults and clocks resolved.
//!
//! `packets` cuts an input into packets; `sequence` keeps what packets rely on; `item` says what comes out, `decode` makes
//! it of packets; `clock` brings times onto the wall clock.

mod clock;
mod decode;
mod error;
mod item;
mod packets;
mod sequence;

use std::{
    collections::{HashMap, VecDeque},
    io::Read,
};

use self::{clock::Clocks, packets::Packets, sequence::Sequence};
pub use self::{
    error::{ReadError, ReadErrorKind},
    item::{AnnotationData, CounterReading, EventKind, Item, LogItem, Time, TraceEvent, Track, TrackKind},
};
use crate::{
    WireError,
    field::packet,
    wire::{Fields, Value},
};

/// What a reader has seen and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Packets, those inside compressed ones included.
    pub packets: u64,
    /// Packets of a kind that the reader does not know: scheduling, memory and whatever else Perfetto records.
    pub unknown: u64,
    /// Packets that rely on state which was lost, and are left out as Perfetto says they must be.
    pub without_state: u64,
}

/// Reads a trace; an iterator over what it holds.
///
/// Whole files that are gzip or zstd are inflated, compressed packets too. A packet that makes no sense is an error with
/// its place and the next one is read; an input that ends inside a packet is an error with the place where that packet
/// begins, and the end. No more than one packet is in memory.
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
    sequences: HashMap<u64, Sequence>,
    clocks: Clocks,
    ready: VecDeque<Result<Item, ReadError>>,
    counts: ReadCounts,
}

impl<R: Read> TraceReader<R> {
    /// Reads from an input, which is not touched before the first item is asked for.
    pub fn new(input: R) -> Self {
        Self {
            packets: Packets::new(input),
            sequences: HashMap::new(),
            clocks: Clocks::default(),
            ready: VecDeque::new(),
            counts: ReadCounts::default(),
        }
    }

    /// What has been seen and left out so far.
    pub fn counts(&self) -> ReadCounts {
        self.counts
    }

    /// Takes in one packet; what it holds is then ready.
    fn read_packet(&mut self, bytes: &[u8], offset: u64) {
        if let Err(kind) = self.take(bytes, offset, false) {
            self.ready.push_back(Err(ReadError { kind, offset }));
        }
    }

    fn take(&mut self, bytes: &[u8], offset: u64, nested: bool) -> Result<(), ReadErrorKind> {
        self.counts.packets += 1;
        let packet = Packet::read(bytes)?;
        for (zstd, bundle) in [(false, packet.zlib), (true, packet.zstd)] {
            if let Some(bundle) = bundle.filter(|_| !nested) {
                return self.take_bundle(bundle, zstd, offset);
            }
        }
        let sequence = self.sequences.entry(packet.sequence_id).or_default();
        sequence.begin(&packet)?;
        if packet.flags & packet::NEEDS_STATE != 0 && !sequence.is_valid() {
            self.counts.without_state += 1;
            return Ok(());
        }
        if let Some(snapshot) = packet.clocks {
            self.clocks.tie(packet.sequence_id, snapshot, sequence)?;
        }
        let known = decode::packet(&packet, sequence, &self.clocks, &mut self.ready)?;
        if !known && packet.clocks.is_none() && !packet.only_state() {
            self.counts.unknown += 1;
        }
        Ok(())
    }

    fn take_bundle(&mut self, bundle: &[u8], zstd: bool, offset: u64) -> Result<(), ReadErrorKind> {
        let inflated = packets::inflate(bundle, zstd)?;
        for field in Fields::new(&inflated) {
            if let (crate::field::trace::PACKET, Value::Bytes(bytes)) = field? {
                self.take(bytes, offset, true)?;
            }
        }
        Ok(())
    }
}

impl<R: Read> Iterator for TraceReader<R> {
    type Item = Result<Item, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            match self.packets.next_packet() {
                Ok(None) => return None,
                Ok(Some((offset, bytes))) => self.read_packet(&bytes, offset),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The fields of a packet that are of use.
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

    /// Whether the packet does nothing but set up state.
    fn only_state(&self) -> bool {
        self.timestamp.is_none() && (!self.interned.is_empty() || self.defaults.is_some() || self.flags != 0)
    }
}

#[cfg(test)]
mod tests;

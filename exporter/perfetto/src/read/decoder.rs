//! Decodes packets into items and keeps the state of sequences and clocks between packets.

use std::collections::{HashMap, VecDeque};

use super::{
    Item, Packet, ReadError, ReadErrorKind,
    clock::Clocks,
    counters::Counters,
    decode,
    packets::{self, NextPacket},
    sequence::Sequence,
};
use crate::{
    field::packet,
    wire::{FieldValue, Fields},
};

/// The counts of packets that a reader has read and skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Packets, those inside compressed ones included.
    pub packets: u64,
    /// Packets of a type that the reader does not know, such as scheduling and memory events.
    pub unknown: u64,
    /// Packets that rely on lost state; they are skipped, as Perfetto requires.
    pub without_state: u64,
}

/// Decodes a trace that arrives in chunks, such as a file that is still being written. It inflates compressed packets, but no
/// file in gzip or zstd. Bytes that are left at the end of the input are an incomplete packet.
///
/// ```
/// # use pulsetrain_perfetto::{TraceDecoder, TraceWriter, Process};
/// # let mut trace = TraceWriter::new(Vec::new());
/// # trace.process(&Process { pid: 1, name: "rank 0", ..Process::default() })?;
/// # let trace = trace.finish()?;
/// let (mut decoder, mut items) = (TraceDecoder::default(), 0);
/// let mut unread = Vec::new();
/// for piece in trace.chunks(7) {
///     unread.extend_from_slice(piece);
///     let done = decoder.decode(&unread, |item| items += u32::from(item.is_ok()))?;
///     unread.drain(..done);
/// }
/// assert_eq!((items, unread.len()), (2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct TraceDecoder {
    sequences: Vec<Sequence>,
    /// The indices of sequences by their ids.
    places: HashMap<u64, usize>,
    /// The sequence of the last packet, which is usually that of the next packet too.
    last: Option<(u64, usize)>,
    clocks: Clocks,
    counters: Counters,
    ready: VecDeque<Result<Item, ReadError>>,
    counts: ReadCounts,
}

impl TraceDecoder {
    /// Returns the counts of packets that were read and skipped so far.
    pub fn counts(&self) -> ReadCounts {
        self.counts
    }

    /// Decodes all complete packets at the beginning of `bytes`, passes each item to `each` and returns the number of bytes
    /// consumed. The next call must begin with the bytes that were not consumed. Offsets in errors count from the start of
    /// `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a trace, or no longer one: nothing after that offset can be read.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Result<Item, ReadError>),
    ) -> Result<usize, ReadError> {
        let mut done = 0;
        loop {
            let cut = packets::cut(&bytes[done..]).map_err(|kind| ReadError {
                kind,
                offset: done as u64,
            })?;
            let NextPacket::Complete { packet, len } = cut else {
                return Ok(done);
            };
            self.packet(packet, done as u64);
            self.ready.drain(..).for_each(&mut each);
            done += len;
        }
    }

    /// Returns the next item that was decoded and not yet returned.
    pub(super) fn next_ready(&mut self) -> Option<Result<Item, ReadError>> {
        self.ready.pop_front()
    }

    /// Decodes one packet and appends its items to the ready queue.
    pub(super) fn packet(&mut self, bytes: &[u8], offset: u64) {
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
        let place = self.place(packet.sequence_id);
        let sequence = &mut self.sequences[place];
        if packet.flags & packet::STATE_CLEARED != 0 {
            self.counters.clear(packet.sequence_id);
        }
        sequence.begin(&packet)?;
        if packet.flags & packet::NEEDS_STATE != 0 && !sequence.is_valid() {
            self.counts.without_state += 1;
            return Ok(());
        }
        if let Some(snapshot) = packet.clocks {
            self.clocks.add_snapshot(packet.sequence_id, snapshot, sequence)?;
        }
        let known = decode::packet(
            &packet,
            sequence,
            &self.clocks,
            &mut self.counters,
            &mut self.ready,
        )?;
        if !known && packet.clocks.is_none() && !packet.only_state() {
            self.counts.unknown += 1;
        }
        Ok(())
    }

    /// Returns the index of a sequence and adds the sequence if it is new.
    fn place(&mut self, sequence_id: u64) -> usize {
        if let Some((last, place)) = self.last
            && last == sequence_id
        {
            return place;
        }
        let place = *self.places.entry(sequence_id).or_insert_with(|| {
            self.sequences.push(Sequence::default());
            self.sequences.len() - 1
        });
        self.last = Some((sequence_id, place));
        place
    }

    fn take_bundle(&mut self, bundle: &[u8], zstd: bool, offset: u64) -> Result<(), ReadErrorKind> {
        let inflated = packets::inflate(bundle, zstd)?;
        for field in Fields::new(&inflated) {
            if let (crate::field::trace::PACKET, FieldValue::Bytes(bytes)) = field? {
                self.take(bytes, offset, true)?;
            }
        }
        Ok(())
    }
}

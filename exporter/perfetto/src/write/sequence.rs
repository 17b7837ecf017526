//! A sequence: packets of one track or of several, each relative to the previous one.
//!
//! Times are deltas of an incremental clock, strings are interned, and one track is the default, so that an event costs a few
//! bytes. An event of another track includes the uuid of that track, in 11 bytes. The first packet sets up this state. Later
//! packets set it up again at intervals, so that a trace that is truncated or split can still be read from there on.

use super::{annotation::Encoder, intern::Strings};
use crate::{
    field::{clock, defaults, event, packet, trace},
    wire::{Block, Buffer, varint_len},
};

/// The incremental clock of every sequence; only ids from 64 to 127 are local to a sequence.
const CLOCK: u64 = clock::FIRST_OF_SEQUENCE;

/// The progress of a sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// `None` if the next packet has to set up the state.
    state: Option<SequenceState>,
    begun: bool,
}

#[derive(Debug)]
struct SequenceState {
    /// `None` until an event has a string; most counters have no strings.
    strings: Option<Box<Strings>>,
    last_nanos: u64,
    /// The track of events without a track uuid.
    track_uuid: u64,
    bytes: usize,
    /// Whether the string tables are full, so that the state should be set up again.
    full: bool,
    /// The bytes after the time in each packet: `id` is the sequence id, and `end` also has the event of a slice's end.
    id: Block,
    end: Block,
}

/// The parameters of the packets of one track: its sequence, the track and the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) id: u32,
    pub(super) track_uuid: u64,
    /// The start of the incremental clock.
    pub(super) base_nanos: u64,
    /// The number of bytes after which the state is set up again.
    pub(super) clear_every: usize,
}

impl Sequence {
    /// Writes one event, whose content `fill` adds.
    #[inline]
    pub(super) fn event(
        &mut self,
        head: Head,
        unix_nanos: u64,
        encoder: &mut Encoder,
        out: &mut Buffer,
        fill: impl FnOnce(&mut Encoder),
    ) {
        let state = self.state(head, out);
        encoder.body.clear();
        encoder.news.clear();
        if let Some(strings) = &mut state.strings {
            std::mem::swap(strings, &mut encoder.strings);
        }
        encoder.strings.begin();
        encoder.seen.sequence = head.id;
        if head.track_uuid != state.track_uuid {
            encoder.body.uint(event::TRACK_UUID, head.track_uuid);
        }
        fill(encoder);
        match &mut state.strings {
            Some(strings) => std::mem::swap(strings, &mut encoder.strings),
            none if encoder.news.len() > 0 => *none = Some(std::mem::take(&mut encoder.strings)),
            _ => {}
        }
        let delta = unix_nanos.wrapping_sub(state.last_nanos);
        state.last_nanos = unix_nanos;
        let before = out.len();
        event_packet(state.id, delta, encoder, out);
        state.bytes += out.len() - before;
        if encoder.news.len() > 0 {
            state.full = state.strings.as_ref().is_some_and(|strings| strings.is_full());
        }
    }

    /// Writes the end of a slice without any content, which is half of all packets.
    #[inline]
    pub(super) fn end(&mut self, head: Head, unix_nanos: u64, out: &mut Buffer) {
        let state = self.state(head, out);
        let delta = unix_nanos.wrapping_sub(state.last_nanos);
        state.last_nanos = unix_nanos;
        let before = out.len();
        if head.track_uuid == state.track_uuid {
            packet_head(state.end, delta, 0, out);
        } else {
            let body = Block::uint(event::TYPE, event::SLICE_END)
                .then(Block::uint(event::TRACK_UUID, head.track_uuid));
            let head = Block::head(packet::TRACK_EVENT, body.len());
            packet_head(state.id.then(head), delta, body.len(), out);
            out.block(body);
        }
        state.bytes += out.len() - before;
    }

    #[inline]
    fn state(&mut self, head: Head, out: &mut Buffer) -> &mut SequenceState {
        let worn = |state: &SequenceState| state.bytes >= head.clear_every || state.full;
        if self.state.as_ref().is_some_and(worn) {
            self.state = None;
        }
        let begun = &mut self.begun;
        self.state
            .get_or_insert_with(|| SequenceState::begin(head, begun, out))
    }
}

impl SequenceState {
    #[cold]
    fn begin(head: Head, begun: &mut bool, out: &mut Buffer) -> Self {
        state_packet(head, !std::mem::replace(begun, true), out);
        let id = Block::uint(packet::SEQUENCE_ID, u64::from(head.id));
        let kind = Block::uint(event::TYPE, event::SLICE_END);
        Self {
            strings: None,
            last_nanos: head.base_nanos,
            track_uuid: head.track_uuid,
            bytes: 0,
            full: false,
            id,
            end: id.then(Block::head(packet::TRACK_EVENT, kind.len())).then(kind),
        }
    }
}

/// Writes the packet that all later ones rely on: it clears the state, and sets the clocks and the defaults.
fn state_packet(head: Head, first: bool, out: &mut Buffer) {
    out.message(trace::PACKET, |out| {
        out.uint(packet::SEQUENCE_ID, u64::from(head.id));
        out.uint(
            packet::SEQUENCE_FLAGS,
            packet::STATE_CLEARED | packet::NEEDS_STATE,
        );
        if first {
            out.uint(packet::FIRST_ON_SEQUENCE, 1);
        }
        out.message(packet::CLOCK_SNAPSHOT, |snapshot| {
            clocks(head.base_nanos, snapshot);
        });
        out.message(packet::DEFAULTS, |out| {
            out.uint(defaults::TIMESTAMP_CLOCK_ID, CLOCK);
            out.message(defaults::TRACK_EVENT, |out| {
                out.uint(defaults::EVENT_TRACK_UUID, head.track_uuid);
            });
        });
    });
}

/// Writes the same instant on the wall clock and on the sequence's clock. All sequences of a trace have the same snapshot,
/// since readers reject clocks that go backwards.
fn clocks(base_nanos: u64, snapshot: &mut Buffer) {
    snapshot.message(clock::CLOCKS, |out| {
        out.uint(clock::ID, clock::REALTIME);
        out.uint(clock::TIMESTAMP, base_nanos);
    });
    snapshot.message(clock::CLOCKS, |out| {
        out.uint(clock::ID, CLOCK);
        out.uint(clock::TIMESTAMP, base_nanos);
        out.uint(clock::IS_INCREMENTAL, 1);
        out.uint(clock::UNIT_MULTIPLIER_NS, 1);
    });
    snapshot.uint(clock::PRIMARY, clock::REALTIME);
}

/// Writes the packet of an event. It does not have the flag that it needs the state (two bytes): with the flag, a reader would
/// skip it if packets were lost in a ring buffer, and in a file the state always comes first.
#[inline]
fn event_packet(id: Block, delta: u64, encoder: &Encoder, out: &mut Buffer) {
    let (body, news) = (encoder.body.as_slice(), encoder.news.as_slice());
    let head = Block::head(packet::TRACK_EVENT, body.len());
    if news.is_empty() {
        packet_head(id.then(head), delta, body.len(), out);
    } else {
        let news_len = 1 + varint_len(news.len() as u64) + news.len();
        packet_head(id, delta, news_len + head.len() + body.len(), out);
        out.delimited(packet::INTERNED_DATA, news);
        out.block(head);
    }
    out.append(body);
}

/// Writes the head of a packet: its length, its time and the next fields; `rest` bytes follow.
#[inline]
fn packet_head(next: Block, delta: u64, rest: usize, out: &mut Buffer) {
    const PACKET: u64 = (trace::PACKET << 3 | 2) as u64;
    const TIMESTAMP: u64 = (packet::TIMESTAMP << 3) as u64;
    // Most packets are short, and at most half a minute after the previous one.
    if delta < 1 << 35 {
        let (time, time_len) = Block::five_bytes(delta);
        let length = 1 + time_len + next.len() + rest;
        let head = Block::new(
            PACKET | (length as u64) << 8 | TIMESTAMP << 16 | time << 24,
            3 + time_len,
        );
        if length < 0x80
            && let Some(block) = head.checked_then(next)
        {
            return out.block(block);
        }
    }
    let time = Block::uint(packet::TIMESTAMP, delta);
    let head = Block::head(trace::PACKET, time.len() + next.len() + rest);
    [head, time, next].into_iter().for_each(|block| out.block(block));
}

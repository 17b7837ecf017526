//! Clocks: converts the timestamps of packets to the wall clock.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{
    Packet,
    item::Time,
    sequence::{Sequence, SequenceClock},
};
use crate::{
    WireError,
    field::clock,
    wire::{FieldValue, Fields},
};

/// A clock of the trace, or of one of its sequences.
type ClockId = (u64, u64);

const REALTIME: ClockId = (0, clock::REALTIME);

/// The clock snapshots of a trace, each with the readings of several clocks at one instant.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    snapshots: Vec<Vec<(ClockId, u64)>>,
    /// The indices of the snapshots that contain a clock.
    of_clock: HashMap<ClockId, Vec<usize>>,
}

#[derive(Clone, Copy)]
struct Reading {
    id: u64,
    ticks: u64,
    incremental: bool,
    unit: u64,
}

impl Clocks {
    /// Adds a snapshot.
    pub(super) fn add_snapshot(
        &mut self,
        sequence_id: u64,
        snapshot: &[u8],
        sequence: &mut Sequence,
    ) -> Result<(), WireError> {
        let mut tied = Vec::new();
        for field in Fields::new(snapshot) {
            if let (clock::CLOCKS, FieldValue::Bytes(bytes)) = field? {
                let reading = reading(bytes)?;
                let nanos = reading.ticks.wrapping_mul(reading.unit);
                if is_of_sequence(reading.id) {
                    let at = reading.incremental.then_some(nanos);
                    let unit = reading.unit;
                    sequence.clocks.insert(reading.id, SequenceClock { at, unit });
                }
                tied.push((clock_id(sequence_id, reading.id), nanos));
            }
        }
        // Most writers repeat the same snapshot; one of each is enough.
        if self.snapshots.last() != Some(&tied) {
            let index = self.snapshots.len();
            tied.iter()
                .for_each(|(id, _)| self.of_clock.entry(*id).or_default().push(index));
            self.snapshots.push(tied);
        }
        Ok(())
    }

    /// Returns the time of a packet.
    pub(super) fn time(&self, packet: &Packet<'_>, sequence: &mut Sequence) -> Time {
        let ticks = packet.timestamp.unwrap_or_default();
        let id = packet.clock_id.or(sequence.clock_id).unwrap_or(clock::BOOTTIME);
        let nanos = match sequence.clocks.get_mut(&id) {
            Some(SequenceClock { at: Some(at), unit }) => {
                *at = at.wrapping_add(ticks.wrapping_mul(*unit));
                *at
            }
            Some(clock) => ticks.wrapping_mul(clock.unit),
            None => ticks,
        };
        self.unix(clock_id(packet.sequence_id, id), nanos)
            .map_or(Time::Clock { id, nanos }, Time::Unix)
    }

    /// Converts a time of a clock to the wall clock, through as few other clocks as possible.
    fn unix(&self, from: ClockId, nanos: u64) -> Option<u64> {
        if from != REALTIME && !self.of_clock.contains_key(&from) {
            return None;
        }
        let mut reached = HashSet::from([from]);
        let mut open = VecDeque::from([(from, nanos)]);
        while let Some((id, nanos)) = open.pop_front() {
            if id == REALTIME {
                return Some(nanos);
            }
            for (snapshot, shown) in self.nearest_first(id, nanos) {
                let on = |at: u64| at.wrapping_add(nanos.wrapping_sub(shown));
                if let Some((_, at)) = snapshot.iter().find(|(other, _)| *other == REALTIME) {
                    return Some(on(*at));
                }
                let new = snapshot.iter().filter(|(other, _)| reached.insert(*other));
                open.extend(new.map(|(other, at)| (*other, on(*at))));
            }
        }
        None
    }

    /// Iterates over the snapshots that contain a clock, each with the reading of that clock: readings up to `nanos` from the
    /// latest to the earliest, then later readings in their order.
    fn nearest_first(&self, id: ClockId, nanos: u64) -> impl Iterator<Item = (&[(ClockId, u64)], u64)> {
        let shown = move |index: &usize| {
            let snapshot = self.snapshots[*index].as_slice();
            let reading = snapshot.iter().find(|(other, _)| *other == id)?;
            Some((snapshot, reading.1))
        };
        let of_clock = self.of_clock.get(&id).map_or(&[][..], Vec::as_slice);
        let reached = of_clock
            .iter()
            .rev()
            .filter_map(shown)
            .filter(move |(_, at)| *at <= nanos);
        let to_come = of_clock
            .iter()
            .filter_map(shown)
            .filter(move |(_, at)| *at > nanos);
        reached.chain(to_come)
    }
}

fn reading(bytes: &[u8]) -> Result<Reading, WireError> {
    let mut reading = Reading {
        id: 0,
        ticks: 0,
        incremental: false,
        unit: 1,
    };
    for field in Fields::new(bytes) {
        match field? {
            (clock::ID, value) => reading.id = value.number(),
            (clock::TIMESTAMP, value) => reading.ticks = value.number(),
            (clock::IS_INCREMENTAL, value) => reading.incremental = value.number() != 0,
            (clock::UNIT_MULTIPLIER_NS, value) => reading.unit = value.number().max(1),
            _ => {}
        }
    }
    Ok(reading)
}

fn is_of_sequence(id: u64) -> bool {
    (clock::FIRST_OF_SEQUENCE..clock::FIRST_GLOBAL).contains(&id)
}

fn clock_id(sequence_id: u64, id: u64) -> ClockId {
    (if is_of_sequence(id) { sequence_id } else { 0 }, id)
}

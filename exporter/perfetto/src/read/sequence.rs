//! The state of a packet sequence: interned strings, defaults and incremental clocks.

use std::collections::HashMap;

use super::Packet;
use crate::{
    WireError,
    field::{defaults, interned, packet},
    wire::{FieldValue, Fields},
};

/// The state of one sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    valid: bool,
    /// Interned strings by their field in `InternedData` and their id.
    strings: HashMap<(u32, u64), String>,
    /// The clock of packets without a clock id.
    pub(super) clock_id: Option<u64>,
    /// The track of events without a track uuid.
    pub(super) track_uuid: Option<u64>,
    /// The tracks of the extra counters of events that do not name these: of integers, and of floating point numbers.
    pub(super) extra_tracks: [Vec<u64>; 2],
    /// The incremental clocks and the units of clocks.
    pub(super) clocks: HashMap<u64, SequenceClock>,
}

/// A clock of one sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceClock {
    /// The current time, if the clock is incremental.
    pub(super) at: Option<u64>,
    /// The number of nanoseconds in one tick.
    pub(super) unit: u64,
}

impl Sequence {
    /// Updates the state from a packet, before the packet itself is read.
    pub(super) fn begin(&mut self, packet: &Packet<'_>) -> Result<(), WireError> {
        if packet.flags & packet::STATE_CLEARED != 0 {
            *self = Self {
                valid: true,
                ..Self::default()
            };
        }
        for interned in &packet.interned {
            self.intern(interned)?;
        }
        packet
            .defaults
            .map_or(Ok(()), |defaults| self.set_defaults(defaults))
    }

    /// Returns whether the state was set up.
    pub(super) fn is_valid(&self) -> bool {
        self.valid
    }

    /// Returns an interned string, or `None` if its id was never defined.
    pub(super) fn string(&self, field: u32, number: u64) -> Option<&str> {
        self.strings.get(&(field, number)).map(String::as_str)
    }

    fn intern(&mut self, data: &[u8]) -> Result<(), WireError> {
        for field in Fields::new(data) {
            let (
                number @ (interned::CATEGORIES
                | interned::EVENT_NAMES
                | interned::ANNOTATION_NAMES
                | interned::ANNOTATION_STRINGS),
                FieldValue::Bytes(entry),
            ) = field?
            else {
                continue;
            };
            let (mut iid, mut text) = (0, String::new());
            for field in Fields::new(entry) {
                match field? {
                    (interned::ENTRY_IID, value) => iid = value.number(),
                    (interned::ENTRY_TEXT, value) => text = value.text(),
                    _ => {}
                }
            }
            self.strings.insert((number, iid), text);
        }
        Ok(())
    }

    fn set_defaults(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for field in Fields::new(bytes) {
            match field? {
                (defaults::TIMESTAMP_CLOCK_ID, value) => self.clock_id = Some(value.number()),
                (defaults::TRACK_EVENT, FieldValue::Bytes(event)) => {
                    self.extra_tracks = Default::default();
                    for field in Fields::new(event) {
                        match field? {
                            (defaults::EVENT_TRACK_UUID, value) => self.track_uuid = Some(value.number()),
                            (defaults::EXTRA_COUNTER_TRACK_UUIDS, value) => {
                                self.extra_tracks[0].push(value.number());
                            }
                            (defaults::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS, value) => {
                                self.extra_tracks[1].push(value.number());
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

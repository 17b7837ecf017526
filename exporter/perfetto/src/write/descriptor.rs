//! Descriptors: the kind, the parent and the name of a track.

use super::track::{Counter, CounterUnit, Process};
use crate::{
    field::{counter, packet, process, thread, trace, track},
    wire::Buffer,
};

/// The sequence of packets that depend on no state.
pub(super) const SEQUENCE: u32 = 1;

/// The uuid of a track and of its parent, and the track's rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackPlacement {
    pub(super) uuid: u64,
    pub(super) parent: Option<u64>,
    /// The sort rank among the siblings.
    pub(super) rank: i32,
}

/// Writes one descriptor, whose own fields `fill` writes.
pub(super) fn write(place: TrackPlacement, out: &mut Buffer, fill: impl FnOnce(&mut Buffer)) {
    out.message(trace::PACKET, |out| {
        out.uint(packet::SEQUENCE_ID, u64::from(SEQUENCE));
        out.message(packet::TRACK_DESCRIPTOR, |out| {
            out.uint(track::UUID, place.uuid);
            if let Some(parent) = place.parent {
                out.uint(track::PARENT_UUID, parent);
            }
            out.uint(track::CHILD_ORDERING, track::ORDER_EXPLICIT);
            out.uint(track::SIBLING_ORDER_RANK, place.rank as u64);
            fill(out);
        });
    });
}

/// Writes a descriptor that makes viewers, from v57 on, show processes in the order of their ranks.
pub(super) fn process_order(out: &mut Buffer) {
    out.message(trace::PACKET, |out| {
        out.uint(packet::SEQUENCE_ID, u64::from(SEQUENCE));
        out.message(packet::TRACK_DESCRIPTOR, |out| {
            out.uint(track::UUID, track::ROOT_UUID);
            out.uint(track::PROCESS_ORDERING, track::PROCESS_ORDER_EXPLICIT);
        });
    });
}

pub(super) fn process(about: &Process<'_>, out: &mut Buffer) {
    out.message(track::PROCESS, |out| {
        out.uint(process::PID, about.pid as u64);
        out.uint(process::LEGACY_SORT_INDEX, about.rank as u64);
        out.delimited(process::NAME, about.name.as_bytes());
        for label in about.labels {
            out.delimited(process::LABELS, label.as_bytes());
        }
    });
}

pub(super) fn thread(pid: i32, tid: i64, name: &str, out: &mut Buffer) {
    out.message(track::THREAD, |out| {
        out.uint(thread::PID, pid as u64);
        out.uint(thread::TID, tid as u64);
        out.delimited(thread::NAME, name.as_bytes());
    });
}

pub(super) fn counter(about: &Counter<'_>, out: &mut Buffer) {
    out.delimited(track::NAME, about.name.as_bytes());
    if !about.description.is_empty() {
        out.delimited(track::DESCRIPTION, about.description.as_bytes());
    }
    out.message(track::COUNTER, |out| {
        match about.unit {
            CounterUnit::Unspecified => {}
            CounterUnit::TimeNanos => out.uint(counter::UNIT, counter::UNIT_TIME_NS),
            CounterUnit::Count => out.uint(counter::UNIT, counter::UNIT_COUNT),
            CounterUnit::SizeBytes => out.uint(counter::UNIT, counter::UNIT_SIZE_BYTES),
            CounterUnit::Named(name) => out.delimited(counter::UNIT_NAME, name.as_bytes()),
        }
        if let Some(key) = about.scale {
            out.delimited(counter::Y_AXIS_SHARE_KEY, key.as_bytes());
        }
    });
}

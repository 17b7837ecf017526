//! The events of a trace as slices: begins and ends paired, instants put into the slices that contain them.

use std::collections::BTreeMap;

use pulsetrain_perfetto::{AnnotationData, EventKind, Time, TraceEvent};

/// The slices of a trace, by track and then by time.
#[derive(Debug, Default)]
pub(super) struct Slices {
    pub(super) slices: Vec<Slice>,
    pub(super) instants: Vec<Instant>,
    /// Ends that had nothing to close.
    pub(super) stray_ends: u64,
    /// Begins that nothing closed; they last until the end of the trace.
    pub(super) unfinished: u64,
}

/// A slice.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) track_uuid: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: String,
    pub(super) category: String,
    pub(super) annotations: Vec<(String, AnnotationData)>,
    /// The slice around it on its track.
    pub(super) parent: Option<usize>,
}

/// Something without a duration.
#[derive(Debug)]
pub(super) struct Instant {
    pub(super) track_uuid: u64,
    pub(super) time: u64,
    pub(super) name: String,
    pub(super) annotations: Vec<(String, AnnotationData)>,
    /// The slice around it on its track.
    pub(super) parent: Option<usize>,
}

/// Puts times on the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    /// What is added to a clock that nothing ties to the wall clock.
    pub(super) offset_nanos: u64,
}

impl Epoch {
    pub(super) fn unix(self, time: Time) -> u64 {
        match time {
            Time::Unix(nanos) => nanos,
            Time::Clock { nanos, .. } => self.offset_nanos.wrapping_add(nanos),
        }
    }
}

impl Slices {
    /// Pairs the events of all tracks. On a track they count by time, and in their order where times are equal, as
    /// trace_processor has it.
    pub(super) fn pair(events: Vec<TraceEvent>, epoch: Epoch) -> Self {
        let last = events
            .iter()
            .map(|event| epoch.unix(event.time))
            .max()
            .unwrap_or_default();
        let mut tracks = BTreeMap::<u64, Vec<TraceEvent>>::new();
        for event in events {
            tracks.entry(event.track_uuid).or_default().push(event);
        }
        let mut slices = Self::default();
        for mut events in tracks.into_values() {
            events.sort_by_key(|event| epoch.unix(event.time));
            slices.pair_track(events, epoch, last);
        }
        slices
    }

    fn pair_track(&mut self, events: Vec<TraceEvent>, epoch: Epoch, last: u64) {
        let mut open: Vec<usize> = Vec::new();
        for event in events {
            let (time, parent) = (epoch.unix(event.time), open.last().copied());
            match event.kind {
                EventKind::Begin => {
                    open.push(self.slices.len());
                    self.slices.push(Slice {
                        track_uuid: event.track_uuid,
                        start: time,
                        end: last,
                        name: event.name,
                        category: event.categories.into_iter().next().unwrap_or_default(),
                        annotations: event.annotations,
                        parent,
                    });
                }
                EventKind::End => match open.pop() {
                    Some(slice) => {
                        self.slices[slice].end = time;
                        self.slices[slice].annotations.extend(event.annotations);
                    }
                    None => self.stray_ends += 1,
                },
                EventKind::Instant => self.instants.push(Instant {
                    track_uuid: event.track_uuid,
                    time,
                    name: event.name,
                    annotations: event.annotations,
                    parent,
                }),
                _ => {}
            }
        }
        self.unfinished += open.len() as u64;
    }
}

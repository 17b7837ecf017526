//! Spans onto lanes, depth first, with their events and arrows.

use std::{collections::BTreeSet, io::Write, vec};

use pulsetrain_otlp::{
    WireError,
    view::{Message, Resource, Span, SpanEvent},
};
use pulsetrain_perfetto::{Event, LaneTrack, ProcessTrack, TraceWriter};

use super::{
    PerfettoConfig, PerfettoError, PerfettoSummary,
    forest::Flows,
    identity,
    lanes::{self, Interval, Lanes},
    resources::Resources,
    scopes::Scopes,
    spans::Spans,
    values,
};

/// The spans of one process that share its rows.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) resource: u32,
    label: u32,
    members: Vec<u32>,
    lanes: Lanes,
}

/// Sorts the spans into groups, packs each, and draws an arrow to every child that its parent does not contain.
pub(super) fn groups(spans: &Spans, flows: &mut Flows, summary: &mut PerfettoSummary) -> Vec<Group> {
    let key = |span: u32| {
        let record = &spans.records[span as usize];
        (record.resource, record.group.unwrap_or_default())
    };
    let mut order: Vec<u32> = (0..spans.records.len() as u32).collect();
    order.sort_by_key(|span| key(*span));
    let mut place = vec![0u32; order.len()];
    let mut groups = Vec::new();
    for members in order.chunk_by(|a, b| key(*a) == key(*b)) {
        for (index, &span) in members.iter().enumerate() {
            place[span as usize] = index as u32;
        }
        let (resource, label) = key(members[0]);
        let interval = |&span: &u32| {
            let record = &spans.records[span as usize];
            let local = record.parent.filter(|parent| key(*parent) == (resource, label));
            Interval {
                start: record.start,
                end: record.end,
                parent: local.map(|parent| place[parent as usize]),
            }
        };
        let lanes = lanes::pack(&members.iter().map(interval).collect::<Vec<_>>());
        for (index, &span) in members.iter().enumerate() {
            if let Some(parent) = spans.records[span as usize].parent
                && !lanes.is_nested(index as u32)
            {
                flows.add(parent, span);
            }
        }
        summary.too_deep += lanes.too_deep;
        summary.lanes += lanes.lanes.len() as u64;
        groups.push(Group {
            resource,
            label,
            members: members.to_vec(),
            lanes,
        });
    }
    // Within a process the group that begins first stands first.
    groups.sort_by_key(|group| (group.resource, group.first_start(spans)));
    groups
}

impl Group {
    /// When the first span of the group begins.
    pub(super) fn first_start(&self, spans: &Spans) -> u64 {
        let starts = self
            .members
            .iter()
            .map(|span| spans.records[*span as usize].start);
        starts.min().unwrap_or_default()
    }
}

/// Everything that drawing a span needs.
pub(super) struct Drawing<'a, W: Write> {
    pub(super) trace: &'a mut TraceWriter<W>,
    pub(super) spans: &'a Spans,
    pub(super) resources: &'a Resources,
    pub(super) scopes: &'a Scopes,
    pub(super) flows: &'a Flows,
    pub(super) config: &'a PerfettoConfig,
    pub(super) summary: &'a mut PerfettoSummary,
}

/// A span that is open while its children are drawn.
struct Open<'a> {
    /// Its place in its group.
    place: u32,
    span: u32,
    next_child: usize,
    /// Its events by time, with their places among each other.
    events: vec::IntoIter<(u64, u32, SpanEvent<'a>)>,
}

impl<'a, W: Write> Drawing<'a, W> {
    /// Says what a process is, at the time that its first span begins.
    pub(super) fn resource(
        &mut self,
        process: ProcessTrack,
        number: u32,
        groups: &[&Group],
        at: u64,
    ) -> Result<(), PerfettoError> {
        let bytes = &self.resources.get(number).bytes;
        let resource = Resource::decode(bytes)?;
        let members = groups.iter().flat_map(|group| &group.members);
        let used: BTreeSet<u32> = members
            .map(|span| self.spans.records[*span as usize].scope)
            .collect();
        let scopes = used.into_iter().map(|scope| (scope, self.scopes.get(scope)));
        let full = self.config.attributes.is_full();
        let mut outcome = Ok(());
        self.trace.instant(process, at, "resource", |event| {
            let mut out = event.annotations();
            if full {
                outcome = identity::add_resource(&resource, scopes, &mut out);
            }
            let added = values::attributes(resource.attributes, &super::AttributePolicy::Full, &mut out);
            outcome = outcome.and(added);
        })?;
        Ok(outcome?)
    }

    /// Draws a group of a process.
    pub(super) fn group(
        &mut self,
        process: ProcessTrack,
        group: &Group,
        rank: i32,
    ) -> Result<(), PerfettoError> {
        for trees in &group.lanes.lanes {
            let lane = self
                .trace
                .lane(process, self.spans.labels.get(group.label), rank)?;
            for &tree in trees {
                self.tree(lane, group, tree)?;
            }
            self.trace.forget(lane);
        }
        Ok(())
    }

    fn tree(&mut self, lane: LaneTrack, group: &Group, root: u32) -> Result<(), PerfettoError> {
        let mut open = vec![self.begin(lane, group, root)?];
        while let Some(mut span) = open.pop() {
            match group.lanes.next_child(span.place, &mut span.next_child) {
                Some(child) => {
                    let start = self.spans.records[group.members[child as usize] as usize].start;
                    self.events(lane, &mut span, start)?;
                    open.push(span);
                    open.push(self.begin(lane, group, child)?);
                }
                None => {
                    self.events(lane, &mut span, u64::MAX)?;
                    self.trace.end(lane, self.spans.records[span.span as usize].end)?;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, lane: LaneTrack, group: &Group, place: u32) -> Result<Open<'a>, PerfettoError> {
        let number = group.members[place as usize];
        let spans = self.spans;
        let span = Span::decode(spans.bytes(number))?;
        let start = spans.records[number as usize].start;
        let mut outcome = Ok(());
        self.trace.begin(lane, start, span.name.as_bytes(), |event| {
            outcome = describe(number, &span, spans, self.scopes, self.flows, self.config, event);
        })?;
        outcome?;
        self.summary.spans += 1;
        Ok(Open {
            place,
            span: number,
            next_child: 0,
            events: by_time(&span, start)?.into_iter(),
        })
    }

    /// Draws the events of a span up to a time.
    fn events(&mut self, lane: LaneTrack, open: &mut Open<'a>, until: u64) -> Result<(), PerfettoError> {
        while let Some((time, place, event)) = open.events.as_slice().first().copied()
            && time <= until
        {
            open.events.next();
            self.summary.events += 1;
            self.summary.without_time += u64::from(event.time_unix_nano == 0);
            let policy = &self.config.attributes;
            let mut outcome = Ok(());
            self.trace.instant(lane, time, event.name.as_bytes(), |out| {
                if policy.is_full() {
                    identity::add_event(open.span, place, &event, time, &mut out.annotations());
                }
                outcome = values::attributes(event.attributes, policy, &mut out.annotations());
            })?;
            outcome?;
        }
        Ok(())
    }
}

/// Says of a span what is asked for.
fn describe(
    number: u32,
    span: &Span<'_>,
    spans: &Spans,
    scopes: &Scopes,
    flows: &Flows,
    config: &PerfettoConfig,
    event: &mut Event<'_>,
) -> Result<(), WireError> {
    let record = &spans.records[number as usize];
    let scope = scopes.name(record.scope);
    if !scope.is_empty() {
        event.category(scope);
    }
    for flow in flows.of(number) {
        event.flow(flow);
    }
    let mut out = event.annotations();
    if config.attributes.is_full() {
        identity::add_span(number, record.scope, span, (record.start, record.end), &mut out)?;
    } else {
        identity::add_failure(span, &mut out);
    }
    values::attributes(span.attributes, &config.attributes, &mut out)
}

/// The events of a span in the order of drawing; one without a time is drawn where its span begins.
fn by_time<'a>(span: &Span<'a>, start: u64) -> Result<Vec<(u64, u32, SpanEvent<'a>)>, WireError> {
    let mut events = Vec::new();
    for (place, event) in span.events.iter().enumerate() {
        let event = event?;
        let time = if event.time_unix_nano == 0 {
            start
        } else {
            event.time_unix_nano
        };
        events.push((time, place as u32, event));
    }
    events.sort_by_key(|(time, place, _)| (*time, *place));
    Ok(events)
}

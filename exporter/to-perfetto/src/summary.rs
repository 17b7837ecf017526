//! Counts of mapped, repaired and dropped items.

use std::collections::HashMap;

/// The counts of a mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfettoSummary {
    /// Processes drawn.
    pub processes: u64,
    /// Rows of slices drawn.
    pub lanes: u64,
    /// Spans drawn individually.
    pub spans: u64,
    /// Short spans that were merged with their neighbours.
    pub merged: u64,
    /// The slices that represent them.
    pub merged_slices: u64,
    /// Span events drawn.
    pub events: u64,
    /// Arrows drawn: links, and parents whose child is not nested within them.
    pub flows: u64,
    /// Points drawn.
    pub points: u64,
    /// Log records drawn.
    pub logs: u64,
    /// Counters, one for each series and statistic.
    pub counters: u64,
    /// Items that were not selected: by window, steps or ranks.
    pub filtered: u64,
    /// Spans that were identical to an earlier one, and are drawn once.
    pub duplicates: u64,
    /// Different spans with the same ids; all are drawn, the first is the parent of their children.
    pub same_ids: u64,
    /// Spans whose parent is not in the input, drawn as roots.
    pub missing_parents: u64,
    /// Cycles of parents, each cut at its earliest span.
    pub cycles: u64,
    /// Spans that end before they start, drawn without a duration.
    pub end_before_start: u64,
    /// Spans without an end, drawn up to the end of the trace.
    pub unfinished: u64,
    /// Items without a time, drawn at the start of the trace.
    pub without_time: u64,
    /// Items with a time that viewers cannot show (2^63 ns, the year 2262, or later), drawn at the end of the trace or of
    /// their span.
    pub beyond_range: u64,
    /// Arrows to children that begin before their parents, which a viewer draws from child to parent.
    pub backward_flows: u64,
    /// Those from one process to another: only they show that clocks differ.
    pub backward_flows_between: u64,
    /// The maximum by which a child begins before its parent in another process, in nanoseconds: their clocks differ by at
    /// least this.
    pub clock_skew_nanos: u64,
    /// The processes whose clocks differ, the largest difference first.
    pub clock_skews: Vec<ClockSkew>,
    /// The same by the numbers of both resources, before their names are known.
    pub(super) skews: HashMap<(u32, u32), ClockSkew>,
    /// Links to spans that are not in the input, which are written as attributes only.
    pub links_outside: u64,
    /// Spans beyond the depth limit of viewers, drawn on a separate row.
    pub too_deep: u64,
    /// Points without a value, which mark the end of a series.
    pub without_value: u64,
    /// Spans that are drawn again in the next file, around those of their children that are there.
    pub continued: u64,
    /// Files written.
    pub files: u64,
    /// The number of bytes that were written to temporary files.
    pub spilled_bytes: u64,
    /// The configured attributes for rows if no span has any of them. Empty for the default ones.
    pub unknown_rows: Vec<String>,
    /// The configured attributes for names of processes if no resource has any of them. Empty for the default ones.
    pub unknown_process_names: Vec<String>,
    /// The begin and the end of the failed span that begins first.
    pub first_error: Option<(u64, u64)>,
    /// The begin and the end of the longest span whose name has a separate row, such as the steps of a training.
    pub longest_step: Option<(u64, u64)>,
    /// The earliest and the latest time drawn, in nanoseconds since 1970; `None` if no item has a time.
    pub time_range: Option<(u64, u64)>,
}

/// Two processes whose clocks differ, since children in one begin before their parents in the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockSkew {
    /// The process of the parents.
    pub parents: String,
    /// The process of the children, whose clock shows an earlier time.
    pub children: String,
    /// The number of children that begin before their parents.
    pub count: u64,
    /// The minimum difference in nanoseconds.
    pub nanos: u64,
}

/// The limit for pairs of processes whose clocks are compared; other pairs only count in the totals.
const MAX_SKEWS: usize = 1000;

impl PerfettoSummary {
    /// Returns all counts with their names, for summaries.
    pub fn named(&self) -> [(&'static str, u64); 27] {
        [
            ("processes", self.processes),
            ("lanes", self.lanes),
            ("spans", self.spans),
            ("merged", self.merged),
            ("merged_slices", self.merged_slices),
            ("events", self.events),
            ("flows", self.flows),
            ("points", self.points),
            ("logs", self.logs),
            ("counters", self.counters),
            ("filtered", self.filtered),
            ("duplicates", self.duplicates),
            ("same_ids", self.same_ids),
            ("missing_parents", self.missing_parents),
            ("cycles", self.cycles),
            ("end_before_start", self.end_before_start),
            ("unfinished", self.unfinished),
            ("without_time", self.without_time),
            ("beyond_range", self.beyond_range),
            ("backward_flows", self.backward_flows),
            ("clock_skew_ns", self.clock_skew_nanos),
            ("links_outside", self.links_outside),
            ("too_deep", self.too_deep),
            ("without_value", self.without_value),
            ("continued", self.continued),
            ("files", self.files),
            ("spilled_bytes", self.spilled_bytes),
        ]
    }

    /// Iterates over the counts of dropped and repaired items, with their names, without zeros.
    pub(super) fn repairs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let contents = [
            "processes",
            "lanes",
            "spans",
            "events",
            "flows",
            "points",
            "logs",
            "counters",
            "files",
            "spilled_bytes",
            "clock_skew_ns",
        ];
        let named = self.named().into_iter();
        named.filter(move |(name, count)| *count > 0 && !contents.contains(name))
    }

    /// Extends the time range to include a time.
    pub(super) fn cover(&mut self, time: u64) {
        let (first, last) = self.time_range.get_or_insert((time, time));
        (*first, *last) = (time.min(*first), time.max(*last));
    }

    /// Stores the times of a failed span if it is the earliest.
    pub(super) fn record_error(&mut self, begin: u64, end: u64) {
        if self.first_error.is_none_or(|(first, _)| begin < first) {
            self.first_error = Some((begin, end));
        }
    }

    /// Stores the times of a step if it is the longest.
    pub(super) fn observe_step(&mut self, begin: u64, end: u64) {
        if self
            .longest_step
            .is_none_or(|(first, last)| end - begin > last - first)
        {
            self.longest_step = Some((begin, end));
        }
    }

    /// Counts an arrow from a parent to a child by the resources and the starts of both.
    pub(super) fn add_child_flow(&mut self, parent: (u32, u64), child: (u32, u64)) {
        self.flows += 1;
        if child.1 >= parent.1 {
            return;
        }
        let nanos = parent.1 - child.1;
        self.backward_flows += 1;
        let pair = (parent.0, child.0);
        if parent.0 == child.0 {
            return;
        }
        self.backward_flows_between += 1;
        self.clock_skew_nanos = self.clock_skew_nanos.max(nanos);
        if self.skews.len() < MAX_SKEWS || self.skews.contains_key(&pair) {
            let skew = self.skews.entry(pair).or_default();
            skew.count += 1;
            skew.nanos = skew.nanos.max(nanos);
        }
    }

    /// Lists the processes whose clocks differ by their names.
    pub(super) fn name_skews(&mut self, name: impl Fn(u32) -> String) {
        let named = |((parent, child), skew)| ClockSkew {
            parents: name(parent),
            children: name(child),
            ..skew
        };
        self.clock_skews = self.skews.drain().map(named).collect();
        self.clock_skews
            .sort_by(|a, b| (b.nanos, &a.parents, &a.children).cmp(&(a.nanos, &b.parents, &b.children)));
    }
}

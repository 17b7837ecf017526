//! The samples of all series, sorted by family, series and time.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io::{self, Write},
    sync::Arc,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::spill::{Key, MemoryBudget, Sorted, Sorter};

use super::{
    super::{
        PrometheusStore, Rejection,
        ingest::{PointContext, PointReceiver},
        render::TextFamily,
        store::{
            TARGET_INFO,
            family::{Change, Family, FamilyKind, Head, Point},
            target::ScrapeTarget,
            value::SampleValue,
        },
    },
    HistorySummary,
};

const NANOS_PER_MILLI: u64 = 1_000_000;
/// The interval of `target_info` samples in milliseconds: half of Prometheus' lookback of five minutes, as in
/// its own OTLP receiver (storage/remote/otlptranslator/prometheusremotewrite/helper.go).
const TARGET_INFO_MILLIS: u64 = 150_000;

/// Collects the points of all families.
pub(super) struct Samples {
    /// Owns the targets and counts the series.
    store: PrometheusStore,
    families: Vec<FamilySamples>,
    /// Indexes into `families` by the address of the family, which `families` keeps alive.
    places: HashMap<usize, usize>,
    /// Times of targets by the address of the target, which the entry keeps alive.
    targets: HashMap<usize, TargetTimes>,
    /// Samples as text, by the number of their family and series and their time in nanoseconds.
    sorter: Sorter,
    time: String,
    failure: Option<io::Error>,
}

/// The series of a family.
struct FamilySamples {
    family: Arc<Family>,
    text: TextFamily,
    series: HashMap<Box<str>, SeriesPlace>,
}

/// A series, and the metric whose name translates to that of the family.
#[derive(Clone, Copy)]
struct SeriesPlace {
    number: u32,
    source: u16,
}

/// The first and the last time of a target's points, in milliseconds since 1970.
struct TargetTimes {
    target: Arc<ScrapeTarget>,
    first: u64,
    last: u64,
}

impl Samples {
    pub(super) fn new(store: PrometheusStore, room: MemoryBudget) -> Self {
        Self {
            store,
            families: Vec::new(),
            places: HashMap::new(),
            targets: HashMap::new(),
            sorter: Sorter::new(room),
            time: String::new(),
            failure: None,
        }
    }

    /// Returns a spill error, once.
    pub(super) fn failure(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Writes the families in order of arrival, then `target_info` and the end marker.
    pub(super) fn write(self, out: &mut impl Write) -> io::Result<HistorySummary> {
        let mut summary = HistorySummary {
            series: self.families.iter().map(|family| family.series.len()).sum(),
            ..HistorySummary::default()
        };
        let mut samples = NextSample::new(self.sorter.sorted()?);
        let mut family = None;
        while let Some((key, text)) = samples.next(&mut summary)? {
            let place = (key.0 >> 32) as usize;
            if family.replace(place) != Some(place) {
                let FamilySamples { family, text, .. } = &self.families[place];
                let mut head = Vec::new();
                text.push_head(&family.head, &mut head);
                out.write_all(&head)?;
            }
            out.write_all(text)?;
            summary.points += 1;
        }
        write_target_info(self.targets.into_values(), out)?;
        out.write_all(b"# EOF\n")?;
        Ok(summary)
    }

    fn place_of(&mut self, family: &Arc<Family>) -> usize {
        let families = &mut self.families;
        *self
            .places
            .entry(Arc::as_ptr(family) as usize)
            .or_insert_with(|| {
                families.push(FamilySamples {
                    text: TextFamily::new(&family.head, &family.head.name, true),
                    family: Arc::clone(family),
                    series: HashMap::new(),
                });
                families.len() - 1
            })
    }

    fn observe_target(&mut self, target: &Arc<ScrapeTarget>, millis: u64) {
        let times = self
            .targets
            .entry(Arc::as_ptr(target) as usize)
            .or_insert_with(|| TargetTimes {
                target: Arc::clone(target),
                first: millis,
                last: millis,
            });
        times.first = times.first.min(millis);
        times.last = times.last.max(millis);
    }

    fn record_point(&mut self, family: usize, point: &Point<'_>) -> Result<(), Rejection> {
        let value = match &point.change {
            Change::Set(value) => value,
            Change::Add(_) => return Err(Rejection::Temporality),
            // OpenMetrics has no marker for the end of a series.
            Change::End => return Ok(()),
        };
        let FamilySamples { text, series, .. } = &mut self.families[family];
        let place = match series.get(point.labels) {
            Some(place) => *place,
            None => {
                self.store.limit().enter(point.labels.len(), point.is_internal)?;
                let place = SeriesPlace {
                    number: u32::try_from(series.len()).map_err(|_| Rejection::SeriesLimit)?,
                    source: point.source,
                };
                series.insert(point.labels.into(), place);
                place
            }
        };
        if place.source != point.source {
            return Err(Rejection::NameCollision);
        }
        let millis = point.time_unix_nanos.as_millis();
        write_time(millis, &mut self.time);
        text.set_time(&self.time);
        let key = (
            (family as u64) << 32 | u64::from(place.number),
            point.time_unix_nanos.0,
        );
        let pushed = self
            .sorter
            .push(key, |out| text.push_series(point.labels, value, &[], out));
        if let Err(error) = pushed {
            self.failure = Some(error);
        }
        self.observe_target(point.target, millis);
        Ok(())
    }
}

impl PointReceiver for Samples {
    fn latest(_: UnixNanos) -> UnixNanos {
        UnixNanos::MAX
    }

    fn record<'p>(
        &mut self,
        place: &PointContext<'_>,
        points: impl Iterator<Item = Point<'p>>,
    ) -> Vec<Rejection> {
        let family = self.place_of(place.family);
        points
            .filter_map(|point| self.record_point(family, &point).err())
            .collect()
    }
}

/// Iterates over the last sample of every series and millisecond.
struct NextSample {
    sorted: Sorted,
    key: Option<Key>,
    text: Vec<u8>,
    next_text: Vec<u8>,
}

impl NextSample {
    fn new(sorted: Sorted) -> Self {
        Self {
            sorted,
            key: None,
            text: Vec::new(),
            next_text: Vec::new(),
        }
    }

    /// Returns the next sample. Counts the earlier samples of its millisecond that differ from their
    /// successor.
    fn next(&mut self, summary: &mut HistorySummary) -> io::Result<Option<(Key, &[u8])>> {
        if self.key.is_none() {
            self.key = self.read()?;
            std::mem::swap(&mut self.text, &mut self.next_text);
        }
        let Some(mut key) = self.key else {
            return Ok(None);
        };
        loop {
            let next = self.read()?;
            if next.is_none_or(|next| !is_same_milli(key, next)) {
                // The text of the next sample is returned by the next call.
                self.key = next;
                std::mem::swap(&mut self.text, &mut self.next_text);
                return Ok(Some((key, &self.next_text)));
            }
            summary.replaced += u64::from(self.text != self.next_text);
            std::mem::swap(&mut self.text, &mut self.next_text);
            key = next.unwrap_or(key);
        }
    }

    /// Reads a sample into `next_text`.
    fn read(&mut self) -> io::Result<Option<Key>> {
        let key = self.sorted.next_key();
        if let Some(text) = self.sorted.next_record()? {
            self.next_text.clear();
            self.next_text.extend_from_slice(text);
        }
        Ok(key)
    }
}

fn is_same_milli(one: Key, other: Key) -> bool {
    one.0 == other.0 && one.1 / NANOS_PER_MILLI == other.1 / NANOS_PER_MILLI
}

/// Writes `target_info` samples, from the first to the last point of each target.
fn write_target_info(targets: impl Iterator<Item = TargetTimes>, out: &mut impl Write) -> io::Result<()> {
    let mut targets: Vec<TargetTimes> = targets.filter(|times| !times.target.info.is_empty()).collect();
    if targets.is_empty() {
        return Ok(());
    }
    targets.sort_by(|a, b| a.target.info.cmp(&b.target.info));
    let head = Head {
        name: TARGET_INFO.to_owned(),
        help: "Target metadata".to_owned(),
        unit: String::new(),
        kind: FamilyKind::Gauge,
    };
    let mut text = TextFamily::new(&head, &head.name, true);
    let (mut lines, mut time) = (Vec::new(), String::new());
    text.push_head(&head, &mut lines);
    for times in &targets {
        let regular = (times.first..times.last).step_by(TARGET_INFO_MILLIS as usize);
        for millis in regular.chain([times.last]) {
            write_time(millis, &mut time);
            text.set_time(&time);
            text.push_series(&times.target.info, &SampleValue::Number(1.0), &[], &mut lines);
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    Ok(())
}

/// Replaces the content of `out` by a time of OpenMetrics in seconds.
///
/// Prometheus parses it as `int64(t * 1000)` (model/textparse/openmetricsparse.go). That is exact from 2004
/// to 2038, where a double and its product with 1000 have the same number of fraction bits.
pub(super) fn write_time(unix_millis: u64, out: &mut String) {
    out.clear();
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{}.{:03}", unix_millis / 1000, unix_millis % 1000);
}

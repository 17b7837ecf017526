//! Builds the trees, and draws trees, readings and log records in the order of their times, so that a trace can be split at
//! any time and continued in the next file.

use pulsetrain_pipeline::spill::{Sorted, Sorter};

use super::{
    PerfettoConfig, PerfettoError, PerfettoMapper, PerfettoSummary,
    draw::TreeWriter,
    external,
    labels::Labels,
    metrics::Metering,
    partitions::{Part, Partitions},
    readings::Reading,
    records,
    resources::Resources,
    scopes::Scopes,
    span_trees::LATEST,
    spans::Spans,
    spilled_trees::SpilledTrees,
    trace_output::{DrawContext, PerfettoParts, TraceOutput},
    trees::{Forest, Trees},
};

/// The kind of the next item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EventKind {
    Tree,
    Reading,
    Record,
}

/// Draws everything.
pub(super) fn emit<P: PerfettoParts>(
    mapper: PerfettoMapper,
    parts: &mut P,
    split: Option<u64>,
) -> Result<PerfettoSummary, PerfettoError> {
    let PerfettoMapper {
        config,
        mut resources,
        scopes,
        mut spans,
        spilled,
        mut points,
        mut records,
        mut summary,
    } = mapper;
    let readings = std::mem::take(&mut points.readings);
    let times = spans.times;
    report_unknown_attributes(&config, &resources, &spans, &mut summary);
    let logs_row = &mut records.row;
    let (trees, mut labels) = match spilled {
        None => held(spans, logs_row, &scopes, &config, &mut summary)?,
        Some(mut partitions) => {
            partitions.write(&spans)?;
            spans.reset();
            summary.spilled_bytes += partitions.bytes();
            sorted(partitions, spans, logs_row, &scopes, &config, &mut summary)?
        }
    };
    if config.by_trace {
        labels.distinguish();
    }
    let latest = times.map(|(_, last)| last);
    let times = [
        times.map(|(first, _)| first),
        readings.earliest(),
        records.row.earliest(),
    ];
    let earliest = times.into_iter().flatten().filter(|time| *time <= LATEST).min();
    let (readings, records) = (readings.sorted()?, records.row.sorted()?);
    summary.spilled_bytes += readings.spilled_bytes() + records.spilled_bytes();
    resources.disambiguate_names()?;
    summary.name_skews(|resource| resources.get(resource).name.clone());
    let (places, pids) = (resources.places(), resources.pids());
    let about = DrawContext {
        config: &config,
        resources: &resources,
        scopes: &scopes,
        places: &places,
        pids: &pids,
    };
    let output = TraceOutput::new(about, parts, split)?;
    let drawing = TreeWriter::new(output, labels, Metering::new(&points, &scopes), &mut summary);
    let emitter = Emitter {
        drawing,
        trees,
        readings,
        records,
        earliest: earliest.unwrap_or_default(),
        time: earliest.unwrap_or_default(),
    };
    let (files, processes, time) = emitter.run()?;
    if let Some(earliest) = earliest {
        summary.cover(earliest);
        summary.cover(latest.unwrap_or_default().max(time));
    }
    summary.files = u64::from(files);
    summary.processes = processes;
    summary.counters = points.series.len() as u64;
    Ok(summary)
}

/// Lists configured attributes that neither resources nor spans have.
fn report_unknown_attributes(
    config: &PerfettoConfig,
    resources: &Resources,
    spans: &Spans,
    summary: &mut PerfettoSummary,
) {
    let usual = PerfettoConfig::default();
    if spans.times.is_some() && !spans.has_rows && config.rows != usual.rows {
        summary.unknown_rows.clone_from(&config.rows);
    }
    if !resources.are_named() && config.process_names != usual.process_names {
        summary.unknown_process_names.clone_from(&config.process_names);
    }
}

/// Returns the trees of spans that are all in memory.
fn held(
    mut spans: Spans,
    logs_row: &mut Sorter,
    scopes: &Scopes,
    config: &PerfettoConfig,
    summary: &mut PerfettoSummary,
) -> Result<(Trees, Labels), PerfettoError> {
    let mut forest = Forest::default();
    forest.build_trees(&mut spans, None, logs_row, scopes, config, summary)?;
    let labels = std::mem::take(&mut spans.labels);
    let (forest, spans) = (Box::new(forest), Box::new(spans));
    let trees = Trees::Held {
        forest,
        spans,
        next: 0,
    };
    Ok((trees, labels))
}

/// Returns the trees of spans that are in temporary files.
fn sorted(
    partitions: Partitions,
    mut spans: Spans,
    logs_row: &mut Sorter,
    scopes: &Scopes,
    config: &PerfettoConfig,
    summary: &mut PerfettoSummary,
) -> Result<(Trees, Labels), PerfettoError> {
    let room = config.room().share(4);
    let (mut sorter, mut forest) = (Sorter::new(room.clone()), Forest::default());
    let mut long = SpilledTrees::new(room.clone());
    partitions.each(&room, &mut spans, config, &mut |spans, part| {
        let (sorter, long) = (&mut sorter, &mut long);
        match part {
            Part::Held(links) => {
                forest.build_trees(spans, Some(links), logs_row, scopes, config, summary)?;
                Ok(forest.pack(spans, sorter)?)
            }
            Part::External(part) => {
                let trees = &mut external::Trees {
                    sorter,
                    long,
                    logs_row,
                };
                external::build_trees(part, spans, scopes, config, summary, trees)
            }
        }
    })?;
    long.finish()?;
    let sorted = sorter.sorted()?;
    summary.spilled_bytes += sorted.spilled_bytes() + long.bytes();
    Ok((
        Trees::Sorted {
            sorted,
            long: Box::new(long),
        },
        spans.labels,
    ))
}

/// The inputs of the drawing, and its progress.
struct Emitter<'a, P: PerfettoParts> {
    drawing: TreeWriter<'a, P>,
    trees: Trees,
    readings: Sorted,
    records: Sorted,
    /// The time at which items without a time are drawn: the start of the trace.
    earliest: u64,
    /// The latest time so far.
    time: u64,
}

impl<P: PerfettoParts> Emitter<'_, P> {
    /// Draws everything. Returns the number of files, the number of processes and the latest start.
    fn run(mut self) -> Result<(u32, u64, u64), PerfettoError> {
        while let Some((time, kind)) = self.next() {
            if self.drawing.output.is_full() {
                self.drawing.start_next_file()?;
            }
            let time = match time {
                0 => self.earliest,
                1..=LATEST => time,
                // Since items are sorted by time, these are the last.
                _ => self.time,
            };
            self.time = self.time.max(time);
            match kind {
                EventKind::Tree => self.trees.emit_next(&mut self.drawing)?,
                EventKind::Reading => self.draw_reading(time)?,
                EventKind::Record => self.draw_record(time)?,
            }
        }
        self.drawing.finish_trees()?;
        let TreeWriter { output, metering, .. } = &mut self.drawing;
        metering.finish(self.time, output)?;
        let repairs: Vec<_> = self.drawing.summary.repairs().collect();
        self.drawing.output.describe(repairs.into_iter())?;
        let (files, processes) = self.drawing.output.finish()?;
        Ok((files, processes, self.time))
    }

    /// Returns the time and the kind of the item that begins first.
    fn next(&self) -> Option<(u64, EventKind)> {
        let tree = self.trees.next_time().map(|time| (time, EventKind::Tree));
        let reading = self
            .readings
            .next_key()
            .map(|(time, _)| (time, EventKind::Reading));
        let record = self.records.next_key().map(|(time, _)| (time, EventKind::Record));
        [tree, reading, record].into_iter().flatten().min()
    }

    fn draw_reading(&mut self, time: u64) -> Result<(), PerfettoError> {
        let reading = self.readings.next_record()?.and_then(Reading::unpack);
        let Some(reading) = reading else {
            return Ok(());
        };
        let TreeWriter { output, metering, .. } = &mut self.drawing;
        metering.draw(reading, time, output)
    }

    fn draw_record(&mut self, time: u64) -> Result<(), PerfettoError> {
        let Some(record) = self.records.next_record()? else {
            return Ok(());
        };
        let TreeWriter { output, summary, .. } = &mut self.drawing;
        records::draw(record, time, None, output, summary)
    }
}

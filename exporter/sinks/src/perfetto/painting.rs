//! From all that was gathered to the trace: trees are made, and trees, readings and log records are drawn in the order of
//! their times, so that a trace can be ended anywhere and gone on with in the next file.

use pulsetrain_pipeline::spill::{Sorted, Sorter};

use super::{
    PerfettoConfig, PerfettoError, PerfettoMapper, PerfettoSummary,
    canvas::{About, Canvas, PerfettoParts},
    draw::Drawing,
    labels::Labels,
    long::LongTrees,
    metrics::Metering,
    partitions::{Part, Partitions},
    readings::Reading,
    records,
    scopes::Scopes,
    spans::Spans,
    trees::{Forest, Trees},
    vast,
};

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tree,
    Reading,
    Record,
}

/// Draws everything.
pub(super) fn paint<P: PerfettoParts>(
    mapper: PerfettoMapper,
    parts: &mut P,
    split: Option<u64>,
) -> Result<PerfettoSummary, PerfettoError> {
    let PerfettoMapper {
        config,
        resources,
        scopes,
        mut spans,
        spilled,
        mut points,
        records,
        mut summary,
    } = mapper;
    let readings = std::mem::take(&mut points.readings);
    let times = [
        spans.times.map(|(first, _)| first),
        readings.earliest(),
        records.all.earliest(),
    ];
    let earliest = times.into_iter().flatten().min().unwrap_or_default();
    let (readings, records) = (readings.sorted()?, records.all.sorted()?);
    summary.spilled_bytes += readings.spilled_bytes() + records.spilled_bytes();
    let (trees, labels) = match spilled {
        None => held(spans, &scopes, &config, &mut summary)?,
        Some(mut partitions) => {
            partitions.write(&spans)?;
            spans.start_anew();
            summary.spilled_bytes += partitions.bytes();
            sorted(partitions, spans, &scopes, &config, &mut summary)?
        }
    };
    let (places, pids) = (resources.places(), resources.pids());
    let about = About {
        config: &config,
        resources: &resources,
        scopes: &scopes,
        places: &places,
        pids: &pids,
    };
    let canvas = Canvas::new(about, parts, split)?;
    let drawing = Drawing::new(canvas, labels, Metering::new(&points), &mut summary);
    let painting = Painting {
        drawing,
        trees,
        readings,
        records,
        earliest,
        time: earliest,
    };
    let (files, processes) = painting.run()?;
    summary.files = u64::from(files);
    summary.processes = processes;
    summary.counters = points.series.len() as u64;
    Ok(summary)
}

/// The trees of spans that are all in memory.
fn held(
    mut spans: Spans,
    scopes: &Scopes,
    config: &PerfettoConfig,
    summary: &mut PerfettoSummary,
) -> Result<(Trees, Labels), PerfettoError> {
    let mut forest = Forest::default();
    forest.grow(&mut spans, None, scopes, config, summary)?;
    let labels = std::mem::take(&mut spans.labels);
    let (forest, spans) = (Box::new(forest), Box::new(spans));
    let trees = Trees::Held {
        forest,
        spans,
        next: 0,
    };
    Ok((trees, labels))
}

/// The trees of spans that are in temporary files.
fn sorted(
    partitions: Partitions,
    mut spans: Spans,
    scopes: &Scopes,
    config: &PerfettoConfig,
    summary: &mut PerfettoSummary,
) -> Result<(Trees, Labels), PerfettoError> {
    let room = config.room().share(4);
    let (mut sorter, mut forest) = (Sorter::new(room.clone()), Forest::default());
    let mut long = LongTrees::new(room.clone());
    partitions.each(&room, &mut spans, config, &mut |spans, part| {
        let (sorter, long) = (&mut sorter, &mut long);
        match part {
            Part::Held(links) => {
                forest.grow(spans, Some(links), scopes, config, summary)?;
                Ok(forest.pack(spans, sorter)?)
            }
            Part::Vast(part) => {
                let trees = &mut vast::Trees { sorter, long };
                vast::grow(part, spans, scopes, config, summary, trees)
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

/// What is drawn, and how far it is.
struct Painting<'a, P: PerfettoParts> {
    drawing: Drawing<'a, P>,
    trees: Trees,
    readings: Sorted,
    records: Sorted,
    /// When what has no time is drawn: where everything begins.
    earliest: u64,
    /// The latest time so far.
    time: u64,
}

impl<P: PerfettoParts> Painting<'_, P> {
    /// Draws everything, and says in how many files and how many processes.
    fn run(mut self) -> Result<(u32, u64), PerfettoError> {
        while let Some((time, kind)) = self.next() {
            if self.drawing.canvas.is_full() {
                self.drawing.turn_page()?;
            }
            let time = if time == 0 { self.earliest } else { time };
            self.time = self.time.max(time);
            match kind {
                Kind::Tree => self.trees.paint_next(&mut self.drawing)?,
                Kind::Reading => self.draw_reading(time)?,
                Kind::Record => self.draw_record(time)?,
            }
        }
        self.drawing.finish_trees()?;
        let Drawing { canvas, metering, .. } = &mut self.drawing;
        metering.finish(self.time, canvas)?;
        Ok(self.drawing.canvas.finish()?)
    }

    /// What begins first, and when.
    fn next(&self) -> Option<(u64, Kind)> {
        let tree = self.trees.next_time().map(|time| (time, Kind::Tree));
        let reading = self.readings.next_key().map(|(time, _)| (time, Kind::Reading));
        let record = self.records.next_key().map(|(time, _)| (time, Kind::Record));
        [tree, reading, record].into_iter().flatten().min()
    }

    fn draw_reading(&mut self, time: u64) -> Result<(), PerfettoError> {
        let reading = self.readings.next_record()?.and_then(Reading::unpack);
        let Some(reading) = reading else {
            return Ok(());
        };
        let Drawing { canvas, metering, .. } = &mut self.drawing;
        metering.draw(reading, time, canvas)
    }

    fn draw_record(&mut self, time: u64) -> Result<(), PerfettoError> {
        let Some(record) = self.records.next_record()? else {
            return Ok(());
        };
        let Drawing { canvas, summary, .. } = &mut self.drawing;
        records::draw(record, time, canvas, summary)
    }
}

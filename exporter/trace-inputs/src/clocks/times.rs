//! Changes the times of a message in place: they are numbers of a fixed length.

use pulsetrain_otlp::{Signal, WireError, wire::Reader};

/// The fields of a message that are times, or messages with times.
struct TimeFields {
    /// The fields that are times.
    times: &'static [u32],
    /// The fields that are messages with times.
    inside: &'static [(u32, &'static TimeFields)],
}

const fn around(inside: &'static [(u32, &'static TimeFields)]) -> TimeFields {
    TimeFields { times: &[], inside }
}

const fn point(exemplars: &'static [(u32, &'static TimeFields)]) -> TimeFields {
    TimeFields {
        times: &[2, 3],
        inside: exemplars,
    }
}

// The numbers are those of proto/trace/v1/trace.proto, logs/v1/logs.proto and metrics/v1/metrics.proto.
static EVENT: TimeFields = TimeFields {
    times: &[1],
    inside: &[],
};
static SPAN: TimeFields = TimeFields {
    times: &[7, 8],
    inside: &[(11, &EVENT)],
};
static RECORD: TimeFields = TimeFields {
    times: &[1, 11],
    inside: &[],
};
static EXEMPLAR: TimeFields = TimeFields {
    times: &[2],
    inside: &[],
};
static NUMBER: TimeFields = point(&[(5, &EXEMPLAR)]);
static HISTOGRAM: TimeFields = point(&[(8, &EXEMPLAR)]);
static EXPONENTIAL: TimeFields = point(&[(11, &EXEMPLAR)]);
static SUMMARY: TimeFields = point(&[]);
static NUMBERS: TimeFields = around(&[(1, &NUMBER)]);
static HISTOGRAMS: TimeFields = around(&[(1, &HISTOGRAM)]);
static EXPONENTIALS: TimeFields = around(&[(1, &EXPONENTIAL)]);
static SUMMARIES: TimeFields = around(&[(1, &SUMMARY)]);
static METRIC: TimeFields = around(&[
    (5, &NUMBERS),
    (7, &NUMBERS),
    (9, &HISTOGRAMS),
    (10, &EXPONENTIALS),
    (11, &SUMMARIES),
]);
static SCOPE_SPANS: TimeFields = around(&[(2, &SPAN)]);
static SCOPE_METRICS: TimeFields = around(&[(2, &METRIC)]);
static SCOPE_LOGS: TimeFields = around(&[(2, &RECORD)]);
static RESOURCE_SPANS: TimeFields = around(&[(2, &SCOPE_SPANS)]);
static RESOURCE_METRICS: TimeFields = around(&[(2, &SCOPE_METRICS)]);
static RESOURCE_LOGS: TimeFields = around(&[(2, &SCOPE_LOGS)]);

/// The tag of a `ResourceSpans` or a counterpart in a message.
const OF_RESOURCE: u32 = 1 << 3 | 2;

/// Returns the range of each `ResourceSpans` or counterpart in a message, up to the first error.
pub(super) fn resources(message: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut reader = Reader::new(message);
    while !reader.is_at_end() {
        let Ok(tag) = reader.tag() else {
            break;
        };
        if tag != OF_RESOURCE {
            if reader.value(tag).is_err() {
                break;
            }
        } else if let Ok(inside) = reader.delimited() {
            found.push((reader.position() - inside.len(), reader.position()));
        } else {
            break;
        }
    }
    found
}

/// Adds an offset in nanoseconds to every time in a `ResourceSpans` or a counterpart, up to the first error.
pub(super) fn shift(signal: Signal, bytes: &mut [u8], offset: i64) {
    let part = match signal {
        Signal::Traces => &RESOURCE_SPANS,
        Signal::Metrics => &RESOURCE_METRICS,
        Signal::Logs => &RESOURCE_LOGS,
    };
    let mut places = Vec::new();
    // The next reader reports the error.
    let _ = find(bytes, 0, part, &mut places);
    for place in places {
        let Some(time) = bytes.get_mut(place..).and_then(<[u8]>::first_chunk_mut::<8>) else {
            continue;
        };
        // 0 means no time and stays 0.
        *time = match u64::from_le_bytes(*time) {
            0 => *time,
            nanos => nanos.saturating_add_signed(offset).max(1).to_le_bytes(),
        };
    }
}

/// Appends the offsets of the times in a part, which begins at `base`.
fn find(bytes: &[u8], base: usize, part: &TimeFields, places: &mut Vec<usize>) -> Result<(), WireError> {
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        let tag = reader.tag()?;
        let (field, wire_type) = (tag >> 3, tag & 7);
        let inside = part.inside.iter().find(|(known, _)| *known == field);
        match (wire_type, inside) {
            (2, Some((_, inside))) => {
                let message = reader.delimited()?;
                find(message, base + reader.position() - message.len(), inside, places)?;
            }
            (1, _) if part.times.contains(&field) => {
                places.push(base + reader.position());
                reader.fixed64()?;
            }
            _ => drop(reader.value(tag)?),
        }
    }
    Ok(())
}

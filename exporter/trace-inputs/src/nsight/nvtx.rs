//! Converts NVTX: ranges of threads to spans and marks to events, with the names of their domains and categories.

use std::{collections::BTreeMap, io};

use pulsetrain_otlp::write::{Buffer, span_field};
use pulsetrain_perfetto::AnnotationData;

use super::{
    NsightConversion,
    database::{Cells, Column, NsightExport},
    names::{NameLimit, Owner, ProcessId, ThreadId},
    rows::{Record, RowKind, Rows, Track},
    spans::EVENT_ATTRIBUTES,
    tables::NVTX_TABLE,
};
use crate::from_perfetto::values;

/// The scope of the default domain.
const SCOPE: &str = "nvtx";

/// Numbers of `ENUM_NSYS_EVENT_TYPE`. Those from 70 on were imported from text files.
mod event_type {
    pub(super) const CATEGORY: i64 = 33;
    pub(super) const MARK: i64 = 34;
    pub(super) const THREAD: i64 = 39;
    pub(super) const PUSH_POP: [i64; 2] = [59, 70];
    pub(super) const START_END: [i64; 2] = [60, 71];
    pub(super) const DOMAIN: [i64; 2] = [75, 76];
}

use Column::{Plain, Text};

const COLUMNS: [Column; 18] = [
    Plain("start"),
    Plain("end"),
    Plain("eventType"),
    Plain("globalTid"),
    Plain("endGlobalTid"),
    Plain("domainId"),
    Plain("category"),
    Plain("text"),
    Text("textId"),
    Plain("jsonText"),
    Text("jsonTextId"),
    Plain("uint64Value"),
    Plain("int64Value"),
    Plain("uint32Value"),
    Plain("int32Value"),
    Plain("doubleValue"),
    Plain("floatValue"),
    Plain("rangeId"),
];

/// Names by process, domain and, for categories, their number.
#[derive(Default)]
struct Named {
    domains: BTreeMap<(Option<ProcessId>, i64), String>,
    categories: BTreeMap<(Option<ProcessId>, i64, i64), String>,
    limit: NameLimit,
}

/// Reads the table.
pub(super) fn read(
    export: &NsightExport,
    rows: &mut Rows<'_>,
    conversion: &mut NsightConversion,
) -> io::Result<()> {
    let mut named = Named::default();
    let mut errors = Vec::new();
    export.each(NVTX_TABLE, &COLUMNS, &mut errors, |cells| {
        named.keep(cells);
        io::Result::Ok(())
    })?;
    named
        .limit
        .report("NVTX domains and categories", &mut conversion.errors);
    // The second pass over the table reports damage.
    let mut others = 0;
    let mut unfinished = 0;
    export.each(NVTX_TABLE, &COLUMNS, &mut conversion.errors, |cells| {
        let (Some(start), Some(kind)) = (cells.int(0), kind(cells)) else {
            others += u64::from(!is_name(cells));
            return Ok(());
        };
        unfinished += u64::from(kind == RowKind::Unfinished);
        push(rows, start, kind, cells, &named)
    })?;
    conversion.unfinished += unfinished;
    if others > 0 {
        conversion
            .left_out
            .push((format!("{NVTX_TABLE} (other event types)"), others));
    }
    Ok(())
}

fn push(rows: &mut Rows<'_>, start: i64, kind: RowKind, cells: Cells<'_>, named: &Named) -> io::Result<()> {
    let thread = cells.int(3).map(ThreadId::from_serialized);
    let process = thread.map(ThreadId::process);
    let domain = cells.int(5).unwrap_or_default();
    let domain_name = named.domains.get(&(process, domain)).map(String::as_str);
    let is_anywhere = cells
        .int(2)
        .is_some_and(|number| event_type::START_END.contains(&number));
    let track = match (thread, is_anywhere) {
        (Some(thread), false) => Track::Thread(thread),
        _ => {
            let owner = process.map_or(Owner::Unknown, Owner::Process);
            let name = domain_name.map_or_else(String::new, |domain| format!(" {domain}"));
            Track::Named(owner, format!("NVTX ranges{name}"))
        }
    };
    let field = match kind {
        RowKind::Mark => EVENT_ATTRIBUTES,
        _ => span_field::ATTRIBUTES,
    };
    let attributes = attributes(field, cells, named, is_anywhere);
    let name = cells.text(7).or_else(|| cells.text(8));
    let end = cells.int(1).filter(|_| kind == RowKind::Span);
    let record = Record {
        kind,
        track: rows.tracks.intern_of_nvtx(track),
        scope: rows
            .scopes
            .intern_of_nvtx(domain_name.unwrap_or(SCOPE).to_owned()),
        end: rows.unix_nanos(end.unwrap_or(start)),
        id: rows.next_id(),
        launch: 0,
        name: name.as_deref().unwrap_or("NVTX"),
        attributes: attributes.as_slice(),
    };
    rows.push(rows.unix_nanos(start), &record)
}

/// Returns the kind of a row, or `None` for a row that is neither a range nor a mark.
fn kind(cells: Cells<'_>) -> Option<RowKind> {
    let (start, end) = (cells.int(0)?, cells.int(1));
    let range = match end.filter(|end| *end >= start) {
        Some(_) => RowKind::Span,
        None => RowKind::Unfinished,
    };
    match cells.int(2) {
        Some(event_type::MARK) => Some(RowKind::Mark),
        Some(number) if event_type::PUSH_POP.contains(&number) || event_type::START_END.contains(&number) => {
            Some(range)
        }
        Some(_) => None,
        // In an export without types, a row with an end is a range.
        None if range == RowKind::Span => Some(range),
        None => Some(RowKind::Mark),
    }
}

/// Returns whether a row names a domain, a category or a thread, or is the end of a domain.
fn is_name(cells: Cells<'_>) -> bool {
    cells.int(2).is_some_and(|number| {
        [event_type::CATEGORY, event_type::THREAD].contains(&number) || event_type::DOMAIN.contains(&number)
    })
}

impl Named {
    fn keep(&mut self, cells: Cells<'_>) {
        let Some(name) = cells.text(7).or_else(|| cells.text(8)) else {
            return;
        };
        let process = cells
            .int(3)
            .map(|thread| ThreadId::from_serialized(thread).process());
        let domain = cells.int(5).unwrap_or_default();
        match (cells.int(2), cells.int(6)) {
            (Some(number), _) if number == event_type::DOMAIN[0] && self.limit.admits(&name) => {
                self.domains.insert((process, domain), name.into_owned());
            }
            (Some(event_type::CATEGORY), Some(category)) if self.limit.admits(&name) => {
                self.categories
                    .insert((process, domain, category), name.into_owned());
            }
            _ => {}
        }
    }
}

fn attributes(field: u32, cells: Cells<'_>, named: &Named, is_anywhere: bool) -> Buffer {
    let thread = cells.int(3).map(ThreadId::from_serialized);
    let domain = cells.int(5).unwrap_or_default();
    let category = cells.int(6).filter(|category| *category != 0).map(|category| {
        let key = (thread.map(ThreadId::process), domain, category);
        match named.categories.get(&key) {
            Some(name) => AnnotationData::Text(name.clone()),
            None => AnnotationData::Int(category),
        }
    });
    let json = cells.text(9).or_else(|| cells.text(10));
    let json = json.map(|text| AnnotationData::Text(text.into_owned()));
    let int = (11..15)
        .find_map(|place| cells.int(place))
        .map(AnnotationData::Int);
    let real = (15..17).find_map(|place| cells.real(place));
    let payload = json.or(int).or(real.map(AnnotationData::Double));
    let of_thread = |place: usize| {
        cells
            .int(place)
            .map(|id| AnnotationData::Int(ThreadId::from_serialized(id).tid()))
    };
    let mut out = Buffer::default();
    for (key, value) in [
        ("category", category),
        ("payload", payload),
        ("start thread", of_thread(3).filter(|_| is_anywhere)),
        ("end thread", of_thread(4).filter(|_| is_anywhere)),
        (
            "range",
            cells.int(17).filter(|_| is_anywhere).map(AnnotationData::Int),
        ),
    ] {
        if let Some(value) = value {
            values::attribute(field, key, &value, &mut out);
        }
    }
    out
}

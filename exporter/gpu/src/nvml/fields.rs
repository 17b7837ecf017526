//! Field queries: all due fields in one call. Answers are matched by position, because a driver may answer with its own ids.

use std::{collections::BTreeSet, time::Duration};

use nvml_wrapper::{
    Device, FieldIdScheme, Nvml,
    error::NvmlError,
    sys_exports::field_id::{
        NVML_FI_DEV_C2C_LINK_COUNT, NVML_FI_DEV_NVLINK_LINK_COUNT,
        NVML_FI_PWR_SMOOTHING_MAX_NUM_PRESET_PROFILES,
    },
};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::attribute::{GPU_LINK_INDEX, GPU_POWER_SMOOTHING_PROFILE};

use super::{
    ffi::{self, FieldCell},
    row::{Field, FieldValue, Row, Scope, error_for, reason, refuse_all},
};
use crate::{
    Reason,
    reading::{Labels, Readings, Sample},
};

/// The most fields in one call.
const BATCH: usize = 128;
/// The scope of the sum of all links. `nvml.h` documents it for some counters; DCGM uses it for all counters of the fifth
/// generation.
const ALL_LINKS: u32 = u32::MAX;
/// The limit of the number of links, more than any GPU has. A larger count is reduced to it.
pub(super) const MAX_LINKS: u32 = 128;
/// The value of a setting that is not set (`NVML_POWER_SMOOTHING_ADMIN_OVERRIDE_NOT_SET`).
const NOT_SET: f64 = u32::MAX as f64;

/// Reads fields, and reuses the buffers for them.
pub(super) struct Fields {
    cells: Vec<FieldCell>,
    asked: Vec<AskedField>,
    nvlinks: Links,
    each_nvlink: bool,
    /// The fields that the driver provides only per link.
    without_sum: BTreeSet<u32>,
    c2c_links: Links,
    power_profiles: Links,
    latency: Option<Duration>,
}

/// The number of links of a kind, or of power profiles; unknown until a row needs it.
struct Links {
    /// The id of the field with the number.
    count: u32,
    known: Option<u32>,
}

/// A row that is a field, with its index among the rows.
pub(super) type FieldRow = (usize, &'static Row, &'static Field);

/// The row, the field and the link that a cell is read for.
struct AskedField {
    place: usize,
    row: &'static Row,
    field: &'static Field,
    link: Option<u32>,
}

impl Fields {
    /// Creates the buffers for the fields of one device; `each_nvlink` reads the counters of NVLinks per link.
    pub(super) fn new(each_nvlink: bool) -> Self {
        Self {
            cells: Vec::new(),
            asked: Vec::new(),
            nvlinks: Links::counted_by(NVML_FI_DEV_NVLINK_LINK_COUNT),
            each_nvlink,
            without_sum: BTreeSet::new(),
            c2c_links: Links::counted_by(NVML_FI_DEV_C2C_LINK_COUNT),
            power_profiles: Links::counted_by(NVML_FI_PWR_SMOOTHING_MAX_NUM_PRESET_PROFILES),
            latency: None,
        }
    }

    /// Returns the driver's own latency of the last query, or `None` if it answered no field.
    pub(super) fn latency(&self) -> Option<Duration> {
        self.latency
    }

    /// Reads the fields, puts their values into `out`, and returns the outcome of each row. A row of many links has an answer if
    /// one of them has.
    pub(super) fn ask(
        &mut self,
        nvml: &Nvml,
        device: &Device<'_>,
        rows: &[FieldRow],
        out: &mut Readings,
    ) -> Vec<(usize, Result<(), NvmlError>)> {
        self.latency = None;
        let mut answers = self.ask_once(nvml, device, rows, out);
        let refused = self.refused_sums(rows, &answers);
        if !refused.is_empty() {
            let is_refused = |place: usize| refused.iter().any(|(refused, ..)| *refused == place);
            answers.retain(|(place, _)| !is_refused(*place));
            answers.extend(self.ask_once(nvml, device, &refused, out));
        }
        answers
    }

    /// Returns the rows for which the driver newly refuses the sum of the links, and remembers their fields: they are read per
    /// link. A GPU without the counter answers that it is not supported.
    fn refused_sums(
        &mut self,
        rows: &[FieldRow],
        answers: &[(usize, Result<(), NvmlError>)],
    ) -> Vec<FieldRow> {
        if self.each_nvlink || self.nvlinks.known.is_none() {
            return Vec::new();
        }
        let is_refused = |(place, _, field): &&FieldRow| {
            let is_denied = |(answered, answer): &(usize, Result<(), NvmlError>)| {
                let denied = matches!(answer, Err(NvmlError::InvalidArg));
                answered == place && denied
            };
            field.scope == Scope::NvlinkCounter && answers.iter().any(is_denied)
        };
        let is_new = |(_, _, field): &FieldRow| self.without_sum.insert(field.id);
        rows.iter().filter(is_refused).copied().filter(is_new).collect()
    }

    fn ask_once(
        &mut self,
        nvml: &Nvml,
        device: &Device<'_>,
        rows: &[FieldRow],
        out: &mut Readings,
    ) -> Vec<(usize, Result<(), NvmlError>)> {
        let mut answers = Vec::new();
        self.prepare(nvml.field_id_scheme(), device, rows, &mut answers);
        for (cells, asked) in self.cells.chunks_mut(BATCH).zip(self.asked.chunks(BATCH)) {
            if let Err(error) = ffi::field_values(device, cells) {
                answers.extend(refuse_all(asked.iter().map(|asked| asked.place), error));
                continue;
            }
            for (cell, asked) in cells.iter().zip(asked) {
                let answer = asked.put(cell, out);
                if answer.is_ok() {
                    let latency = Duration::from_micros(u64::try_from(cell.latencyUsec).unwrap_or_default());
                    self.latency = Some(self.latency.unwrap_or_default() + latency);
                }
                answers.push((asked.place, answer));
            }
        }
        merge(answers)
    }

    fn prepare(
        &mut self,
        scheme: FieldIdScheme,
        device: &Device<'_>,
        rows: &[FieldRow],
        answers: &mut Vec<(usize, Result<(), NvmlError>)>,
    ) {
        self.cells.clear();
        self.asked.clear();
        let (mut nvlinks, mut c2c_links, mut power_profiles) = (None, None, None);
        for (place, row, field) in rows.iter().copied() {
            let id = driver_id(scheme, field.id);
            let mut add = |scope, link| {
                self.cells.push(ffi::field(id, scope));
                self.asked.push(AskedField {
                    place,
                    row,
                    field,
                    link,
                });
            };
            let links = match field.scope {
                Scope::Part(part) => {
                    add(part, None);
                    continue;
                }
                Scope::EachNvlink | Scope::NvlinkCounter => {
                    *nvlinks.get_or_insert_with(|| self.nvlinks.ask(scheme, device))
                }
                Scope::EachC2c => *c2c_links.get_or_insert_with(|| self.c2c_links.ask(scheme, device)),
                Scope::EachPowerProfile => {
                    *power_profiles.get_or_insert_with(|| self.power_profiles.ask(scheme, device))
                }
            };
            let has_sum = !self.each_nvlink && !self.without_sum.contains(&field.id);
            match links {
                Ok(_) if field.scope == Scope::NvlinkCounter && has_sum => add(ALL_LINKS, None),
                Ok(links) => (0..links).for_each(|link| add(link, Some(link))),
                Err(reason) => answers.push((place, Err(error_for(reason)))),
            }
        }
    }
}

impl Links {
    fn counted_by(count: u32) -> Self {
        Self { count, known: None }
    }

    /// Returns the number, which is kept once the driver has answered.
    fn ask(&mut self, scheme: FieldIdScheme, device: &Device<'_>) -> Result<u32, Reason> {
        if let Some(known) = self.known {
            return Ok(known);
        }
        let mut cells = [ffi::field(driver_id(scheme, self.count), 0)];
        let asked = ffi::field_values(device, &mut cells);
        let count = asked
            .and_then(|()| ffi::field_count(&cells[0]))
            .map_err(|error| reason(&error))?;
        match count.min(u64::from(MAX_LINKS)) as u32 {
            0 => Err(Reason::NotSupported),
            count => {
                self.known = Some(count);
                Ok(count)
            }
        }
    }
}

impl AskedField {
    fn put(&self, cell: &FieldCell, out: &mut Readings) -> Result<(), NvmlError> {
        let value = match self.field.value {
            FieldValue::Now(scale) => Sample::Now(ffi::field_answer(cell)? * scale),
            FieldValue::Settable(scale) => Sample::Now(known(cell, |value| value != NOT_SET)? * scale),
            FieldValue::Percent => Sample::Now(known(cell, |value| (0.0..=100.0).contains(&value))? / 100.0),
            FieldValue::Total(scale) => Sample::Total {
                raw: ffi::field_count(cell)?,
                scale,
                wraps: false,
            },
            FieldValue::Wrapping(scale) => Sample::Total {
                raw: ffi::field_count(cell)?,
                scale,
                wraps: true,
            },
            FieldValue::Is(wanted) => Sample::Now(f64::from(u8::from(ffi::field_count(cell)? == wanted))),
            FieldValue::State(attribute, name) => Sample::State(attribute, name(ffi::field_count(cell)?)),
            FieldValue::Decoded(decode) => Sample::Now(decode(ffi::field_count(cell)?)),
        };
        let number = match self.field.scope {
            Scope::EachPowerProfile => &GPU_POWER_SMOOTHING_PROFILE,
            _ => &GPU_LINK_INDEX,
        };
        let labels = match self.link {
            Some(link) => Labels::numbered(self.field.labels, number, link),
            None => Labels::fixed(self.field.labels),
        };
        let microseconds = u64::try_from(cell.timestamp).unwrap_or_default();
        out.cadence = self.row.cadence;
        let time_unix_nanos = UnixNanos(microseconds.saturating_mul(1000));
        out.put(self.row.metric, labels, value, time_unix_nanos);
        Ok(())
    }
}

/// Returns the value of a field, or why it has no value.
fn known(cell: &FieldCell, is_value: impl Fn(f64) -> bool) -> Result<f64, NvmlError> {
    Some(ffi::field_answer(cell)?)
        .filter(|value| is_value(*value))
        .ok_or(NvmlError::NoData)
}

/// Merges the answers of each row: success if one link has a value, else the last error. The answers of a row with links are
/// adjacent.
fn merge(answers: Vec<(usize, Result<(), NvmlError>)>) -> Vec<(usize, Result<(), NvmlError>)> {
    let mut merged: Vec<(usize, Result<(), NvmlError>)> = Vec::with_capacity(answers.len());
    for (place, answer) in answers {
        match merged.last_mut() {
            Some((last, known)) if *last == place => {
                if known.is_err() {
                    *known = answer;
                }
            }
            _ => merged.push((place, answer)),
        }
    }
    merged
}

/// Returns the driver's own id of a field: CUDA 13.0 Update 1 (driver 580.82) renumbered those from 251 to 273.
fn driver_id(scheme: FieldIdScheme, id: u32) -> u32 {
    match (scheme, id) {
        (FieldIdScheme::V12, id) => id,
        (FieldIdScheme::V13Update1, 251..=255) => id + 18,
        (FieldIdScheme::V13Update1, 256..=273) => id - 5,
        (FieldIdScheme::V13Update1, id) => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renumbered_fields_are_requested_by_the_field_id_of_the_driver() {
        assert_eq!(driver_id(FieldIdScheme::V12, 251), 251);
        assert_eq!(driver_id(FieldIdScheme::V13Update1, 251), 269);
        assert_eq!(driver_id(FieldIdScheme::V13Update1, 256), 251);
        assert_eq!(driver_id(FieldIdScheme::V13Update1, 83), 83);
    }

    #[test]
    fn row_of_several_links_succeeds_when_any_link_succeeds() {
        let merged = merge(vec![
            (0, Err(NvmlError::NotSupported)),
            (0, Ok(())),
            (0, Err(NvmlError::NotSupported)),
            (1, Err(NvmlError::NotSupported)),
        ]);
        assert_eq!(merged.len(), 2);
        assert!(merged[0].1.is_ok() && merged[1].1.is_err());
    }
}

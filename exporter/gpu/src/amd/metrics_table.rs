//! The file `gpu_metrics`: a table of the firmware in one of several formats.
//!
//! In formats 1.1 to 1.8, each value has a fixed offset. Format 1.9 is a list of attributes: a word with the id, the type and the
//! number of values, followed by the values. Offsets, ids and units are from the kernel's `kgd_pp_interface.h`, the layout of the
//! list is from its `smu_cmn.h`. All bits of a value are set if a GPU does not have it.

use std::borrow::Cow;

/// The number of XGMI links in a table.
pub(super) const XGMI_LINKS: usize = 8;

/// A value of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The energy counter, in units of 2^-16 J.
    Energy,
    /// The time of the table since the boot, in nanoseconds.
    Time,
    /// The throttle reasons, with bits that are the same on all chips (`SMU_THROTTLER_*_BIT` of `amdgpu_smu.h`).
    ThrottleStatus,
    /// Cycles of the firmware.
    Cycles,
    /// Cycles in which the signal "processor hot" held the clocks down.
    ProcessorHot,
    /// Cycles in which the power limit (package power tracking) held the clocks down.
    PowerLimit,
    /// Cycles in which the temperature of the socket held the clocks down.
    SocketHot,
    /// Cycles in which the temperature of the voltage regulators held the clocks down.
    RegulatorsHot,
    /// Cycles in which the temperature of the memory held the clocks down.
    MemoryHot,
    /// Transitions of the PCI Express link from L0 to recovery.
    PcieRecoveries,
    /// Packets that were sent again over PCI Express.
    PcieReplays,
    /// Lanes of an XGMI link.
    XgmiWidth,
    /// Speed of a lane of an XGMI link, in Gbit/s.
    XgmiSpeed,
    /// Kilobytes that the GPU read over each XGMI link.
    XgmiRead,
    /// Kilobytes that the GPU wrote over each XGMI link.
    XgmiWritten,
    /// The state of each XGMI link: 1 if it is active, 0 if not.
    XgmiState,
}

/// The position of the values of a field.
#[derive(Clone, Copy, Debug)]
struct FieldLayout {
    field: Field,
    offset: usize,
    /// The size of a value in bytes.
    size: usize,
    values: usize,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct MetricsTable {
    bytes: Vec<u8>,
    places: Cow<'static, [FieldLayout]>,
}

use Field::{
    Cycles, Energy, MemoryHot, PcieRecoveries, PcieReplays, PowerLimit, ProcessorHot, RegulatorsHot,
    SocketHot, ThrottleStatus, Time, XgmiRead, XgmiSpeed, XgmiState, XgmiWidth, XgmiWritten,
};

const fn place(field: Field, offset: usize, size: usize) -> FieldLayout {
    FieldLayout {
        field,
        offset,
        size,
        values: 1,
    }
}

const fn links(field: Field, offset: usize, size: usize) -> FieldLayout {
    FieldLayout {
        values: XGMI_LINKS,
        ..place(field, offset, size)
    }
}

/// The formats 1.1 and 1.2: MI100.
const V1_1: &[FieldLayout] = &[place(Energy, 24, 8), place(Time, 32, 8)];

/// Format 1.3: MI200.
const V1_3: &[FieldLayout] = &[
    place(Energy, 24, 8),
    place(Time, 32, 8),
    place(ThrottleStatus, 112, 8),
];

/// Format 1.4: MI300 with its first drivers. The throttle status is always 0, as in format 1.5.
const V1_4: &[FieldLayout] = &[
    place(Energy, 24, 8),
    place(Time, 32, 8),
    place(XgmiWidth, 52, 2),
    place(XgmiSpeed, 54, 2),
    place(PcieRecoveries, 80, 8),
    place(PcieReplays, 88, 8),
    links(XgmiRead, 104, 8),
    links(XgmiWritten, 168, 8),
];

/// Format 1.5.
const V1_5: &[FieldLayout] = &[
    place(Energy, 88, 8),
    place(Time, 96, 8),
    place(XgmiWidth, 116, 2),
    place(XgmiSpeed, 118, 2),
    place(PcieRecoveries, 144, 8),
    place(PcieReplays, 152, 8),
    links(XgmiRead, 176, 8),
    links(XgmiWritten, 240, 8),
];

/// Format 1.6.
const V1_6: &[FieldLayout] = &[
    place(Energy, 16, 8),
    place(Time, 24, 8),
    place(Cycles, 32, 4),
    place(ProcessorHot, 36, 4),
    place(PowerLimit, 40, 4),
    place(SocketHot, 44, 4),
    place(RegulatorsHot, 48, 4),
    place(MemoryHot, 52, 4),
    place(XgmiWidth, 64, 2),
    place(XgmiSpeed, 66, 2),
    place(PcieRecoveries, 96, 8),
    place(PcieReplays, 104, 8),
    links(XgmiRead, 128, 8),
    links(XgmiWritten, 192, 8),
];

/// Formats 1.7 and 1.8, which differ only after these fields.
const V1_7: &[FieldLayout] = &[
    place(Energy, 24, 8),
    place(Time, 32, 8),
    place(Cycles, 40, 4),
    place(ProcessorHot, 44, 4),
    place(PowerLimit, 48, 4),
    place(SocketHot, 52, 4),
    place(RegulatorsHot, 56, 4),
    place(MemoryHot, 60, 4),
    place(XgmiWidth, 72, 2),
    place(XgmiSpeed, 74, 2),
    place(PcieRecoveries, 104, 8),
    place(PcieReplays, 112, 8),
    links(XgmiRead, 136, 8),
    links(XgmiWritten, 200, 8),
    links(XgmiState, 264, 2),
];

/// The fields of each format, by its minor version and the size of its table. From 1.6 on, there is a table with and one without
/// partition counters at its end. A preliminary 1.6 with other offsets had another size.
const FORMATS: [(u8, u16, &[FieldLayout]); 11] = [
    (1, 96, V1_1),
    (2, 104, V1_1),
    (3, 120, V1_3),
    (4, 288, V1_4),
    (5, 360, V1_5),
    (6, 312, V1_6),
    (6, 1664, V1_6),
    (7, 344, V1_7),
    (7, 2208, V1_7),
    (8, 344, V1_7),
    (8, 3360, V1_7),
];

/// The fields of format 1.9 by their ids (`AMDGPU_METRICS_ATTR_ID_*`).
const IDS: [(u64, Field); 15] = [
    (7, Energy),
    (8, Time),
    (9, Cycles),
    (10, ProcessorHot),
    (11, PowerLimit),
    (12, SocketHot),
    (13, RegulatorsHot),
    (14, MemoryHot),
    (18, XgmiWidth),
    (19, XgmiSpeed),
    (24, PcieRecoveries),
    (25, PcieReplays),
    (29, XgmiRead),
    (30, XgmiWritten),
    (31, XgmiState),
];

impl MetricsTable {
    /// Returns the table, or `None` if its format is not known.
    pub(super) fn decode(bytes: Vec<u8>) -> Option<Self> {
        // structure_size: u16, format_revision: u8, content_revision: u8
        let &[low, high, 1, revision, ..] = bytes.as_slice() else {
            return None;
        };
        let size = u16::from_le_bytes([low, high]);
        let places = if revision == 9 {
            Cow::Owned(listed(&bytes)?)
        } else {
            let known = |format: &&(u8, u16, _)| (format.0, format.1) == (revision, size);
            Cow::Borrowed(FORMATS.iter().find(known)?.2)
        };
        Some(Self { bytes, places })
    }

    /// Returns a value, or `None` if the format or the GPU does not have it.
    pub(super) fn value(&self, field: Field) -> Option<u64> {
        self.of_link(field, 0)
    }

    /// Returns the value of an XGMI link, or `None` if the format or the GPU does not have it.
    pub(super) fn of_link(&self, field: Field, link: usize) -> Option<u64> {
        let place = self.places.iter().find(|place| place.field == field)?;
        if link >= place.values {
            return None;
        }
        let raw = self
            .bytes
            .get(place.offset + link * place.size..)?
            .get(..place.size)?;
        let is_absent = raw.iter().all(|byte| *byte == 0xff);
        let value = raw
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte));
        (!is_absent).then_some(value)
    }
}

/// Returns the fields in a table of format 1.9, or `None` if the list is longer than the table.
fn listed(bytes: &[u8]) -> Option<Vec<FieldLayout>> {
    /// The size of the header and of the number of attributes.
    const LIST: usize = 8;
    let count = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    let mut places = Vec::new();
    let mut offset = LIST;
    for _ in 0..count {
        let encoding = u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?);
        offset += size_of::<u64>();
        let (values, id) = ((encoding & 0x3ff) as usize, encoding >> 10 & 0x3ff);
        // U8, S8, U16, S16, U32, S32, U64, S64
        let size = 1_usize << ((encoding >> 20 & 0xf) / 2).min(3);
        if let Some((_, field)) = IDS.iter().find(|(known, _)| *known == id) {
            places.push(FieldLayout {
                field: *field,
                offset,
                size,
                values,
            });
        }
        offset += values * size;
        if offset > bytes.len() {
            return None;
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table of format 1.9 with these attributes: id, type and values.
    fn list(attributes: &[(u64, u64, &[u64])]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 9];
        bytes.extend((attributes.len() as u32).to_le_bytes());
        for (id, kind, values) in attributes {
            bytes.extend((kind << 20 | id << 10 | values.len() as u64).to_le_bytes());
            for value in *values {
                bytes.extend(&value.to_le_bytes()[..1 << (kind / 2)]);
            }
        }
        let size = bytes.len() as u16;
        bytes[..2].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    #[test]
    fn attribute_list_is_decoded_in_any_order_and_value_type() {
        let [u16, u32, u64] = [2, 4, 6];
        let bytes = list(&[
            (0, u16, &[40]),
            (10, u32, &[77]),
            (29, u64, &[1, 2, u64::MAX]),
            (700, u16, &[1; 9]),
            (7, u64, &[65536]),
            (11, u64, &[u64::MAX]),
        ]);
        let table = MetricsTable::decode(bytes).unwrap();
        assert_eq!(table.value(ProcessorHot), Some(77));
        assert_eq!(table.value(Energy), Some(65536));
        assert_eq!(table.value(PowerLimit), None);
        let links: Vec<_> = (0..5).map(|link| table.of_link(XgmiRead, link)).collect();
        assert_eq!(links, [Some(1), Some(2), None, None, None]);
    }

    #[test]
    fn truncated_attribute_list_is_not_decoded() {
        let complete = list(&[(7, 6, &[5]), (8, 6, &[6])]);
        for length in 0..complete.len() {
            assert!(MetricsTable::decode(complete[..length].to_vec()).is_none());
        }
        assert!(MetricsTable::decode(complete).is_some());
    }

    #[test]
    fn metrics_table_of_unknown_size_or_format_is_not_decoded() {
        for (revision, size, _) in FORMATS {
            let mut bytes = vec![0; usize::from(size)];
            bytes[..2].copy_from_slice(&size.to_le_bytes());
            bytes[2..4].copy_from_slice(&[1, revision]);
            assert!(MetricsTable::decode(bytes.clone()).is_some(), "1.{revision}");
            for (at, value) in [(0, bytes[0] ^ 2), (2, 2), (3, 77)] {
                let mut other = bytes.clone();
                other[at] = value;
                assert!(MetricsTable::decode(other).is_none(), "1.{revision}");
            }
        }
    }

    #[test]
    fn field_offsets_of_a_format_are_in_bounds_and_do_not_overlap() {
        for (revision, size, places) in FORMATS {
            let mut ends = 4;
            for place in places {
                assert!(place.offset >= ends, "1.{revision}: {place:?}");
                ends = place.offset + place.size * place.values;
            }
            assert!(ends <= usize::from(size), "1.{revision}");
        }
    }
}

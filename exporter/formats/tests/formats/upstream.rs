//! Event files, wandb files and the protobuf of traces, decoded by prost and the few lines that their formats need, and by nothing
//! of ours.

use std::collections::BTreeMap;

use prost::{bytes::Buf, encoding::decode_varint};

/// A field of a protobuf message: its number, and its value as the wire has it.
type Field<'a> = (u64, Wire<'a>);

/// A value on the wire.
#[derive(Clone, Copy)]
pub(crate) enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    pub(crate) fn number(self) -> u64 {
        let Self::Number(number) = self else {
            panic!("bytes where a number should be")
        };
        number
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        let Self::Bytes(bytes) = self else {
            panic!("a number where bytes should be")
        };
        bytes
    }

    pub(crate) fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("text is UTF-8")
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    decode_varint(bytes).expect("a varint ends")
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(len);
    *bytes = rest;
    taken
}

/// The fields of a message.
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)),
            1 => Wire::Number(bytes.get_u64_le()),
            2 => {
                let len = varint(&mut bytes) as usize;
                Wire::Bytes(take(&mut bytes, len))
            }
            5 => Wire::Number(bytes.get_u32_le().into()),
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

/// The fields of a message by their numbers; of a repeated field, the last.
pub(crate) fn message(bytes: &[u8]) -> BTreeMap<u64, Wire<'_>> {
    fields(bytes).into_iter().collect()
}

/// A number under a tag.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub(crate) tag: String,
    pub(crate) step: i64,
    /// In nanoseconds since 1970.
    pub(crate) time: u64,
    pub(crate) value: f64,
}

/// The contents of an event file.
#[derive(Default)]
pub(crate) struct EventFile {
    pub(crate) events: usize,
    pub(crate) scalars: Vec<Scalar>,
    /// Texts under tags.
    pub(crate) texts: Vec<(String, String)>,
}

/// Decodes an event file.
pub(crate) fn event_file(mut bytes: &[u8]) -> EventFile {
    let mut file = EventFile::default();
    while !bytes.is_empty() {
        let len = bytes.get_u64_le() as usize;
        take(&mut bytes, 4);
        take_event(take(&mut bytes, len), &mut file);
        take(&mut bytes, 4);
    }
    file
}

fn take_event(event: &[u8], file: &mut EventFile) {
    file.events += 1;
    let event = message(event);
    let number = |field: u64| event.get(&field).map_or(0, |value| value.number());
    let seconds = f64::from_bits(number(1));
    let whole_seconds = seconds.floor();
    let time = whole_seconds as u64 * 1_000_000_000 + ((seconds - whole_seconds) * 1e9).round() as u64;
    let step = number(2) as i64;
    let values = event
        .get(&5)
        .map_or_else(Vec::new, |summary| fields(summary.bytes()));
    for (_, value) in values {
        let parts = message(value.bytes());
        let tag = parts[&1].text();
        if let Some(bits) = parts.get(&2) {
            let value = f32::from_bits(bits.number() as u32).into();
            file.scalars.push(Scalar {
                tag,
                step,
                time,
                value,
            });
        } else {
            let text = fields(parts[&8].bytes())
                .into_iter()
                .find(|(field, _)| *field == 8);
            file.texts
                .push((tag, text.expect("a text is a string tensor").1.text()));
        }
    }
}

/// The records of a wandb file.
pub(crate) fn wandb_records(file: &[u8]) -> Vec<Vec<u8>> {
    let (mut records, mut at) = (Vec::new(), 7);
    let mut begun = Vec::new();
    while at + 7 <= file.len() {
        let left = 32_768 - at % 32_768;
        if left < 7 {
            at += left;
            continue;
        }
        let len = usize::from((&file[at + 4..]).get_u16_le());
        begun.extend_from_slice(&file[at + 7..at + 7 + len]);
        if matches!(file[at + 6], 1 | 4) {
            records.push(std::mem::take(&mut begun));
        }
        at += 7 + len;
    }
    records
}

/// The keys and values of the items in `field` of a message.
pub(crate) fn items(message: &[u8], field: u64) -> Vec<(String, String)> {
    let items = fields(message).into_iter().filter(|(found, _)| *found == field);
    let item = |item: &[u8]| {
        let parts = fields(item);
        let keys = parts.iter().filter(|(number, _)| matches!(number, 1 | 2));
        let key = keys.map(|(_, key)| key.text()).collect::<Vec<_>>().join(".");
        let value = parts.iter().find(|(number, _)| *number == 16);
        (key, value.expect("an item has a value").1.text())
    };
    items.map(|(_, value)| item(value.bytes())).collect()
}

//! Reads wandb's file: blocks by hand, records by prost, values by `serde_json`. Builds long inputs too, since they need the
//! same blocks.

use prost::Message;

use super::Points;
use crate::input::{LATER_SECS, repeat, sample};

const BLOCK: usize = 32 << 10;
const HEAD: usize = 7;
const MAGIC: usize = 7;

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(message, optional, tag = "2")]
    history: Option<History>,
    #[prost(message, optional, tag = "7")]
    stats: Option<Stats>,
}

#[derive(Clone, PartialEq, Message)]
struct History {
    #[prost(message, repeated, tag = "1")]
    item: Vec<Item>,
}

#[derive(Clone, PartialEq, Message)]
struct Stats {
    #[prost(message, repeated, tag = "3")]
    item: Vec<Item>,
}

#[derive(Clone, PartialEq, Message)]
struct Item {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, repeated, tag = "2")]
    nested_key: Vec<String>,
    #[prost(string, tag = "16")]
    value_json: String,
}

/// The sample's records over and over, in blocks and with checksums of their own.
pub(crate) fn input(size: usize) -> Vec<u8> {
    let sample = sample("torchspec/perf.wandb");
    let (mut joined, mut lengths) = (Vec::new(), Vec::new());
    each(&sample, |record| {
        joined.extend_from_slice(record);
        lengths.push(record.len());
    });
    let mut file = sample[..MAGIC].to_vec();
    repeat(&joined, size / joined.len(), LATER_SECS, |_, joined| {
        let mut rest = joined;
        for len in &lengths {
            let (record, after) = rest.split_at(*len);
            write(record, &mut file);
            rest = after;
        }
    });
    file
}

/// Appends a record in as many chunks as it takes.
fn write(mut record: &[u8], file: &mut Vec<u8>) {
    let mut is_first = true;
    loop {
        let left = BLOCK - file.len() % BLOCK;
        if left < HEAD {
            file.resize(file.len() + left, 0);
            continue;
        }
        let (chunk, rest) = record.split_at(record.len().min(left - HEAD));
        let kind = match (is_first, rest.is_empty()) {
            (true, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
            (false, true) => 4,
        };
        let mut covered = vec![kind];
        covered.extend_from_slice(chunk);
        file.extend_from_slice(&crc32fast::hash(&covered).to_le_bytes());
        file.extend_from_slice(&(chunk.len() as u16).to_le_bytes());
        file.extend_from_slice(&covered);
        if rest.is_empty() {
            return;
        }
        (record, is_first) = (rest, false);
    }
}

/// Reads a complete file. Returns the number of points.
pub(super) fn read(file: &[u8]) -> u64 {
    let mut points = Points::default();
    each(file, |record| {
        let record = Record::decode(record).unwrap();
        let items = record.history.map(|history| history.item);
        let items = items.or(record.stats.map(|stats| stats.item)).unwrap_or_default();
        let values: Vec<(String, serde_json::Value)> = items
            .into_iter()
            .filter_map(|item| {
                let key = if item.key.is_empty() {
                    item.nested_key.join(".")
                } else {
                    item.key
                };
                Some((key, serde_json::from_str(&item.value_json).ok()?))
            })
            .collect();
        let time = values.iter().find(|(key, _)| key == "_timestamp");
        let time = time.map_or(0, |(_, time)| (time.as_f64().unwrap() * 1e9) as u64);
        for (key, value) in values.iter().filter(|(key, _)| !key.starts_with('_')) {
            if let Some(number) = value.as_f64() {
                points.push(key, time, number);
            }
        }
    });
    points.finish()
}

/// Calls `record` with each record of a file whose checksums are right.
fn each(file: &[u8], mut record: impl FnMut(&[u8])) {
    let (mut at, mut parts) = (MAGIC, Vec::new());
    while file.len() - at >= HEAD {
        if BLOCK - at % BLOCK < HEAD {
            at += BLOCK - at % BLOCK;
            continue;
        }
        let len = usize::from(u16::from_le_bytes([file[at + 4], file[at + 5]]));
        let covered = &file[at + HEAD - 1..at + HEAD + len];
        assert_eq!(crc32fast::hash(covered).to_le_bytes(), file[at..at + 4]);
        parts.extend_from_slice(&covered[1..]);
        if matches!(covered[0], 1 | 4) {
            record(&parts);
            parts.clear();
        }
        at += HEAD + len;
    }
}

//! Checks the table in the README: whether the samples of each format have a time, a step, a span of each step and a rank.

use std::{cell::RefCell, collections::BTreeMap, fs};

use pulsetrain_formats::{FORMATS, LogFormat, LogReader, ReadLimits, ReadTime};
use pulsetrain_otlp::{UnixNanos, write::Encoded};
use pulsetrain_record::{Recorder, Run};

use crate::imported::{NEAR, is_golden, json, recognised};

const START: &str = "<!-- formats -->\n";
const END: &str = "<!-- end of formats -->\n";

/// The number of a format's samples, and of those with a time, a step, a span of each step and a rank.
#[derive(Clone, Copy, Debug, Default)]
struct Contents {
    samples: usize,
    with: [usize; 4],
}

impl Contents {
    fn add(&mut self, format: &LogFormat, bytes: &[u8]) {
        let (batches, invented, _, records) = read(format, bytes);
        let text = json(&batches);
        let has = |words: &str| text.contains(words);
        let found = [
            invented * 2 < records && !batches.is_empty(),
            has("\"name\":\"train.global_step\""),
            has("\"name\":\"train.step\""),
            takes_rank(format, bytes),
        ];
        self.samples += 1;
        for (count, has) in self.with.iter_mut().zip(found) {
            *count += usize::from(has);
        }
    }

    fn cells(self) -> [&'static str; 4] {
        self.with.map(|count| match count {
            0 => "",
            count if count == self.samples => "yes",
            _ => "some",
        })
    }
}

/// Reads a sample: the batches, the number of invented times, the ranks and the number of records.
fn read(format: &LogFormat, bytes: &[u8]) -> (Vec<Encoded>, u64, Vec<i64>, u64) {
    let batches = RefCell::new(Vec::new());
    let mut recorder = Recorder::new(Run::default(), |batch| batches.borrow_mut().push(batch));
    let mut reader = LogReader::new(format, ReadLimits::default());
    reader.set_time(ReadTime {
        unix_nanos: UnixNanos(NEAR),
        is_live: false,
    });
    reader.push(bytes, &mut recorder);
    let invented = reader.invented_times();
    reader.finish(&mut recorder);
    recorder.flush();
    let ranks = recorder.recorded_ranks().to_vec();
    let (counts, _) = recorder.finish();
    (batches.into_inner(), invented, ranks, counts.records)
}

/// Returns whether the rank is the number in the prefix of a launcher.
fn takes_rank(format: &LogFormat, bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else {
        return false;
    };
    let prefixed: String = text
        .split_inclusive('\n')
        .flat_map(|line| ["[rank3]: ", line])
        .collect();
    read(format, prefixed.as_bytes()).2 == [3]
}

fn table() -> String {
    let mut contents: BTreeMap<&str, Contents> = BTreeMap::new();
    for (_, bytes, format) in recognised() {
        contents.entry(format.name).or_default().add(format, &bytes);
    }
    let mut table = String::from(
        "| format | time | step | span of each step | rank from a launcher's prefix |\n|---|---|---|---|---|\n",
    );
    for format in FORMATS {
        let Some(found) = contents.get(format.name) else {
            continue;
        };
        table.push_str(&format!(
            "| `{}` | {} |\n",
            format.name,
            found.cells().join(" | ")
        ));
    }
    table
}

#[test]
fn readme_table_matches_the_sample_contents() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(path).expect("there is a README");
    let start = readme.find(START).expect("the README has the table") + START.len();
    let end = readme.find(END).expect("the table has an end");
    is_golden(path, &[&readme[..start], &table(), &readme[end..]].concat());
}

//! The segment log against a model, with kills and damage at random places: each record that is complete, sound and
//! unfinished is read again, in order; no record is read twice by one process.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use proptest::{collection::vec, prelude::*, sample::Index};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::disk::{Position, Record, SegmentLog};

/// The length of the header of a record.
const RECORD_HEADER: usize = 57;

#[derive(Clone, Debug)]
enum Op {
    Append(usize),
    Read,
    Finish(Index),
    GiveBack(Index),
    SaveCursor,
    Sync,
    Restart(Vec<Damage>),
}

#[derive(Clone, Debug)]
enum Damage {
    /// Truncates the newest segment, as a kill in the middle of a write does.
    CutTail(usize),
    FlipBit(Index, Index, u8),
    DeleteSegment(Index),
    CursorMissing,
    CursorGarbage,
    CursorBeyondEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The record must be read.
    Due,
    /// The record was finished by an earlier process: it may be read again, or be deleted.
    Optional,
    Finished,
    /// The record must not be read.
    Damaged,
}

/// The location of a record in its segment.
struct Place {
    path: PathBuf,
    end: usize,
    bytes: Vec<u8>,
}

/// The model: the records that the log must hold and may hold.
#[derive(Default)]
struct Model {
    next: u64,
    records: BTreeMap<u64, State>,
    places: Vec<Place>,
    /// The records that were read in this life and are not finished.
    in_flight: BTreeMap<u64, Position>,
    returned: BTreeSet<u64>,
    /// The newest number that was read for the first time in this life.
    last_read: Option<u64>,
    /// All numbers below this one were finished at the last save of the cursor, and the cursor is intact.
    saved: u64,
}

struct Run {
    folder: tempfile::TempDir,
    segment_bytes: u64,
    log: Option<SegmentLog>,
    model: Model,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn every_intact_unfinished_record_survives_a_restart(
        segment_bytes in 100_u64..2_000,
        ops in vec(ops(), 1..80),
    ) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut run = Run { folder, segment_bytes, log: None, model: Model::default() };
        run.open();
        for op in ops {
            run.step(op);
        }
        run.step(Op::Restart(Vec::new()));
        run.read_all();
        run.finish_all();
    }
}

fn ops() -> impl Strategy<Value = Op> {
    let damage = prop_oneof![
        4 => (1_usize..80).prop_map(Damage::CutTail),
        4 => (any::<Index>(), any::<Index>(), 0_u8..8).prop_map(|(file, byte, bit)| Damage::FlipBit(file, byte, bit)),
        1 => any::<Index>().prop_map(Damage::DeleteSegment),
        1 => Just(Damage::CursorMissing),
        1 => Just(Damage::CursorGarbage),
        1 => Just(Damage::CursorBeyondEnd),
    ];
    prop_oneof![
        8 => (0_usize..300).prop_map(Op::Append),
        6 => Just(Op::Read),
        5 => any::<Index>().prop_map(Op::Finish),
        1 => any::<Index>().prop_map(Op::GiveBack),
        1 => Just(Op::SaveCursor),
        1 => Just(Op::Sync),
        2 => vec(damage, 0..3).prop_map(Op::Restart),
    ]
}

impl Run {
    fn open(&mut self) {
        let (log, _) =
            SegmentLog::open(self.folder.path(), self.segment_bytes).expect("the folder can be opened");
        self.log = Some(log);
        for state in self
            .model
            .records
            .values_mut()
            .filter(|state| **state == State::Finished)
        {
            *state = State::Optional;
        }
        self.model.in_flight.clear();
        self.model.returned.clear();
        self.model.last_read = None;
    }

    fn log(&mut self) -> &mut SegmentLog {
        self.log.as_mut().expect("the log is open")
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Append(length) => {
                let number = self.model.next;
                self.log().append(&record(number, length)).expect("there is room");
                self.model.records.insert(number, State::Due);
                self.model.next += 1;
                self.record_place(RECORD_HEADER + 8 + length);
            }
            Op::Read => {
                self.read();
            }
            Op::Finish(which) => {
                if let Some(number) = self.pick(&which) {
                    self.finish(number);
                }
            }
            Op::GiveBack(which) => {
                if let Some(number) = self.pick(&which) {
                    let position = self.model.in_flight[&number];
                    self.log().give_back(position);
                    self.model.returned.insert(number);
                }
            }
            Op::SaveCursor => {
                self.log().save_cursor().expect("the cursor can be written");
                let model = &mut self.model;
                let unfinished = model.records.iter().find(|(_, state)| **state != State::Finished);
                model.saved = unfinished.map_or(model.next, |(number, _)| *number);
            }
            Op::Sync => self.log().sync().expect("the disk works"),
            Op::Restart(damages) => {
                self.log = None;
                let due = |run: &Self, number: &u64| run.model.records.get(number) == Some(&State::Due);
                let lost = (0..self.model.next).find(|number| due(self, number) && !self.is_sound(*number));
                assert_eq!(lost, None, "the log changed a record that is not finished");
                for damage in damages {
                    self.damage(&damage);
                }
                self.record_damage();
                self.open();
            }
        }
        self.check_contents();
    }

    /// Returns a record in flight that was not returned.
    fn pick(&self, which: &Index) -> Option<u64> {
        let held = self
            .model
            .in_flight
            .keys()
            .filter(|number| !self.model.returned.contains(number));
        let held: Vec<u64> = held.copied().collect();
        (!held.is_empty()).then(|| *which.get(&held))
    }

    fn finish(&mut self, number: u64) {
        let position = self.model.in_flight.remove(&number).expect("it is in flight");
        self.log().finish(position);
        self.log().finish(position);
        self.model.records.insert(number, State::Finished);
    }

    /// Reads one record and checks that it is one that must or may be next.
    fn read(&mut self) -> bool {
        let stored = self.log().next().expect("the files can be read");
        let model = &mut self.model;
        if let Some(first) = model.returned.pop_first() {
            let stored = stored.expect("a record was given back");
            assert_eq!(number_of(&stored.record), first);
            assert_eq!(model.in_flight[&first], stored.position);
            return true;
        }
        let after = model.last_read.map_or(0, |last| last + 1);
        let mut due = model
            .records
            .range(after..)
            .filter(|(_, state)| **state == State::Due);
        let due = due.next().map(|(number, _)| *number);
        let number = stored.as_ref().map(|stored| number_of(&stored.record));
        let is_passed = |other: u64| other >= after && number.is_none_or(|number| other < number);
        model
            .records
            .retain(|other, state| *state != State::Optional || !is_passed(*other));
        let (Some(stored), Some(number)) = (stored, number) else {
            assert_eq!(due, None, "a record that is not finished is missing");
            return false;
        };
        assert_eq!(
            stored.record,
            record(number, stored.record.bytes.len() - 8),
            "unchanged"
        );
        assert!(
            number >= after,
            "{number} is read for a second time, or not in order"
        );
        assert!(
            due.is_none_or(|due| number <= due),
            "{number} is read in front of {due:?}"
        );
        assert!(
            number >= model.saved,
            "{number} was finished before the cursor was saved"
        );
        assert_ne!(
            model.records.get(&number),
            Some(&State::Damaged),
            "{number} was damaged"
        );
        model.last_read = Some(number);
        model.records.insert(number, State::Due);
        model.in_flight.insert(number, stored.position);
        true
    }

    fn read_all(&mut self) {
        while self.read() {}
    }

    /// Finishes all records: an empty log has no files except for its lock.
    fn finish_all(&mut self) {
        for number in self.model.in_flight.keys().copied().collect::<Vec<_>>() {
            self.finish(number);
        }
        self.log().save_cursor().expect("the cursor can be removed");
        assert_eq!(self.log().contents().file_bytes, 0);
        assert_eq!(segments(self.folder.path()), Vec::<PathBuf>::new());
    }

    fn check_contents(&mut self) {
        let unfinished = self
            .model
            .records
            .values()
            .filter(|state| **state == State::Due)
            .count() as u64;
        let contents = self.log().contents();
        let on_disk: u64 = segments(self.folder.path())
            .iter()
            .map(|path| fs::metadata(path).expect("it is there").len())
            .sum();
        assert!(contents.records >= unfinished, "{contents:?}");
        assert_eq!(contents.items, contents.records * 3);
        assert_eq!(contents.file_bytes, on_disk);
        assert_eq!(self.log().oldest().is_some(), contents.records > 0);
    }

    fn damage(&mut self, damage: &Damage) {
        let folder = self.folder.path().to_owned();
        let files = segments(&folder);
        match damage {
            Damage::CutTail(bytes) => {
                if let Some(newest) = files.last() {
                    let file = fs::read(newest).expect("it is there");
                    let end = file.len().saturating_sub(*bytes);
                    fs::write(newest, &file[..end]).expect("it can be written");
                    self.model.saved = 0;
                }
            }
            Damage::FlipBit(which, byte, bit) => {
                if !files.is_empty() {
                    let path = which.get(&files);
                    let mut file = fs::read(path).expect("it is there");
                    if file.is_empty() {
                        return;
                    }
                    let at = byte.index(file.len());
                    file[at] ^= 1 << bit;
                    fs::write(path, file).expect("it can be written");
                }
            }
            Damage::DeleteSegment(which) => {
                if !files.is_empty() {
                    let path = which.get(&files);
                    fs::remove_file(path).expect("it can be deleted");
                    self.model.saved = 0;
                }
            }
            Damage::CursorMissing => {
                let _ = fs::remove_file(folder.join("cursor"));
                self.model.saved = 0;
            }
            Damage::CursorGarbage => {
                fs::write(folder.join("cursor"), "1 0 0 00000000\n").expect("it can be written");
                self.model.saved = 0;
            }
            Damage::CursorBeyondEnd => {
                let line = format!("1 {} 5000", self.model.next + 1000);
                let cursor = format!("{line} {:08x}\n", crc32fast::hash(line.as_bytes()));
                fs::write(folder.join("cursor"), cursor).expect("it can be written");
                self.model.saved = 0;
            }
        }
    }

    /// Stores the location of the last appended record.
    fn record_place(&mut self, length: usize) {
        let path = segments(self.folder.path()).pop().expect("it is in a segment");
        let file = fs::read(&path).expect("it is there");
        self.model.places.push(Place {
            end: file.len(),
            bytes: file[file.len() - length..].to_vec(),
            path,
        });
    }

    fn is_sound(&self, number: u64) -> bool {
        let Place { path, end, bytes } = &self.model.places[number as usize];
        fs::read(path).is_ok_and(|file| file.get(end - bytes.len()..*end) == Some(bytes))
    }

    fn record_damage(&mut self) {
        for number in 0..self.model.next {
            let is_sound = self.is_sound(number);
            let state = self.model.records.get(&number).copied();
            let state = match (is_sound, state) {
                (false, _) => State::Damaged,
                // The same bit was flipped twice, or all records in front of it were finished.
                (true, None | Some(State::Damaged)) => State::Optional,
                (true, Some(state)) => state,
            };
            self.model.records.insert(number, state);
        }
    }
}

/// Returns the record of a number: three items, and the number at the start of the payload.
fn record(number: u64, length: usize) -> Record {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..length).map(|at| (at as u64 ^ number) as u8));
    Record {
        signal: Signal::ALL[number as usize % 3],
        items: 3,
        accepted: Duration::from_secs(1_700_000_000 + number),
        bytes: bytes.into(),
    }
}

fn number_of(record: &Record) -> u64 {
    u64::from_le_bytes(
        *record
            .bytes
            .first_chunk()
            .expect("every test record begins with its number"),
    )
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("it is there").path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    files.sort();
    files
}

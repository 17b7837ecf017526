//! The records of a Surogate log, read with plain serde_json.

use std::{fs, path::Path};

use serde_json::Value;

/// A complete log.
#[derive(Debug)]
pub struct SurogateLog(Vec<Record>);

/// One record.
#[derive(Clone, Debug)]
pub struct Record(Value);

impl SurogateLog {
    /// Reads a log, which must be valid JSON.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let records: Vec<Value> = serde_json::from_str(&text).expect("the log is valid JSON");
        Self(records.into_iter().map(Record).collect())
    }

    /// Returns all records of a kind.
    pub fn of_kind(&self, kind: &str) -> Vec<&Record> {
        self.0.iter().filter(|record| record.0["log"] == kind).collect()
    }

    /// Returns the number of records.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Record {
    /// Returns the time of the record, in Unix nanoseconds.
    pub fn time(&self) -> u64 {
        /// 2026-11-21T00:00:00Z, the day of every log in the corpus.
        const MIDNIGHT_SECS: u64 = 1_795_219_200;
        let text = self.0["time"].as_str().expect("a record has a time");
        let clock = text
            .strip_prefix("2026-11-21 ")
            .unwrap_or_else(|| panic!("{text} is of another day"));
        let part = |from: usize, to: usize| clock[from..to].parse::<u64>().expect("a time has digits");
        (MIDNIGHT_SECS + part(0, 2) * 3_600 + part(3, 5) * 60 + part(6, 8)) * 1_000_000_000 + part(9, 18)
    }

    /// Returns a field that is a number.
    pub fn number(&self, field: &str) -> f64 {
        self.0[field]
            .as_f64()
            .unwrap_or_else(|| panic!("{field} is no number in {}", self.0))
    }

    /// Returns all fields.
    pub fn fields(&self) -> &Value {
        &self.0
    }
}

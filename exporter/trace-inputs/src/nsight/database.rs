//! The database of an export: opened read-only, with its tables and columns.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io::{self, Read, Write as _},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::spill::MemoryBudget;
use rusqlite::{Connection, OpenFlags, Row, limits::Limit, types::ValueRef};

use super::tables::{NVTX_TABLE, SAMPLES_TABLE, TABLES};

/// The table of texts that most other tables refer to.
const STRINGS: &str = "StringIds";

/// The tables without events, and those that are read by other modules.
const KNOWN: [&str; 2] = [NVTX_TABLE, SAMPLES_TABLE];

/// The columns for the time of an event.
const TIMES: [&str; 3] = ["start", "timestamp", "rawTimestamp"];

/// The largest text or row in bytes, 16 MiB: a damaged file can claim any size.
const MAX_BYTES: i32 = 16 << 20;

/// The number of bytes of a stream that are copied at once.
const PIECE: usize = 64 << 10;

/// The limit for the tables that an error lists.
const MAX_LISTED_TABLES: usize = 10;

/// The limit for the labels of an enum table; real ones have less than 100.
const MAX_LABELS: usize = 10_000;

/// The character that ends a name in a query.
const QUOTE: char = '\u{22}';

/// The reason why an export cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NsightError {
    /// The file is not a database, or is damaged at its beginning.
    #[error("cannot read the SQLite database: {0}; export the report again with `nsys export --type sqlite`")]
    Database(#[from] rusqlite::Error),
    /// A database of another program.
    #[error(
        "this SQLite database is not an export of Nsight Systems: it has no table `{0}`; write one with `nsys export --type sqlite`"
    )]
    Other(&'static str),
    /// An export without a table that can be converted, with the names of its tables.
    #[error(
        "this export of Nsight Systems has no table that is converted, only {0}; profile with `nsys profile --trace=cuda,nvtx`"
    )]
    NothingKnown(String),
    /// The input of a copy cannot be read.
    #[error("cannot read the input: {0}")]
    Input(#[source] io::Error),
    /// A temporary file could not be used.
    #[error("cannot use a temporary file: {0}; name a folder with room for it")]
    Temporary(#[from] io::Error),
}

/// A database of `nsys export --type sqlite`.
#[derive(Debug)]
pub struct NsightExport {
    connection: Connection,
    /// The columns of each table.
    tables: BTreeMap<String, BTreeSet<String>>,
    problems: Vec<String>,
}

/// The expression that a query selects: a column, or the text that it refers to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    Plain(&'static str),
    Text(&'static str),
}

/// One row of a query.
#[derive(Clone, Copy)]
pub(super) struct Cells<'r>(&'r Row<'r>);

impl NsightExport {
    /// Opens an export. The file is not changed or locked, and no other file is written.
    ///
    /// # Errors
    ///
    /// The file is not an export of Nsight Systems.
    pub fn open(path: &Path) -> Result<Self, NsightError> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri(path), flags)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_BYTES)?;
        connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
        let tables = tables(&connection)?;
        if !tables.contains_key(STRINGS) {
            return Err(NsightError::Other(STRINGS));
        }
        let export = Self {
            connection,
            tables,
            problems: Vec::from_iter(unmerged(path)),
        };
        if export.has_events() {
            return Ok(export);
        }
        let unknown: Vec<&str> = export.unknown_names().take(MAX_LISTED_TABLES).collect();
        Err(match unknown.is_empty() {
            true => NsightError::Other("CUPTI_ACTIVITY_KIND_RUNTIME` or `NVTX_EVENTS"),
            false => NsightError::NothingKnown(unknown.join(", ")),
        })
    }

    /// Opens an export that is read from a stream, through a temporary file.
    ///
    /// # Errors
    ///
    /// The stream is not an export of Nsight Systems, or a temporary file cannot be used.
    pub fn copied(mut input: impl Read, room: &MemoryBudget) -> Result<Self, NsightError> {
        let folder = room.folder.clone().unwrap_or_else(std::env::temp_dir);
        let mut copy = tempfile::NamedTempFile::new_in(folder)?;
        let mut piece = vec![0; PIECE];
        loop {
            match input.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => copy.write_all(&piece[..read])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(NsightError::Input(error)),
            }
        }
        copy.flush()?;
        // The database stays open after the file is deleted.
        Self::open(copy.path())
    }

    fn has_events(&self) -> bool {
        let mut known = TABLES.iter().map(|table| table.name).chain(KNOWN);
        known.any(|name| self.tables.contains_key(name))
    }

    /// Returns the problems of the file itself.
    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns the start of the capture in nanoseconds since 1970; every time of an export counts from it.
    pub(super) fn start_unix_nanos(&self) -> Option<UnixNanos> {
        let query = "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1";
        let start = self.connection.query_row(query, [], |row| row.get::<_, i64>(0));
        let start = u64::try_from(start.ok()?).ok().map(UnixNanos)?;
        start.is_known().then_some(start)
    }

    pub(super) fn has(&self, table: &str, column: &str) -> bool {
        self.tables
            .get(table)
            .is_some_and(|columns| columns.contains(column))
    }

    /// Passes each row of a table to `take`. Missing columns are `NULL`. If a row is damaged, the rows before it are used.
    ///
    /// # Errors
    ///
    /// Returns the errors of `take`. A damaged table is added to `errors`.
    pub(super) fn each<E>(
        &self,
        table: &str,
        columns: &[Column],
        errors: &mut Vec<String>,
        mut take: impl FnMut(Cells<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.tables.contains_key(table) {
            return Ok(());
        }
        let mut outcome = Ok(());
        let query = self.query(table, columns);
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(&query)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                outcome = take(Cells(row));
                if outcome.is_err() {
                    break;
                }
            }
            Ok(())
        };
        if let Err(error) = read() {
            errors.push(format!(
                "the table {table} cannot be read to its end: {error}; the rows before that are used"
            ));
        }
        outcome
    }

    fn query(&self, table: &str, columns: &[Column]) -> String {
        let (mut selected, mut joins) = (Vec::new(), String::new());
        for (place, column) in columns.iter().enumerate() {
            selected.push(match column {
                Column::Plain(name) | Column::Text(name) if !self.has(table, name) => "NULL".to_owned(),
                Column::Plain(name) => format!("t.\"{name}\""),
                Column::Text(name) => {
                    // Writing to a string cannot fail.
                    let _ = write!(
                        joins,
                        " LEFT JOIN {STRINGS} AS s{place} ON s{place}.id = t.\"{name}\""
                    );
                    format!("s{place}.value")
                }
            });
        }
        format!("SELECT {} FROM \"{table}\" AS t{joins}", selected.join(", "))
    }

    /// Returns the labels of an enum table by their numbers.
    pub(super) fn labels(&self, table: &'static str, errors: &mut Vec<String>) -> BTreeMap<i64, String> {
        let mut labels = BTreeMap::new();
        let columns = ["id", "label", "name"].map(Column::Plain);
        let read: Result<(), io::Error> = self.each(table, &columns, errors, |cells| {
            let label = cells.text(1).or_else(|| cells.text(2));
            if let (Some(id), Some(label), true) = (cells.int(0), label, labels.len() < MAX_LABELS) {
                labels.insert(id, label.into_owned());
            }
            Ok(())
        });
        debug_assert!(read.is_ok(), "nothing in the closure fails");
        labels
    }

    /// Returns the names of tables with events that are not converted.
    fn unknown_names(&self) -> impl Iterator<Item = &str> {
        let is_known = |name: &str| KNOWN.contains(&name) || TABLES.iter().any(|table| table.name == name);
        let events = self.tables.iter().filter(move |(name, columns)| {
            !is_known(name) && !name.starts_with("ENUM_") && TIMES.iter().any(|time| columns.contains(*time))
        });
        events.map(|(name, _)| name.as_str())
    }

    /// Returns the tables with events that are not converted, and the number of their rows.
    pub(super) fn unknown_tables(&self) -> Vec<(String, u64)> {
        let count = |name: &str| {
            let query = format!("SELECT count(*) FROM \"{name}\"");
            let count = self.connection.query_row(&query, [], |row| row.get::<_, i64>(0));
            Some((name.to_owned(), u64::try_from(count.ok()?).ok()?))
        };
        self.unknown_names()
            .filter_map(count)
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

impl<'r> Cells<'r> {
    pub(super) fn int(self, place: usize) -> Option<i64> {
        match self.0.get_ref(place).ok()? {
            ValueRef::Integer(value) => Some(value),
            ValueRef::Real(value) => Some(value as i64),
            _ => None,
        }
    }

    pub(super) fn real(self, place: usize) -> Option<f64> {
        match self.0.get_ref(place).ok()? {
            ValueRef::Integer(value) => Some(value as f64),
            ValueRef::Real(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a text that is not empty.
    pub(super) fn text(self, place: usize) -> Option<Cow<'r, str>> {
        match self.0.get_ref(place).ok()? {
            ValueRef::Text(text) if !text.is_empty() => Some(String::from_utf8_lossy(text)),
            _ => None,
        }
    }
}

/// Returns the ordinary tables and their columns: no views and no virtual tables, which could run code of the file.
fn tables(connection: &Connection) -> rusqlite::Result<BTreeMap<String, BTreeSet<String>>> {
    let mut names =
        connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")?;
    let names: Vec<String> = names
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let names = names.into_iter().filter(|name| !name.contains(QUOTE));
    names
        .map(|name| {
            let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            let columns: rusqlite::Result<_> = columns.query_map([&name], |row| row.get(0))?.collect();
            Ok((name, columns?))
        })
        .collect()
}

/// Returns the URI of a database that no program changes: SQLite then needs neither a lock nor a second file.
fn uri(path: &Path) -> String {
    // An absolute path has an empty authority: it may begin with two slashes.
    let mut uri = if path.is_absolute() { "file://" } else { "file:" }.to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            other => {
                // Writing to a string cannot fail.
                let _ = write!(uri, "%{other:02x}");
            }
        }
    }
    uri + "?mode=ro&immutable=1"
}

/// Returns a problem if another program has changes of the database in a journal, which are not read.
fn unmerged(path: &Path) -> Option<String> {
    let journals = ["-wal", "-journal"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    });
    let found = journals
        .iter()
        .find(|journal| journal.metadata().is_ok_and(|file| file.len() > 0))?;
    Some(format!(
        "{} has changes that are not in the database yet and are not read; wait until `nsys export` ends",
        found.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_a_path_are_percent_encoded_in_the_uri() {
        let uri = uri(Path::new("a b/c?mode=rw#%.sqlite"));
        assert_eq!(uri, "file:a%20b/c%3fmode%3drw%23%25.sqlite?mode=ro&immutable=1");
    }
}

//! A value with its place in the file, for later error messages.

use std::{
    cell::Cell,
    collections::BTreeSet,
    ops::Deref,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Deserializer};

use super::section::{Setting, Shown};

/// A line and a column, both starting at 1; zero for a value that is in no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    /// The included file; empty for the configuration itself.
    pub(crate) file: &'static str,
    /// The line.
    pub(crate) line: u64,
    /// The column.
    pub(crate) column: u64,
}

thread_local! {
    /// The included file that is being read.
    static READ_FILE: Cell<&'static str> = const { Cell::new("") };
}

/// Runs `read`; all places that it records are in `file`.
pub(super) fn in_file<T>(file: &str, read: impl FnOnce() -> T) -> T {
    READ_FILE.set(kept(file));
    let read = read();
    READ_FILE.set("");
    read
}

/// Returns the included file that is being read; empty for the configuration itself.
pub(super) fn file() -> &'static str {
    READ_FILE.get()
}

/// Interns the name of a file for the life of the program, so that a file that is read again does not leak.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = names.get(name) {
        return name;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}

impl Location {
    /// Returns this place, or `other` if this place is in no file.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::default() { other } else { self }
    }

    /// Returns the place of an offset in a text.
    pub(super) fn from_offset(text: &str, offset: usize) -> Self {
        let before = &text[..offset];
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() as u64 + 1,
            column: line.chars().count() as u64 + 1,
            ..Self::default()
        }
    }
}

/// A value with its place. Two are equal if their values are equal, so that a moved line is not a change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spanned<T> {
    /// The value.
    pub(crate) value: T,
    /// The place.
    pub(crate) location: Location,
}

impl<T> Spanned<T> {
    /// Returns a value without a place.
    pub(crate) fn without_location(value: T) -> Self {
        Self {
            value,
            location: Location::default(),
        }
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let serde_saphyr::Spanned {
            value, referenced, ..
        } = serde_saphyr::Spanned::deserialize(deserializer)?;
        Ok(Self {
            value,
            location: Location {
                file: READ_FILE.get(),
                line: referenced.line(),
                column: referenced.column(),
            },
        })
    }
}

impl<T: Setting> Setting for Spanned<T> {
    fn shown(&self) -> Shown {
        self.value.shown()
    }
}

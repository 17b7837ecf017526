//! The rows that records are recorded by, with what was made ready for those that come again and again.

use pulsetrain_otlp::write::Attribute;

use crate::logs::row::{Order, Row};
use pulsetrain_record::{PreparedSeries, Recorder};

/// Of which of several alike, such as GPUs, a record tells.
#[derive(Clone, Copy, Debug)]
pub(in crate::logs) struct Owner<'a> {
    /// Tells it from the others.
    pub(in crate::logs) number: i64,
    /// The same for all of its records: their points carry them.
    pub(in crate::logs) attributes: &'a [Attribute<'a>],
}

/// The tables that records were recorded by.
#[derive(Debug, Default)]
pub(in crate::logs) struct Tables(Vec<Table>);

/// With so many tables, those of others than were seen by then are not kept.
const MOST_TABLES: usize = 64;

impl Tables {
    /// The table of some rows, of which there are several alike where each has an owner.
    pub(in crate::logs) fn of(&mut self, rows: &'static [Row], owner: Option<i64>) -> &mut Table {
        let place = self.place(rows, owner);
        self.at(place)
    }

    /// The place of such a table; there are few.
    pub(super) fn place(&mut self, rows: &'static [Row], owner: Option<i64>) -> usize {
        let mut tables = self.0.iter();
        match tables.position(|table| table.is_of(rows, owner)) {
            Some(place) => place,
            None if owner.is_some() && self.0.len() >= MOST_TABLES => self.place(rows, None),
            None => {
                self.0.push(Table::of(rows, owner));
                self.0.len() - 1
            }
        }
    }

    pub(super) fn at(&mut self, place: usize) -> &mut Table {
        &mut self.0[place]
    }
}

/// The rows of a table.
#[derive(Debug)]
pub(in crate::logs) struct Table {
    rows: &'static [Row],
    /// Whose records are recorded by it, where there are several.
    owner: Option<i64>,
    order: Order,
    /// The series of those that were recorded.
    series: Vec<Option<PreparedSeries>>,
}

impl Table {
    fn of(rows: &'static [Row], owner: Option<i64>) -> Self {
        Self {
            rows,
            owner,
            order: Order::default(),
            series: rows.iter().map(|_| None).collect(),
        }
    }

    fn is_of(&self, rows: &'static [Row], owner: Option<i64>) -> bool {
        std::ptr::eq(self.rows, rows) && self.owner == owner
    }

    pub(super) fn rows(&self) -> &'static [Row] {
        self.rows
    }

    /// The place of the row of a record's field.
    pub(in crate::logs) fn find(&mut self, field: usize, key: &str) -> Option<usize> {
        self.order.find(self.rows, field, key)
    }

    /// Records a converted value of the row at `place`.
    #[inline]
    pub(in crate::logs) fn record(
        &mut self,
        place: usize,
        time_unix_nanos: u64,
        value: f64,
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) {
        let row = &self.rows[place];
        // Where nobody is named, other attributes may come with the next record.
        let is_ready = if attributes.is_empty() {
            !row.is_plain()
        } else {
            self.owner.is_some()
        };
        if is_ready {
            let series = self.series[place].get_or_insert_with(|| row.series(attributes));
            recorder.record_prepared(series, time_unix_nanos, value);
        } else {
            row.record(time_unix_nanos, value, attributes, recorder);
        }
    }
}

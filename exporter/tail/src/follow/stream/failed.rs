//! A file whose parser panicked: it is not read any further, until another file takes its name or it is truncated. Other files
//! are followed as before.

use super::{Seen, Stream};
use crate::{
    ImportReport, TailError, caught,
    follow::{identity::Inode, outlet::Outlet, positions::Update, saved::SavedRun},
};

impl Stream {
    /// Looks at the path, unless its file has failed.
    pub(super) fn look_guarded(&mut self, outlet: &mut Outlet) -> Result<(), TailError> {
        if self.has_failed() {
            return Ok(());
        }
        let name = self.path.display().to_string();
        caught(|| self.try_look(outlet)).unwrap_or_else(|panicked| {
            self.fail(&panicked, outlet);
            Err(TailError::panicked(&name, &panicked))
        })
    }

    /// Reads what is at the end of the file as it is: no more will follow.
    pub(super) fn take_torn_end(&mut self, outlet: &mut Outlet) {
        let Some(reading) = &mut self.reading else {
            return;
        };
        let name = self.path.display().to_string();
        if let Err(panicked) = caught(|| reading.take_torn_end()) {
            self.fail(&panicked, outlet);
            outlet.tell_problem(TailError::panicked(&name, &panicked));
        }
    }

    fn has_failed(&mut self) -> bool {
        let Some(failed) = self.failed else {
            return false;
        };
        let now = self.path.metadata().map(|metadata| Seen::of(&metadata));
        let is_same = now.is_ok_and(|now| now.is_grown_from(failed));
        if !is_same {
            self.failed = None;
        }
        is_same
    }

    /// Gives the file up. What was recorded before the panic goes out; the position stays before the bytes that the parser
    /// failed on, so a later version can read on there.
    fn fail(&mut self, message: &str, outlet: &mut Outlet) {
        let metadata = self.path.metadata().ok();
        // A file that was rotated has failed under its old name: the one that has the name now is another.
        let of_reading = metadata.filter(|metadata| {
            let reading = self.reading.as_ref();
            reading.is_none_or(|reading| reading.inode() == Inode::of(metadata))
        });
        self.failed = of_reading.map(|metadata| Seen::of(&metadata));
        let name = self.path.display().to_string();
        let error = Some(TailError::panicked(&name, message));
        let Some(mut reading) = self.reading.take() else {
            return outlet.tell_ended(ImportReport {
                input: name,
                error,
                ..ImportReport::default()
            });
        };
        self.is_begun = true;
        outlet.leave(&reading);
        self.previous = Some(SavedRun::of(reading.run()));
        self.previous_timezone = Some(reading.timezone().clone());
        outlet.end_to_follow(reading.inode());
        // Should this panic too, what was recorded is lost with it, and the panic is in the report already.
        let _ = caught(|| {
            reading.note_skipped(outlet.measuring());
            let position = Update::Read(self.path.clone(), Box::new(reading.position()));
            let (batches, report) = reading.finish();
            outlet.send(batches, Some(position));
            outlet.tell_ended(ImportReport { error, ..report });
        });
    }
}

//! A file whose parser panicked is not read any further, until it is truncated or another file gets its name. Other files are
//! followed as before.

use std::any::Any;

use super::{FileStat, FollowedFile};
use crate::{
    ImportReport, TailError, catch_panic,
    follow::{
        checkpoint_store::RunCheckpoint, checkpointer::CheckpointUpdate, context::TailContext,
        identity::Inode,
    },
};

impl FollowedFile {
    /// Polls the path, unless its file has failed.
    pub(super) fn poll_guarded(&mut self, context: &mut TailContext) -> Result<(), TailError> {
        if self.has_failed() {
            return Ok(());
        }
        let name = self.path.display().to_string();
        catch_panic(|| self.try_poll(context)).unwrap_or_else(|panicked| {
            self.fail(&*panicked, context);
            Err(TailError::panicked(&name, &*panicked))
        })
    }

    /// Parses an incomplete record at the end of the file as it is.
    pub(super) fn read_partial_end(&mut self, context: &mut TailContext) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        let name = self.path.display().to_string();
        if let Err(panicked) = catch_panic(|| reader.read_partial_end()) {
            self.fail(&*panicked, context);
            context.report_problem(TailError::panicked(&name, &*panicked));
        }
    }

    fn has_failed(&mut self) -> bool {
        let Some(failed) = self.failed_stat else {
            return false;
        };
        let now = self
            .path
            .metadata()
            .map(|metadata| FileStat::from_metadata(&metadata));
        let is_same = now.is_ok_and(|now| now.is_grown_from(failed));
        if !is_same {
            self.failed_stat = None;
        }
        is_same
    }

    /// Stops reading the file. Records from before the panic are sent. The checkpoint is before the bytes that the parser failed
    /// on, so that a later version can continue there.
    fn fail(&mut self, panic: &(dyn Any + Send), context: &mut TailContext) {
        let metadata = self.path.metadata().ok();
        // A rotated file has failed under its old name, which now belongs to another file.
        let of_reader = metadata.filter(|metadata| {
            let reader = self.reader.as_ref();
            reader.is_none_or(|reader| reader.inode() == Inode::from_metadata(metadata))
        });
        self.failed_stat = of_reader.map(|metadata| FileStat::from_metadata(&metadata));
        let name = self.path.display().to_string();
        let error = Some(TailError::panicked(&name, panic));
        let Some(mut reader) = self.reader.take() else {
            return context.report_ended(ImportReport {
                input: name,
                error,
                ..ImportReport::default()
            });
        };
        self.has_opened_run = true;
        context.release_claims(&reader);
        self.previous = Some(RunCheckpoint::new(reader.run()));
        self.previous_timezone = Some(reader.timezone());
        context.untrack(reader.inode());
        // If this panics too, the recorded data is lost. The first panic is in the report already.
        let _ = catch_panic(|| {
            reader.count_skipped(context.meter());
            let update = CheckpointUpdate::Read(self.path.clone(), Box::new(reader.checkpoint()));
            let (batches, report) = reader.finish();
            context.send(batches, update);
            context.report_ended(ImportReport { error, ..report });
        });
    }
}

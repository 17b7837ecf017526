//! Files that are written anew as a whole with all that they said before: they stay one run, and what is new of them is told, also
//! where they were written while nobody followed them.

use std::fs::File;

use pulsetrain_formats::LogFormat;

use super::{Next, Stream, seen::head_of};
use crate::{
    TailError,
    follow::{identity::Inode, outlet::Outlet, reading::Reading, saved::FilePosition},
};

impl Stream {
    /// Goes on where an earlier follower ended, if the file is one that is written anew; says whether it is. One whose first
    /// bytes do not tell yet whether it is still of the run waits for more.
    pub(super) fn resume_anew(
        &mut self,
        position: &FilePosition,
        format: &'static LogFormat,
        opened: &(File, Inode),
        outlet: &mut Outlet,
    ) -> Result<bool, TailError> {
        let (run, sign) = (
            position.run.resumed(outlet.options(), &self.path),
            "it was followed before",
        );
        let file = self.handle_of(opened)?;
        let reading = Reading::new(&self.path, file, (format, sign), &outlet.options().mapping, run);
        let mut reading = reading.in_timezone(position.timezone(outlet.options()));
        if !reading.remember(position) || !reading.is_written_anew() {
            return Ok(false);
        }
        let head = head_of(&opened.0).map_err(|error| self.unreadable(error))?;
        match reading.is_of_run(&head) {
            None => {}
            Some(true) => {
                outlet.tell_opened(&reading, position.offset);
                self.reading = Some(Box::new(reading));
            }
            Some(false) => {
                self.previous = Some(position.run.clone());
                self.previous_timezone = Some(reading.timezone().clone());
                self.reading = self.fresh(self.handle_of(opened)?, false, outlet)?;
            }
        }
        Ok(true)
    }

    /// The file was written anew: it is read from its beginning, or begins another run. Where its writer has only begun, it is
    /// left alone until it changes again.
    pub(super) fn read_anew(&mut self, outlet: &mut Outlet) -> Result<(), TailError> {
        let opened = self.open()?;
        let head = head_of(&opened.0).map_err(|error| self.unreadable(error))?;
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        match reading.is_of_run(&head) {
            None => {
                self.next = Next::Change;
                Ok(())
            }
            Some(true) => {
                outlet.end_to_follow(reading.inode());
                outlet.begin_to_follow(opened.1);
                reading.begin_anew(opened);
                self.read_on(outlet)
            }
            Some(false) => self.go_over_to(opened, false, outlet),
        }
    }

    fn handle_of(&self, (file, inode): &(File, Inode)) -> Result<(File, Inode), TailError> {
        let file = file.try_clone().map_err(|error| self.unreadable(error))?;
        Ok((file, *inode))
    }
}

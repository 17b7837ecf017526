//! A change of daylight-saving time in a log whose zone was inferred.

use std::{io, os::unix::fs::FileExt};

use pulsetrain_formats::{NEWEST_BYTES, infer_timezone_after_change};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::TimezoneReason;

use super::RunReader;

impl RunReader {
    /// Replaces the inferred zone if the newest appended time no longer fits it, because daylight-saving time has begun or ended
    /// for the writer since the last read.
    pub(super) fn follow_daylight_saving(&mut self) -> io::Result<()> {
        let timezone = self.timezone();
        if timezone.reason != TimezoneReason::Inferred || !self.modified_unix_nanos.is_known() {
            return Ok(());
        }
        let file = self.handle()?;
        let metadata = file.metadata()?;
        let start = metadata.len().saturating_sub(NEWEST_BYTES as u64);
        let mut appended = vec![0; NEWEST_BYTES];
        let len = file.read_at(&mut appended, start.max(self.read_offset))?;
        let written = UnixNanos::from_system_time(metadata.modified()?);
        let fitted = self.modified_unix_nanos;
        if let Some(changed) = infer_timezone_after_change(&timezone, fitted, &appended[..len], written) {
            self.recorder.set_timezone(changed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::Write,
        time::{Duration, UNIX_EPOCH},
    };

    use pulsetrain_formats::format_by_name;
    use pulsetrain_record::{Run, Timezone, UsedTimezone};

    use super::*;
    use crate::RunOptions;
    use crate::follow::candidates::open;

    #[test]
    fn inferred_offset_follows_daylight_saving_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.log");
        let mut log = File::create(&path).unwrap();
        let format = (format_by_name("megatron").unwrap(), "a test");
        let zone = UsedTimezone::new(Timezone::parse("-04:00").unwrap(), TimezoneReason::Inferred);
        let reader = RunReader::new(
            &path,
            open(&path).unwrap(),
            format,
            &RunOptions::default(),
            Run::default(),
        );
        let mut reader = reader.in_timezone(zone);
        for (time, written, zone) in [
            ("2026-11-01 01:59:58", 1_793_512_798, "-04:00"),
            ("2026-11-01 01:00:01", 1_793_512_801, "America/New_York"),
            ("2026-11-01 01:30:01", 1_793_514_601, "America/New_York"),
            ("2027-03-14 03:00:01", 1_805_007_601, "America/New_York"),
        ] {
            let line =
                format!(" [{time}.000000] iteration 1/ 100 | elapsed time per iteration (ms): 123.4 |\n");
            log.write_all(line.as_bytes()).unwrap();
            let modified = Duration::from_secs(written);
            log.set_modified(UNIX_EPOCH + modified).unwrap();
            reader.read_appended(usize::MAX, |_, _| ()).unwrap();
            let used = reader.timezone();
            assert_eq!(used.zone.name(), zone, "{time}");
            assert_eq!(
                used.last_local_unix_nanos,
                UnixNanos::since_1970(modified).0,
                "{time}"
            );
        }
    }
}

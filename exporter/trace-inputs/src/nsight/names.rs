//! The names of processes and threads, and their resources.

use std::{collections::BTreeMap, io};

use pulsetrain_otlp::write::Buffer;
use pulsetrain_perfetto::AnnotationData;
use pulsetrain_semconv::attribute;

use super::database::{Column, NsightExport};
use crate::from_perfetto::values;

/// The lowest bits of a serialized id are the thread, and those above them the process.
const THREAD_BITS: u32 = 24;

/// The limit for the bytes of entries of processes, ranks and threads, and of NVTX domains and categories. Real exports have a
/// few kilobytes.
const MAX_NAME_BYTES: usize = 2 << 20;

/// The size of an entry without its name.
const ENTRY_BYTES: usize = 64;

/// A process by its serialized id (`globalPid`) without the bits of the thread. The highest bits are those of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProcessId(u64);

/// A thread by its serialized id (`globalTid`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ThreadId(u64);

/// The resource of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Owner {
    Process(ProcessId),
    /// A GPU, for its samples and for work of an unknown process.
    Device(i64),
    Unknown,
}

/// The names in an export.
#[derive(Debug, Default)]
pub(super) struct Names {
    host: Option<String>,
    processes: BTreeMap<ProcessId, String>,
    ranks: BTreeMap<ProcessId, i64>,
    /// The name and the priority of each thread.
    threads: BTreeMap<ThreadId, (String, i64)>,
}

/// Limits the names that are held in memory.
#[derive(Debug, Default)]
pub(super) struct NameLimit {
    bytes: usize,
    left_out: u64,
}

impl NameLimit {
    /// Returns whether a name fits into the limit, and counts it as dropped if not.
    pub(super) fn admits(&mut self, name: &str) -> bool {
        let bytes = self.bytes + name.len() + ENTRY_BYTES;
        if bytes > MAX_NAME_BYTES {
            self.left_out += 1;
            return false;
        }
        self.bytes = bytes;
        true
    }

    /// Adds an error if names were dropped.
    pub(super) fn report(&self, table: &str, errors: &mut Vec<String>) {
        if self.left_out > 0 {
            errors.push(format!(
                "{} entries of {table} are not used: together they take more than {} MiB",
                self.left_out,
                MAX_NAME_BYTES >> 20
            ));
        }
    }
}

impl ThreadId {
    pub(super) fn from_serialized(serialized: i64) -> Self {
        Self(serialized as u64)
    }

    pub(super) fn process(self) -> ProcessId {
        ProcessId(self.0 >> THREAD_BITS)
    }

    /// Returns the id of the thread in the operating system.
    pub(super) fn tid(self) -> i64 {
        (self.0 & ((1 << THREAD_BITS) - 1)) as i64
    }
}

impl ProcessId {
    fn pid(self) -> i64 {
        (self.0 & ((1 << THREAD_BITS) - 1)) as i64
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }
}

impl Names {
    pub(super) fn from_export(export: &NsightExport, errors: &mut Vec<String>) -> Self {
        let mut names = Self::default();
        let mut limit = NameLimit::default();
        // The closures never return an error.
        let _ = names.read(export, &mut limit, errors);
        limit.report("processes, ranks and threads", errors);
        names
    }

    fn read(
        &mut self,
        export: &NsightExport,
        limit: &mut NameLimit,
        errors: &mut Vec<String>,
    ) -> io::Result<()> {
        use Column::{Plain, Text};
        let columns = ["globalPid", "name"].map(Plain);
        export.each("PROCESSES", &columns, errors, |cells| {
            if let (Some(id), Some(name)) = (cells.int(0), cells.text(1)) {
                let name = name.rsplit('/').next().unwrap_or(&name);
                if limit.admits(name) {
                    self.processes
                        .insert(ThreadId::from_serialized(id).process(), name.to_owned());
                }
            }
            io::Result::Ok(())
        })?;
        let columns = ["globalTid", "rank"].map(Plain);
        export.each("MPI_RANKS", &columns, errors, |cells| {
            if let (Some(id), Some(rank)) = (cells.int(0), cells.int(1))
                && limit.admits("")
            {
                self.ranks.insert(ThreadId::from_serialized(id).process(), rank);
            }
            io::Result::Ok(())
        })?;
        let columns = [Plain("globalTid"), Plain("priority"), Text("nameId")];
        export.each("ThreadNames", &columns, errors, |cells| {
            if let (Some(id), Some(name)) = (cells.int(0), cells.text(2))
                && limit.admits(&name)
            {
                let priority = cells.int(1).unwrap_or_default();
                let known = self.threads.entry(ThreadId::from_serialized(id)).or_default();
                if known.0.is_empty() || known.1 <= priority {
                    *known = (name.into_owned(), priority);
                }
            }
            io::Result::Ok(())
        })?;
        // The table also contains environment variables, which can be secret.
        let columns = ["name", "value"].map(Plain);
        export.each("TARGET_INFO_SYSTEM_ENV", &columns, errors, |cells| {
            if cells.text(0).is_some_and(|name| name == "Hostname") {
                self.host = cells.text(1).map(Into::into);
            }
            io::Result::Ok(())
        })
    }

    /// Returns the name of a thread.
    pub(super) fn thread(&self, thread: ThreadId) -> Option<String> {
        let (name, _) = self.threads.get(&thread)?;
        Some(name.clone())
    }

    /// Returns the attributes of a resource, each as field 1.
    pub(super) fn resource(&self, owner: Owner) -> Buffer {
        let (name, pid, rank) = match owner {
            Owner::Process(id) => {
                let name = self.processes.get(&id).cloned();
                let name = name.unwrap_or_else(|| format!("process {}", id.pid()));
                (name, Some(id.pid()), self.ranks.get(&id).copied())
            }
            Owner::Device(device) => (format!("GPU {device}"), None, None),
            Owner::Unknown => ("Nsight Systems".to_owned(), None, None),
        };
        let text = |text: &str| Some(AnnotationData::Text(text.to_owned()));
        let mut out = Buffer::default();
        for (key, value) in [
            (attribute::SERVICE_NAME.name, text(&name)),
            (attribute::HOST_NAME.name, self.host.as_deref().and_then(text)),
            (attribute::PROCESS_PID.name, pid.map(AnnotationData::Int)),
            (attribute::TRAIN_RANK.name, rank.map(AnnotationData::Int)),
        ] {
            if let Some(value) = value {
                values::attribute(1, key, &value, &mut out);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialized_id_has_the_process_in_the_bits_above_the_thread() {
        // The highest 16 bits are those of the machine.
        let id = ThreadId::from_serialized((0x0100 << 48) | (4242 << 24) | 4243);
        assert_eq!((id.process().pid(), id.tid()), (4242, 4243));
        let process = ThreadId::from_serialized((0x0100 << 48) | (4242 << 24)).process();
        assert_eq!(process, id.process());
    }
}

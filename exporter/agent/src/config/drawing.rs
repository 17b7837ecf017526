//! How traces of Perfetto are drawn: which attributes put spans on rows, and which name processes.

use std::path::PathBuf;

use pulsetrain_sinks::PerfettoConfig;

use super::{quantity::Size, section::section};

section! {
    /// How convert draws Perfetto traces. The defaults fit what Pulsetrain sends; other programs name things differently.
    pub(crate) struct DrawingSection {
        /// Spans with one of these attributes stand on rows of their own within their process, by its value. The first that a
        /// span has counts; spans without stand where their parent does, else under the name of their scope.
        rows: Vec<String> = PerfettoConfig::default().rows,
        /// The attributes of a resource that name its process; the first that it has counts.
        process_names: Vec<String> = PerfettoConfig::default().process_names,
        /// The attributes of a resource that stand beside its process's name.
        process_labels: Vec<String> = PerfettoConfig::default().process_labels,
        /// What may be held in memory before it goes to temporary files.
        memory: Size = Size(PerfettoConfig::default().memory_bytes),
        /// The folder of temporary files. Where it is not given: $TMPDIR, or /tmp.
        temporary_folder: Option<String> = None,
    }
}

impl DrawingSection {
    /// The settings as the mapper takes them.
    pub(crate) fn settings(&self) -> PerfettoConfig {
        PerfettoConfig {
            rows: self.rows.clone(),
            process_names: self.process_names.clone(),
            process_labels: self.process_labels.clone(),
            memory_bytes: self.memory.0,
            temporary: self.temporary_folder.as_ref().map(PathBuf::from),
            ..PerfettoConfig::default()
        }
    }
}

//! A file sink: its path, its rotation, its permissions.

use pulsetrain_pipeline::Problem;
use pulsetrain_sinks::{FileCompression, FileConfig, FilePermissions, FileRotation};
use serde::Deserialize;

use super::{
    Spanned,
    quantity::{Size, TimeOrNever},
    section::{Setting, Shown, section},
    signals::SignalList,
    source_list::{SourceList, sources_doc},
    spanned::Location,
};

section! {
    /// A file: .jsonl for JSON lines, .binpb for length-prefixed protobuf. After a restart the agent continues it
    /// without duplicates. The agent appends to a file that it has not written. A lock keeps other programs from
    /// writing, if the file system supports locks. After logrotate or another program renames the file, SIGHUP reopens
    /// it. A removed file is created again.
    pub(crate) struct FileSection {
        /// The file.
        path: Spanned<String> = Spanned::without_location(String::new()),
        /// The signals to receive: a list of traces, metrics and logs. Default: all.
        signals: Option<Spanned<SignalList>> = None,
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
        /// Whether its data must arrive, as for otlp.
        required: bool = true,
        /// When the file is rotated, such as {max_bytes: 256MiB, max_age: 24h, keep: 10, compression: zstd}. Rotation
        /// renames out.jsonl to out-20261122T215500Z-0000.jsonl, by the time of the rotation in UTC. max_age is never by
        /// default, and is checked before each record. keep is the number of rotated files; 0 keeps all. compression can be
        /// none, gzip or zstd. Without this key, the file grows until another program rotates it.
        rotation: Option<Spanned<RotationSection>> = None,
        /// The permissions of the file and of rotated files, in octal digits such as "0640". Default: from the umask.
        permissions: Option<Spanned<String>> = None,
    }
}

section! {
    /// When a file is rotated, and what becomes of the rotated ones.
    pub(crate) struct RotationSection {
        /// The most bytes in one file.
        max_bytes: Size = Size(FileRotation::default().max_bytes as usize),
        /// The longest that one file is written to, or never.
        max_age: TimeOrNever = TimeOrNever(None),
        /// How many rotated files are kept; 0 keeps all.
        keep: usize = FileRotation::default().keep,
        /// none, gzip or zstd.
        compression: CompressionName = CompressionName::None,
    }
}

/// The compression of rotated files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CompressionName {
    None,
    Gzip,
    Zstd,
}

impl FileSection {
    /// Returns the settings of the sink.
    ///
    /// # Errors
    /// Returns the place of an invalid setting, and the remedy.
    pub(crate) fn settings(&self) -> Result<FileConfig, (Location, Problem)> {
        let permissions = self.permissions.as_ref().map(|text| {
            FilePermissions::parse(text).ok_or_else(|| {
                let message = Problem::new(format!("permissions: {:?} are not permissions", text.value))
                    .with_remedy("write octal digits that let the owner read and write, such as \"0640\"");
                (text.location, message)
            })
        });
        let rotation = self.rotation.as_ref().map(|rotation| {
            let zero = [
                ("max_bytes", rotation.max_bytes.0 == 0),
                ("max_age", rotation.max_age.0.is_some_and(|age| age.is_zero())),
            ];
            match zero.iter().find(|(_, is_zero)| *is_zero) {
                Some((key, _)) => Err((
                    rotation.location,
                    Problem::new(format!(
                        "rotation: a {key} of zero would give every record a file of its own"
                    ))
                    .with_remedy("give more, such as 64MiB or 24h"),
                )),
                None => Ok(rotation.settings()),
            }
        });
        Ok(FileConfig {
            rotation: rotation.transpose()?,
            permissions: permissions.transpose()?,
        })
    }
}

impl RotationSection {
    fn settings(&self) -> FileRotation {
        FileRotation {
            max_bytes: self.max_bytes.0 as u64,
            max_age: self.max_age.0,
            keep: self.keep,
            compression: match self.compression {
                CompressionName::None => FileCompression::None,
                CompressionName::Gzip => FileCompression::Gzip,
                CompressionName::Zstd => FileCompression::Zstd,
            },
        }
    }
}

impl Setting for CompressionName {
    fn shown(&self) -> Shown {
        let name = match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        };
        Shown::Scalar(name.to_owned())
    }
}

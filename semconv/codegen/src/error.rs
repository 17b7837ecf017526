//! The errors of reading the registry's YAML and writing the generated files.

use std::path::PathBuf;

/// An error of the generator, with the file that caused it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: std::io::Error,
    },
    /// A file is not YAML, or does not follow the grammar of `definition/2`.
    #[error("{file}:{line}:{column}: {message}")]
    Parse {
        /// The file's name in the registry.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// The description of the problem.
        message: String,
    },
    /// A metric's annotation names a trainer whose mapping has rows for the metric.
    #[error(
        "{metric}: exporter/mapping/mappings/{file} has the sources of {framework}; remove {framework} from `annotations.pulsetrain.sources`"
    )]
    SourceTwice {
        /// The metric.
        metric: String,
        /// The trainer.
        framework: String,
        /// The mapping file.
        file: String,
    },
    /// The formatter of the generated Rust cannot be started.
    #[error("cannot start rustfmt; install it with `rustup component add rustfmt`")]
    StartFormatter(#[source] std::io::Error),
    /// The formatter rejects a generated file, which is a defect of the generator.
    #[error("rustfmt refuses {}: {stderr}", path.display())]
    Format {
        /// The generated file.
        path: PathBuf,
        /// The formatter's stderr.
        stderr: String,
    },
}

//! Errors of the page before the first scrape.

use pulsetrain_net::NetError;

/// The reason why the page cannot be served as configured.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    /// A setting is invalid.
    #[error("{name} is {value:?}; {expected}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// The remedy.
        expected: &'static str,
    },
    /// The address, its protection or its files cannot be used.
    #[error("{source}; {}", source.remedy())]
    Net {
        /// The cause.
        #[from]
        source: NetError,
    },
}

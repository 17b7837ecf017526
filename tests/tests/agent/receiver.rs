//! The OTLP receiver: requests from third-party clients, and responses to requests beyond the limits.

mod answers;
mod hostile;
mod inside;
mod tunix;

//! The OTLP receiver: what clients that nobody here wrote send to it, and what it answers to those that go too far.

mod answers;
mod hostile;
mod inside;
mod tunix;

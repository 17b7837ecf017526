//! The OTLP receiver: what clients that nobody here wrote send to it, and what it answers to those that go too far.

mod answers;
mod inside;
mod tunix;

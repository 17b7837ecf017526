mod blocks;
mod detection;
mod documents;
mod evaluations;
mod hostile;
mod numbers;
mod programs;
mod steps;
mod tables;

use super::{FORMAT, agree};
use crate::logs::sampled::Sampled;

fn read(text: &str) -> Sampled {
    assert!(agree(text.as_bytes()), "{text}");
    Sampled::read(&FORMAT, text)
}

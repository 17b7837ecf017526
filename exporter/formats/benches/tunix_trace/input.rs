//! Builds traces of long runs: the steps of a sample repeated, later each time and with new numbers.

use std::{fs, path::Path};

use prost::Message;

use crate::packets::{Packet, Trace};

/// The steps of a sample.
const STEPS: u64 = 8;
const SECOND: u64 = 1_000_000_000;

/// Repeats a trace of the corpus until it has at least this many bytes.
pub(crate) fn make(sample: &str, bytes: usize) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/corpus/tunix")
        .join(sample);
    let once = Trace::decode(fs::read(path).unwrap().as_slice()).unwrap();
    let times = || once.packet.iter().filter_map(|packet| packet.timestamp);
    let period = times().max().unwrap() - times().min().unwrap() + SECOND;
    // Version 1 describes its tracks with every step, version 2 once.
    let is_first_version = once.packet.iter().filter(|packet| is_outermost(packet)).count() as u64 == STEPS;
    let mut trace = Vec::with_capacity(bytes + (1 << 20));
    for round in 0.. {
        let again = Trace {
            packet: once
                .packet
                .iter()
                .filter(|packet| round == 0 || is_first_version || packet.track.is_none())
                .map(|packet| later(packet, round, period))
                .collect(),
        };
        again.encode(&mut trace).unwrap();
        if trace.len() >= bytes {
            break;
        }
    }
    trace
}

fn is_outermost(packet: &Packet) -> bool {
    packet.track.as_ref().is_some_and(|track| track.uuid == Some(100))
}

fn later(packet: &Packet, round: u64, period: u64) -> Packet {
    let mut packet = packet.clone();
    packet.timestamp = packet.timestamp.map(|time| time + round * period);
    let name = packet.event.as_mut().and_then(|event| event.name.as_mut());
    if let Some(name) = name {
        *name = of_step(name, round);
    }
    packet
}

/// `rollout (step=3)` as `rollout (step=43)` five rounds later.
fn of_step(name: &str, round: u64) -> String {
    let Some((before, rest)) = name.split_once("step=") else {
        return name.to_owned();
    };
    let end = rest.find([',', ')']).unwrap();
    let step: u64 = rest[..end].parse().unwrap();
    format!("{before}step={}{}", step + round * STEPS, &rest[end..])
}

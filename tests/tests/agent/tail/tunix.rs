//! Tunix's traces: version 1 grows by a fragment per step, version 2 is rewritten with every step.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
};

use fastrand::Rng;
use pulsetrain_perfetto::{EventKind, Item, Time, TraceReader};
use pulsetrain_tests::{Progress, corpus, wait_until};

use crate::tail::world::{World, imported};

const FIRST: &str = "perfetto_trace_1795219968.pb";
const SECOND: &str = "perfetto_trace_v2_1795219968.pb";
const KILLS: usize = 15;

fn sample(name: &str) -> Vec<u8> {
    fs::read(corpus(&format!("tunix/rollout1_actor2/trace/{name}"))).expect("the sample can be read")
}

/// Writes like a trainer with a slow disk: in pieces that end at arbitrary offsets, also within packets.
fn write_in_pieces(log: &Path, mut bytes: &[u8], random: &mut Rng) {
    let mut file = OpenOptions::new()
        .append(true)
        .open(log)
        .expect("the trace can be opened");
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(random.usize(1..=700).min(bytes.len()));
        file.write_all(piece).expect("the trace can be written");
        bytes = rest;
    }
}

#[test]
fn growing_tunix_trace_is_emitted_once_despite_kills() {
    // Forty steps: the runs of the sample one after another.
    let bytes = sample(FIRST).repeat(5);
    let world = World::new(FIRST);
    let log = world.path(FIRST);
    File::create(&log).expect("the trace can be made");
    let mut random = Rng::with_seed(20_261_121);
    let part = bytes.len() / (KILLS + 1);
    for kill in 0..KILLS {
        let before = world.delivered().len();
        let follower = world.follow();
        write_in_pieces(&log, &bytes[kill * part..(kill + 1) * part], &mut random);
        wait_until("something of it is delivered", || {
            world.delivered().len() > before
        });
        (0..random.usize(0..100_000)).for_each(|_| std::hint::spin_loop());
        drop(follower);
    }
    write_in_pieces(&log, &bytes[KILLS * part..], &mut random);
    let expected = imported([log.as_path()], &[]);
    assert_eq!(expected.of_kind("span").len(), 5 * 202);
    world.expect_delivered(world.follow(), &expected);
}

/// Returns the offsets at which the steps of a trace of version 2 begin: at the packet that names the step first.
fn steps(trace: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (Vec::new(), 0);
    for step in 1.. {
        let name = format!("(step={step}");
        let place = trace
            .windows(name.len())
            .position(|bytes| bytes == name.as_bytes());
        let Some(place) = place else { break };
        while next_packet(trace, at) <= place {
            at = next_packet(trace, at);
        }
        ends.push(at);
    }
    ends
}

/// Returns the end of the packet at an offset: a tag, a length of one byte, and that number of bytes.
fn next_packet(trace: &[u8], at: usize) -> usize {
    assert!(trace[at] == b'\n' && trace[at + 1] < 0x80, "packets are short");
    at + 2 + usize::from(trace[at + 1])
}

#[test]
fn tunix_trace_rewritten_at_every_step_is_emitted_once() {
    let bytes = sample(SECOND);
    let steps = steps(&bytes);
    assert_eq!(steps.len(), 7);
    let world = World::new(SECOND);
    let log = world.path(SECOND);
    let follower = world.follow();
    for end in steps {
        let before = world.delivered().len();
        fs::write(&log, &bytes[..end]).expect("the trace can be written");
        wait_until("the step is delivered", || world.delivered().len() > before);
    }
    fs::write(&log, &bytes).expect("the trace can be written");
    let expected = imported([log.as_path()], &[]);
    assert_eq!(expected.of_kind("span").len(), 170);
    wait_until("all spans are delivered", || {
        world.delivered().of_kind("span").len() >= 170
    });
    let status = follower.stop();
    assert!(status.success(), "{status}");
    assert!(world.delivered().of_kind("span") == expected.of_kind("span"));
}

/// A packet of a trace of version 2, and the time and track of the slice that it begins or ends.
struct Packet<'t> {
    bytes: &'t [u8],
    event: Option<(u64, EventKind, u64)>,
}

fn packets(trace: &[u8]) -> Vec<Packet<'_>> {
    let (mut packets, mut at) = (Vec::new(), 0);
    while at < trace.len() {
        let end = next_packet(trace, at);
        let bytes = &trace[at..end];
        let event = match TraceReader::new(bytes).next() {
            Some(Ok(Item::Event(event))) => {
                let Time::Clock { nanos, .. } = event.time else {
                    panic!("events have a time")
                };
                Some((nanos, event.kind, event.track_uuid))
            }
            _ => None,
        };
        packets.push(Packet { bytes, event });
        at = end;
    }
    packets
}

/// Returns the trace that Tunix writes at a time: all slices that have ended by then, ordered by time. Slices that end later
/// are thus inserted before others that were already written.
fn written_at(trace: &[u8], time: u64) -> Vec<u8> {
    let packets = packets(trace);
    let mut open = HashMap::<u64, Vec<usize>>::new();
    let mut is_written = vec![false; packets.len()];
    for (number, packet) in packets.iter().enumerate() {
        match packet.event {
            None => is_written[number] = true,
            Some((_, EventKind::Begin, track)) => open.entry(track).or_default().push(number),
            Some((end, _, track)) => {
                let begin = open
                    .get_mut(&track)
                    .and_then(Vec::pop)
                    .expect("what ends has begun");
                (is_written[begin], is_written[number]) = (end <= time, end <= time);
            }
        }
    }
    let written = packets
        .iter()
        .zip(is_written)
        .filter(|(_, is_written)| *is_written);
    written.flat_map(|(packet, _)| packet.bytes.to_vec()).collect()
}

#[test]
fn rewritten_tunix_trace_is_emitted_once_despite_kills() {
    let bytes = sample(SECOND);
    let times: Vec<u64> = packets(&bytes)
        .iter()
        .filter_map(|packet| packet.event.map(|(time, ..)| time))
        .collect();
    let world = World::new(SECOND).with("--poll-interval=0.1");
    let log = world.path(SECOND);
    let mut random = Rng::with_seed(20_261_121);
    for kill in 1..=KILLS {
        let before = Progress::new(world.out(), world.positions());
        let written = written_at(&bytes, times[kill * (times.len() - 1) / (KILLS + 1)]);
        // In every other iteration it is written without a follower, and the follower starts on a partial file.
        let follower = (kill % 2 == 0).then(|| world.follow());
        File::create(&log).expect("the trace can be emptied");
        let torn = random.usize(..written.len());
        write_in_pieces(&log, &written[..torn], &mut random);
        let follower = follower.unwrap_or_else(|| world.follow());
        write_in_pieces(&log, &written[torn..], &mut random);
        before.wait_for_kill_time(&follower, &mut random);
        drop(follower);
    }
    fs::write(&log, &bytes).expect("the trace can be written");
    let expected = imported([log.as_path()], &[]);
    let follower = world.follow();
    wait_until("all spans are delivered", || {
        world.delivered().of_kind("span").len() >= 170
    });
    assert!(follower.stop().success());
    let delivered = world.delivered();
    assert!(delivered.of_kind("point").len() > 20);
    // Only an import has the times of the last two steps.
    expected.assert_holds(&delivered);
}

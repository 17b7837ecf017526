//! Outages of every kind at 1,000 messages per second: acknowledged messages arrive, within the bounds of memory and disk.
//!
//! `PULSETRAIN_OUTAGES=exporter/DELIVERY.md` measures outages of 30 s and 10 min and writes the table into that file.

mod downstream;
pub(crate) mod load;

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use pulsetrain_pipeline::clock;
use pulsetrain_tests::{Folder, Process, command, free_port, http::answers_ok, wait_at_most, write_table};

use self::{
    downstream::{Downstream, Health},
    load::send,
};

/// The messages per second of scaled time.
const PER_SECOND: usize = 1000;
const MIB: u64 = 1 << 20;
/// The default bounds of memory and disk: `limits.queue_bytes` and `disk_queue.bytes`.
const QUEUE_BYTES: u64 = 64 * MIB;
const DISK_BYTES: u64 = 1024 * MIB;

const KINDS: [(Health, &str); 4] = [
    (Health::Refuses, "refused connections"),
    (Health::Hangs, "no answers"),
    (Health::Unavailable, "503"),
    (Health::Vanishes, "dropped packets"),
];

/// One outage.
#[derive(Clone, Copy)]
struct Outage {
    kind: (Health, &'static str),
    seconds: usize,
    /// The factor by which time is scaled: for messages and, in the configuration, for timeouts and delays.
    speed: usize,
    disk_bytes: u64,
}

/// The measurements of an outage.
struct Row {
    outage: Outage,
    sent: usize,
    acknowledged: usize,
    arrived: usize,
    twice: usize,
    lost: usize,
    uncounted: usize,
    grown: u64,
    disk: u64,
    caught_up: Duration,
}

impl Outage {
    fn new(kind: (Health, &'static str), seconds: usize, speed: usize) -> Self {
        Self {
            kind,
            seconds,
            speed,
            disk_bytes: DISK_BYTES,
        }
    }

    fn measure(self) -> Row {
        let Self {
            kind,
            seconds,
            speed,
            disk_bytes,
        } = self;
        let downstream = Downstream::start();
        let agent = Agent::start(&downstream, speed, disk_bytes);
        let (rate, second) = (PER_SECOND * speed, PER_SECOND);
        let during = second..second + seconds * PER_SECOND;
        let last = during.end + second;
        let mut acknowledged = send(agent.receiver, 0..during.start, rate);
        let before = agent.process.memory_kib() * 1024;

        downstream.set_health(kind.0);
        let mut disk = 0;
        thread::scope(|scope| {
            let sending = scope.spawn(|| send(agent.receiver, during.clone(), rate));
            while !sending.is_finished() {
                disk = disk.max(agent.disk_bytes());
                thread::sleep(Duration::from_millis(20));
            }
            acknowledged.extend(sending.join().expect("the clients do not panic"));
        });
        downstream.set_health(Health::Works);
        let ended = clock::now();
        acknowledged.extend(send(agent.receiver, during.end..last, rate));
        let all_arrived = wait_at_most(Duration::from_secs(300), || {
            disk = disk.max(agent.disk_bytes());
            let arrived = downstream.arrived();
            acknowledged
                .iter()
                .all(|number| arrived.get(*number).is_some_and(|count| *count > 0))
        });
        let caught_up = ended.elapsed();
        let grown = (agent.process.peak_memory_kib() * 1024).saturating_sub(before);
        let (status, log) = agent.process.stop_with_log();
        assert_eq!(
            status.success(),
            !log.contains("lost"),
            "a loss is a failure: {log}"
        );

        let arrived = downstream.arrived();
        let missing = |number: &&usize| arrived.get(**number).is_none_or(|count| *count == 0);
        let lost = acknowledged.iter().filter(missing).count();
        assert_eq!(all_arrived, lost == 0, "{log}");
        Row {
            outage: self,
            sent: last,
            acknowledged: acknowledged.len(),
            arrived: arrived.iter().filter(|count| **count > 0).count(),
            twice: arrived.iter().filter(|count| **count > 1).count(),
            lost,
            uncounted: lost.saturating_sub(counted_as_lost(&log)),
            grown,
            disk,
            caught_up,
        }
    }
}

impl Row {
    fn check(&self) {
        assert_eq!((self.lost, self.uncounted), (0, 0), "{}", self.text());
        assert!(self.grown <= QUEUE_BYTES, "{}", self.text());
        assert!(self.disk <= self.outage.disk_bytes, "{}", self.text());
        assert!(
            self.disk > 0,
            "the outage reaches the disk queue: {}",
            self.text()
        );
        let has_room = self.outage.disk_bytes == DISK_BYTES;
        assert_eq!(self.acknowledged == self.sent, has_room, "{}", self.text());
    }

    fn text(&self) -> String {
        let outage = self.outage;
        let length = match outage.seconds {
            seconds if seconds < 60 => format!("{seconds} s"),
            seconds => format!("{} min", seconds / 60),
        };
        let [grown, bound, disk, disk_bound] =
            [self.grown, QUEUE_BYTES, self.disk, outage.disk_bytes].map(|bytes| bytes.div_ceil(MIB));
        format!(
            "| {length}, {} | {} | {} | {} | {} | {} | {} | {grown} of {bound} MiB | {disk} of {disk_bound} MiB | {:.1} s |\n",
            outage.kind.1,
            self.sent,
            self.acknowledged,
            self.arrived,
            self.twice,
            self.lost,
            self.uncounted,
            self.caught_up.as_secs_f64()
        )
    }
}

#[test]
fn short_outages_of_every_kind_lose_nothing_within_the_bounds() {
    let full = Outage {
        disk_bytes: MIB / 2,
        ..Outage::new(KINDS[2], 3, 10)
    };
    let outages = KINDS
        .map(|kind| Outage::new(kind, 3, 1))
        .into_iter()
        .chain([full]);
    thread::scope(|scope| {
        let rows: Vec<_> = outages
            .map(|outage| scope.spawn(move || outage.measure()))
            .collect();
        for row in rows {
            row.join().expect("an outage is measured").check();
        }
    });
}

#[test]
fn long_outages_of_every_kind_lose_nothing_within_the_bounds() {
    let Some(document) = env::var_os("PULSETRAIN_OUTAGES") else {
        return;
    };
    let full = Outage {
        disk_bytes: 32 * MIB,
        ..Outage::new(KINDS[2], 600, 10)
    };
    let outages = KINDS.map(|kind| Outage::new(kind, 30, 1)).into_iter();
    let outages = outages
        .chain(KINDS.map(|kind| Outage::new(kind, 600, 10)))
        .chain([full]);
    let mut text = "| outage, downstream | sent | acknowledged | arrived | twice | lost | uncounted | memory grew by | on disk | \
                    caught up after |\n|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for outage in outages {
        let row = outage.measure();
        println!("{}", row.text());
        text.push_str(&row.text());
        write_table(&document, "outages", &text);
        row.check();
    }
}

/// An agent with a receiver and one OTLP sink, with the default settings except for the scaled times.
struct Agent {
    receiver: u16,
    process: Process,
    folder: Folder,
}

impl Agent {
    fn start(downstream: &Downstream, speed: usize, disk_bytes: u64) -> Self {
        let folder = Folder::new();
        let [receiver, health] = [free_port(), free_port()];
        // The defaults are 1 s, 30 s and 10 s.
        let [first, longest, timeout] = [1000, 30_000, 10_000].map(|millis| millis / speed);
        let yaml = format!(
            "state_folder: {}
gpu: {{enabled: false}}
telemetry: {{enabled: false}}
derive: {{signals: {{enabled: false}}, energy: {{enabled: false}}}}
sources: {{clients: {{otlp: {{listen: ['127.0.0.1:{receiver}']}}}}}}
sinks: {{o: {{otlp: {{endpoint: '{}', timeout: {timeout}ms, disk_queue: {{bytes: {disk_bytes}B}}}}}}}}
limits: {{retry_after: {first}ms, retry_at_most: {longest}ms}}
health: {{listen: '127.0.0.1:{health}'}}
",
            folder.path("state").display(),
            downstream.url(),
        );
        let config = folder.file("agent.yaml", yaml);
        let mut process = Process::start("pulsetrain agent", command(["agent", "--config"]).arg(config));
        process.wait_until_ready(|| answers_ok(health, "/readyz"));
        Self {
            receiver,
            process,
            folder,
        }
    }

    /// Returns the size of the disk queue's files in bytes.
    fn disk_bytes(&self) -> u64 {
        files_of(&self.folder.path("state/queue/o"))
            .iter()
            .filter_map(|path| Some(fs::metadata(path).ok()?.len()))
            .sum()
    }
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Returns the number of items that the agent reports as lost when it stops.
fn counted_as_lost(log: &str) -> usize {
    let counts = log.lines().filter_map(|line| {
        let (_, rest) = line.split_once("o lost ")?;
        rest.split(' ').next()?.parse::<usize>().ok()
    });
    counts.sum()
}

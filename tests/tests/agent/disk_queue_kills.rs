//! SIGKILL at random moments, with a disk queue: acknowledged data arrives, and an item that arrives twice is identical.
//!
//! `PULSETRAIN_KILLS=200 PULSETRAIN_KILLS_TABLE=exporter/DELIVERY.md` writes the figures of a longer run into that file.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fs::{self, OpenOptions},
    io::Write,
    ops::Range,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use fastrand::Rng;
use pulsetrain_tests::{
    Answer, FakeEndpoint, Items, SmallDisk, SurogateRun, spin, wait_at_most, wait_until_begun, write_table,
};
use serde_json::Value;

use crate::{
    clients::Clients,
    delivery::configure,
    disk_queue::{Outage, segments},
    world::imported,
};

/// The default number of kills; a longer run sets `PULSETRAIN_KILLS`.
const KILLS: usize = 12;

/// The number of kills before an agent may deliver everything: a queue is sent again after each kill.
const KILLS_OF_A_ROUND: usize = 20;

/// The response of a slow receiver.
const SLOW: Answer = Answer::Late(Duration::from_millis(15));

/// A receiver that is dead in two ways, a slow one, and a healthy one.
const DOWNSTREAMS: [Answer; 4] = [Answer::Refuse(503), SLOW, Answer::Hang, Answer::Accept];

/// The statistics of the kills with one downstream.
#[derive(Default)]
struct Row {
    kills: usize,
    torn: usize,
    full: usize,
}

#[test]
fn kills_at_random_moments_lose_no_acknowledged_item_for_any_downstream_behaviour() {
    let kills = kills();
    let mut random = Rng::with_seed(20_261_122);
    let mut rows = DOWNSTREAMS.map(|_| Row::default());
    let mut totals = Totals::default();
    let mut first = 0;
    while first < kills {
        let round = first..kills.min(first + KILLS_OF_A_ROUND);
        first = round.end;
        kill_and_deliver(round, &mut random, &mut rows, &mut totals);
    }
    assert!(totals.acknowledged > kills / 2, "{}", totals.acknowledged);
    if let Some(document) = env::var_os("PULSETRAIN_KILLS_TABLE") {
        write_table(document, "kills", &table(&rows, &totals));
    }
}

/// Returns the number of kills.
pub(crate) fn kills() -> usize {
    env::var("PULSETRAIN_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number of kills"))
}

/// The totals of all rounds.
#[derive(Default)]
struct Totals {
    acknowledged: usize,
    of_log: usize,
    repeated: usize,
}

/// Kills an agent repeatedly, and then lets it deliver everything.
fn kill_and_deliver(
    kills: Range<usize>,
    random: &mut Rng,
    rows: &mut [Row; DOWNSTREAMS.len()],
    totals: &mut Totals,
) {
    let outage = Outage::begin("", "");
    fs::create_dir_all(outage.folder()).expect("a folder can be made");
    let disk = SmallDisk::mount(&outage.folder(), "16m");
    let folder = disk
        .as_ref()
        .map_or(outage.folder(), |disk| disk.path().to_owned());
    let keys = format!(
        "      timeout: 1s\n      disk_queue: {{folder: {}}}\n",
        folder.display()
    );
    configure(&outage.world, outage.receiver, &outage.endpoint.url(), &keys, "");
    let log = outage.world.path("training.json");
    let mut run = SurogateRun::begin(&log, 0);
    let clients = Clients::default();
    thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(|| clients.post(outage.receiver))));
        for kill in kills {
            let place = kill % DOWNSTREAMS.len();
            outage.endpoint.answer_with(DOWNSTREAMS[place].clone());
            let row = &mut rows[place];
            row.kills += 1;
            // The disk is full before the agent starts, or while it runs, or it is not full.
            let full = disk.as_ref().filter(|_| random.u8(0..4) == 0);
            let is_full_at_start = random.bool();
            row.full += usize::from(full.is_some());
            full.filter(|_| is_full_at_start).inspect(|disk| disk.fill());
            let agent = outage.world.spawn();
            if random.u8(0..4) > 0 {
                wait_until_begun(&agent);
            }
            thread::scope(|scope| {
                let mut writing = random.fork();
                let run = &mut run;
                scope.spawn(move || run.write(&mut writing, 10));
                full.filter(|_| !is_full_at_start).inspect(|disk| disk.fill());
                if random.u8(0..4) > 0 {
                    clients.wait_for_answers(&agent);
                }
                spin(random);
                agent.kill();
            });
            full.inspect(|disk| disk.make_room());
            if random.u8(0..3) == 0 {
                row.torn += usize::from(tear(&folder));
            }
        }
        clients.end();
    });
    outage.endpoint.answer_with(Answer::Accept);
    let agent = outage.world.start();
    let expected = imported(&[&log]).distinct();
    let acknowledged = clients.acknowledged();
    let mut arrived = Arrived::default();
    let all_arrived = wait_at_most(Duration::from_secs(60), || {
        arrived.follow(&outage.endpoint);
        acknowledged
            .iter()
            .all(|text| arrived.messages.contains_key(text))
            && arrived.of_log.is_superset(&expected)
    });
    let (status, printed) = agent.stop_with_log();
    arrived.follow(&outage.endpoint);
    let lost = acknowledged
        .iter()
        .filter(|text| !arrived.messages.contains_key(*text));
    let lost: Vec<_> = lost.collect();
    assert!(
        all_arrived,
        "{} messages are lost: {lost:?}\n{printed}",
        lost.len()
    );
    assert_eq!(
        arrived.of_log, expected,
        "what arrives twice has the same ids and times"
    );
    let differing = arrived.messages.iter().find(|(_, items)| items.len() > 1);
    assert_eq!(differing, None, "what arrives twice is the same record");
    assert!(status.success() && !printed.contains("lost"), "{printed}");
    totals.acknowledged += acknowledged.len();
    totals.of_log += expected.len();
    totals.repeated += arrived.repeated;
}

/// The data that the endpoint has accepted.
#[derive(Default)]
struct Arrived {
    /// The number of requests that were read, accepted or not.
    requests: usize,
    /// The distinct records of each message, by its text.
    messages: BTreeMap<String, BTreeSet<String>>,
    /// The distinct items of the log.
    of_log: BTreeSet<String>,
    /// The number of items that arrived more than once.
    repeated: usize,
}

impl Arrived {
    /// Reads the requests since the last call. There are many, because a queue is sent again after each kill.
    fn follow(&mut self, endpoint: &FakeEndpoint) {
        let requests = endpoint.received_since(self.requests);
        self.requests += requests.len();
        let is_accepted = |answer: &Answer| matches!(answer, Answer::Accept) || *answer == SLOW;
        for request in requests.iter().filter(|request| is_accepted(&request.answer)) {
            let items = Items::parse(&String::from_utf8_lossy(&request.body).replace('\n', " "));
            self.repeated += items.len();
            for item in items.distinct() {
                let is_new = match text_of(&item) {
                    Some(text) => self.messages.entry(text).or_default().insert(item),
                    None => self.of_log.insert(item),
                };
                self.repeated -= usize::from(is_new);
            }
        }
    }
}

/// Returns the text of a client message, or `None` for another item.
fn text_of(item: &str) -> Option<String> {
    let item: Value = serde_json::from_str(item).expect("an item is JSON");
    let text = item["log"]["body"]["stringValue"].as_str()?;
    text.starts_with("message ").then(|| text.to_owned())
}

/// Adds half a record to the newest segment, as a kill during a write does; returns `false` without a segment.
fn tear(folder: &Path) -> bool {
    let newest: Option<PathBuf> = segments(folder).pop();
    newest.is_some_and(|newest| {
        let mut file = OpenOptions::new().append(true).open(newest).expect("it is there");
        file.write_all(b"\xf5rec\xff\xff\x00\x00torn").is_ok()
    })
}

fn table(rows: &[Row], totals: &Totals) -> String {
    let Totals {
        acknowledged,
        of_log,
        repeated,
    } = totals;
    let mut text =
        "| receiver | kills | with a torn segment | with a full disk |\n|---|---|---|---|\n".to_owned();
    let names = ["answers 503", "answers after 15 ms", "does not answer", "healthy"];
    for (name, row) in names.iter().zip(rows) {
        text.push_str(&format!(
            "| {name} | {} | {} | {} |\n",
            row.kills, row.torn, row.full
        ));
    }
    text + &format!(
        "\n{acknowledged} messages were acknowledged and followed logs had {of_log} items: 0 were lost. {repeated} items arrived \
         twice, each with the same ids, times and content.\n"
    )
}

//! Sinks that receive only some of the sources.

use std::{
    collections::BTreeSet,
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use pulsetrain_tests::{Answer, FakeEndpoint, Items, free_port, wait_until};

use crate::{
    delivery::{accepted_texts, post},
    world::{Setup, World, check},
};

/// The ports of two receivers, whose data is routed to different sinks.
struct Routes {
    left: u16,
    right: u16,
}

impl Routes {
    fn new() -> Self {
        Self {
            left: free_port(),
            right: free_port(),
        }
    }

    /// Writes a configuration in which the endpoint and the file receive these sources.
    fn configure(&self, world: &World, endpoint: &FakeEndpoint, of_endpoint: &str, of_file: &str) {
        let sinks = format!(
            "  one:\n    otlp:\n      endpoint: {}\n      disk_queue: off\n      sources: {of_endpoint}\n{}      sources: {of_file}\n\
             {}      sources: [pulsetrain]\n",
            endpoint.url(),
            world.file_sink("two", "two.jsonl"),
            world.file_sink("own", "own.jsonl"),
        );
        let receivers = format!(
            "  left:\n    otlp:\n      listen: [127.0.0.1:{}]\n  right:\n    otlp:\n      listen: [127.0.0.1:{}]\n",
            self.left, self.right
        );
        let yaml = world
            .yaml(&Setup {
                sinks: &sinks,
                rest: "gpu: {enabled: false}\n",
                ..Setup::default()
            })
            .replacen("sinks:\n", &format!("{receivers}sinks:\n"), 1);
        fs::write(world.path("agent.yaml"), yaml).expect("a temporary file can be written");
    }
}

/// Returns the texts of the records in a file, sorted.
fn texts(world: &World, file: &str) -> Vec<String> {
    let items = Items::read_complete_lines(&world.path(file));
    let text = |item: &serde_json::Value| item["log"]["body"]["stringValue"].as_str().map(str::to_owned);
    let mut texts: Vec<String> = items.of_kind("log").into_iter().filter_map(text).collect();
    texts.retain(|text| text.starts_with("message"));
    texts.sort();
    texts
}

#[test]
fn each_sink_receives_its_own_sources_and_nothing_else() {
    let (world, routes) = (World::new(), Routes::new());
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    routes.configure(&world, &endpoint, "[left]", "[right, training]");
    let agent = world.start();
    assert_eq!(post(routes.left, "message left"), Some(200));
    assert_eq!(post(routes.right, "message right"), Some(200));
    world.write_log("surogate/training_dense.json");
    let losses = || world.written("two.jsonl").1.values("train.loss").len();
    wait_until("everything has arrived", || {
        losses() == 30 && !texts(&world, "two.jsonl").is_empty() && !accepted_texts(&endpoint).is_empty()
    });
    wait_until("the agent's own metrics have arrived", || {
        !world.written("own.jsonl").0.is_empty()
    });
    wait_until("the page has everything", || {
        !world.scraped("train_loss").is_empty()
    });
    assert!(agent.stop().success());
    assert_eq!(accepted_texts(&endpoint), ["message left"]);
    assert!(
        endpoint
            .items_answered(&Answer::Accept)
            .values("train.loss")
            .is_empty()
    );
    assert_eq!(texts(&world, "two.jsonl"), ["message right"]);
    assert!(
        world.written("two.jsonl").0.is_empty(),
        "nothing of the agent itself"
    );
    assert!(
        world.written("own.jsonl").1.is_empty(),
        "nothing but of the agent itself"
    );
}

#[test]
fn a_reload_that_changes_the_routes_loses_nothing() {
    let (world, routes) = (World::new(), Routes::new());
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    routes.configure(&world, &endpoint, "[left]", "[right, training]");
    let agent = world.start();
    let is_over = AtomicBool::new(false);
    let mut acknowledged = BTreeSet::new();
    thread::scope(|scope| {
        let clients = [("left", routes.left), ("right", routes.right)].map(|(name, port)| {
            let is_over = &is_over;
            scope.spawn(move || {
                let texts = (0..).map(|number| format!("message {name} {number}"));
                let sent = texts.take_while(|_| !is_over.load(Ordering::Relaxed));
                sent.filter(|text| post(port, text) == Some(200))
                    .collect::<Vec<_>>()
            })
        });
        for (of_endpoint, of_file, reloads) in [
            ("[right]", "[left, training]", 1),
            ("[left, right]", "[training]", 2),
            ("[left]", "[right, training]", 3),
        ] {
            let before = accepted_texts(&endpoint).len() + texts(&world, "two.jsonl").len();
            routes.configure(&world, &endpoint, of_endpoint, of_file);
            agent.reload();
            wait_until("the routes have changed, and messages pass", || {
                let passed = accepted_texts(&endpoint).len() + texts(&world, "two.jsonl").len();
                agent.log().matches("reloaded the configuration").count() == reloads && passed > before + 5
            });
        }
        // If an agent stops before a changed file is open again, it reports the unwritten items as lost.
        wait_until("every sink is open", || world.is_ready());
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            acknowledged.extend(client.join().expect("a client does not panic"));
        }
    });
    assert!(agent.stop().success());
    let received = [accepted_texts(&endpoint), texts(&world, "two.jsonl")].concat();
    let distinct: BTreeSet<String> = received.iter().cloned().collect();
    // If a client is asked to retry while a queue is replaced, its message may have been delivered already.
    assert!(acknowledged.is_subset(&distinct), "{acknowledged:?} {distinct:?}");
    assert_eq!(received.len(), distinct.len(), "each message reaches one sink");
}

#[test]
fn unknown_source_name_is_rejected_with_its_location_and_valid_names() {
    let (world, routes) = (World::new(), Routes::new());
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    routes.configure(&world, &endpoint, "[left, rihgt]", "[]");
    let refused = check(&world).expect_code(2).stderr;
    let line = |text: &str| {
        let yaml = fs::read_to_string(world.path("agent.yaml")).unwrap();
        yaml.lines().position(|line| line.contains(text)).unwrap() + 1
    };
    for expected in [
        format!(
            "agent.yaml:{}:23: sinks.one: there is no source \"rihgt\"; it can be: gpu, left, pulsetrain, right, training",
            line("rihgt")
        ),
        format!(
            "agent.yaml:{}:16: sinks.two: sources is an empty list",
            line("[]")
        ),
    ] {
        assert!(refused.contains(&expected), "{expected}\n{refused}");
    }
    assert!(
        !refused.contains("no sink receives it"),
        "the page receives all: {refused}"
    );
}

#[test]
fn sink_for_a_disabled_gpu_source_causes_a_warning_at_check_and_start() {
    let world = World::new();
    world.configure_as(&Setup {
        sinks: &format!("{}      sources: [gpu]\n", world.file_sink("gpus", "gpus.jsonl")),
        rest: "gpu: {enabled: false}\n",
        ..Setup::default()
    });
    let warning = "sinks.gpus: gpu sends nothing, because gpu.enabled is false";
    let checked = check(&world).expect_code(0);
    assert!(checked.stderr.contains(warning), "{checked:?}");
    assert!(
        checked.stdout.ends_with(": valid, with 1 warning\n"),
        "{checked:?}"
    );
    let agent = world.start();
    assert_eq!(agent.log().matches(warning).count(), 1, "{}", agent.log());
    assert!(agent.stop().success());
}

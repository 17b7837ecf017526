//! The shutdown of an agent, and clients that could block its health checks.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, TcpStream},
    os::unix::net::UnixDatagram,
    process::Command,
    time::Duration,
};

use pulsetrain_tests::{Answer, FakeEndpoint, Process, SurogateRun, wait_until};

use crate::world::{Setup, World};

#[test]
fn sigint_stops_the_agent_like_sigterm() {
    let world = World::new();
    let agent = world.start();
    agent.interrupt();
    let (status, printed) = agent.wait_for_end();
    assert_eq!(status.code(), Some(0), "{printed}");
}

#[test]
fn signals_reach_the_agent_whose_id_is_in_the_pid_file() {
    let world = World::new();
    let file = world.path("agent.pid");
    let mut command = world.command();
    let agent = Process::start("pulsetrain agent", command.arg("--pid-file").arg(&file));
    let mut id = String::new();
    wait_until("the file is written", || {
        id = fs::read_to_string(&file).unwrap_or_default();
        !id.is_empty()
    });
    assert_eq!(id, format!("{}\n", agent.pid()));
    let send = |signal: &str| {
        let sent = Command::new("kill").args([signal, id.trim()]).status();
        assert!(sent.unwrap().success());
    };
    send("-HUP");
    wait_until("the agent reloads", || {
        agent.log().contains("reloaded the configuration")
    });
    send("-TERM");
    agent.end_well();
    assert!(!file.exists());
    let mut command = world.command();
    let agent = Process::start(
        "pulsetrain agent",
        command.args(["--pid-file", "/none/agent.pid"]),
    );
    let (status, printed) = agent.wait_for_end();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("--pid-file: cannot write /none/agent.pid"),
        "{printed}"
    );
}

#[test]
fn agent_with_a_hung_receiver_stops_after_the_drain_limit_and_reports_losses() {
    let endpoint = FakeEndpoint::start([], Answer::Hang);
    let (_world, agent) = with_something_to_lose(&endpoint, "drain: 1s");
    let (status, printed) = agent.stop_with_log();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(printed.contains("sink collector: lost "), "{printed}");
}

/// The drain alone would exceed the timeout of the test.
#[test]
fn second_signal_stops_the_agent_without_draining() {
    let endpoint = FakeEndpoint::start([], Answer::Hang);
    let (world, agent) = with_something_to_lose(&endpoint, "drain: 10m");
    agent.interrupt();
    wait_until("the agent is about to end", || {
        world.readiness().contains("it ends")
    });
    agent.interrupt();
    let (status, printed) = agent.wait_for_end();
    assert_eq!(status.code(), Some(1), "{printed}");
}

#[test]
fn idle_health_connections_do_not_block_other_clients() {
    let world = World::new();
    let agent = world.start();
    let connect = |number: usize| {
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, world.health())).unwrap();
        // Half of them start a request.
        client.write_all(&b"GET /heal"[..number % 2 * 9]).unwrap();
        client
    };
    let clients: Vec<TcpStream> = (0..100).map(connect).collect();
    wait_until("somebody else is answered", || world.is_ready());
    drop(clients);
    assert!(agent.stop().success());
}

#[test]
fn systemd_is_notified_of_readiness_reload_stop_and_watchdog() {
    let world = World::new();
    let path = world.path("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket can be bound");
    let longest = Some(Duration::from_mins(1));
    socket.set_read_timeout(longest).expect("a socket has a timeout");
    let received = || {
        let mut message = [0; 256];
        let length = socket.recv(&mut message).expect("the agent sends a notification");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let next = || loop {
        let message = received();
        if message != "WATCHDOG=1" {
            return message;
        }
    };
    let mut command = world.command();
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    let agent = Process::start("pulsetrain agent", &mut command);
    assert_eq!(received(), "READY=1");
    assert!(world.is_ready(), "systemd starts what depends on the agent now");
    for _ in 0..3 {
        assert_eq!(received(), "WATCHDOG=1");
    }
    agent.reload();
    let reloading = next();
    assert!(
        reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
        "{reloading}"
    );
    assert_eq!(next(), "READY=1");
    agent.interrupt();
    assert_eq!(next(), "STOPPING=1");
    agent.end_well();
}

/// Starts an agent that has read data that its receiver does not accept.
fn with_something_to_lose(endpoint: &FakeEndpoint, drain: &str) -> (World, Process) {
    let world = World::new();
    world.configure_as(&Setup {
        sinks: &format!(
            "  collector:\n    otlp:\n      endpoint: {}\n      disk_queue: off\n",
            endpoint.url()
        ),
        rest: &format!("limits:\n  {drain}\n"),
        ..Setup::default()
    });
    let mut run = SurogateRun::begin(&world.path("training.json"), 0);
    run.write(&mut fastrand::Rng::with_seed(6), 60);
    let agent = world.start();
    wait_until("the receiver is asked", || !endpoint.received().is_empty());
    wait_until("the agent has read", || !world.scraped("train_loss").is_empty());
    (world, agent)
}

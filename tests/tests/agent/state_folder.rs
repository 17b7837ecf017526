//! The state folder: found without a home, private, and reported if it is missing.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    process::Command,
};

use pulsetrain_tests::{Answer, Finished, Process, as_unprivileged, wait_until};

use crate::{
    delivery::{accepted_texts, post},
    disk_queue::Outage,
    world::get,
};

/// Returns an outage whose configuration names no state folder.
fn without_folder(keys: &str) -> Outage {
    let outage = Outage::begin(keys, "");
    let path = outage.world.path("agent.yaml");
    let yaml = fs::read_to_string(&path).expect("it is there");
    fs::write(&path, yaml.replace("state_folder: ${STATE}\n", "")).expect("it can be written");
    outage
}

/// Returns the agent of a service without a home.
fn service(outage: &Outage) -> Command {
    let mut command = outage.world.command();
    for name in ["HOME", "XDG_STATE_HOME", "STATE_DIRECTORY"] {
        command.env_remove(name);
    }
    command
}

/// Returns the agent of a service without a home and without permission to create `/var/lib/pulsetrain`.
fn unprivileged(outage: &Outage) -> Command {
    let folder = outage.world.path("");
    let permissions: fs::Permissions = PermissionsExt::from_mode(0o777);
    fs::set_permissions(&folder, permissions).expect("they can be set");
    let mut command = as_unprivileged(&service(outage), &folder);
    for name in ["HOME", "XDG_STATE_HOME", "STATE_DIRECTORY"] {
        command.env_remove(name);
    }
    command
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").mode() & 0o777
}

#[test]
fn service_without_a_home_keeps_its_data_in_the_folder_of_systemd_and_hides_it() {
    let outage = without_folder("");
    let state = outage.world.path("service");
    let start = || {
        let mut command = service(&outage);
        let mut agent = Process::start("pulsetrain agent", command.env("STATE_DIRECTORY", &state));
        agent.wait_until_ready(|| outage.world.is_ready());
        agent
    };
    let agent = start();
    for number in 0..50 {
        assert_eq!(post(outage.receiver, &format!("message {number}")), Some(200));
    }
    wait_until("the checkpoints are locked", || state.join("lock").exists());
    for folder in ["", "queue", "queue/o"] {
        assert_eq!(mode(&state.join(folder)), 0o700, "{folder}");
    }
    for file in fs::read_dir(state.join("queue/o"))
        .expect("it is a folder")
        .flatten()
    {
        assert_eq!(mode(&file.path()), 0o600, "{:?}", file.path());
    }
    assert_eq!(mode(&state.join("lock")), 0o600);
    agent.kill();
    let agent = start();
    outage.endpoint.answer_with(Answer::Accept);
    wait_until("everything acknowledged has arrived", || {
        accepted_texts(&outage.endpoint).len() >= 50
    });
    let printed = agent.stop_well();
    assert!(!printed.contains("no state folder"), "{printed}");
}

#[test]
fn required_disk_queue_without_a_state_folder_fails_the_start_naming_the_key() {
    let outage = without_folder("");
    let agent = Process::start("pulsetrain agent", &mut unprivileged(&outage));
    let (status, printed) = agent.wait_for_end();
    assert_eq!(status.code(), Some(1), "{printed}");
    for words in [
        "the disk queue of the sink o",
        "there is no state folder",
        "set state_folder",
        "disk_queue: off",
    ] {
        assert!(printed.contains(words), "{printed}");
    }
}

#[test]
fn missing_state_folder_is_reported_at_start_by_the_probes_and_by_doctor() {
    let outage = without_folder("      disk_queue: off\n");
    let mut command = unprivileged(&outage);
    let mut agent = Process::start("pulsetrain agent", &mut command);
    agent.wait_until_ready(|| outage.world.is_ready());
    let health = outage.world.health();
    for path in ["/readyz", "/readyz?format=json", "/status"] {
        let answer = get(health, path);
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("there is no state folder"),
            "{path}: {answer}"
        );
    }
    let (_, printed) = agent.stop_with_log();
    assert_eq!(
        printed.matches("there is no state folder").count(),
        1,
        "{printed}"
    );

    let mut doctor = Command::new(command.get_program());
    let file = outage.world.path("agent.yaml");
    doctor
        .args(["doctor", "--config"])
        .arg(file)
        .env_clear()
        .env("STATE", "");
    if let Some(user) = nobody() {
        std::os::unix::process::CommandExt::uid(&mut doctor, user);
    }
    let found = Finished::run(&mut doctor);
    assert!(
        found.stdout.contains("there is no state folder"),
        "{}",
        found.stdout
    );
}

/// Returns the user of an unprivileged program, if this process is root.
fn nobody() -> Option<u32> {
    let is_root = fs::metadata("/proc/self").expect("Linux has /proc").uid() == 0;
    is_root.then_some(65_534)
}

#[test]
fn home_that_cannot_hold_state_names_the_key() {
    for home in ["/nonexistent", "/proc"] {
        let outage = without_folder("");
        let mut agent = unprivileged(&outage);
        let agent = Process::start("pulsetrain agent", agent.env("HOME", home));
        let (status, printed) = agent.wait_for_end();
        assert_eq!(status.code(), Some(1), "{printed}");
        assert!(
            printed.contains(home) && printed.contains("set state_folder"),
            "{printed}"
        );
    }
}

//! No driver at all: one line says so and why, and the agent does what else it is told.

use pulsetrain_tests::{free_port, wait_until};

use crate::gpu_faults::{page::fetch, world::start_agent};

#[test]
fn without_a_driver_the_agent_runs_and_says_why_gpus_are_not_observed() {
    let folder = tempfile::tempdir().unwrap();
    let page = free_port();
    let library = folder.path().join("libnvidia-ml.so.1");
    let agent = start_agent(folder.path(), (page, free_port()), &library, "gpu");
    wait_until("the agent says that there is no driver", || {
        agent.log().contains("GPUs are not observed")
    });
    wait_until("the agent has a page about itself", || {
        fetch(page).contains("pulsetrain_")
    });
    assert!(!fetch(page).contains("\ngpu_"), "there are GPUs on the page");
    let (status, log) = agent.stop_with_log();
    assert!(status.success(), "{log}");
    let said: Vec<_> = log.lines().filter(|line| line.contains("GPU")).collect();
    assert_eq!(said.len(), 1, "one line says it: {said:?}");
    assert!(
        said[0].contains("libnvidia-ml.so.1"),
        "it says what is missing: {}",
        said[0]
    );
}

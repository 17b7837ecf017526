//! Without a driver, one log line has the reason, and the agent does the rest of its work.

use pulsetrain_tests::{Folder, free_port, wait_until};

use crate::gpu_faults::{page::fetch, world::start_agent};

#[test]
fn agent_without_a_driver_runs_and_reports_why_gpus_are_not_observed() {
    let folder = Folder::new();
    let page = free_port();
    let library = folder.path("libnvidia-ml.so.1");
    let agent = start_agent(&folder, (page, free_port()), &library, "gpu");
    wait_until("the agent logs that there is no driver", || {
        agent.log().contains("GPUs are not observed")
    });
    wait_until("the agent has a page about itself", || {
        fetch(page).contains("pulsetrain_")
    });
    assert!(!fetch(page).contains("\ngpu_"), "there are GPUs on the page");
    let log = agent.stop_well();
    let printed: Vec<_> = log.lines().filter(|line| line.contains("GPU")).collect();
    assert_eq!(printed.len(), 1, "one line: {printed:?}");
    assert!(
        printed[0].contains("libnvidia-ml.so.1"),
        "the line has what is missing: {}",
        printed[0]
    );
}

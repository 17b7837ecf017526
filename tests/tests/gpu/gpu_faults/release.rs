//! The driver is released on request, so that the kernel can unload it, and is then used again.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
};

use crate::gpu_faults::world::World;

const FIRST: (&str, &str) = ("gpu.index", "0");

/// A scenario in which the kernel unloads the driver twice, which it refuses while a client is connected.
const UNLOADS: &str =
    "gpus: {count: 2, all: {readings: {utilization.gpu_percent: {steps: [[0, 10], [12, 20], [50, 30]]}}}}
faults:
  - {what: driver_reload, from: 10, until: 20}
  - {what: driver_reload, from: 30, until: 40}";

/// Sends a request to the health address, and returns the response.
fn ask(world: &World, request: &str, headers: &str) -> String {
    let mut stream =
        TcpStream::connect((Ipv4Addr::LOCALHOST, world.health)).expect("the health address is served");
    let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).expect("a request can be sent");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("the request is answered");
    answer
}

#[test]
fn driver_can_be_unloaded_after_a_release_and_is_read_again_after_loading() {
    let Some(world) = World::start("h100x8", UNLOADS) else {
        return;
    };
    let busy = [FIRST, ("gpu.task", "general")];
    world.wait_value("gpu.utilization", &busy, 0.1);
    world.fake.at(12.0);
    world.wait_value("gpu.utilization", &busy, 0.2);

    let refused = ask(&world, "POST /gpu/release", "Origin: http://elsewhere\r\n");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let released = ask(&world, "POST /gpu/release?for=1h", "");
    assert!(
        released.starts_with("HTTP/1.1 200") && released.contains("3600 s"),
        "{released}"
    );
    world.wait_ended("gpu.utilization", &busy);
    world.wait_for_log("the driver is released for 3600 s");

    // The agent no longer holds the driver, so the driver is unloaded, and an agent that resumes finds none.
    world.fake.at(35.0);
    let resumed = ask(&world, "POST /gpu/resume", "");
    assert!(resumed.starts_with("HTTP/1.1 200"), "{resumed}");
    world.wait_for_log("the NVIDIA kernel driver is not loaded");
    world.fake.at(50.0);
    world.wait_value("gpu.utilization", &busy, 0.3);
}

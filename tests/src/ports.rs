//! Free ports on loopback, for servers that cannot report the port that they chose.
//!
//! They are below the ephemeral ports of the system, so that neither an outgoing connection nor another test with an ephemeral
//! port can occupy one before its server does.

use std::{
    net::{Ipv4Addr, TcpListener},
    process,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// The range above the ports of most services, and below Linux's ephemeral ports (`net.ipv4.ip_local_port_range`).
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// The number of ports tried so far. It starts at an offset by pid, so that concurrent programs use different ports.
static PASSED: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(process::id().wrapping_mul(997)));

/// Returns a port that was free a moment ago, and that this program has not returned before. If a server does not get its port,
/// it exits and its test fails.
pub fn free_port() -> u16 {
    PORTS
        .map(|_| {
            let passed = PASSED.fetch_add(1, Ordering::Relaxed) % PORTS.len() as u32;
            PORTS.start + passed as u16
        })
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a loopback port can be bound")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_port_never_returns_a_port_twice() {
        let mut all: Vec<u16> = (0..100).map(|_| free_port()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
        assert!(all.iter().all(|port| PORTS.contains(port)));
    }
}

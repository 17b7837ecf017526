//! Free ports on loopback, for servers that cannot report the port that they chose.
//!
//! They are below those that the system itself gives out: a client that connects somewhere, or another test that has the
//! system choose, cannot take one before its server does.

use std::{
    net::{Ipv4Addr, TcpListener},
    process,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// Above the ports of most services, below what Linux gives out (`net.ipv4.ip_local_port_range`).
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// How many ports were given or found taken. Programs that run side by side begin far from each other.
static PASSED: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(process::id().wrapping_mul(997)));

/// A port that nothing listened on a moment ago, and that no other test of this program was given. A server that does not get
/// its port ends, and its test fails.
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
    fn no_port_is_given_twice() {
        let mut all: Vec<u16> = (0..100).map(|_| free_port()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
        assert!(all.iter().all(|port| PORTS.contains(port)));
    }
}

//! Free ports on loopback, for servers that cannot say which port they took.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, TcpListener},
    sync::{LazyLock, Mutex, PoisonError},
};

/// The ports that were given before: the system has no memory of them until somebody listens there.
static GIVEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);

/// A port that nothing listened on a moment ago, and that no other test of this program was given. Another program may take
/// it before the server does; a server that does not get its port ends, and its test says so.
pub fn free_port() -> u16 {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port can be bound");
        let port = listener
            .local_addr()
            .expect("a bound socket has an address")
            .port();
        if given.insert(port) {
            return port;
        }
    }
}

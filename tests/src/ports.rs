//! Free ports on loopback, for servers that cannot say which port they took.

use std::net::{Ipv4Addr, TcpListener};

/// A port that nothing listened on a moment ago. Another program may take it before the server does; a server that does
/// not get its port ends, and its test says so.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port can be bound");
    listener
        .local_addr()
        .expect("a bound socket has an address")
        .port()
}

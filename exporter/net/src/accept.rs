//! The accept loop of a listener: a slot, a handshake and a task for every connection.

use std::{io, time::Duration};

use tokio::{task::JoinSet, time::timeout};

use crate::{
    ConnectionSlots, Guard, Listener, ServerStream,
    connection_slots::ConnectionSlot,
    listener::{Accepted, AsyncListener},
};

/// The deadline of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The deadline of a TLS handshake while other connections wait for a slot.
const BUSY_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause of a server that ran out of file descriptors, before it accepts the next connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether the requests of a connection are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The requests are answered.
    Served,
    /// Too many connections are open: each request is refused with an answer.
    Refused,
}

/// Accepts connections until `stop` and passes each to `serve` after its handshake. Connections that are open at `stop`
/// get `grace` to end, and are closed after that.
///
/// # Errors
/// Returns an error if the runtime cannot poll the listener.
pub async fn accept<S, F>(
    listener: Listener,
    guard: Guard,
    slots: ConnectionSlots,
    grace: Duration,
    stop: impl Future<Output = ()>,
    serve: S,
) -> io::Result<()>
where
    S: Fn(ServerStream, Admission) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = listener.into_async()?;
    let mut connections = JoinSet::new();
    tokio::select! {
        () = stop => {}
        () = guard.clone().watch() => {}
        () = accept_all(&listener, &guard, &slots, &mut connections, serve) => {}
    }
    drop(listener);
    // Dropping the set closes the connections that are left.
    let _ = timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

async fn accept_all<S, F>(
    listener: &AsyncListener,
    guard: &Guard,
    slots: &ConnectionSlots,
    connections: &mut JoinSet<()>,
    serve: S,
) where
    S: Fn(ServerStream, Admission) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            biased;
            // Ended connections leave the set at once; otherwise the set would grow without bound.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok(accepted) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let slot = slots.next().await;
        let admission = match &slot {
            ConnectionSlot::Served { .. } => Admission::Served,
            ConnectionSlot::Refused { .. } => Admission::Refused,
            ConnectionSlot::Closed => continue,
        };
        let (guard, slots, serve) = (guard.clone(), slots.clone(), serve.clone());
        connections.spawn(async move {
            if let Some(stream) = shake_hands(accepted, &guard, &slots).await {
                serve(stream, admission).await;
            }
            drop(slot);
        });
    }
}

/// Returns the stream after its handshake, or `None` if that failed or took too long.
async fn shake_hands(accepted: Accepted, guard: &Guard, slots: &ConnectionSlots) -> Option<ServerStream> {
    let (stream, peer) = match accepted {
        Accepted::Unix(stream) => return Some(ServerStream::Unix(stream)),
        Accepted::Tcp(stream, peer) => (stream, peer),
    };
    // Answers are small and written at once. A socket that refuses the option works nevertheless.
    let _ = stream.set_nodelay(true);
    tokio::select! {
        stream = guard.handshake(stream, peer) => stream,
        () = tokio::time::sleep(HANDSHAKE_TIMEOUT) => None,
        () = async { tokio::time::sleep(BUSY_HANDSHAKE_TIMEOUT).await; slots.exhausted().await } => None,
    }
}

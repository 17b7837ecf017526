//! The loop of a listener: a place, a handshake and a task for every connection.

use std::{io, time::Duration};

use tokio::{task::JoinSet, time::timeout};

use crate::{
    ConnectionSlots, Guard, Listener, ServerStream,
    connection_slots::ConnectionSlot,
    listener::{Accepted, AsyncListener},
};

/// How long a client has for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long it has while other connections find no place.
const HURRIED_HANDSHAKE: Duration = Duration::from_secs(1);
/// The pause of a server that ran out of file descriptors, before it accepts the next connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether the requests of a connection are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// They are.
    Served,
    /// Too many connections are open: they are refused with an answer.
    Refused,
}

/// Accepts connections until `stop`; `serve` gets each after its handshake. Those that are open then have `grace` to end, and
/// are closed after that.
///
/// # Errors
/// A listener that the runtime cannot wait for.
pub async fn accept<S, F>(
    listener: Listener,
    guard: Guard,
    places: ConnectionSlots,
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
        () = accept_all(&listener, &guard, &places, &mut connections, serve) => {}
    }
    drop(listener);
    // The set closes those that are left when it is dropped.
    let _ = timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

async fn accept_all<S, F>(
    listener: &AsyncListener,
    guard: &Guard,
    places: &ConnectionSlots,
    connections: &mut JoinSet<()>,
    serve: S,
) where
    S: Fn(ServerStream, Admission) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            biased;
            // Connections that have ended leave the set at once: their number has no bound.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok(accepted) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let place = places.next().await;
        let admission = match &place {
            ConnectionSlot::Served { .. } => Admission::Served,
            ConnectionSlot::Refused { .. } => Admission::Refused,
            ConnectionSlot::Closed => continue,
        };
        let (guard, places, serve) = (guard.clone(), places.clone(), serve.clone());
        connections.spawn(async move {
            if let Some(stream) = shake_hands(accepted, &guard, &places).await {
                serve(stream, admission).await;
            }
            drop(place);
        });
    }
}

/// Returns the stream after its handshake, or `None` if that failed or took too long.
async fn shake_hands(accepted: Accepted, guard: &Guard, places: &ConnectionSlots) -> Option<ServerStream> {
    let (stream, peer) = match accepted {
        Accepted::Unix(stream) => return Some(ServerStream::Unix(stream)),
        Accepted::Tcp(stream, peer) => (stream, peer),
    };
    // Answers are small and written at once. A socket that refuses the option works all the same.
    let _ = stream.set_nodelay(true);
    tokio::select! {
        stream = guard.handshake(stream, peer) => stream,
        () = tokio::time::sleep(HANDSHAKE) => None,
        () = async { tokio::time::sleep(HURRIED_HANDSHAKE).await; places.wanted().await } => None,
    }
}

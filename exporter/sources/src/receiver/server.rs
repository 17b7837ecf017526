//! Connections: HTTP/1 and HTTP/2 on every address, so that a client that mixes up the two ports is understood.

use std::{convert::Infallible, io, net, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use pulsetrain_pipeline::Stop;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use super::{grpc, http, inlet::Inlet};

/// The most connections at one time; further ones wait in the system's queue.
const MOST_CONNECTIONS: usize = 256;
/// The most requests at one time on one connection.
const MOST_STREAMS: u32 = 64;
/// How long a connection may be silent. Exporters send every minute, or keep HTTP/2 alive with pings.
const SILENCE: Duration = Duration::from_secs(120);
/// After so much silence an HTTP/2 client is asked whether it is still there.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How much of a message may be on its way before it is asked for.
const WINDOW: u32 = 1 << 20;
/// What is being answered gets, when the receiver stops.
const GRACE: Duration = Duration::from_secs(2);
/// What a receiver that ran out of file descriptors waits before it takes the next connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers clients until `stop` is raised; what is being answered then gets two seconds.
pub(super) async fn run(listeners: Vec<net::TcpListener>, inlet: Inlet, stop: Stop) -> io::Result<()> {
    let listeners = listeners.into_iter().map(TcpListener::from_std);
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut accepting = JoinSet::new();
    for listener in listeners.collect::<io::Result<Vec<_>>>()? {
        accepting.spawn(accept(listener, inlet.clone(), Arc::clone(&places), stop.clone()));
    }
    accepting.join_all().await;
    Ok(())
}

/// Takes the connections of one address.
async fn accept(listener: TcpListener, inlet: Inlet, places: Arc<Semaphore>, stop: Stop) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.wait() => break,
            // What has ended is forgotten at once: there may be no end to it.
            Some(_) = connections.join_next() => continue,
            accepted = next(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let (inlet, stop) = (inlet.clone(), stop.clone());
                connections.spawn(async move {
                    connection(stream, inlet, stop).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    drop(listener);
    // Whoever is not done by then is cut off with the set.
    let _ = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

/// Serves one connection to its end, or until the receiver stops.
async fn connection(stream: TcpStream, inlet: Inlet, stop: Stop) {
    let service = service_fn(move |request: Request<Incoming>| {
        let inlet = inlet.clone();
        async move {
            let answer = match grpc::is_grpc(&request) {
                true => grpc::answer(&inlet, request).await,
                false => http::answer(&inlet, request).await,
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(4 * WINDOW)
        .keep_alive_interval(PING_AFTER);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // An error here is a client that went away, or that does not speak HTTP.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.wait() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

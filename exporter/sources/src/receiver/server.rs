//! Connections: HTTP/1 and HTTP/2 on every address, so that a client that mixes up the two ports is understood.

use std::{convert::Infallible, io, net, sync::Arc, time::Duration};

use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use pulsetrain_pipeline::Stop;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tonic::body::Body;

use super::{
    activity::{Activity, SILENCE},
    grpc, http,
    inlet::Inlet,
    refusal::Refusal,
};

/// The most connections at one time; the requests of further ones are refused.
const MOST_CONNECTIONS: usize = 256;
/// The most connections at one time whose requests are refused; further ones are closed.
const MOST_REFUSED: usize = 64;
/// How long a connection has to send a request that is refused.
const REFUSED: Duration = Duration::from_secs(2);
/// The most requests at one time on one connection.
const MOST_STREAMS: u32 = 64;
/// After so much silence an HTTP/2 client is asked whether it is still there.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How much of a message may be on its way before it is asked for.
const WINDOW: u32 = 1 << 20;
/// What is being answered gets, when the receiver stops or the connection is idle.
const GRACE: Duration = Duration::from_secs(2);
/// What a receiver that ran out of file descriptors waits before it takes the next connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers clients until `stop` is raised; what is being answered then gets two seconds.
pub(super) async fn run(listeners: Vec<net::TcpListener>, inlet: Inlet, stop: Stop) -> io::Result<()> {
    let listeners = listeners.into_iter().map(TcpListener::from_std);
    let places = Places::default();
    let mut accepting = JoinSet::new();
    for listener in listeners.collect::<io::Result<Vec<_>>>()? {
        accepting.spawn(accept(listener, inlet.clone(), places.clone(), stop.clone()));
    }
    accepting.join_all().await;
    Ok(())
}

/// Takes the connections of one address.
async fn accept(listener: TcpListener, inlet: Inlet, places: Places, stop: Stop) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.wait() => break,
            // What has ended is forgotten at once: there may be no end to it.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (inlet, stop, place) = (inlet.clone(), stop.clone(), places.next());
                connections.spawn(async move {
                    match &place {
                        Place::Served { .. } => serve(stream, inlet, stop).await,
                        Place::Refused { .. } => refuse(stream, inlet).await,
                        Place::Closed => {}
                    }
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    drop(listener);
    // Whoever is not done by then is cut off with the set.
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

/// The places of connections; a clone shares them.
#[derive(Clone, Debug)]
struct Places {
    served: Arc<Semaphore>,
    refused: Arc<Semaphore>,
}

/// What happens to a connection, while it is open.
enum Place {
    Served { _permit: OwnedSemaphorePermit },
    Refused { _permit: OwnedSemaphorePermit },
    Closed,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            served: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
            refused: Arc::new(Semaphore::new(MOST_REFUSED)),
        }
    }
}

impl Places {
    fn next(&self) -> Place {
        let take = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
        let refused = || take(&self.refused).map_or(Place::Closed, |_permit| Place::Refused { _permit });
        take(&self.served).map_or_else(refused, |_permit| Place::Served { _permit })
    }
}

/// Serves one connection to its end, until it is idle, or until the receiver stops.
async fn serve(stream: TcpStream, inlet: Inlet, stop: Stop) {
    let activity = Activity::new();
    let noted = activity.clone();
    let answer = move |request: Request<Incoming>| {
        let (inlet, in_flight) = (inlet.clone(), noted.request());
        async move {
            let answer = match grpc::is_grpc(&request) {
                true => grpc::answer(&inlet, request).await,
                false => http::answer(&inlet, request).await,
            };
            drop(in_flight);
            answer
        }
    };
    connection(stream, answer, async {
        tokio::select! {
            () = activity.is_idle() => {}
            () = stop.wait() => {}
        }
    })
    .await;
}

/// Refuses the requests of one connection for a moment.
async fn refuse(stream: TcpStream, inlet: Inlet) {
    let answer = move |request: Request<Incoming>| {
        let inlet = inlet.clone();
        async move {
            match grpc::is_grpc(&request) {
                true => grpc::refused(&inlet, &Refusal::NoConnection).into_http(),
                false => http::refused_for_now(&inlet, &request, &Refusal::NoConnection),
            }
        }
    };
    connection(stream, answer, tokio::time::sleep(REFUSED)).await;
}

/// Answers the requests of one connection to its end, or until `end`; what is being answered then gets two seconds.
async fn connection<A>(
    stream: TcpStream,
    answer: impl Fn(Request<Incoming>) -> A + Clone,
    end: impl Future<Output = ()>,
) where
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
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
        () = end => connection.as_mut().graceful_shutdown(),
    }
    let _ = timeout(GRACE, connection).await;
}

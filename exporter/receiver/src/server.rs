//! Connections: HTTP/1 and HTTP/2 on every address, so that a client that mixes up the two ports is understood.

use std::{convert::Infallible, io, time::Duration};

use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use pulsetrain_net::{Admission, Guard, Listener, Places, ServerStream, accept};
use pulsetrain_pipeline::Stop;
use tokio::{task::JoinSet, time::timeout};
use tonic::body::Body;

use super::{
    activity::{Activity, SILENCE},
    grpc, http,
    inlet::Inlet,
    refusal::Refusal,
};

/// How long a connection has to send a request that is refused.
const REFUSED: Duration = Duration::from_secs(2);
/// The most requests at one time on one connection.
const MAX_STREAMS: u32 = 64;
/// After this silence an HTTP/2 client is asked whether it is still there.
const PING_AFTER: Duration = Duration::from_secs(30);
/// The bytes of one HTTP/2 request that may be on their way before they are read.
const STREAM_WINDOW: u32 = 512 << 10;
/// The same for all requests of an HTTP/2 connection: with 100 ms of latency, 10 MB/s.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The same for an HTTP/1 connection.
const READ_BUFFER: usize = 64 << 10;
/// The time for requests in flight when the receiver stops or the connection is idle.
const GRACE: Duration = Duration::from_secs(2);

/// Answers clients until `stop` is raised; requests in flight then get two seconds.
pub(super) async fn run(
    listeners: Vec<Listener>,
    inlet: Inlet,
    guard: Guard,
    places: Places,
    stop: Stop,
) -> io::Result<()> {
    let mut accepting = JoinSet::new();
    for listener in listeners {
        let (inlet, guard, places, stop) = (inlet.clone(), guard.clone(), places.clone(), stop.clone());
        accepting.spawn(async move {
            let (stopped, shared) = (stop.clone(), places.clone());
            let serve = move |stream, admission| {
                let (inlet, places, stop) = (inlet.clone(), places.clone(), stop.clone());
                async move {
                    match admission {
                        Admission::Served => serve(stream, inlet, places, stop).await,
                        Admission::Refused => refuse(stream, inlet).await,
                    }
                }
            };
            accept(listener, guard, shared, GRACE, stopped.wait(), serve).await
        });
    }
    while let Some(ended) = accepting.join_next().await {
        ended.unwrap_or(Ok(()))?;
    }
    Ok(())
}

/// Serves one connection to its end, until it is idle, or until the receiver stops.
async fn serve(stream: ServerStream, inlet: Inlet, places: Places, stop: Stop) {
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
            () = activity.gives_way(&places) => {}
            () = stop.wait() => {}
        }
    })
    .await;
}

/// Refuses the requests of one connection for a moment.
async fn refuse(stream: ServerStream, inlet: Inlet) {
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
    stream: ServerStream,
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
        .max_buf_size(READ_BUFFER)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
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

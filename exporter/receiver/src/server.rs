//! Serves connections: HTTP/1 and HTTP/2 on every address, so that clients that mix up the two ports of OTLP work.

use std::{convert::Infallible, io, time::Duration};

use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use pulsetrain_net::{Admission, ConnectionSlots, Guard, Listener, ServerStream, accept};
use pulsetrain_pipeline::CancellationToken;
use tokio::{task::JoinSet, time::timeout};
use tonic::body::Body;

use crate::{
    activity::{Activity, SILENCE},
    grpc, http,
    ingest::IngestHandler,
    rejection::Rejection,
};

/// The lifetime of a connection over the limit; its requests are rejected.
const REJECTED: Duration = Duration::from_secs(2);
/// The most concurrent requests of one connection.
const MAX_STREAMS: u32 = 64;
/// The silence after which an HTTP/2 client gets a PING.
const PING_AFTER: Duration = Duration::from_secs(30);
/// The flow control window of an HTTP/2 request.
const STREAM_WINDOW: u32 = 512 << 10;
/// The flow control window of an HTTP/2 connection: 10 MB/s at 100 ms latency.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The read buffer of an HTTP/1 connection.
const READ_BUFFER: usize = 64 << 10;
/// The time for requests in flight after the receiver stops or the connection is idle. It is longer than the wait for the
/// delivery of a message.
const GRACE: Duration = Duration::from_secs(3);

/// Answers clients until `stop` is raised. Requests in flight then have [`GRACE`].
pub(super) async fn run(
    listeners: Vec<Listener>,
    handler: IngestHandler,
    guard: Guard,
    slots: ConnectionSlots,
    stop: CancellationToken,
) -> io::Result<()> {
    let mut accepting = JoinSet::new();
    for listener in listeners {
        let (handler, guard, slots, stop) = (handler.clone(), guard.clone(), slots.clone(), stop.clone());
        accepting.spawn(async move {
            let (stopped, shared) = (stop.clone(), slots.clone());
            let serve = move |stream, admission| {
                let (handler, slots, stop) = (handler.clone(), slots.clone(), stop.clone());
                async move {
                    match admission {
                        Admission::Served => serve(stream, handler, slots, stop).await,
                        Admission::Refused => reject(stream, handler, slots.limit()).await,
                    }
                }
            };
            accept(listener, guard, shared, GRACE, stopped.cancelled(), serve).await
        });
    }
    while let Some(ended) = accepting.join_next().await {
        ended.unwrap_or(Ok(()))?;
    }
    Ok(())
}

/// Serves one connection until it closes, it is idle, or the receiver stops.
async fn serve(
    stream: ServerStream,
    handler: IngestHandler,
    slots: ConnectionSlots,
    stop: CancellationToken,
) {
    let activity = Activity::new();
    let recorded = activity.clone();
    let answer = move |request: Request<Incoming>| {
        let (handler, in_flight) = (handler.clone(), recorded.request());
        async move {
            let answer = match grpc::is_grpc(&request) {
                true => grpc::answer(&handler, request).await,
                false => http::answer(&handler, request).await,
            };
            drop(in_flight);
            answer
        }
    };
    connection(stream, answer, async {
        tokio::select! {
            () = activity.is_idle() => {}
            () = activity.wait_until_idle_and_slot_needed(&slots) => {}
            () = stop.cancelled() => {}
        }
    })
    .await;
}

/// Rejects the requests of one connection for a limited time.
async fn reject(stream: ServerStream, handler: IngestHandler, allowed: usize) {
    let answer = move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move {
            let rejection = Rejection::TooManyConnections { allowed };
            match grpc::is_grpc(&request) {
                true => grpc::rejected(&handler, &rejection).into_http(),
                false => http::rejected_and_closed(&handler, &request, &rejection),
            }
        }
    };
    connection(stream, answer, tokio::time::sleep(REJECTED)).await;
}

/// Answers the requests of one connection until it closes or until `end`. Requests in flight then have [`GRACE`].
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
    // An error means that the client disconnected or does not speak HTTP.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = end => connection.as_mut().graceful_shutdown(),
    }
    let _ = timeout(GRACE, connection).await;
}

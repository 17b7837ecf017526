//! An OTLP/HTTP receiver with the typical failures of receivers and networks.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use pulsetrain_tests::{free_port, wait_until};
use tokio::{net::TcpSocket, runtime::Runtime};

use super::load::{numbers_in, text_of};

/// The number of connections that the system queues before [`Health::Vanishes`] drops them.
const BACKLOG: u32 = 8;
const POLL: Duration = Duration::from_millis(5);

/// The behaviour of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// Accepts everything.
    Works,
    /// Nothing listens. Requests on existing connections are stored but get no response, as from a process that is killed after
    /// it has stored them.
    Refuses,
    /// Reads requests, and neither stores them nor responds.
    Hangs,
    /// Responds with 503.
    Unavailable,
    /// The packets of new connections are dropped, because the queue of connections to accept is full; requests on existing
    /// connections are neither stored nor get a response.
    Vanishes,
}

/// A receiver on loopback, which stops when it is dropped.
pub(crate) struct Downstream {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    is_over: AtomicBool,
}

struct State {
    health: Health,
    /// The number of times that each message arrived, by its number.
    arrived: Vec<u32>,
    /// The number of messages whose text differs from the sent one.
    wrong: usize,
    /// The health that the listener has applied.
    listening: Option<Health>,
}

impl Downstream {
    /// Starts a healthy receiver.
    pub(crate) fn start() -> Self {
        let port = free_port();
        let state = State {
            health: Health::Works,
            arrived: Vec::new(),
            wrong: 0,
            listening: None,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            is_over: AtomicBool::new(false),
        });
        let listening = Arc::clone(&shared);
        thread::spawn(move || listening.listen(port));
        let downstream = Self { port, shared };
        downstream.set_health(Health::Works);
        downstream
    }

    /// Returns the base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Changes the behaviour of the receiver, and waits until it applies.
    pub(crate) fn set_health(&self, health: Health) {
        self.shared.lock().health = health;
        wait_until("the receiver listens as it should", || {
            self.shared.lock().listening == Some(health)
        });
    }

    /// Returns the number of times that each message arrived, by its number.
    pub(crate) fn arrived(&self) -> Vec<u32> {
        let state = self.shared.lock();
        assert_eq!(state.wrong, 0, "messages arrive as they were sent");
        state.arrived.clone()
    }
}

impl Drop for Downstream {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Accepts connections according to the current health.
    fn listen(self: &Arc<Self>, port: u16) {
        let (mut listener, mut filling) = (None, Vec::new());
        while !self.is_over() {
            let health = self.lock().health;
            if health == Health::Refuses {
                listener = None;
            } else if listener.is_none() {
                listener = Some(bind(port));
            }
            match (&listener, health) {
                (Some(_), Health::Vanishes) if filling.is_empty() => filling = fill_backlog(port),
                (None, _) | (_, Health::Vanishes) => {}
                (Some(listener), _) => {
                    filling.clear();
                    self.accept_all(listener);
                }
            }
            self.lock().listening = Some(health);
            thread::sleep(POLL);
        }
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let shared = Arc::clone(self);
                    thread::spawn(move || shared.serve(stream));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client has already disconnected.
                Err(_) => {}
            }
        }
    }

    /// Responds to the requests of a connection until a request gets no response.
    fn serve(&self, mut stream: TcpStream) {
        stream.set_nonblocking(false).expect("a socket can be set up");
        stream.set_nodelay(true).expect("a socket can be set up");
        let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
        while let Some(body) = read_request(&mut reader) {
            let answer: &[u8] = match self.receive(&body) {
                Health::Works => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                Health::Unavailable => b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
                Health::Refuses => return,
                hung @ (Health::Hangs | Health::Vanishes) => {
                    while self.lock().health == hung && !self.is_over() {
                        thread::sleep(POLL);
                    }
                    return;
                }
            };
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    }

    /// Stores the messages of a request if the health requires it; returns that health.
    fn receive(&self, body: &[u8]) -> Health {
        let mut state = self.lock();
        if matches!(state.health, Health::Works | Health::Refuses) {
            for (number, text) in numbers_in(body) {
                if state.arrived.len() <= number {
                    state.arrived.resize(number + 1, 0);
                }
                state.arrived[number] += 1;
                state.wrong += usize::from(text != text_of(number).as_bytes());
            }
        }
        state.health
    }
}

/// Listens with a short queue of connections to accept.
fn bind(port: u16) -> TcpListener {
    let runtime = Runtime::new().expect("a runtime can be made");
    let listener = runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        socket.listen(BACKLOG)?.into_std()
    });
    listener.expect("the port is free")
}

/// Connects until the system drops the packets of a new connection.
fn fill_backlog(port: u16) -> Vec<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    let filling: Vec<TcpStream> = std::iter::from_fn(connect).take(10 * BACKLOG as usize).collect();
    assert!(
        filling.len() < 10 * BACKLOG as usize,
        "a full queue of connections drops packets (net.ipv4.tcp_abort_on_overflow, tcp_syncookies)"
    );
    filling
}

/// Returns the body of the next request, or `None` at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

//! Notifications to systemd (`Type=notify` or `notify-reload`, `WatchdogSec=`): sd_notify(3).
//!
//! Without `NOTIFY_SOCKET`, notifications are disabled. A notification that cannot be sent does not stop the agent.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    sync::Arc,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// The socket of systemd, if it started the agent.
#[derive(Debug)]
pub(super) struct Systemd {
    socket: Option<UnixDatagram>,
    /// The watchdog timeout of systemd.
    watchdog: Option<Duration>,
}

impl Systemd {
    /// Connects to the socket from the environment.
    pub(super) fn from_env() -> Self {
        Self::new(|name| env::var_os(name))
    }

    fn new(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        // The watchdog may be for the parent process.
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        Self {
            socket: variable("NOTIFY_SOCKET").and_then(|name| connect(&name).ok()),
            watchdog: number("WATCHDOG_USEC")
                .filter(|micros| is_ours && *micros > 0)
                .map(Duration::from_micros),
        }
    }

    /// Notifies that all parts are open.
    pub(super) fn ready(&self) {
        self.send("READY=1");
    }

    /// Notifies that the configuration is being reloaded; [`ready`](Self::ready) ends the reload.
    pub(super) fn reloading(&self) {
        // systemd compares this with its own clock to distinguish this reload from an earlier one.
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Notifies that the agent ends.
    pub(super) fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Notifies the watchdog, twice per timeout. Sources and sinks are tasks of the same runtime: if its threads hang,
    /// the notifications stop too.
    pub(super) async fn keep_alive(self: Arc<Self>) {
        let Some(watchdog) = self.watchdog else { return };
        loop {
            tokio::time::sleep(watchdog / 2).await;
            self.send("WATCHDOG=1");
        }
    }

    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(message.as_bytes());
        }
    }
}

/// Connects to a path, or to an abstract name after an `@`.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut message = [0; 256];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn systemd_notify_supports_path_and_abstract_sockets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("pulsetrain-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, value) in [
            (UnixDatagram::bind(&path).unwrap(), path.clone().into_os_string()),
            (
                UnixDatagram::bind_addr(&address).unwrap(),
                format!("@{name}").into(),
            ),
        ] {
            let systemd = Arc::new(Systemd::new(|variable| match variable {
                "NOTIFY_SOCKET" => Some(value.clone()),
                "WATCHDOG_USEC" => Some("30000000".into()),
                _ => None,
            }));
            systemd.ready();
            systemd.reloading();
            let alive = Arc::clone(&systemd).keep_alive();
            let _ = tokio::time::timeout(Duration::from_secs(20), alive).await;
            systemd.stopping();
            assert_eq!(received(&socket), "READY=1");
            let reloading = received(&socket);
            assert!(
                reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
                "{reloading}"
            );
            assert_eq!(received(&socket), "WATCHDOG=1");
            assert_eq!(received(&socket), "STOPPING=1");
        }
    }

    #[test]
    fn watchdog_of_another_process_is_ignored() {
        let watchdog = |pid: &str| {
            let pid = OsString::from(pid);
            let systemd = Systemd::new(|variable| match variable {
                "WATCHDOG_USEC" => Some("2000000".into()),
                "WATCHDOG_PID" => Some(pid.clone()),
                _ => None,
            });
            systemd.watchdog
        };
        let ours = std::process::id().to_string();
        assert_eq!(watchdog(&ours), Some(Duration::from_secs(2)));
        assert_eq!(watchdog("1"), None);
    }
}

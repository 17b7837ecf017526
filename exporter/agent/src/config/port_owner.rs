//! Finds the owner of a port: Linux shows the programs of the same user, or all of them to root.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Returns the name and the process id of the program that listens on the port of an address, or `None` if it is not
/// visible.
pub(crate) fn port_owner(address: SocketAddr) -> Option<String> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let inodes: Vec<String> = tables
        .iter()
        .flat_map(|table| inodes(table, address.port()))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let id = |process: &PathBuf| process.file_name()?.to_str()?.parse::<u32>().ok();
    let mut processes =
        entries(Path::new("/proc")).filter_map(|process| id(&process).map(|id| (id, process)));
    let (id, process) = processes.find(|(_, process)| has_one_of(process, &inodes))?;
    let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
    Some(format!("{} (process {id})", name.trim_end()))
}

/// Returns whether the owner of a port is an agent. The processes of `run` have another name.
pub(crate) fn is_agent(owner: &str) -> bool {
    owner.starts_with("pulsetrain ")
}

/// Returns the inodes of the sockets that listen on a port.
fn inodes(table: &str, port: u16) -> Vec<&str> {
    table.lines().filter_map(|line| inode(line, port)).collect()
}

/// Returns the inode of the socket of a line, if it listens on the port.
fn inode(line: &str, port: u16) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let its_port = u16::from_str_radix(fields.get(1)?.rsplit(':').next()?, 16).ok()?;
    let inode = *fields.get(9)?;
    (its_port == port && *fields.get(3)? == LISTENS).then_some(inode)
}

fn has_one_of(process: &Path, sockets: &[String]) -> bool {
    let is_one = |file: PathBuf| -> io::Result<bool> {
        let target = fs::read_link(file)?;
        Ok(sockets.iter().any(|socket| target == Path::new(socket)))
    };
    entries(&process.join("fd")).any(|file| is_one(file).unwrap_or(false))
}

/// Returns the entries of a folder, or no entries if it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn own_port_is_owned_by_this_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let who = port_owner(address).unwrap();
        assert!(
            who.ends_with(&format!("(process {})", std::process::id())),
            "{who}"
        );
    }

    #[test]
    fn client_connection_to_a_port_is_not_its_owner() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:24F8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 777 1 0\n\
             1: 0100007F:24F8 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 778 1 0\n\
             2: 0100007F:24F9 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 779 1 0\n";
        assert_eq!(inodes(table, 0x24f8), ["777"]);
        assert_eq!(inodes("nonsense\n", 1), [""; 0]);
    }
}

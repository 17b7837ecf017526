//! Whose GPUs are, from a small world: a folder of processes and a kubelet at a socket.

mod kubelet;
mod processes;
mod published;
mod world;

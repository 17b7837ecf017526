//! The attribution of GPUs from a simulated machine: a folder of processes and a kubelet on a socket.

mod kubelet;
mod processes;
mod published;
mod world;

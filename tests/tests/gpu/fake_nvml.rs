//! The fake NVML, looked at through the real wrapper: a fake that answers otherwise than it declares would judge nothing.

mod buffers;
mod driver;
mod events;
mod faults;
mod first_look;
mod handles;
mod health;
mod instances;
mod links;
mod older;
mod profiling;
mod scenarios;
mod versions;

//! One call to the kubelet: `v1.PodResourcesLister/List` over gRPC on its Unix socket.
//!
//! One unary call with an empty request needs no gRPC client: it is a frame of five bytes over HTTP/2, and Pulsetrain's own
//! reader decodes the answer. Fields: k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.

use std::path::Path;

use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, body::Bytes, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pulsetrain_otlp::{
    WireError,
    wire::{Field, Reader, WireValue},
};
use tokio::net::UnixStream;

use super::facts::Pod;

const METHOD: &str = "http://localhost/v1.PodResourcesLister/List";
/// The limit of an answer: some thousands of pods.
const MAX_BYTES: usize = 16 << 20;
/// The prefix of the resource names of GPUs.
const VENDOR: &str = "nvidia.com/";
/// NVIDIA's driver for resource claims (dynamic resource allocation), and the prefix of its names of GPUs, before the minor
/// number.
const CLAIM_DRIVER: &str = "gpu.nvidia.com";
const CLAIMED_GPU: &str = "gpu-";
/// A flag and a length precede every message.
const FRAME_HEADER_BYTES: usize = 5;

/// A device that a container of a pod has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodDevice {
    /// The name by the device plugin: a UUID, or `nvidia0` and `nvidia0/gi1` on GKE.
    pub(super) device: String,
    pub(super) pod: Pod,
}

/// Lists the GPUs of pods. The error is for the operator.
pub(super) async fn list(socket: &Path) -> Result<Vec<PodDevice>, String> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| format!("{}: {error}", socket.display()))?;
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .map_err(|error| format!("no HTTP/2: {error}"))?;
    let driving = tokio::spawn(connection);
    let answer = call(&mut client).await;
    driving.abort();
    let message = answer?;
    devices(&message).map_err(|error| format!("its answer cannot be read: {error}"))
}

async fn call(client: &mut http2::SendRequest<Full<Bytes>>) -> Result<Vec<u8>, String> {
    let request = Request::post(METHOD)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from_static(&[0; FRAME_HEADER_BYTES])))
        .map_err(|error| error.to_string())?;
    let response = client
        .send_request(request)
        .await
        .map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("it answered with HTTP status {}", response.status()));
    }
    // An error without a message is in the headers.
    let early = response.headers().clone();
    let body = Limited::new(response.into_body(), MAX_BYTES);
    let collected = body.collect().await.map_err(|error| error.to_string())?;
    let trailers = collected.trailers().cloned().unwrap_or(early);
    let code = trailers
        .get("grpc-status")
        .map(|code| code.as_bytes())
        .unwrap_or(b"0");
    if code != b"0" {
        let message = trailers.get("grpc-message").map(|message| message.as_bytes());
        return Err(format!(
            "gRPC status {}: {}",
            String::from_utf8_lossy(code),
            String::from_utf8_lossy(message.unwrap_or_default())
        ));
    }
    let framed = collected.to_bytes();
    match framed.split_at_checked(FRAME_HEADER_BYTES) {
        Some((header, message)) if header[0] == 0 => Ok(message.to_vec()),
        _ => Err("its answer is not a gRPC message".to_owned()),
    }
}

/// Returns the GPUs of a `ListPodResourcesResponse`.
fn devices(response: &[u8]) -> Result<Vec<PodDevice>, WireError> {
    let mut found = Vec::new();
    for pod in messages(response, 1) {
        let pod = pod?;
        for container in messages(pod, 3) {
            let container = container?;
            let whose = Pod {
                uid: None,
                name: text(pod, 1)?,
                namespace: text(pod, 2)?,
                container: text(container, 1)?,
            };
            for devices in messages(container, 2) {
                of_resource(devices?, &whose, &mut found)?;
            }
            for claim in messages(container, 5) {
                of_claim(claim?, &whose, &mut found)?;
            }
        }
    }
    Ok(found)
}

/// Adds the devices of one `ContainerDevices` if they are GPUs.
fn of_resource(devices: &[u8], pod: &Pod, found: &mut Vec<PodDevice>) -> Result<(), WireError> {
    let is_gpu = text(devices, 1)?.is_some_and(|resource| resource.starts_with(VENDOR));
    if is_gpu {
        for id in messages(devices, 2) {
            found.push(PodDevice {
                device: String::from_utf8_lossy(id?).into_owned(),
                pod: pod.clone(),
            });
        }
    }
    Ok(())
}

/// Adds the devices of one `DynamicResource` that are full GPUs: the name of an instance does not contain its UUID.
fn of_claim(claim: &[u8], pod: &Pod, found: &mut Vec<PodDevice>) -> Result<(), WireError> {
    for resource in messages(claim, 4) {
        let resource = resource?;
        if text(resource, 2)?.as_deref() != Some(CLAIM_DRIVER) {
            continue;
        }
        let name = text(resource, 4)?.unwrap_or_default();
        let number = name
            .strip_prefix(CLAIMED_GPU)
            .and_then(|number| number.parse::<u32>().ok());
        found.extend(number.map(|number| PodDevice {
            device: format!("nvidia{number}"),
            pod: pod.clone(),
        }));
    }
    Ok(())
}

/// Returns the values of a field of type bytes.
fn messages(message: &[u8], wanted: u32) -> impl Iterator<Item = Result<&[u8], WireError>> {
    Reader::new(message).filter_map(move |field| match field {
        Ok(Field {
            number,
            value: WireValue::Bytes(bytes),
        }) if number == wanted => Some(Ok(bytes)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

fn text(message: &[u8], wanted: u32) -> Result<Option<std::sync::Arc<str>>, WireError> {
    let found = messages(message, wanted).next().transpose()?;
    Ok(found.map(|bytes| String::from_utf8_lossy(bytes).into()))
}

//! Accepts connections with deadlines: axum's own server has none for headers, so a slow sender could hold a connection for ever.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::limits;

/// Serves until `stop`, then lets open requests end within [`limits::DRAIN_BUDGET`].
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let connections = TaskTracker::new();
    let seats = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    loop {
        let seat = tokio::select! {
            () = stop.cancelled() => break,
            seat = Arc::clone(&seats).acquire_owned() => seat,
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match (accepted, seat) {
            (Ok((stream, peer)), Ok(seat)) => {
                let (router, stop) = (router.clone(), stop.clone());
                connections.spawn(async move {
                    attend(stream, peer, router, stop).await;
                    drop(seat);
                });
            }
            // out of file descriptors, or the peer was gone before we looked: neither ends the service
            (Err(error), _) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            }
            (Ok(_), Err(_)) => break,
        }
    }
    connections.close();
    if tokio::time::timeout(limits::DRAIN_BUDGET, connections.wait()).await.is_err() {
        tracing::warn!(open = connections.len(), "connections were still open when the service ended");
    }
}

async fn attend(stream: TcpStream, peer: SocketAddr, router: Router, stop: CancellationToken) {
    // answers are single small writes: waiting to fill a packet only adds latency
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "nodelay could not be set");
    }
    let service = router.map_request(move |mut request: http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        request.map(axum::body::Body::new)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEADER_WAIT)
        .max_buf_size(limits::CONNECTION_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

//! Keeping the server up: one that was killed is started again by the process that owns it.
//!
//! It owns the wait and the restart, nothing else: the socket is the same as before, so pools connect again by themselves. A process
//! that only joined does not start anything; the owner does.

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Cluster, Error, MAINTENANCE, binaries, server, settled};
use crate::limits::POSTGRES_RESTART_PAUSE;

impl Cluster {
    /// Watches the server until `stop` is cancelled, and starts it again whenever it has ended. Gives the cluster back, to be
    /// stopped. Errors are logged and the start is tried again: without its database the service sells nothing anyway.
    pub async fn keep_running(mut self, stop: CancellationToken) -> Cluster {
        if !self.owns() {
            stop.cancelled().await;
            return self;
        }
        while stop.run_until_cancelled(server::wait_until_ended(&mut self.running)).await.is_some() {
            tracing::error!("PostgreSQL has ended and is started again");
            while !stop.is_cancelled() {
                match self.restart(&stop).await {
                    Ok(()) => {
                        tracing::info!("PostgreSQL is ready again");
                        break;
                    }
                    Err(Error::Cancelled) => break,
                    Err(error) => {
                        tracing::error!(%error, "PostgreSQL could not be started again");
                        stop.run_until_cancelled(sleep(POSTGRES_RESTART_PAUSE)).await;
                    }
                }
            }
        }
        self
    }

    /// Takes a server that somebody else started meanwhile, or starts one.
    async fn restart(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let Self { place, account, options, machine, .. } = &*self;
        let running = match settled(place, account, stop).await? {
            Some(running) => running,
            None => {
                let found = binaries::find(options, machine, place, account, stop).await?;
                let socket = place.socket_folder(account, machine)?;
                server::launch(&found, place, account, socket, options.durable, stop).await?
            }
        };
        // the service's pool may find the server before this does; asking again makes sure that it takes statements
        drop(super::connect(&running, MAINTENANCE).await?);
        self.running = running;
        Ok(())
    }
}

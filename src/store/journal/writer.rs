//! Group commit: transitions of many payments that wait at the same moment are one statement, one round trip and one commit.
//!
//! One task and one connection for each kind of transition. It takes whatever waits, without a timer: alone, a transition is
//! written at once; under load, groups grow by themselves while the one before is being committed. A caller gets its answer
//! only after the commit, so every rule of the journal holds as if it had been written alone. The order counter and the row
//! of this instance are then locked once a group and not held against each other by requests that wait for the disk.
//!
//! A statement that the database refused wrote nothing at all: its group is then written one by one, so that one bad row does
//! not fail strangers. When the connection broke nobody knows what was written, and every caller of the group is told so.

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::limits;
use crate::store::Error;

/// Planner switches of a writer's session. Its statements are lookups by key; a plan that was made while a table was nearly
/// empty must not stay a scan of it when it has grown.
const PLANNER: [(&str, &str); 4] =
    [("enable_seqscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off"), ("jit", "off")];

/// A kind of transition.
pub(super) trait Transition: Clone + Send + Sync + Sized + 'static {
    /// What the caller learns.
    type Outcome: Send + 'static;

    /// Writes a group in one statement; outcomes in the order of the group.
    fn write(
        group: &[Self],
        connection: &mut PgConnection,
    ) -> impl Future<Output = Result<Vec<Self::Outcome>, Error>> + Send;
}

/// Where transitions of one kind are handed in.
#[derive(Debug)]
pub(super) struct Writer<T: Transition>(mpsc::Sender<Message<T>>);

impl<T: Transition> Clone for Writer<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

enum Message<T: Transition> {
    Write(Waiting<T>),
    Close,
}

struct Waiting<T: Transition> {
    transition: T,
    reply: oneshot::Sender<Result<T::Outcome, Error>>,
}

/// The session of a writer, opened when it is needed and opened anew after a failure.
struct Session {
    options: PgConnectOptions,
    open: Option<(PgConnection, Instant)>,
}

impl<T: Transition> Writer<T> {
    /// Starts its task, which ends with the last handle.
    pub(super) fn start(options: &PgConnectOptions) -> Self {
        let (sender, receiver) = mpsc::channel(limits::JOURNAL_QUEUE);
        tokio::spawn(run(Session { options: options.clone().options(PLANNER), open: None }, receiver));
        Self(sender)
    }

    /// Writes one transition, together with those that wait beside it. Once handed in it is written even when the caller is
    /// dropped: what is half done for a buyer who hung up is found by its rows.
    pub(super) async fn write(&self, transition: T) -> Result<T::Outcome, Error> {
        let (reply, outcome) = oneshot::channel();
        let gone = || Error::Statement(sqlx::Error::PoolClosed);
        self.0.send(Message::Write(Waiting { transition, reply })).await.map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }

    /// Closes the session after what waits before; a later transition opens another one.
    pub(super) async fn close(&self) {
        // no task, no session
        let _ = self.0.send(Message::Close).await;
    }
}

async fn run<T: Transition>(mut session: Session, mut receiver: mpsc::Receiver<Message<T>>) {
    let mut messages = Vec::new();
    while receiver.recv_many(&mut messages, limits::JOURNAL_GROUP_MAX).await > 0 {
        let mut close = false;
        let mut group = Vec::with_capacity(messages.len());
        let mut replies = Vec::with_capacity(messages.len());
        for message in messages.drain(..) {
            match message {
                Message::Write(Waiting { transition, reply }) => {
                    group.push(transition);
                    replies.push(reply);
                }
                Message::Close => close = true,
            }
        }
        write_group(&mut session, &group, replies).await;
        if close && let Some((connection, _)) = session.open.take() {
            // the server closes it otherwise
            let _ = connection.close().await;
        }
    }
}

async fn write_group<T: Transition>(
    session: &mut Session,
    group: &[T],
    replies: Vec<oneshot::Sender<Result<T::Outcome, Error>>>,
) {
    if group.is_empty() {
        return;
    }
    // a caller that is gone does not need its answer
    match session.write(group).await {
        Ok(outcomes) => {
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                let _ = reply.send(Ok(outcome));
            }
        }
        Err(error) if group.len() > 1 && wrote_nothing(&error) => {
            tracing::warn!(%error, transitions = group.len(), "a group was refused and is written one by one");
            for (transition, reply) in group.iter().zip(replies) {
                let alone = session.write(std::slice::from_ref(transition)).await;
                let _ = reply.send(alone.and_then(only));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for reply in replies {
                let _ = reply.send(Err(Error::Group(Arc::clone(&error))));
            }
        }
    }
}

/// True when the database answered with an error: the transaction is rolled back. Anything else leaves open what happened.
fn wrote_nothing(error: &Error) -> bool {
    matches!(error, Error::Statement(sqlx::Error::Database(_)))
}

fn only<O>(outcomes: Vec<O>) -> Result<O, Error> {
    outcomes.into_iter().next().ok_or(Error::Statement(sqlx::Error::RowNotFound))
}

impl Session {
    async fn write<T: Transition>(&mut self, group: &[T]) -> Result<Vec<T::Outcome>, Error> {
        let mut connection = self.take().await?;
        let outcomes = T::write(group, &mut connection).await?;
        if outcomes.len() != group.len() {
            return Err(Error::Statement(sqlx::Error::RowNotFound));
        }
        // only a session that has just answered is kept
        self.open = Some((connection, Instant::now()));
        Ok(outcomes)
    }

    /// The open session when it is known or found to live, or a new one.
    async fn take(&mut self) -> Result<PgConnection, Error> {
        let connecting = async {
            if let Some((mut connection, used)) = self.open.take()
                && (used.elapsed() < limits::JOURNAL_SESSION_TRUST || connection.ping().await.is_ok())
            {
                return Ok(connection);
            }
            self.options.connect().await.map_err(Error::Connect)
        };
        timeout(limits::DATABASE_WAIT, connecting).await.unwrap_or(Err(Error::Statement(sqlx::Error::PoolTimedOut)))
    }
}

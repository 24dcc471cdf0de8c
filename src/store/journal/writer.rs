//! Group commit: the transitions of many payments that wait at the same moment are written in one commit.
//!
//! One thread with a runtime and a connection of its own: its next group is not delayed by the requests that are worked on.
//! It takes whatever waits, without a timer: alone, a transition is written at once; under load, groups grow by themselves
//! while the one before is being committed. (Waiting two milliseconds for larger groups was tried: a quarter fewer sales.) A caller gets its answer only after the commit, so every rule of the journal holds
//! as if it had been written alone.
//!
//! A statement that the database refused wrote nothing at all: its group is then written one by one, so that one bad row does
//! not fail strangers. When the connection broke nobody knows what was written, and every caller of the group is told so; likewise
//! when the thread panics in the middle of a group, which ends that group and not the service.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;

use futures_util::FutureExt;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions, Connection, PgConnection, Postgres, Row};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::quick::{Kind, statement};
use super::rows::{Claim, Recorded};
use super::transitions::{ClaimOf, DecisionOf, SettleOf};
use crate::fault;
use crate::limits;
use crate::store::Error;

/// Planner switches of the writer's session. Its statements are lookups by key; a plan that was made while a table was nearly
/// empty must not stay a scan of it when it has grown, and none is to be planned anew for each group.
const PLANNER: [(&str, &str); 5] = [
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
];

/// How often a transition that met another process at a key is written again: the second time it sees what the other wrote.
const TRIES: u32 = 3;

/// A statement with its parameters.
pub(super) type Bound<'q> = Query<'q, Postgres, PgArguments>;

/// A transition.
pub(super) trait Transition: Send + Sync + Sized + 'static {
    /// What the caller learns.
    type Outcome: Send + 'static;
    /// Which one it is.
    const KIND: Kind;

    /// Binds a group as the parameters of its kind.
    fn bind<'q>(group: &[&Self], query: Bound<'q>) -> Bound<'q>;

    /// The outcome of one that the quick statement wrote.
    fn written(&self) -> Self::Outcome;

    /// Writes one that the quick statement left over.
    fn write_slowly(&self, connection: &mut PgConnection) -> impl Future<Output = Result<Self::Outcome, Error>> + Send;
}

/// Where transitions are handed in.
#[derive(Clone, Debug)]
pub(super) struct Writer(mpsc::Sender<Message>);

enum Message {
    Claim(Waiting<ClaimOf>),
    Decide(Waiting<DecisionOf>),
    Record(Waiting<SettleOf>),
    Close(oneshot::Sender<()>),
}

struct Waiting<T: Transition> {
    transition: T,
    reply: oneshot::Sender<Result<T::Outcome, Error>>,
}

/// What is written in one commit.
#[derive(Default)]
struct Group {
    claims: Vec<Waiting<ClaimOf>>,
    decisions: Vec<Waiting<DecisionOf>>,
    records: Vec<Waiting<SettleOf>>,
    closing: Vec<oneshot::Sender<()>>,
}

/// The session of the writer, opened when it is needed and opened anew after a failure.
struct Session {
    options: PgConnectOptions,
    open: Option<(PgConnection, Instant)>,
}

impl Writer {
    /// Starts its thread, which ends with the last handle.
    pub(super) fn start(options: &PgConnectOptions) -> Result<Self, Error> {
        let (sender, receiver) = mpsc::channel(limits::JOURNAL_QUEUE);
        let session = Session { options: options.clone().options(PLANNER), open: None };
        let failed = |error| Error::Statement(sqlx::Error::Io(error));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let spawned =
            thread::Builder::new().name("journal".into()).spawn(move || runtime.block_on(run(session, receiver)));
        spawned.map_err(failed)?;
        Ok(Self(sender))
    }

    /// Writes a claim, together with what waits beside it. Once handed in it is written even when the caller is dropped: what
    /// is half done for a buyer who hung up is found by its rows.
    pub(super) async fn claim(&self, transition: ClaimOf) -> Result<Claim, Error> {
        self.hand_in(transition, Message::Claim).await
    }

    /// Writes a decision, in the same way.
    pub(super) async fn decide(&self, transition: DecisionOf) -> Result<bool, Error> {
        self.hand_in(transition, Message::Decide).await
    }

    /// Writes the end of a settle call, in the same way.
    pub(super) async fn record(&self, transition: SettleOf) -> Result<Recorded, Error> {
        self.hand_in(transition, Message::Record).await
    }

    async fn hand_in<T: Transition>(
        &self,
        transition: T,
        message: fn(Waiting<T>) -> Message,
    ) -> Result<T::Outcome, Error> {
        let (reply, outcome) = oneshot::channel();
        let gone = || Error::Statement(sqlx::Error::PoolClosed);
        self.0.send(message(Waiting { transition, reply })).await.map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }

    /// Closes the session after what waits before; a later transition opens another one.
    pub(super) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.0.send(Message::Close(reply)).await.is_ok() {
            // no answer: the thread is gone, and its session with it
            let _ = closed.await;
        }
    }
}

async fn run(mut session: Session, mut receiver: mpsc::Receiver<Message>) {
    let mut messages = Vec::new();
    let mut left_over = Vec::new();
    loop {
        messages.append(&mut left_over);
        if messages.is_empty() && receiver.recv_many(&mut messages, limits::JOURNAL_GROUP_MAX).await == 0 {
            return;
        }
        let mut group = Group::default();
        left_over = group.fill(messages.drain(..));
        let closing = std::mem::take(&mut group.closing);
        if AssertUnwindSafe(group.commit(&mut session)).catch_unwind().await.is_err() {
            // its callers lost their answer, which they take as an open outcome; whoever comes next must still be written
            tracing::error!("the journal's writer panicked; what it was writing may or may not be stored");
        }
        if !closing.is_empty()
            && let Some((connection, _)) = session.open.take()
        {
            // the server closes it otherwise
            let _ = connection.close().await;
        }
        for reply in closing {
            let _ = reply.send(());
        }
    }
}

impl Group {
    /// Takes what can be written together. Two claims of one authorization, or of one purchase, cannot: the second one is to see
    /// what the first has written, and waits for the next group.
    fn fill(&mut self, messages: impl Iterator<Item = Message>) -> Vec<Message> {
        let (mut keys, mut purchases) = (HashSet::new(), HashSet::new());
        let mut left_over = Vec::new();
        for message in messages {
            match message {
                Message::Claim(waiting) => {
                    let payment = &waiting.transition.payment;
                    let purchase = (payment.payer.clone(), payment.request_fp.clone());
                    if keys.insert(payment.auth_key.clone()) && purchases.insert(purchase) {
                        self.claims.push(waiting);
                    } else {
                        left_over.push(Message::Claim(waiting));
                    }
                }
                Message::Decide(waiting) => self.decisions.push(waiting),
                Message::Record(waiting) => self.records.push(waiting),
                Message::Close(reply) => self.closing.push(reply),
            }
        }
        left_over
    }

    fn len(&self) -> usize {
        self.claims.len() + self.decisions.len() + self.records.len()
    }

    async fn commit(self, session: &mut Session) {
        if self.len() == 0 {
            return;
        }
        fault::point("before-write");
        let written = session.write(&self).await;
        fault::point("after-write");
        match written {
            Ok(written) => {
                let claims = answer(self.claims, &written);
                let decisions = answer(self.decisions, &written);
                let records = answer(self.records, &written);
                one_by_one(claims, session).await;
                one_by_one(decisions, session).await;
                one_by_one(records, session).await;
            }
            Err(error) if wrote_nothing(&error) => {
                if self.len() > 1 {
                    tracing::warn!(%error, transitions = self.len(), "a group was refused and is written one by one");
                }
                one_by_one(self.claims, session).await;
                one_by_one(self.decisions, session).await;
                one_by_one(self.records, session).await;
            }
            Err(error) => {
                let error = Arc::new(error);
                fail(self.claims, &error);
                fail(self.decisions, &error);
                fail(self.records, &error);
            }
        }
    }
}

/// Answers those that were written; the others are given back.
fn answer<T: Transition>(waiting: Vec<Waiting<T>>, written: &[Place]) -> Vec<Waiting<T>> {
    let mut left_over = Vec::new();
    for (at, waiting) in waiting.into_iter().enumerate() {
        if written.contains(&(T::KIND as i16, at)) {
            // a caller that is gone does not need its answer
            let _ = waiting.reply.send(Ok(waiting.transition.written()));
        } else {
            left_over.push(waiting);
        }
    }
    left_over
}

fn fail<T: Transition>(waiting: Vec<Waiting<T>>, error: &Arc<Error>) {
    for waiting in waiting {
        let _ = waiting.reply.send(Err(Error::Group(Arc::clone(error))));
    }
}

async fn one_by_one<T: Transition>(waiting: Vec<Waiting<T>>, session: &mut Session) {
    for Waiting { transition, reply } in waiting {
        let mut tries = 1;
        let outcome = loop {
            match session.write_alone(&transition).await {
                // another process has taken the same key: what it wrote is seen now
                Err(error) if tries < TRIES && met_another(&error) => tries += 1,
                outcome => break outcome,
            }
        };
        let _ = reply.send(outcome);
    }
}

/// True when the database answered with an error of the statement: it is rolled back. Anything else leaves open what happened, and
/// so does the word of a server that shuts down (class 57): it may come after the commit.
fn wrote_nothing(error: &Error) -> bool {
    let Error::Statement(sqlx::Error::Database(database)) = error else { return false };
    !database.code().is_some_and(|code| code.starts_with("57"))
}

/// A key that is taken, a serialization failure, or a deadlock that this one lost.
fn met_another(error: &Error) -> bool {
    let Error::Statement(sqlx::Error::Database(database)) = error else { return false };
    matches!(database.code().as_deref(), Some("23505" | "40001" | "40P01"))
}

/// What a quick statement wrote: the kind, and the place in its group.
type Place = (i16, usize);

impl Session {
    async fn write(&mut self, group: &Group) -> Result<Vec<Place>, Error> {
        let present = [
            (Kind::Claim, group.claims.is_empty()),
            (Kind::Decision, group.decisions.is_empty()),
            (Kind::Record, group.records.is_empty()),
        ];
        let kinds: Vec<Kind> = present.into_iter().filter(|(_, empty)| !empty).map(|(kind, _)| kind).collect();
        let tells = group.decisions.iter().any(|waiting| waiting.transition.intent.is_none());
        let mut query = sqlx::query(statement(&kinds, tells));
        query = bind(&group.claims, query);
        query = bind(&group.decisions, query);
        query = bind(&group.records, query);
        self.run(query).await
    }

    async fn write_alone<T: Transition>(&mut self, transition: &T) -> Result<T::Outcome, Error> {
        let query = T::bind(&[transition], sqlx::query(statement(&[T::KIND], true)));
        if !self.run(query).await?.is_empty() {
            return Ok(transition.written());
        }
        let mut connection = self.take().await?;
        let outcome = transition.write_slowly(&mut connection).await?;
        self.open = Some((connection, Instant::now()));
        Ok(outcome)
    }

    /// One statement is a transaction of its own.
    async fn run(&mut self, query: Bound<'_>) -> Result<Vec<Place>, Error> {
        let mut connection = self.take().await?;
        let rows = query.fetch_all(&mut connection).await?;
        // only a session that has just answered is kept
        self.open = Some((connection, Instant::now()));
        let place = |row: &PgRow| {
            let at: i64 = row.try_get(1)?;
            Ok((row.try_get(0)?, usize::try_from(at - 1).unwrap_or(usize::MAX)))
        };
        rows.iter().map(place).collect()
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

fn bind<'q, T: Transition>(waiting: &[Waiting<T>], query: Bound<'q>) -> Bound<'q> {
    if waiting.is_empty() {
        return query;
    }
    let group: Vec<&T> = waiting.iter().map(|waiting| &waiting.transition).collect();
    T::bind(&group, query)
}

//! Runs one program: a process on a runtime of its own that can be torn down, and a buyer who keeps a history.

use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use jim::evm::{SecretKey, parse_address};
use jim::x402::{OutgoingPayment, PeerOffer, Version};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::check;
use super::{AUTHS, Program, Step};
use crate::support::buyer::{Buyer, next_nonce};
use crate::support::service::{MEMO, Service, World};
use crate::support::world::{FakeWorld, Fate, ReadWorld};

/// Who is paid.
pub(super) const PAY_TO: &str = "0x00000000000000000000000000000000000000aa";

/// Longer than windows, margins and the time in which a second authorization is free.
const JUMP_S: i64 = 400;

/// Repeats after which a buyer who still does not know is a failure.
const REPEATS: u32 = 12;

static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).pool_max_idle_per_host(0);
    builder.local_address(Some(Ipv4Addr::LOCALHOST.into())).build().expect("a client")
});

/// One answer, as the buyer got it.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) auth: usize,
    pub(super) sent: Instant,
    pub(super) received: Instant,
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// What is left when a program is over.
pub(super) struct Scene {
    pub(super) world: Arc<FakeWorld>,
    pub(super) pool: PgPool,
    pub(super) rpc: bool,
    pub(super) price: u128,
    pub(super) payments: Vec<Option<OutgoingPayment>>,
    pub(super) history: Vec<Heard>,
    /// Jumps of the clock: after each the purchase may be bought again.
    pub(super) jumps: usize,
}

/// A running process.
struct Process {
    service: Service,
    runtime: Runtime,
}

struct Stage {
    world: Arc<FakeWorld>,
    process: Option<Process>,
    pool: PgPool,
    key: SecretKey,
    terms: PeerOffer,
    payments: Vec<Option<OutgoingPayment>>,
    history: Arc<Mutex<Vec<Heard>>>,
    running: Vec<JoinHandle<()>>,
    jumps: usize,
}

impl Process {
    async fn start(world: World) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let starting = tokio::task::spawn_blocking(move || (runtime.block_on(world.open()), runtime));
        let (service, runtime) = starting.await.expect("no panic");
        assert!(service.app.wait_until_supported(Duration::from_secs(20)).await, "the facilitator is not seen");
        Self { service, runtime }
    }

    /// Every task ends where it waits; what was handed to the database is written or not.
    fn kill(self) -> World {
        let Self { service: Service { app, world }, runtime } = self;
        runtime.shutdown_background();
        drop(app);
        world
    }
}

/// Runs a program. `Err` says what does not agree.
pub(super) fn run(program: &Program) -> Result<(), String> {
    let here = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    here.block_on(async {
        let mut stage = Stage::set(program).await;
        for step in &program.steps {
            stage.take(*step).await;
        }
        let ended = stage.end(program).await;
        // the database goes with the process, so that comes last
        let scene = Scene {
            world: Arc::clone(&stage.world),
            pool: stage.pool.clone(),
            rpc: program.rpc,
            price: stage.terms.amount.0,
            payments: stage.payments.clone(),
            history: stage.history.lock().expect("no panic").clone(),
            jumps: stage.jumps,
        };
        let checked = if ended.is_ok() { check::check(&scene).await } else { ended };
        let failed = match checked {
            Ok(()) => Ok(()),
            Err(what) => Err(format!("{what}\n{}", check::tell(&scene).await)),
        };
        scene.pool.close().await;
        if let Some(process) = stage.process.take() {
            let world = process.kill();
            drop(world);
        }
        failed
    })
}

impl Stage {
    async fn set(program: &Program) -> Self {
        let world = FakeWorld::new(&program.answers, &program.looks, 50_000 * program.purse);
        let pay_to = parse_address(PAY_TO).expect("an address");
        let (facilitator, clock) = (Arc::clone(&world), Arc::clone(&world.clock));
        let chain = program.rpc.then(|| Arc::new(ReadWorld { world: Arc::clone(&world), pay_to }));
        let seat = World::prepare(|settings, parts| {
            settings.payments.pay_to = Some(pay_to);
            parts.facilitator = Some(facilitator);
            parts.clock = Some(clock);
            parts.chain = chain.map(|chain| chain as _);
        })
        .await;
        own_the_clock(&seat.database.pool, &seat.database.name).await;
        let options = seat.database.options.clone();
        seat.database.pool.close().await;
        let pool = PgPoolOptions::new().max_connections(2).connect_with(options).await.expect("a pool");
        let process = Process::start(seat).await;
        let terms = Buyer::new(&process.service, 1).terms(Version::V2).await;
        Self {
            world,
            process: Some(process),
            pool,
            key: SecretKey::from_bytes([1; 32]).expect("a test key"),
            terms,
            payments: vec![None; AUTHS],
            history: Arc::default(),
            running: Vec::new(),
            jumps: 0,
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Send(auth) => self.send(auth),
            Step::HangUp => {
                self.running.retain(|one| !one.is_finished());
                if !self.running.is_empty() {
                    self.running.remove(0).abort();
                }
            }
            Step::Kill => self.restart().await,
            Step::KillAtCall(n) => self.world.hold_call(n),
            Step::Wait(ms) => self.wait(Duration::from_millis(ms)).await,
            Step::Finish => {
                for mut one in std::mem::take(&mut self.running) {
                    let held = async {
                        self.world.held.notified().await;
                    };
                    let is_held = tokio::select! {
                        _ = &mut one => false,
                        () = held => true,
                    };
                    if is_held {
                        self.restart().await;
                    }
                }
            }
            Step::ThirdParty(auth) => self.use_up(auth, Fate::Moved { by_us: false, value: self.price() }),
            Step::SpendOtherwise(auth) => self.use_up(auth, Fate::Moved { by_us: false, value: self.price() - 1 }),
            Step::Cancel(auth) => self.use_up(auth, Fate::Cancelled),
            Step::Pass => self.pass_time().await,
            Step::Mine => self.world.settle_pending(true, self.price()),
            Step::Forget => self.world.settle_pending(false, 0),
        }
    }

    fn price(&self) -> u128 {
        self.terms.amount.0
    }

    /// The nonce of one that was signed; nobody can use another.
    fn use_up(&self, auth: usize, fate: Fate) {
        if let Some(payment) = &self.payments[auth] {
            self.world.use_up(payment.authorization.nonce(), fate);
        }
    }

    /// Sends in the background, and keeps what comes back.
    fn send(&mut self, auth: usize) {
        let now_s = jim::clock::Clock::unix_s(self.world.clock.as_ref());
        let payment = self.payments[auth]
            .get_or_insert_with(|| jim::x402::pay(&self.terms, &self.key, next_nonce(), now_s))
            .clone();
        let url = self.process.as_ref().expect("a process").service.url(MEMO);
        let history = Arc::clone(&self.history);
        self.running.push(tokio::spawn(async move {
            let sent = Instant::now();
            let request = CLIENT.get(url).header(payment.version.payment_header(), &payment.header_value);
            let Ok(response) = request.send().await else { return };
            let status = response.status().as_u16();
            let Ok(body) = response.bytes().await else { return };
            let heard = Heard { auth, sent, received: Instant::now(), status, body: body.to_vec() };
            history.lock().expect("no panic").push(heard);
        }));
    }

    /// Time goes by; a process that was to die at a call dies when it gets there.
    async fn wait(&mut self, pause: Duration) {
        let is_held = tokio::select! {
            () = tokio::time::sleep(pause) => false,
            () = self.world.held.notified() => true,
        };
        if is_held {
            self.restart().await;
        }
    }

    /// The process dies, its leases end, another one starts.
    async fn restart(&mut self) {
        let seat = self.process.take().expect("a process").kill();
        for one in self.running.drain(..) {
            // the connection broke
            one.abort();
        }
        self.world.hold_call(0);
        sqlx::query("update instances set beat_at = '-infinity'").execute(&self.pool).await.expect("dead");
        self.process = Some(Process::start(seat).await);
    }

    async fn pass_time(&mut self) {
        let ahead = self.world.clock.advance(JUMP_S);
        sqlx::query("update test_clock set ahead_s = $1").bind(ahead).execute(&self.pool).await.expect("a clock");
        self.jumps += 1;
    }

    /// The process dies once more; then the chain says its last word, and the buyer repeats each authorization until he knows.
    async fn end(&mut self, program: &Program) -> Result<(), String> {
        self.world.calm();
        self.restart().await;
        self.world.settle_pending(program.mined, self.price());
        if program.late {
            self.pass_time().await;
        }
        let mut open: Vec<usize> = (0..AUTHS).filter(|auth| self.payments[*auth].is_some()).collect();
        // in turns: without a chain to read, one may have to wait for what only a repeat of another one finds out
        for _ in 0..REPEATS {
            let mut left = Vec::new();
            for auth in std::mem::take(&mut open) {
                if !self.repeat(auth).await? {
                    left.push(auth);
                }
            }
            open = left;
        }
        if !open.is_empty() {
            return Err(format!("authorizations {open:?} are never answered"));
        }
        if program.rpc {
            check::look_at_all(&self.pool, &self.world).await;
        }
        Ok(())
    }

    /// True when the answer is one that stays.
    async fn repeat(&mut self, auth: usize) -> Result<bool, String> {
        self.send(auth);
        let sent = self.running.pop().expect("it was sent");
        sent.await.expect("no panic");
        let heard = self.history.lock().expect("no panic").last().cloned();
        let Some(heard) = heard.filter(|heard| heard.auth == auth) else {
            return Err(format!("no answer for authorization {auth}"));
        };
        let nonce = self.payments[auth].as_ref().expect("signed").authorization.nonce();
        let definite = check::is_definite(&self.pool, nonce, &heard).await;
        if !definite {
            self.world.settle_pending(true, self.price());
        }
        Ok(definite)
    }
}

/// Puts the database's clock under the test's hand: a `now()` that is found before the built-in one, in statements and defaults.
async fn own_the_clock(pool: &PgPool, database: &str) {
    let script = format!(
        "create table test_clock (ahead_s bigint not null); insert into test_clock values (0);
         create function public.now() returns timestamptz language sql stable as
         $f$ select pg_catalog.now() + make_interval(secs => (select ahead_s from public.test_clock)) $f$;
         alter database {database} set search_path = public, pg_catalog;
         do $f$ declare c record; begin
         for c in select table_name, column_name, column_default from information_schema.columns
             where table_schema = 'public' and column_default = 'now()' loop
             execute format('alter table %I alter column %I set default public.now()', c.table_name, c.column_name);
         end loop; end $f$;"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(script)).execute(pool).await.expect("a clock");
}

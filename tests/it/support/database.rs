//! A migrated database for each test, all in one cluster that is shared by every test process and thread.
//!
//! The cluster lives in the build folder. Whoever comes first starts it, the others adopt or join it. A watchdog stops
//! it: this same test binary, started once more with `watchdog` as its only test. It waits until the run is over
//! (the test process, or under nextest the runner) and until no test process holds `users.lock` any more, so a run
//! that is killed is cleaned up after as well.
//!
//! Order of the locks, for both sides: `users.lock` before `watchdog.lock`. A test process that arrives while a
//! watchdog stops the cluster waits at `users.lock`, and then finds the watchdog gone and starts another.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use jim::postgres::{Cluster, Options};
use rustix::process::{Pid, test_kill_process};
use sha2::{Digest, Sha256};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

/// Tells the watchdog which process to wait for.
const WATCHED: &str = "IT_WATCHDOG_FOR";

/// Held by the process that makes the template or clears up.
const TEMPLATE_LOCK: i64 = 0x6a69_6d00;

static SHARED: OnceCell<Shared> = OnceCell::const_new();
static NEXT: AtomicU32 = AtomicU32::new(0);

struct Shared {
    cluster: Cluster,
    template: String,
    /// Held, shared, until the process ends.
    _users: File,
    /// Outlives this process; never waited for.
    _watchdog: Option<Child>,
}

/// A database that only one test uses. It is dropped, open connections and all, with this value.
pub(crate) struct TestDatabase {
    pub(crate) pool: PgPool,
    pub(crate) options: PgConnectOptions,
    pub(crate) name: String,
}

/// A new database with all migrations applied.
pub(crate) async fn fresh_database() -> TestDatabase {
    let shared = SHARED.get_or_init(Shared::begin).await;
    let name = format!("t_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut admin = connect(&shared.cluster, "postgres").await;
    execute(&mut admin, format!("create database {name} template {}", shared.template)).await;
    let options = shared.cluster.connect_options(&name);
    let pool = PgPoolOptions::new().max_connections(8).connect_with(options.clone()).await.expect("a pool");
    TestDatabase { pool, options, name }
}

impl TestDatabase {
    /// Another database with the same rows. Nobody may be connected to this one but its own pool, which is closed.
    pub(crate) async fn copy(&self) -> TestDatabase {
        self.pool.close().await;
        let shared = SHARED.get_or_init(Shared::begin).await;
        let name = format!("t_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut admin = connect(&shared.cluster, "postgres").await;
        execute(&mut admin, format!("create database {name} template {}", self.name)).await;
        let options = shared.cluster.connect_options(&name);
        let pool = PgPoolOptions::new().max_connections(8).connect_with(options.clone()).await.expect("a pool");
        TestDatabase { pool, options, name }
    }

    /// A connection of its own, for statements that change the session.
    pub(crate) async fn session(&self) -> PgConnection {
        self.options.connect().await.expect("a connection")
    }

    /// The database as a `postgres://` address, for code that takes one.
    pub(crate) fn url(&self) -> String {
        let socket = self.options.get_socket().expect("a cluster on a socket").display();
        format!("postgres://{}@localhost/{}?host={socket}", self.options.get_username(), self.name)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let admin = self.options.clone().database("postgres");
        let statement = format!("drop database if exists {} with (force)", self.name);
        // a thread and a runtime of its own: the test's runtime cannot be waited for from here
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut admin = admin.connect().await.expect("a connection");
                execute(&mut admin, statement).await;
            });
        });
        if dropping.join().is_err() {
            eprintln!("could not drop {}", self.name);
        }
    }
}

impl Shared {
    async fn begin() -> Shared {
        let users = tokio::task::spawn_blocking(|| {
            let users = open(&folder().join("users.lock"));
            users.lock_shared().expect("a shared lock");
            let watchdog = start_watchdog();
            (users, watchdog)
        });
        let (users, watchdog) = users.await.expect("no panic");
        let cluster = Cluster::start(options(), CancellationToken::new()).await.expect("the test cluster starts");
        let mut admin = connect(&cluster, "postgres").await;
        sqlx::query("select pg_advisory_lock($1)").bind(TEMPLATE_LOCK).execute(&mut admin).await.expect("a lock");
        let template = make_template(&cluster, &mut admin).await;
        drop_leftovers(&mut admin, &template).await;
        admin.close().await.expect("an orderly goodbye gives the advisory lock back");
        Shared { cluster, template, _users: users, _watchdog: watchdog }
    }
}

/// The template is named by the migrations' checksums, and gets its name when it is complete.
async fn make_template(cluster: &Cluster, admin: &mut PgConnection) -> String {
    // read at run time: the macro would not notice a new file
    let migrator =
        Migrator::new(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations"))).await.expect("readable");
    let mut hash = Sha256::new();
    for migration in migrator.iter() {
        hash.update(migration.version.to_be_bytes());
        hash.update(&migration.checksum);
    }
    let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let template = format!("template_{hash}");
    if !databases(admin).await.contains(&template) {
        execute(admin, "drop database if exists unfinished with (force)".to_owned()).await;
        execute(admin, "create database unfinished template template0".to_owned()).await;
        let mut connection = connect(cluster, "unfinished").await;
        migrator.run(&mut connection).await.expect("the migrations run");
        connection.close().await.expect("closed");
        execute(admin, format!("alter database unfinished rename to {template}")).await;
    }
    template
}

/// Drops the databases of test processes that are gone, and the templates of other sets of migrations.
async fn drop_leftovers(admin: &mut PgConnection, template: &str) {
    for name in databases(admin).await {
        let owner = name.strip_prefix("t_").and_then(|rest| rest.split('_').next()?.parse().ok());
        let dead = owner.is_some_and(|pid| !is_alive(pid));
        let old = name.strip_prefix("template_").is_some_and(|hash| hash.len() == 16) && name != template;
        if dead || old {
            // a run from another checkout may be making or using it; the next run tries again
            let _ = sqlx::query(AssertSqlSafe(format!("drop database if exists {name}"))).execute(&mut *admin).await;
        }
    }
}

async fn databases(admin: &mut PgConnection) -> Vec<String> {
    sqlx::query_scalar("select datname::text from pg_database").fetch_all(admin).await.expect("a list")
}

async fn connect(cluster: &Cluster, database: &str) -> PgConnection {
    cluster.connect_options(database).connect().await.expect("a connection")
}

/// For statements that name a database, which cannot be bound. All names are made here.
async fn execute(connection: &mut PgConnection, statement: String) {
    sqlx::query(AssertSqlSafe(statement)).execute(connection).await.expect("the statement runs");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres-test")
}

fn options() -> Options {
    Options { data_dir: folder(), postgres_bin: None, allow_download: true, durable: false }
}

fn open(path: &Path) -> File {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    File::options().create(true).truncate(false).write(true).open(path).expect("a lock file")
}

fn is_alive(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
}

/// The process whose end is the end of the run: nextest starts one process per test, so there it is the runner.
fn run_pid() -> u32 {
    match std::env::var_os("NEXTEST") {
        Some(_) => std::os::unix::process::parent_id(),
        None => std::process::id(),
    }
}

/// Starts a watchdog unless there is one. Two may start at once; the later one finds the lock taken and ends.
fn start_watchdog() -> Option<Child> {
    if open(&folder().join("watchdog.lock")).try_lock().is_err() {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", "support::database::watchdog", "--ignored"]);
    command.env(WATCHED, run_pid().to_string());
    // a group of its own: whoever kills the tests by group or by Ctrl-C must not kill it
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    Some(command.spawn().expect("the watchdog starts"))
}

#[tokio::test]
#[ignore = "started by the tests themselves, as a process that stops the shared cluster"]
async fn watchdog() {
    let Some(watched) = std::env::var(WATCHED).ok().and_then(|pid| pid.parse().ok()) else { return };
    let watching = open(&folder().join("watchdog.lock"));
    if watching.try_lock().is_err() {
        return;
    }
    while is_alive(watched) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let users = open(&folder().join("users.lock"));
    users.lock().expect("the lock, when the last test process is gone");
    // if it is not live this starts it only to stop it, which is rare and costs little
    let cluster = Cluster::start(options(), CancellationToken::new()).await.expect("adopted");
    cluster.stop().await.expect("stopped");
    drop(watching);
    drop(users);
}

#[tokio::test]
async fn each_test_has_a_database_of_its_own() {
    let (one, two) = (fresh_database().await, fresh_database().await);
    sqlx::query("create table mine (x int)").execute(&one.pool).await.expect("a table");
    let seen: Option<String> =
        sqlx::query_scalar("select to_regclass('mine')::text").fetch_one(&two.pool).await.expect("an answer");
    assert_eq!(seen, None);
    let by_url: String = {
        let mut connection = PgConnection::connect(&one.url()).await.expect("the address works");
        sqlx::query_scalar("select current_database()::text").fetch_one(&mut connection).await.expect("a name")
    };
    assert_eq!(by_url, one.name);
}

#[tokio::test]
async fn a_database_is_dropped_with_its_value() {
    let keep = fresh_database().await;
    let gone = fresh_database().await;
    let name = gone.name.clone();
    let held = gone.pool.acquire().await.expect("a connection that is still open");
    drop(gone);
    let left: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(&name)
        .fetch_one(&keep.pool)
        .await
        .expect("an answer");
    assert!(!left);
    drop(held);
}

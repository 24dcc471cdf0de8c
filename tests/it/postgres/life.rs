//! Starting, stopping, adopting and joining.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::{Duration, Instant},
};

use jim::postgres::{Error, Origin, Source};
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process, test_kill_process};
use tokio_util::sync::CancellationToken;

use super::{Bench, connect, is_root, marks, postmaster, set_mode, show, spawn_service, wait_until, write_mark};

#[tokio::test]
async fn a_fresh_folder_gives_a_private_cluster_that_stops() {
    let mut bench = Bench::new();
    bench.options.durable = true;
    let begun = Instant::now();
    let cluster = bench.started().await;
    eprintln!("measured: fresh folder, durable, to serving in {:?}", begun.elapsed());
    let about = cluster.describe().clone();
    assert!(cluster.owns());
    assert_eq!((about.origin, about.source), (Origin::Started, Source::Found));
    assert!(about.binaries.as_ref().is_some_and(|folder| folder.join("postgres").is_file()), "{about:?}");

    let mut connection = connect(&cluster).await;
    for (setting, wanted) in [
        ("listen_addresses", ""),
        ("server_encoding", "UTF8"),
        ("lc_collate", "C"),
        ("data_checksums", "on"),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("shared_buffers", "128MB"),
        ("max_connections", "100"),
        ("TimeZone", "UTC"),
    ] {
        // the collation is no setting any more from 16 on
        if setting != "lc_collate" || about.version.starts_with("15.") {
            assert_eq!(show(&mut connection, setting).await, wanted, "{setting}");
        }
    }
    let hba = fs::read_to_string(about.data_dir.join("pg_hba.conf")).expect("readable");
    assert!(hba.lines().any(|line| line.starts_with("local") && line.ends_with("trust")), "{hba}");
    drop(connection);

    let pid = postmaster(&about.data_dir).expect("a server");
    assert_eq!(fs::metadata(&about.socket_dir).expect("it is there").permissions().mode() & 0o777, 0o700);
    assert_no_tcp_listener(pid);
    assert_ne!(getpgid(Some(pid)).expect("a group"), getpgrp(), "Ctrl-C would reach it");
    let owner = fs::metadata(format!("/proc/{}", pid.as_raw_nonzero())).map(|data| data.uid());
    assert_ne!(owner.unwrap_or(1), 0, "the server must not run as root");

    let begun = Instant::now();
    cluster.stop().await.expect("stopped");
    eprintln!("measured: stopped in {:?}", begun.elapsed());
    assert_eq!(bench.processes(), Vec::<String>::new());
    assert!(!about.data_dir.join("postmaster.pid").exists());
    assert!(!about.socket_dir.exists(), "the socket folder is removed");
    let log = fs::read_to_string(bench.options.data_dir.join("postgres.log")).expect("a log");
    assert!(log.contains("database system is shut down") && log.contains("fast shutdown"), "{log}");
}

#[tokio::test]
async fn a_restart_finds_the_data() {
    let bench = Bench::new();
    let cluster = bench.started().await;
    write_mark(&cluster, 1).await;
    let mut connection = connect(&cluster).await;
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(show(&mut connection, setting).await, "off", "the test profile");
    }
    drop(connection);
    cluster.stop().await.expect("stopped");
    let begun = Instant::now();
    let cluster = bench.started().await;
    eprintln!("measured: existing folder to serving in {:?}", begun.elapsed());
    assert_eq!(cluster.describe().origin, Origin::Started);
    assert_eq!(marks(&cluster).await, [1]);
    cluster.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_cluster_that_outlived_its_service_is_adopted_and_then_stopped() {
    let bench = Bench::new();
    let mut service = spawn_service(&bench);
    let pid = postmaster(&bench.cluster_folder()).expect("a server");
    service.kill().expect("SIGKILL");
    service.wait().expect("gone");
    test_kill_process(pid).expect("the server outlives its service");

    let begun = Instant::now();
    let cluster = bench.started().await;
    eprintln!("measured: adopted in {:?}", begun.elapsed());
    assert_eq!(cluster.describe().origin, Origin::Adopted);
    assert!(cluster.owns());
    assert_eq!(postmaster(&bench.cluster_folder()), Some(pid), "the same server");
    write_mark(&cluster, 7).await;
    cluster.stop().await.expect("stopped");
    assert_eq!(postmaster(&bench.cluster_folder()), None);
    wait_until("the adopted server is gone", || bench.processes().is_empty());
}

#[tokio::test]
async fn a_killed_postmaster_is_replaced_without_loss() {
    let mut bench = Bench::new();
    bench.options.durable = true;
    let cluster = bench.started().await;
    write_mark(&cluster, 1).await;
    // an open session: its process notices the postmaster's end a little later
    let session = connect(&cluster).await;
    let pid = postmaster(&bench.cluster_folder()).expect("a server");
    kill_process(pid, Signal::KILL).expect("SIGKILL");
    drop(cluster);
    let begun = Instant::now();
    let cluster = bench.started().await;
    eprintln!("measured: after a kill of the postmaster serving in {:?}", begun.elapsed());
    assert_ne!(postmaster(&bench.cluster_folder()), Some(pid));
    assert_eq!(marks(&cluster).await, [1]);
    drop(session);
    cluster.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_second_process_only_connects() {
    let bench = Bench::new();
    let owner = bench.started().await;
    let guest = bench.started().await;
    assert_eq!((guest.owns(), guest.describe().origin), (false, Origin::Joined));
    write_mark(&guest, 3).await;
    guest.stop().await.expect("nothing to do");
    assert_eq!(marks(&owner).await, [3], "the guest's stop left the server alone");
    owner.stop().await.expect("stopped");
    assert_eq!(bench.processes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_first_starts_at_once_make_one_cluster() {
    let bench = Bench::new();
    let (one, two) = tokio::join!(bench.started(), bench.started());
    assert!(one.owns() ^ two.owns(), "exactly one owner");
    write_mark(&one, 5).await;
    assert_eq!(marks(&two).await, [5], "the same cluster");
    let (owner, guest) = if one.owns() { (one, two) } else { (two, one) };
    guest.stop().await.expect("nothing to do");
    owner.stop().await.expect("stopped");
}

#[tokio::test]
async fn what_an_interrupted_initdb_left_is_cleared_away() {
    let bench = Bench::new();
    let left = bench.options.data_dir.join("postgres.new-999999");
    fs::create_dir_all(left.join("base")).expect("a folder");
    fs::write(left.join("PG_VERSION"), "15\n").expect("a file");
    set_mode(&bench.options.data_dir, 0o755);
    let cluster = bench.started().await;
    write_mark(&cluster, 1).await;
    assert!(!left.exists());
    cluster.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_data_path_longer_than_a_socket_path_works() {
    let mut bench = Bench::new();
    bench.options.data_dir = bench.temp.path().join("d".repeat(100)).join("e".repeat(100));
    let cluster = bench.started().await;
    assert!(cluster.describe().data_dir.as_os_str().len() > 200);
    write_mark(&cluster, 1).await;
    cluster.stop().await.expect("stopped");
}

#[tokio::test]
async fn root_with_a_closed_folder_on_the_way_keeps_the_cluster_elsewhere() {
    if !is_root() {
        eprintln!("skipped: only root runs the server as another user");
        return;
    }
    let mut bench = Bench::new();
    let home = bench.temp.path().join("home");
    fs::create_dir(&home).expect("a folder");
    set_mode(&home, 0o700);
    bench.options.data_dir = home.join("checkout/data");
    for round in 1..=2 {
        let cluster = bench.started().await;
        let data_dir = cluster.describe().data_dir.clone();
        assert!(data_dir.starts_with(&bench.machine.system_data), "{}", data_dir.display());
        assert!(!bench.options.data_dir.exists());
        write_mark(&cluster, round).await;
        assert_eq!(marks(&cluster).await.len(), usize::try_from(round).expect("small"), "the same place every time");
        cluster.stop().await.expect("stopped");
    }
}

#[tokio::test]
async fn a_start_cancelled_during_initdb_leaves_nothing() {
    let mut cancelled = 0;
    for delay_ms in [0, 5, 50, 150, 400] {
        let bench = Bench::new();
        let cancel = CancellationToken::new();
        let (outcome, ()) = tokio::join!(bench.start_with(cancel.clone()), async {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            cancel.cancel();
        });
        match outcome {
            // a fast machine was done already
            Ok(cluster) => cluster.stop().await.expect("stopped"),
            Err(Error::Cancelled) => {
                cancelled += 1;
                assert_eq!(bench.processes(), Vec::<String>::new(), "after {delay_ms} ms");
                let entries = bench.entries();
                let unfinished = entries.iter().any(|name| name.starts_with("postgres.new"));
                assert!(!unfinished, "after {delay_ms} ms: {entries:?}");
                // the folder goes too, unless initdb was done
                assert_eq!(bench.options.data_dir.exists(), bench.cluster_folder().exists(), "after {delay_ms} ms");
            }
            Err(error) => panic!("after {delay_ms} ms: {error}"),
        }
        if delay_ms == 150 {
            let cluster = bench.started().await;
            write_mark(&cluster, 1).await;
            cluster.stop().await.expect("stopped");
        }
    }
    assert!(cancelled >= 3, "the delays must fall into the start");
}

#[tokio::test]
async fn a_start_cancelled_after_initdb_leaves_a_whole_cluster_and_no_process() {
    for extra_ms in [0, 30] {
        let bench = Bench::new();
        let cancel = CancellationToken::new();
        let (outcome, ()) = tokio::join!(bench.start_with(cancel.clone()), async {
            while !bench.cluster_folder().exists() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_millis(extra_ms)).await;
            cancel.cancel();
        });
        match outcome {
            Ok(cluster) => {
                assert_ne!(extra_ms, 0, "the server cannot have been ready so soon");
                cluster.stop().await.expect("stopped");
            }
            Err(Error::Cancelled) => assert_eq!(bench.processes(), Vec::<String>::new(), "after {extra_ms} ms"),
            Err(error) => panic!("after {extra_ms} ms: {error}"),
        }
        let cluster = bench.started().await;
        write_mark(&cluster, 1).await;
        cluster.stop().await.expect("stopped");
    }
}

/// Compares the sockets that the process holds with the kernel's tables of TCP sockets.
fn assert_no_tcp_listener(pid: Pid) {
    let folder = format!("/proc/{}/fd", pid.as_raw_nonzero());
    if !Path::new(&folder).exists() {
        eprintln!("skipped: this system has no /proc");
        return;
    }
    let mut tcp = String::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        tcp.push_str(&fs::read_to_string(table).unwrap_or_default());
    }
    for entry in fs::read_dir(folder).expect("the server's files").flatten() {
        let target = fs::read_link(entry.path()).unwrap_or_default().to_string_lossy().into_owned();
        if let Some(inode) = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
            assert!(!tcp.contains(&format!(" {inode} ")), "the server has a TCP socket");
        }
    }
}

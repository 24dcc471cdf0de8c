//! Fault points: places where a test lets the process die. Without the feature `fault-points` each is nothing at all.
//!
//! A point is named after what comes next to it: `before-…` and `after-…` a state write or an outside call. The variable
//! `JIM_TEST_FAULT` names one as `point=kill` (as `kill -9` does, nothing is cleaned up) or `point=panic`, with `point=kill@3` for the
//! third time that it is reached. `JIM_TEST_FAULT_LOG` names a file to which each reached point is appended: the walk over
//! all of them takes its list from there.

/// Dies here when a test asked for it.
#[cfg(not(feature = "fault-points"))]
#[inline]
pub fn point(_name: &'static str) {}

#[cfg(feature = "fault-points")]
pub use armed::point;

#[cfg(feature = "fault-points")]
mod armed {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Debug)]
    struct Fault {
        point: String,
        kill: bool,
        at: u32,
        reached: AtomicU32,
    }

    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();

    /// Dies here when a test asked for it.
    pub fn point(name: &'static str) {
        note(name);
        let Some(fault) = FAULT.get_or_init(asked) else { return };
        if fault.point != name || fault.reached.fetch_add(1, Ordering::SeqCst) + 1 != fault.at {
            return;
        }
        if fault.kill {
            // no destructor, no flush, no answer: what a power cut leaves
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            loop {
                std::thread::park();
            }
        }
        panic!("fault point {name}");
    }

    fn asked() -> Option<Fault> {
        let text = std::env::var("JIM_TEST_FAULT").ok()?;
        let (point, action) = text.split_once('=')?;
        let (action, at) = action.split_once('@').map_or((action, 1), |(action, n)| (action, n.parse().unwrap_or(1)));
        Some(Fault { point: point.to_owned(), kill: action == "kill", at, reached: AtomicU32::new(0) })
    }

    fn note(name: &str) {
        let Ok(path) = std::env::var("JIM_TEST_FAULT_LOG") else { return };
        if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
            let _ = writeln!(file, "{name}");
        }
    }
}

//! Calls that the code that ships must not make, or may make in one place only.

use super::layers::layer;
use super::tree::{File, find_word, line_of};

/// One ban: what is written, where it may stand all the same (a file, or a module with its folder), and why not elsewhere.
struct Ban {
    written: &'static [&'static str],
    allowed: &'static [&'static str],
    reason: &'static str,
}

/// Bans for all of `src/`.
const EVERYWHERE: [Ban; 8] = [
    Ban {
        written: &["SystemTime::now", "OffsetDateTime::now_utc", "UtcDateTime::now"],
        allowed: &["clock"],
        reason: "time is handed in through `Clock`, so that windows can be tested",
    },
    Ban {
        written: &["env::var", "env::var_os", "env::vars", "env::vars_os"],
        // postgres: `PATH` is searched for the server's programs; fault: read only in the package's own tests
        allowed: &["config", "cli", "fault", "postgres"],
        reason: "settings come from `config`, where an unknown name stops the start",
    },
    Ban {
        written: &["println!", "eprintln!", "print!", "eprint!"],
        allowed: &["cli", "main"],
        reason: "only a command talks to the terminal; everything else logs",
    },
    Ban { written: &[".unwrap()"], allowed: &[], reason: "say what holds with `expect`, or return an error" },
    Ban { written: &["todo!", "unimplemented!", "dbg!"], allowed: &[], reason: "nothing unfinished is merged" },
    Ban {
        written: &["#[allow(", "#![allow("],
        allowed: &[],
        reason: "`expect` with a reason goes away when it is not needed",
    },
    Ban {
        written: &["sqlx::query", "sqlx::query_as", "sqlx::query_scalar", "sqlx::raw_sql"],
        allowed: &["store", "postgres"],
        reason: "all SQL is in one place, so that writes of money can be audited",
    },
    Ban {
        written: &["process::exit"],
        allowed: &["main"],
        reason: "an exit in the middle skips the order of shutdown",
    },
];

/// Bans for the pure layers.
const PURE: Ban = Ban {
    written: &["async", "tokio", "sqlx", "reqwest", "axum", "std::fs", "std::net", "std::process", "tracing"],
    allowed: &[],
    reason: "vocabulary and domain are pure",
};

/// Bans for adapters and application.
const NO_HTTP_SERVER: Ban = Ban { written: &["axum"], allowed: &[], reason: "only the faces know HTTP server types" };

/// Bans for money.
const NO_FLOATS: Ban = Ban { written: &["f32", "f64"], allowed: &[], reason: "money is integers" };

/// Every banned call in the code of one file.
pub(crate) fn banned(file: &File) -> Vec<String> {
    let Some(module) = file.module() else { return Vec::new() };
    let mut bans: Vec<&Ban> = EVERYWHERE.iter().filter(|ban| !ban.allowed.contains(&module)).collect();
    match layer(module) {
        Some(0 | 1) => bans.push(&PURE),
        Some(2 | 3) => bans.push(&NO_HTTP_SERVER),
        _ => {}
    }
    if module == "money" {
        bans.push(&NO_FLOATS);
    }
    let text: Vec<char> = file.code().chars().collect();
    bans.into_iter().flat_map(|ban| uses(file, &text, ban)).collect()
}

fn uses(file: &File, text: &[char], ban: &Ban) -> Vec<String> {
    let found =
        ban.written.iter().flat_map(|written| find_word(text, written).into_iter().map(move |at| (written, at)));
    found.map(|(written, at)| format!("{}:{}: `{written}`: {}", file.path, line_of(text, at), ban.reason)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        banned(&File::new(path, text)).len()
    }

    #[test]
    fn each_ban_fires() {
        for ban in &EVERYWHERE {
            for written in ban.written {
                let text = format!("fn f() {{ g(1){written}(2); }}").replace(")#", ");\n#");
                assert_eq!(
                    count(
                        "src/pipeline/run.rs",
                        &text.replace("g(1)", if written.starts_with('.') { "g" } else { "" })
                    ),
                    1,
                    "{text}"
                );
            }
        }
        for written in PURE.written {
            assert_eq!(count("src/memo/gate.rs", &format!("use {written};")), 1, "{written}");
        }
        assert_eq!(count("src/paywall/layer.rs", "use axum::Router;"), 1);
        assert_eq!(count("src/money.rs", "fn f(x: f64) -> f32 { x as f32 }"), 3);
    }

    #[test]
    fn the_places_that_may_are_left_alone() {
        assert_eq!(count("src/clock.rs", "OffsetDateTime::now_utc()"), 0);
        assert_eq!(count("src/config.rs", "std::env::var(\"A\")"), 0);
        assert_eq!(count("src/cli/demo.rs", "println!()"), 0);
        assert_eq!(count("src/main.rs", "eprintln!()"), 0);
        assert_eq!(count("src/store/orders.rs", "sqlx::query(INSERT)"), 0);
        assert_eq!(count("src/http/router.rs", "use axum::Router;"), 0);
    }

    #[test]
    fn comments_strings_and_tests_may_name_them() {
        assert_eq!(
            count(
                "src/memo.rs",
                "// x.unwrap()\nconst A: &str = \"println!\";\n#[cfg(test)]\nmod tests { fn f() { x.unwrap() } }"
            ),
            0
        );
    }
}

//! Words that no text of the project may hold: paths of somebody's machine, hosts of package registries.
//!
//! The words are put together here, so that this file does not hold them either.

use super::tree::{File, in_name};

/// Files that tools write: the lock files name the index that cargo uses.
const GENERATED: [&str; 3] = ["Cargo.lock", "fuzz/Cargo.lock", "tests/bench/peers/x402-axum/Cargo.lock"];

/// Roots of absolute paths. A path of somebody's machine is of no use to anybody else.
const PATH_ROOTS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Package registries are reached through their clients, as these are set up on the machine.
const HOSTS: [&str; 8] = [
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("ftp.", "debian.org"),
];

/// Every banned word in one file.
pub(crate) fn banned(file: &File) -> Vec<String> {
    if GENERATED.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines
        .flat_map(|(at, line)| words(line).into_iter().map(move |word| format!("{}:{}: {word}", file.path, at + 1)))
        .collect()
}

fn words(line: &str) -> Vec<&'static str> {
    let lower = line.to_ascii_lowercase();
    let paths =
        PATH_ROOTS.into_iter().filter(|root| line.match_indices(root).any(|(at, _)| starts_a_path(line, at, root)));
    paths.chain(HOSTS.into_iter().filter(|host| lower.contains(host))).collect()
}

/// True when nothing of a longer path stands before the root, and a name follows.
fn starts_a_path(line: &str, at: usize, root: &str) -> bool {
    let before = line[..at].chars().next_back();
    let after = line[at + root.len()..].chars().next();
    !before.is_some_and(|c| in_name(c) || "./-}~$*".contains(c)) && after.is_some_and(in_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found() {
        for root in PATH_ROOTS {
            assert_eq!(banned(&File::new("README.md", &format!("see `{root}jim`"))).len(), 1, "{root}");
        }
        for host in HOSTS {
            assert_eq!(
                banned(&File::new(".ci/run", &format!("https://x.{}/a", host.to_uppercase()))).len(),
                1,
                "{host}"
            );
        }
    }

    #[test]
    fn relative_paths_and_lock_files_are_left_alone() {
        assert!(
            banned(&File::new("README.md", &format!("src{}a and $HOME{}b", PATH_ROOTS[0], PATH_ROOTS[2]))).is_empty()
        );
        assert!(banned(&File::new("Cargo.lock", HOSTS[0])).is_empty());
    }
}

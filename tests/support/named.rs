//! Names of tests as pages write them, and the tests that there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The texts between backquotes.
pub fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Paths (below `root`, with `/`) and texts of all sources.
pub fn sources(root: &Path) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut todo = vec![root.join("src"), root.join("tests"), root.join("benches")];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                out.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    out
}

/// Whether a quoted text can only be meant as a test, a module of tests or a file: a path of
/// lower case names, or a name as long as those of tests are.
pub fn looks_like_a_test(name: &str) -> bool {
    is_file(name) || (is_name(name) && (name.contains("::") || name.matches('_').count() >= 3))
}

/// Whether a quoted text is a name of several words, or a path of names.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c);
    text.contains(['_', ':']) && text.chars().all(fits)
}

fn is_file(text: &str) -> bool {
    ["src/", "tests/", "benches/"].iter().any(|dir| text.starts_with(dir))
}

/// The tests of the crate and the modules that hold them, by paths such as `store::tests::crash`.
pub struct Tests {
    known: BTreeSet<String>,
    root: PathBuf,
}

impl Tests {
    pub fn of(root: &Path) -> Tests {
        let mut known = BTreeSet::new();
        for (path, text) in sources(root) {
            let module = path.trim_start_matches("src/").trim_end_matches(".rs");
            let module = module.trim_end_matches("/mod").replace('/', "::");
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
                    let end = rest.find('(').unwrap();
                    known.insert(format!("{module}::{}", &rest[..end]));
                    known.insert(module.clone());
                }
                // Other attributes may stand between.
                is_test = line == "#[test]" || (is_test && line.starts_with("#["));
            }
        }
        Tests { known, root: root.to_owned() }
    }

    /// Whether `name` is the end of the path of a test or of a module with tests, or a file or
    /// folder that is there.
    pub fn know(&self, name: &str) -> bool {
        let ends = |known: &String| {
            let before = known.strip_suffix(name);
            before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
        };
        self.known.iter().any(ends) || (is_file(name) && self.root.join(name).exists())
    }
}

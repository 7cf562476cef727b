//! Rust sources as the tidy test sees them: text with comments and literals blanked out.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One source file.
pub struct Source {
    /// Path below the repository, with `/`.
    pub path: String,
    /// The text as it is.
    pub text: String,
    /// The text with comments, strings and characters replaced by blanks; same length.
    pub code: String,
    /// Byte ranges of `code` that are compiled for tests only.
    pub tests: Vec<Range<usize>>,
}

impl Source {
    pub fn read(root: &Path, file: &Path) -> Source {
        let text = fs::read_to_string(file).unwrap();
        let path = file.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        Source::new(path, text)
    }

    pub fn new(path: String, text: String) -> Source {
        let code = blank(&text);
        let tests = test_ranges(&code);
        Source { path, text, code, tests }
    }

    /// The number of the line at byte `at`, counted from 1.
    pub fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// Whether byte `at` belongs to a `#[cfg(test)]` item.
    pub fn in_test(&self, at: usize) -> bool {
        self.tests.iter().any(|r| r.contains(&at))
    }

    /// Offsets of `needle` in the code outside tests.
    pub fn find(&self, needle: &str) -> Vec<usize> {
        self.code.match_indices(needle).map(|m| m.0).filter(|&i| !self.in_test(i)).collect()
    }

    /// Lines outside tests that hold code.
    pub fn code_lines(&self) -> usize {
        let mut at = 0;
        let mut count = 0;
        for line in self.code.split('\n') {
            let blank_line = line.trim().is_empty();
            count += usize::from(!blank_line && !self.in_test(at));
            at += line.len() + 1;
        }
        count
    }

    /// Name, first line and length in lines of every function outside tests.
    pub fn functions(&self) -> Vec<(String, usize, usize)> {
        let mut out = Vec::new();
        for at in self.find("fn ") {
            let before = self.code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let name: String = self.code[at + 3..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let Some(open) = body_start(&self.code, at) else { continue };
            let close = matching(&self.code, open);
            out.push((name, self.line(at), self.line(close) - self.line(at) + 1));
        }
        out
    }

    /// Names of the `mod x;` lines, and whether each is for tests only. Those with a path of
    /// their own are not files of the crate.
    pub fn modules(&self) -> Vec<(String, bool)> {
        let mut out = Vec::new();
        let mut test_only = false;
        let mut elsewhere = false;
        for line in self.code.lines().map(str::trim) {
            if line.starts_with("#[cfg(test)]") {
                test_only = true;
                continue;
            }
            let bare = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            if let Some(name) = bare.strip_prefix("mod ").and_then(|l| l.strip_suffix(';'))
                && !elsewhere
            {
                out.push((name.to_owned(), test_only));
            }
            elsewhere |= line.starts_with("#[path");
            if !line.is_empty() && !line.starts_with("#[") {
                (test_only, elsewhere) = (false, false);
            }
        }
        out
    }
}

/// All `.rs` files below `dir`, sorted.
pub fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else { return out };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out.sort();
    out
}

/// The offset of the `{` of the function at `at`; `None` for a signature or a function type.
fn body_start(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0i32;
    for (i, c) in code[at..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(at + i),
            ';' if depth == 0 => return None,
            _ if depth < 0 => return None,
            _ => {}
        }
    }
    None
}

/// The offset of the bracket that closes the one at `open`.
fn matching(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (i, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return open + i;
                }
            }
            _ => {}
        }
    }
    code.len()
}

fn test_ranges(code: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    for marker in ["#[cfg(test)]", "#[cfg(any(test"] {
        for (at, _) in code.match_indices(marker) {
            let rest = &code[at..];
            let end = match (rest.find('{'), rest.find(';')) {
                (Some(b), Some(s)) if b < s => matching(code, at + b) + 1,
                (Some(b), None) => matching(code, at + b) + 1,
                (_, Some(s)) => at + s + 1,
                (None, None) => code.len(),
            };
            out.push(at..end);
        }
    }
    out
}

/// Replaces comments, strings and character literals by blanks, byte for byte.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut i = 0;
    while i < bytes.len() {
        let end = literal_end(bytes, i);
        if end > i {
            for b in &mut out[i..end] {
                if *b != b'\n' {
                    *b = b' ';
                }
            }
            i = end;
        } else {
            i += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The end of the comment or literal that starts at `i`; `i` if none does.
fn literal_end(b: &[u8], i: usize) -> usize {
    let find = |from: usize, what: &[u8]| {
        (from..b.len()).find(|&k| b[k..].starts_with(what)).unwrap_or(b.len())
    };
    let in_word = i > 0 && (b[i - 1].is_ascii_alphanumeric() || b[i - 1] == b'_');
    if b[i..].starts_with(b"//") {
        return find(i, b"\n");
    }
    if b[i..].starts_with(b"/*") {
        return (find(i + 2, b"*/") + 2).min(b.len());
    }
    if b[i] == b'"' {
        return quoted_end(b, i + 1, b'"');
    }
    if b[i] == b'r' && (!in_word || matches!(b[i - 1], b'b')) {
        let hashes = b[i + 1..].iter().take_while(|&&c| c == b'#').count();
        if b.get(i + 1 + hashes) == Some(&b'"') {
            let close: Vec<u8> = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
            return (find(i + 2 + hashes, &close) + close.len()).min(b.len());
        }
    }
    if b[i] == b'\'' {
        // A lifetime has no closing quote right behind its first character.
        let rest = std::str::from_utf8(&b[i + 1..]).unwrap_or("");
        let width = rest.chars().next().map_or(1, char::len_utf8);
        if b.get(i + 1) == Some(&b'\\') || b.get(i + 1 + width) == Some(&b'\'') {
            return quoted_end(b, i + 1, b'\'');
        }
    }
    i
}

fn quoted_end(b: &[u8], mut i: usize, quote: u8) -> usize {
    while i < b.len() {
        match b[i] {
            b'\\' => i += 2,
            c if c == quote => return i + 1,
            _ => i += 1,
        }
    }
    b.len()
}

//! The command line, run as a program.

#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const LINES: &str = concat!(
    "{\"_time\":\"2025-06-01T10:00:00Z\",\"_msg\":\"GET /a\",\"app\":\"web\",\"status\":200}\n",
    "{\"_time\":\"2025-06-01T10:00:01Z\",\"_msg\":\"GET /b\",\"app\":\"web\",\"status\":500}\n",
    "{\"_time\":\"2025-06-01T10:00:02Z\",\"_msg\":\"-tail of a line\",\"app\":\"db\"}\n",
);

fn loglith(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loglith")).args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A store with [`LINES`], fed through the standard input.
fn filled() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store").to_str().unwrap().to_owned();
    let mut child = Command::new(env!("CARGO_BIN_EXE_loglith"))
        .args(["ingest", "--store", &store, "--stream-fields", "app", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(LINES.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).contains("3 rows"), "{}", stdout(&output));
    (dir, store)
}

fn rows(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", stderr(output));
    stdout(output).lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn rows_are_json_with_text_values() {
    let (_dir, store) = filled();
    let output = loglith(&["query", "--store", &store, "--format", "json", "status:>=500"]);
    let rows = rows(&output);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["status"], "500");
    assert_eq!(rows[0]["_stream"], "{app=\"web\"}");
    assert_eq!(rows[0]["_time"], "2025-06-01T10:00:01Z");
}

#[test]
fn limit_takes_the_newest() {
    let (_dir, store) = filled();
    let output = loglith(&["query", "--store", &store, "--limit", "1", "--stats", "*"]);
    assert_eq!(rows(&output)[0]["app"], "db");
    assert!(stderr(&output).contains("blocks"), "{}", stderr(&output));
}

#[test]
fn a_query_may_start_with_a_dash() {
    let (_dir, store) = filled();
    let output = loglith(&["query", "--store", &store, "--", "-GET"]);
    assert_eq!(rows(&output).len(), 1);
}

#[test]
fn tables_and_raw_lines() {
    let (_dir, store) = filled();
    let query = "app:web | sort by (_time) | fields status, _msg";
    let table = loglith(&["query", "--store", &store, "--format", "table", query]);
    let text = stdout(&table);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().next().unwrap().contains("status"));
    let raw = loglith(&["query", "--store", &store, "--format", "raw", query]);
    assert_eq!(stdout(&raw), "GET /a\nGET /b\n");
}

#[test]
fn csv_and_logfmt() {
    let (_dir, store) = filled();
    let print = |format: &str, query: &str| {
        stdout(&loglith(&["query", "--store", &store, "--format", format, query]))
    };
    let query = "* | sort by (_time) | fields status, _msg";
    assert_eq!(print("csv", query), "status,_msg\n200,GET /a\n500,GET /b\n,-tail of a line\n");
    let logfmt = "status=200 _msg=\"GET /a\"\nstatus=500 _msg=\"GET /b\"\n\
                  _msg=\"-tail of a line\"\n";
    assert_eq!(print("logfmt", query), logfmt);
    // Names that the query does not tell come from all rows.
    let csv = print("csv", "* | sort by (_time desc) | delete _stream, _stream_id, _time");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4, "{csv}");
    assert!(lines[0].contains("status") && lines[0].contains("app"), "{csv}");
    assert!(lines.iter().all(|l| l.matches(',').count() == 2), "{csv}");
    assert_eq!(print("csv", "nothing"), "");
    assert_eq!(print("csv", "nothing | fields a, b"), "a,b\n");
    assert_eq!(print("csv", "* | stats count() n, sum(status) s"), "n,s\n3,700\n");
}

#[test]
fn colours_where_they_are_asked_for() {
    let (_dir, store) = filled();
    let print = |color: &str| {
        let line = ["query", "--store", &store, "--color", color, "status:500 | fields status"];
        stdout(&loglith(&line))
    };
    assert_eq!(print("auto"), "{\"status\":\"500\"}\n", "no terminal, no colours");
    assert_eq!(print("never"), print("auto"));
    assert_eq!(print("always"), "{\u{1b}[36m\"status\"\u{1b}[0m:\"500\"}\n");
}

#[test]
fn explain_tells_the_plan() {
    let (_dir, store) = filled();
    let text = stdout(&loglith(&["query", "--store", &store, "--explain", "GET | limit 5"]));
    assert!(text.contains("stops at the newest 5 rows by time"), "{text}");
    assert!(text.contains("skips blocks by the words of _msg"), "{text}");
}

#[test]
fn hits_are_drawn() {
    let (_dir, store) = filled();
    let draw = |args: &[&str]| {
        let output = loglith(&[&["query", "--store", &store, "--hits"], args].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let full = "\u{2588}".repeat(50);
    let range = "_time:[2025-06-01T10:00:00Z, 2025-06-01T10:00:06Z)";
    let expected = format!(
        "2025-06-01T10:00:00Z  2  {full}\n2025-06-01T10:00:02Z  1  {}\n\
         2025-06-01T10:00:04Z  0\n3 rows, 2 s a bar\n",
        "\u{2588}".repeat(25)
    );
    assert_eq!(draw(&["--step", "2s", range]), expected);
    let by = draw(&["--by", "app", "*"]);
    assert!(by.starts_with("app=web  2\n") && by.contains("\napp=db  1\n"), "{by}");
    assert!(by.ends_with("3 rows, 1 s a bar\n"), "{by}");
    assert!(draw(&["nothing"]).ends_with("0 rows, 1 s a bar\n"));
    let csv = draw(&["--format", "csv", "--by", "app", "--step", "2s", range]);
    assert_eq!(csv.lines().next(), Some("_time,app,hits"));
    assert_eq!(csv.lines().nth(1), Some("2025-06-01T10:00:00Z,web,2"));
    assert_eq!(csv.lines().count(), 7);
    let json = draw(&["--format", "json", "--step", "2s", range]);
    assert_eq!(json.lines().next(), Some(r#"{"_time":"2025-06-01T10:00:00Z","hits":"2"}"#));
    assert_eq!(json.lines().count(), 3);
    let output = loglith(&["query", "--store", &store, "--hits", "* | fields app"]);
    assert!(output.status.success());
    assert!(stderr(&output).contains("3 rows have no _time"), "{}", stderr(&output));
    let code = |args: &[&str]| loglith(&[&["query", "--store", &store], args].concat()).status;
    assert_eq!(code(&["--hits", "--step", "0s", "*"]).code(), Some(2));
    assert_eq!(code(&["--step", "1s", "*"]).code(), Some(2));
}

#[test]
fn now_is_what_it_is_told() {
    let (_dir, store) = filled();
    let at = |now: &str| {
        let args = ["query", "--store", &store, "--now", now, "_time:1m | stats count() n"];
        rows(&loglith(&args))[0]["n"].clone()
    };
    assert_eq!(at("2025-06-01T10:00:30Z"), "3");
    assert_eq!(at("2025-06-01T10:01:01.5Z"), "1");
    assert_eq!(at("2025-06-02T00:00:00Z"), "0");
}

#[test]
fn rows_without_a_field_are_not_printed() {
    let (_dir, store) = filled();
    let run = |format: &str, query: &str| {
        stdout(&loglith(&["query", "--store", &store, "--format", format, query]))
    };
    for format in ["json", "logfmt", "table", "raw"] {
        assert_eq!(run(format, "* | fields nosuch"), "", "{format}");
    }
    assert_eq!(run("csv", "* | fields nosuch"), "nosuch\n");
    assert_eq!(run("json", "* | fields nosuch | stats count() n"), "{\"n\":\"3\"}\n");
}

#[test]
fn errors_point_into_the_query() {
    let (_dir, store) = filled();
    let output = loglith(&["query", "--store", &store, "* | nosuchpipe"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let text = stderr(&output);
    let lines: Vec<&str> = text.lines().collect();
    let line = lines.iter().position(|l| l.contains("* | nosuchpipe")).unwrap();
    assert_eq!(lines[line + 1].find('^'), lines[line].find("nosuchpipe"), "{text}");
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let (dir, store) = filled();
    let code = |args: &[&str]| loglith(args).status.code();
    assert_eq!(code(&["query", "--store", &store]), Some(2));
    assert_eq!(code(&["query", "--store", &store, "--now", "soon", "*"]), Some(2));
    let nowhere = dir.path().join("nowhere");
    assert_eq!(code(&["query", "--store", nowhere.to_str().unwrap(), "*"]), Some(3));
    assert!(!nowhere.exists(), "reading creates nothing");
    assert_eq!(code(&["ingest", "--store", &store, "no-such-file"]), Some(3));
    assert_eq!(code(&["verify", "--store", &store]), Some(0));
    assert_eq!(code(&["inspect", "--store", &store]), Some(0));
    assert_eq!(code(&["inspect", "--store", &store, "--part", "00000000ffffffff"]), Some(2));
    assert_eq!(code(&["inspect", "--store", &store, "--part", "no id"]), Some(2));
    let listing = stdout(&loglith(&["inspect", "--store", &store]));
    let id = listing.split("part ").nth(1).unwrap().split(':').next().unwrap();
    let part = loglith(&["inspect", "--store", &store, "--part", id]);
    assert!(part.status.success() && stdout(&part).contains("_msg"), "{}", stdout(&part));
    assert_eq!(code(&["compact", "--store", &store]), Some(0));
    assert_eq!(code(&["--help"]), Some(0));
}

#[test]
fn damage_is_found_and_has_its_own_code() {
    let (_dir, store) = filled();
    let part = largest_file(Path::new(&store));
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(&part, bytes).unwrap();
    let output = loglith(&["verify", "--store", &store]);
    assert_eq!(output.status.code(), Some(4), "{}{}", stdout(&output), stderr(&output));
    let name = part.file_name().unwrap().to_str().unwrap();
    assert!(stdout(&output).contains(name), "the file is named: {}", stdout(&output));
}

fn largest_file(dir: &Path) -> std::path::PathBuf {
    let mut found: Vec<(u64, std::path::PathBuf)> = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.metadata().unwrap() {
                m if m.is_dir() => folders.push(entry.path()),
                m => found.push((m.len(), entry.path())),
            }
        }
    }
    found.into_iter().max().unwrap().1
}

#[test]
fn envelope_answers_every_line() {
    let (dir, store) = filled();
    let file = dir.path().join("queries.ndjson");
    let queries = concat!(
        "{\"query\":\"app:web | stats count() n\"}\n",
        "{\"query\":\"* | nosuchpipe\"}\n",
        "not json\n",
        "{\"query\":\"_time:1m\",\"now\":\"2025-06-01T10:01:01.5Z\"}\n",
    );
    std::fs::write(&file, queries).unwrap();
    let file = file.to_str().unwrap();
    let output = loglith(&[
        "query",
        "--store",
        &store,
        "--format",
        "json",
        "--envelope",
        "--queries-file",
        file,
        "--repeat",
        "3",
    ]);
    let lines = rows(&output);
    assert_eq!(lines.len(), 4);
    let line = |i: u64| lines.iter().find(|l| l["query_index"] == i).unwrap();
    assert_eq!(line(0)["rows"][0]["n"], "2");
    assert_eq!(line(0)["elapsed_ms"].as_array().unwrap().len(), 3);
    assert!(line(0)["stats"]["blocks"].is_u64());
    assert!(line(1)["error"].as_str().unwrap().contains("nosuchpipe"));
    assert!(line(2)["error"].is_string());
    assert_eq!(line(3)["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn a_closed_reader_ends_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store").to_str().unwrap().to_owned();
    let input = dir.path().join("many.ndjson");
    let line = |i: usize| {
        let time = format!("2025-06-01T10:{:02}:{:02}Z", i / 60 % 60, i % 60);
        format!("{{\"_time\":\"{time}\",\"_msg\":\"line {i} {}\"}}\n", "x".repeat(200))
    };
    std::fs::write(&input, (0..5000).map(line).collect::<String>()).unwrap();
    let output = loglith(&["ingest", "--store", &store, input.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut child = Command::new(env!("CARGO_BIN_EXE_loglith"))
        .args(["query", "--store", &store, "*"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}

#[test]
fn zstd_files_are_read_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store").to_str().unwrap().to_owned();
    let file = dir.path().join("lines.zst");
    std::fs::write(&file, zstd::encode_all(LINES.as_bytes(), 1).unwrap()).unwrap();
    let output = loglith(&["ingest", "--store", &store, file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(rows(&loglith(&["query", "--store", &store, "*"])).len(), 3);
}

/// Names that would end early or look like a pair are quoted, in logfmt.
#[test]
fn odd_names_in_logfmt_are_quoted() {
    let (dir, store) = filled();
    let file = dir.path().join("odd");
    std::fs::write(
        &file,
        "{\"_msg\":\"odd\",\"a b\":\"1\",\"c=d\":\"2\",\"e\\\"f\":\"3 4\",\"g:h\":\"5\"}\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    assert!(loglith(&["ingest", "--store", &store, file]).status.success());
    let query = "odd | fields \"a b\", \"c=d\", \"e\\\"f\", \"g:h\"";
    let output = loglith(&["query", "--store", &store, "--format", "logfmt", query]);
    assert_eq!(stdout(&output), "\"a b\"=1 \"c=d\"=2 \"e\\\"f\"=\"3 4\" g:h=5\n");
}

/// Rows are taken and what is written to a full device fails, which the exit code tells.
#[cfg(target_os = "linux")]
#[test]
fn acknowledgements_that_cannot_be_told_fail() {
    let dir = tempfile::tempdir().unwrap();
    let (store, file) = (dir.path().join("store"), dir.path().join("lines"));
    let store = store.to_str().unwrap();
    std::fs::write(&file, LINES).unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_loglith"))
        .args(["ingest", "--store", store, "--memory-limit", "16MB", "--ack"])
        .arg(&file)
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write the output"), "{}", stderr(&output));
    assert_eq!(rows(&loglith(&["query", "--store", store, "*"])).len(), 3);
}

/// One number for each acknowledged batch, as soon as it is; the report is elsewhere.
#[test]
fn acknowledged_rows_are_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store").to_str().unwrap().to_owned();
    for durability in ["buffered", "process", "sync"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loglith"))
            .args(["ingest", "--store", &store, "--durability", durability, "--ack", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        for (lines, rows) in [(1, 1), (2, 3), (4, 7)] {
            input.write_all("{\"_msg\":\"x\"}\n".repeat(lines).as_bytes()).unwrap();
            let mut last = 0;
            while last < rows {
                last = told.next().unwrap().unwrap().parse().unwrap();
                assert!(last <= rows);
            }
        }
        drop(input);
        assert!(told.next().is_none(), "the report is not among the numbers");
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success() && stderr(&ended).contains("7 rows"), "{ended:?}");
    }
    // Large files are acknowledged by chunks; numbers go on over several files.
    let file = dir.path().join("large.json");
    let row = format!("{{\"_msg\":\"{}\"}}\n", "y".repeat(1_000));
    std::fs::write(&file, row.repeat(40_000)).unwrap();
    let name = file.to_str().unwrap();
    let output = loglith(&["ingest", "--store", &store, "--ack", name, name]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Vec<u64> = stdout(&output).lines().map(|l| l.parse().unwrap()).collect();
    assert!(told.len() >= 4 && told.is_sorted() && told.contains(&40_000), "{told:?}");
    assert_eq!(told.last(), Some(&80_000));
    let output = loglith(&["query", "--store", &store, "* | count()"]);
    assert_eq!(rows(&output)[0]["count(*)"], "80021");
}

/// An input that cannot be read to its end: what was taken is reported, with the line behind
/// which the rest may be given again.
#[test]
fn an_input_that_breaks_off_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store").to_str().unwrap().to_owned();
    let line = |n: u64| match n % 1_000 {
        500 => "no row\n".to_owned(),
        _ => format!(
            "{{\"n\":{n},\"_msg\":\"{:x} {}\"}}\n",
            n.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            "y".repeat(900)
        ),
    };
    let text: String = (0..60_000).map(line).collect();
    let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let file = dir.path().join("cut.zst");
    std::fs::write(&file, &packed[..packed.len() * 3 / 4]).unwrap();
    let output = loglith(&["ingest", "--store", &store, file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let report = stdout(&output);
    let accepted: usize = report.split(' ').next().unwrap().parse().unwrap();
    let told = stderr(&output);
    let stopped = told.split("stopped behind line ").nth(1).unwrap();
    let stopped: usize = stopped.split(' ').next().unwrap().parse().unwrap();
    let rejected = (0..stopped).filter(|n| n % 1_000 == 500).count();
    assert!(accepted > 20_000 && stopped == accepted + rejected, "{report}{told}");
    assert!(report.contains(&format!("{rejected} rejected")), "{report}");
    let rest: String = text.split_inclusive('\n').skip(stopped).collect();
    std::fs::write(&file, rest).unwrap();
    assert!(loglith(&["ingest", "--store", &store, file.to_str().unwrap()]).status.success());
    let query = "* | stats count() c, count_uniq(n) u";
    let whole = &rows(&loglith(&["query", "--store", &store, query]))[0];
    assert_eq!((whole["c"].as_str(), whole["u"].as_str()), (Some("59940"), Some("59940")));
}

/// One damaged part: queries say so or skip it, a repair saves the rest.
#[test]
fn damage_is_skipped_on_request_and_repaired() {
    let (_dir, store) = filled();
    let add = |line: &str| {
        let file = Path::new(&store).with_file_name("more.json");
        std::fs::write(&file, line).unwrap();
        let output = loglith(&["ingest", "--store", &store, file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    add("{\"_time\":\"2025-07-01T10:00:00Z\",\"_msg\":\"later\"}\n");
    let part = std::fs::read_dir(Path::new(&store).join("20250601")).unwrap().next().unwrap();
    let part = part.unwrap().path();
    let mut bytes = std::fs::read(&part).unwrap();
    let end = bytes.len() - 10;
    bytes[end] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let query = |more: &[&str]| loglith(&[&["query", "--store", &store], more, &["*"]].concat());
    assert_eq!(query(&[]).status.code(), Some(4));
    let skipping = query(&["--skip-damaged", "--stats"]);
    assert_eq!(skipping.status.code(), Some(4));
    assert_eq!(stdout(&skipping).lines().count(), 1);
    let told = stderr(&skipping);
    assert!(told.contains("skipped: ") && told.contains("up to 3 rows"), "{told}");
    let inspect = loglith(&["inspect", "--store", &store]);
    assert_eq!(inspect.status.code(), Some(4));
    assert!(stdout(&inspect).contains("damage: "));
    let compact = loglith(&["compact", "--store", &store]);
    assert_eq!(compact.status.code(), Some(4), "{}", stdout(&compact));
    assert!(stderr(&compact).contains("damage: "), "{}", stderr(&compact));
    let repair = loglith(&["repair", "--store", &store]);
    assert_eq!(repair.status.code(), Some(4), "{}", stdout(&repair));
    assert!(stdout(&repair).contains("at least 3 rows are lost"), "{}", stdout(&repair));
    assert_eq!(query(&[]).status.code(), Some(4));
    let repair = loglith(&["repair", "--store", &store, "--accept-loss"]);
    assert!(repair.status.success(), "{}", stdout(&repair));
    assert_eq!(rows(&query(&[])).len(), 1);
    for command in ["verify", "inspect", "compact"] {
        assert!(loglith(&[command, "--store", &store]).status.success(), "{command}");
    }
    let nothing = loglith(&["repair", "--store", &format!("{store}-x")]);
    assert_eq!(nothing.status.code(), Some(3));
}

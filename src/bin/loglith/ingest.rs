//! `loglith ingest`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use loglith::{Ingest, IngestOptions, IngestReport, Store};

use crate::args::{IngestArgs, InputFormat};
use crate::exit::{Failure, Outcome, end, tell_opening};
use crate::output::{bytes, grouped};

/// First bytes of a zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const READ_BUFFER_BYTES: usize = 1 << 20;

/// Called when more rows of a file are acknowledged, with what became of the file so far.
type Told<'a> = dyn Fn(&IngestReport) + Sync + 'a;

/// When a read of the input ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// With what a pipe has to give.
    ForAny,
    /// With a full buffer, even if that takes several reads: for files, and for decoders, which
    /// give little at a time.
    ForAll,
}

/// Reads all files into the store and prints a report.
pub(crate) fn run(args: &IngestArgs) -> Outcome {
    let InputFormat::Json = args.format;
    let started = Instant::now();
    let mut store_options = Store::options();
    if let Some(bytes) = args.memory_limit {
        store_options = store_options.memory_limit(bytes);
    }
    if let Some(interval) = args.flush_interval {
        store_options = store_options.flush_interval(interval);
    }
    if let Some(level) = args.level {
        store_options = store_options.flush_level(level);
    }
    let store = store_options.durability(args.durability.into()).open(&args.store.store)?;
    let sound = tell_opening(&store);
    let mut options = IngestOptions::new().stream_fields(args.stream_fields.clone());
    if let Some(field) = &args.time_field {
        options = options.time_field(field);
    }
    if let Some(field) = &args.msg_field {
        options = options.msg_field(field);
    }
    let ingest = store.ingest(options)?;
    let mut total = IngestReport::default();
    let listener = Listener::default();
    let loaded: Outcome = args.files.iter().try_for_each(|file| {
        let so_far = Mutex::new(IngestReport::default());
        let loaded = load(&ingest, file, &|report| {
            if args.ack {
                listener.tell(total.accepted + report.accepted);
            }
            *so_far.lock().unwrap_or_else(PoisonError::into_inner) = report.clone();
        });
        let so_far = so_far.into_inner().unwrap_or_else(PoisonError::into_inner);
        if loaded.is_err() && so_far.lines > 0 {
            // Without a standard error there is nobody to tell.
            let (line, name) = (so_far.lines, file.display());
            let _ = writeln!(io::stderr(), "stopped behind line {line} of {name}");
        }
        total.merge(loaded.as_ref().unwrap_or(&so_far));
        loaded.map(|_| ())
    });
    drop(ingest);
    let flushed = store.flush();
    let disk_bytes = store.stats().file_bytes;
    let closed = store.close();
    let elapsed = started.elapsed();
    // What was accepted is said even if something failed: to give it again would double it.
    let mut out: Box<dyn Write> =
        if args.ack { Box::new(io::stderr().lock()) } else { Box::new(io::stdout().lock()) };
    writeln!(out, "{total}")?;
    writeln!(out, "{}", speed(total.accepted, total.bytes, elapsed))?;
    writeln!(out, "store: {} on disk", bytes(disk_bytes))?;
    out.flush()?;
    loaded?;
    if let Err(e) = flushed.map(|_| ()).and(closed) {
        let _ = writeln!(
            io::stderr(),
            "the rows above are in the journal and safe, but could not be moved to part files"
        );
        return Err(e.into());
    }
    listener.end()?;
    end(sound)
}

/// Who is told of acknowledged rows on the standard output.
#[derive(Default)]
struct Listener {
    failure: Mutex<Option<io::Error>>,
}

impl Listener {
    /// Prints how many rows are acknowledged, at once. What cannot be told is no reason to stop:
    /// the rows are taken all the same.
    fn tell(&self, rows: u64) {
        let mut out = io::stdout().lock();
        let told = writeln!(out, "{rows}").and_then(|()| out.flush());
        if let (Err(e), Ok(mut failure)) = (told, self.failure.lock()) {
            failure.get_or_insert(e);
        }
    }

    /// The first failure to tell, if there was one.
    fn end(self) -> Outcome {
        let failure = self.failure.into_inner().unwrap_or_default();
        failure.map_or(Ok(()), |e| Err(e.into()))
    }
}

/// Rows and bytes per second, for the eye.
pub(crate) fn speed(rows: u64, raw_bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    format!(
        "{} rows, {} in {seconds:.2} s: {:.0} rows/s, {:.0} MB/s",
        grouped(rows),
        bytes(raw_bytes),
        rows as f64 / seconds,
        raw_bytes as f64 / seconds / 1e6,
    )
}

/// Reads one file, `-` being the standard input, with a progress bar where someone looks.
fn load(ingest: &Ingest, path: &Path, acknowledged: &Told<'_>) -> Result<IngestReport, Failure> {
    let name = path.display().to_string();
    if name == "-" {
        let bar = bar(None, "standard input");
        let input = io::stdin().lock();
        return load_reader(ingest, path, input, Waits::ForAny, &bar, acknowledged);
    }
    let file = File::open(path).map_err(|e| Failure::file("open", path, e))?;
    let len = file.metadata().map_err(|e| Failure::file("read", path, e))?.len();
    load_reader(ingest, path, file, Waits::ForAll, &bar(Some(len), &name), acknowledged)
}

fn load_reader(
    ingest: &Ingest,
    path: &Path,
    input: impl Read,
    waits: Waits,
    bar: &ProgressBar,
    acknowledged: &Told<'_>,
) -> Result<IngestReport, Failure> {
    let input = BufReader::with_capacity(READ_BUFFER_BYTES, bar.wrap_read(input));
    let report = ingest_reader(ingest, input, waits, acknowledged).map_err(|e| match e {
        Failure::Output(source) => Failure::file("read", path, source),
        Failure::Store(loglith::Error::Io { action: "read", path: named, source })
            if named == Path::new("the input") =>
        {
            Failure::file("read", path, source)
        }
        other => other,
    })?;
    bar.finish_and_clear();
    Ok(report)
}

/// Ingests NDJSON, decompressed if it is zstd.
pub(crate) fn ingest_reader(
    ingest: &Ingest,
    mut input: impl BufRead,
    waits: Waits,
    acknowledged: &Told<'_>,
) -> Result<IngestReport, Failure> {
    let head = input.fill_buf().map_err(Failure::Output)?;
    if head.starts_with(&ZSTD_MAGIC) {
        let decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(Failure::Output)?;
        let plain = Paced { inner: decoder, waits: Waits::ForAll, late: None };
        return Ok(ingest.ndjson_acknowledged(plain, acknowledged)?);
    }
    let plain = Paced { inner: input, waits, late: None };
    Ok(ingest.ndjson_acknowledged(plain, acknowledged)?)
}

/// Gives as much at once as is asked for, or as there is.
struct Paced<R> {
    inner: R,
    waits: Waits,
    /// A failure behind bytes that were given already.
    late: Option<io::Error>,
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.late.take() {
            return Err(error);
        }
        let mut filled = 0;
        while let Some(room) = buf.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.inner.read(room) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if filled > 0 => {
                    self.late = Some(e);
                    break;
                }
                Err(e) => return Err(e),
            }
            if self.waits == Waits::ForAny {
                break;
            }
        }
        Ok(filled)
    }
}

/// A progress bar on a terminal, hidden elsewhere.
fn bar(len: Option<u64>, name: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = len.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    let template = "{prefix} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(name.to_owned());
    bar
}

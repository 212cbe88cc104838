//! Import of `perf.data`, as stock `perf record -e 'kmem:*' …` makes it.
//!
//! The file is read by our own code: `file` its header, attributes and features, `tracing` the tracepoints' formats,
//! `walk` the records. We looked at the crate linux-perf-data: it trusts the lengths that a file claims, and it
//! brings a dozen dependencies for formats that have no page events.

mod file;
mod tracing;
mod walk;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::error::{ReadError, RecordError};
use crate::format::{Writer, Written};
use crate::meta::{Keep, Meta, RecordingEnd};
use crate::stream::assemble::{Assembler, Counts, Membership};
use crate::stream::record::Record;
use crate::stream::schema::Schema;
use crate::stream::sort::Sorter;
use file::{Clock, PerfFile};

/// The name of a process of perf's that is about to become the command.
const BEFORE_COMMAND: &[u8] = b"perf-exec";

/// What came of an import.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Imported {
    /// Events in the recording.
    pub events: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Events that perf lost.
    pub lost: u64,
    /// Events that could not be expressed.
    pub unreadable: u64,
}

/// Whether the file is a `perf.data`.
///
/// # Errors
/// It cannot be read.
pub fn is_perf_data(path: &Path) -> io::Result<bool> {
    let mut magic = vec![];
    File::open(path)?.take(8).read_to_end(&mut magic)?;
    Ok(magic == file::MAGIC)
}

/// Makes a recording of the `perf.data` at `input`.
///
/// # Errors
/// The input is no `perf.data`, is damaged or lacks what is needed; the output cannot be written.
pub fn import(input: &Path, output: &Path) -> Result<Imported, RecordError> {
    let input = BufReader::new(File::open(input).map_err(ReadError::Io)?);
    let perf = PerfFile::open(input)?;
    let output = File::create(output)
        .map_err(|error| RecordError::System { what: "creating the recording", error })?;
    import_opened(perf, output).map(|(_, imported)| imported)
}

/// Makes a recording of the `perf.data` in `input`.
///
/// # Errors
/// As [`import`].
pub fn import_from<R: Read + Seek, W: Write>(input: R, output: W) -> Result<(W, Imported), RecordError> {
    import_opened(PerfFile::open(input)?, output)
}

fn import_opened<R: Read + Seek, W: Write>(
    mut perf: PerfFile<R>,
    output: W,
) -> Result<(W, Imported), RecordError> {
    let (schema, tracepoints) = schema(&mut perf)?;
    let overview = Overview::of(&mut perf)?;
    let meta = meta(&mut perf, &overview, tracepoints)?;
    let start_ns = meta.start_ns;
    let membership =
        if overview.names_workload { Membership::AfterExec(BEFORE_COMMAND) } else { Membership::Everybody };
    let failed = |error, written: Written| RecordError::Output {
        error,
        kept_bytes: written.bytes,
        kept_events: written.events,
    };
    let writer = Writer::new(output, &meta).map_err(|error| failed(error, Written::default()))?;
    let mut assembler = Assembler::new(writer, schema, membership, Keep::System);
    if let Err(error) = assemble(&mut perf, &mut assembler)? {
        return Err(failed(error, assembler.writer().written()));
    }
    let Counts { events, lost, unreadable, left_out, last_time, .. } = assembler.counts();
    let outcome = RecordingEnd {
        end_ns: last_time.max(start_ns),
        events,
        lost,
        unreadable,
        left_out,
        ..RecordingEnd::default()
    };
    let kept = assembler.writer().written();
    let (output, written) = assembler.into_writer().finish(outcome).map_err(|error| failed(error, kept))?;
    Ok((output, Imported { events: written.events, bytes: written.bytes, lost, unreadable }))
}

/// Decoders for the tracepoints that the file describes, and their names.
fn schema<R: Read + Seek>(perf: &mut PerfFile<R>) -> Result<(Schema, Vec<String>), ReadError> {
    let section = perf.feature(file::FEATURE_TRACING)?.ok_or(ReadError::Unsupported(
        "has no tracepoints in it (or perf was killed before it finished): record with 'perf record -e kmem:*'",
    ))?;
    let (mut schema, mut names) = (Schema::default(), vec![]);
    for (system, format) in tracing::formats(&section)? {
        if schema.add(&format).is_ok_and(|is_known| is_known) {
            names.push(format!("{system}:{}", format.name));
        }
    }
    if names.is_empty() {
        return Err(ReadError::Unsupported(
            "has none of the tracepoints that a recording is made of (kmem:* …)",
        ));
    }
    Ok((schema, names))
}

/// What has to be known before the first event is written.
#[derive(Debug, Default)]
struct Overview {
    first_time: Option<u64>,
    cpu_max: u32,
    names_workload: bool,
}

impl Overview {
    /// Reads all records once.
    fn of<R: Read + Seek>(perf: &mut PerfFile<R>) -> Result<Self, ReadError> {
        let mut overview = Self::default();
        let mut about_to_exec = vec![];
        perf.walk(&mut |layout, head, body| {
            let Some((origin, record)) = layout.parse(head, body) else { return Ok(()) };
            if origin.time > 0 {
                overview.first_time = Some(overview.first_time.unwrap_or(u64::MAX).min(origin.time));
            }
            overview.cpu_max = overview.cpu_max.max(origin.cpu);
            if let Record::Comm { tid, name, .. } = record {
                if name == BEFORE_COMMAND {
                    about_to_exec.push(tid);
                } else if let Some(found) = about_to_exec.iter().position(|&waiting| waiting == tid) {
                    about_to_exec.swap_remove(found);
                    // `perf record -a sleep 10` means everybody for ten seconds.
                    overview.names_workload = name != b"sleep";
                }
            }
            Ok(())
        })?;
        if overview.cpu_max > u32::from(u16::MAX) {
            return Err(ReadError::Unsupported("names a CPU that cannot be"));
        }
        Ok(overview)
    }
}

fn meta<R: Read + Seek>(
    perf: &mut PerfFile<R>,
    overview: &Overview,
    tracepoints: Vec<String>,
) -> Result<Meta, ReadError> {
    let version = perf.text(file::FEATURE_VERSION)?;
    Ok(Meta {
        source: format!("perf {version}").trim_end().to_owned(),
        clock: if perf.clock() == Clock::Monotonic { "monotonic".into() } else { "perf".into() },
        kernel: perf.text(file::FEATURE_RELEASE)?,
        cpu_model: perf.text(file::FEATURE_CPU)?,
        cpus: perf.cpus()?.min(1 << 16).max(overview.cpu_max + 1),
        tracepoints,
        keep: Keep::System,
        command: perf.command()?,
        start_ns: overview.first_time.unwrap_or(0),
        ..Meta::default()
    })
}

/// Reads all records in order of time. The inner result is the output's.
fn assemble<R: Read + Seek, W: Write>(
    perf: &mut PerfFile<R>,
    assembler: &mut Assembler<W>,
) -> Result<io::Result<()>, ReadError> {
    let mut sorter = Sorter::default();
    let mut rounds = PerfRounds::default();
    let mut output = Ok(());
    let layouts = perf.layouts().clone();
    let mut release = |sorter: &mut Sorter, horizon| {
        sorter.release(horizon, |_, head, body| match layouts.of(head, body).parse(head, body) {
            Some((origin, record)) => assembler.take(origin, record),
            None => Ok(()),
        })
    };
    perf.walk(&mut |layout, head, body| {
        if output.is_err() {
            return Ok(());
        }
        if head.kind == walk::FINISHED_ROUND {
            output = release(&mut sorter, rounds.finish());
        } else if let Some((origin, _)) = layout.parse(head, body) {
            rounds.latest = rounds.latest.max(origin.time);
            sorter.push(origin.time, origin.cpu, head, body);
        }
        Ok(())
    })?;
    Ok(output.and_then(|()| release(&mut sorter, u64::MAX)))
}

/// perf reads its rings in rounds; what a round saw last, the round after next is past.
#[derive(Default)]
struct PerfRounds {
    latest: u64,
    latest_before: u64,
}

impl PerfRounds {
    /// Ends a round. Gives the time up to which all has come.
    fn finish(&mut self) -> u64 {
        std::mem::replace(&mut self.latest_before, self.latest)
    }
}

/// Length of a stream, whose position is then its start.
fn stream_len(stream: &mut impl Seek) -> io::Result<u64> {
    let len = stream.seek(SeekFrom::End(0))?;
    stream.seek(SeekFrom::Start(0))?;
    Ok(len)
}

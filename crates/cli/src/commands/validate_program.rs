//! `freehold validate --set K=a,b -- CMD`: a program run for real under each setting of this machine, in turn, recorded once, and
//! predicted under all of them by replays of that recording.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs};

use host::cgroup::CgroupLimit;
use host::command::{CommandUse, Outcome};
use host::settings::{self, Held, Left, Settings, SettingsError};
use lab::evidence::{Table, intervals};
use lab::findings::findings;
use lab::measurements::{Agreement, Document, Run, means};
use lab::replay::{Source, Variant, combinations, parse_settings_of_all, prove};
use lab::this_machine::probe::recorded_on;
use lab::validate::program::{Prediction, UnderSetting, compare, order};
use mm::Knob;
use mm::knobs::StandsFor;
use sim::Profile;
use trace::{Looking, Reader, RecordOptions, Target};

use super::validate::{profile, with_largest_ring};
use crate::args::{Global, Validate};
use crate::common::{CommandVerdict, Failure, Texts, answer, command_line, knob, note};
use crate::fail_if;
use crate::output::say;
use crate::progress::Bar;

/// Puts back what a killed program left behind, and says so even to those who want no notes.
pub(super) fn undo_left() -> Result<(), Failure> {
    let path = settings::journal_path();
    match settings::undo_left(&path) {
        Ok(Left::Nothing) => Ok(()),
        Ok(Left::Undone(held)) => {
            let files: Vec<String> =
                held.iter().map(|held| format!("{} = {}", held.path.display(), held.text)).collect();
            say(&format!(
                "freehold: put back what an earlier freehold left when it was killed: {}",
                files.join(", ")
            ));
            Ok(())
        }
        Err(error @ (SettingsError::Taken { .. } | SettingsError::Journal { .. })) => Err(Failure::of(error)),
        Err(error) => Err(Failure::at(&path, error)),
    }
}

pub(super) fn run(global: &Global, options: &Validate) -> Result<CommandVerdict, Failure> {
    let values = knob(parse_settings_of_all(&options.set))?;
    let bounds = fail_if::read(&options.bounds)?;
    let words = Command::of(&options.command)?;
    let variants = combinations(&values);
    let writes = variants.iter().map(writes).collect::<Result<Vec<_>, _>>()?;
    let limits = variants.iter().map(limits).collect();
    let stand_in = crate::common::machine("kvm-genoa-2c")?;
    let mut prediction =
        Prediction { profile: stand_in, settings: values, seed: global.seed, seeds: options.seeds };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    prediction.check(kernel.trim()).map_err(Failure::of)?;
    let (profile, notes) = profile(global, options)?;
    prediction.profile = profile;

    let folder =
        tempfile::tempdir().map_err(|error| Failure(format!("a folder for the recording: {error}")))?;
    let recording = folder.path().join("validate.rec");
    let mut work =
        Work { global, stop: trace::stop_on_signals().map_err(Failure::of)?, words, writes, limits, notes };
    let real = work.real_runs(&recording, options.repeats)?;
    let Work { words, notes, .. } = work;
    let source = read(&recording, &words.title, prediction.profile.clone())?;
    let predicted = predict(global, &prediction, &source)?;
    let all = variants.iter().zip(real).zip(predicted).map(|((variant, real), predicted)| UnderSetting {
        setting: variant.name(),
        real,
        predicted,
    });
    let all: Vec<UnderSetting> = all.collect();
    let mut document = Document { notes, ..Document::new(command_line()) };
    let mut validated = compare(words.title, &all);
    validated.left_out = left_out(&prediction, &source)?;
    document.runs = all.into_iter().flat_map(|under| under.predicted).collect();
    document.means = means(&document.runs);
    intervals(Table::bundled(), &mut document);
    document.findings = findings(&document.runs);
    fail_if::hold(&bounds, &mut document)?;
    document.proofs.extend(prove(&source, prediction.profile).map_err(Failure::of)?);
    let is_wrong = validated.changes.iter().any(|change| change.agreement == Agreement::Wrong);
    document.validated.push(validated);
    answer(
        global,
        &document,
        &Texts { short: report::verdict::program, full: report::validate_program::text },
    )?;
    let is_broken = fail_if::is_broken(&document);
    Ok(if is_broken || (is_wrong && options.strict) {
        CommandVerdict::FellShort
    } else {
        CommandVerdict::Fine
    })
}

/// What is to be written for a variant, a file each.
fn writes(variant: &Variant) -> Result<Vec<Held>, Failure> {
    let mut texts: BTreeMap<&'static str, String> = BTreeMap::new();
    for &(knob, value) in variant.knobs.iter().filter(|(knob, _)| !is_of_cgroup(*knob)) {
        let stands_for = knob.spec().stands_for;
        // A file that holds several numbers is written as the knobs before left it.
        let line = match stands_for.path() {
            Some(path) if !texts.contains_key(path) => {
                Some(settings::current(Path::new(path)).map_err(Failure::of)?)
            }
            path => path.and_then(|path| texts.get(path).cloned()),
        };
        let name = knob.spec().name;
        let Some(to_write) = knob.file_text(value, line.as_deref()) else {
            return Err(Failure(format!(
                "{name}={} cannot be set on a running kernel ({stands_for}): validate takes what a file of /proc/sys or /sys takes",
                knob.written(value)
            )));
        };
        fs::OpenOptions::new().write(true).open(to_write.path).map_err(|error| {
            Failure(format!(
                "{name}: {} cannot be written ({error}); validate -- CMD is for root",
                to_write.path
            ))
        })?;
        texts.insert(to_write.path, to_write.text);
    }
    Ok(texts.into_iter().map(|(path, text)| Held { path: path.into(), text }).collect())
}

fn is_of_cgroup(knob: Knob) -> bool {
    matches!(knob.spec().stands_for, StandsFor::Cgroup { .. })
}

/// What a variant sets of the cgroup that the command is to run in.
fn limits(variant: &Variant) -> Vec<CgroupLimit> {
    let limit = |&(knob, value): &(Knob, u64)| match knob.spec().stands_for {
        StandsFor::Cgroup { file, v1 } => {
            Some(CgroupLimit { file, v1, text: knob.written(value).to_string() })
        }
        _ => None,
    };
    variant.knobs.iter().filter_map(limit).collect()
}

/// A program with what it is called.
struct Command {
    title: String,
    words: Vec<OsString>,
}

impl Command {
    /// The command as it is run here and recorded: both times by a shell that becomes it, so that both have the same past.
    fn of(command: &[OsString]) -> Result<Self, Failure> {
        let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if !is_there(&command[0]) {
            return Err(Failure(format!("{}: there is no such command", words[0])));
        }
        let shell = ["/bin/sh", "-c", "exec \"$0\" \"$@\" </dev/null >/dev/null"].map(OsString::from);
        Ok(Self { title: words.join(" "), words: shell.into_iter().chain(command.iter().cloned()).collect() })
    }
}

fn is_there(program: &OsString) -> bool {
    let program = Path::new(program);
    let paths = env::var_os("PATH").unwrap_or_default();
    program.components().count() > 1 && program.exists()
        || env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// What the real runs need.
struct Work<'a> {
    global: &'a Global,
    stop: Arc<AtomicBool>,
    words: Command,
    /// The files of each setting.
    writes: Vec<Vec<Held>>,
    /// And its limits of the cgroup that the command runs in.
    limits: Vec<Vec<CgroupLimit>>,
    /// What to keep in mind, a sentence each.
    notes: Vec<String>,
}

impl Work<'_> {
    /// Runs the command under all settings, records it under the first, and puts all settings back, however that went.
    fn real_runs(&mut self, recording: &Path, repeats: u32) -> Result<Vec<Vec<CommandUse>>, Failure> {
        let mut paths: Vec<PathBuf> = self.writes.iter().flatten().map(|held| held.path.clone()).collect();
        paths.sort();
        paths.dedup();
        let settings = Settings::keep(settings::journal_path(), &paths).map_err(Failure::of)?;
        let outcome = self.measure(&settings, recording, repeats);
        settings.put_back().map_err(|error| Failure(format!("a setting could not be put back: {error}")))?;
        outcome
    }

    fn measure(
        &mut self,
        settings: &Settings,
        recording: &Path,
        repeats: u32,
    ) -> Result<Vec<Vec<CommandUse>>, Failure> {
        // What the kernel refuses is known before anything runs.
        (0..self.writes.len()).rev().try_for_each(|number| self.set(settings, number))?;
        let order = order(self.writes.len(), repeats);
        let bar = Bar::new(self.global, order.len() as u64 + 2);
        bar.step("warming up".into());
        self.once(&[])?;
        bar.step("recording".into());
        self.record(recording)?;
        let mut real = vec![vec![]; self.writes.len()];
        for (done, number) in order.iter().copied().enumerate() {
            bar.step(format!("real run {} of {}", done + 1, order.len()));
            self.set(settings, number)?;
            real[number].push(self.once(&self.limits[number])?);
        }
        bar.done();
        Ok(real)
    }

    fn set(&self, settings: &Settings, number: usize) -> Result<(), Failure> {
        self.writes[number].iter().try_for_each(|held| settings.write(held)).map_err(Failure::of)
    }

    /// One real run.
    fn once(&self, limits: &[CgroupLimit]) -> Result<CommandUse, Failure> {
        let outcome = host::command::run(&self.words.words, limits, &self.stop);
        match outcome.map_err(|error| Failure(format!("{}: {error}", self.words.title)))? {
            Outcome::Ended(0, used) => Ok(used),
            // Killed for its limit: that is what was asked.
            Outcome::Ended(_, used) if used.cgroup.get("oom_kill").is_some_and(|count| *count > 0) => {
                Ok(used)
            }
            Outcome::Ended(status, _) => Err(self.failed(status)),
            Outcome::Stopped => Err(stopped()),
        }
    }

    fn failed(&self, status: i32) -> Failure {
        Failure(format!(
            "{} ended with status {status}: only a command that succeeds is compared; settings were put back",
            self.words.title
        ))
    }

    fn record(&mut self, recording: &Path) -> Result<(), Failure> {
        let mut options = RecordOptions::new(recording.to_owned(), Target::Command(self.words.words.clone()));
        options.stop = Arc::clone(&self.stop);
        // What a limit takes is missed only where it is used again.
        options.accessed = self.limits.iter().any(|limits| !limits.is_empty()).then_some(Looking::Often);
        let summary = with_largest_ring(&mut options)?;
        if summary.interrupted || self.stop.load(Ordering::Acquire) {
            return Err(stopped());
        }
        if let Some(status) = summary.exit_status.filter(|status| *status != 0) {
            return Err(self.failed(status));
        }
        note(self.global, &format!("recorded {} events, without transparent huge pages", summary.events));
        if summary.lost > 0 {
            self.notes.push(format!("{} events of the recording were lost.", summary.lost));
        }
        Ok(())
    }
}

fn stopped() -> Failure {
    Failure("stopped from outside; settings were put back".into())
}

/// What was recorded here, on the machine that `profile` is asked to be.
fn read(recording: &Path, name: &str, profile: Profile) -> Result<Source, Failure> {
    let at = |error: trace::ReadError| Failure::at(recording, error);
    let mut reader = Reader::open(recording).map_err(at)?;
    let on = recorded_on(profile).map_err(Failure::of)?;
    Source::read(&mut reader, name, &on).map_err(at)
}

/// A prediction of each setting, with every seed.
fn predict(global: &Global, prediction: &Prediction, source: &Source) -> Result<Vec<Vec<Run>>, Failure> {
    let values: usize = prediction.settings.iter().map(|setting| setting.values.len()).product();
    let bar = Bar::new(global, values as u64 * u64::from(prediction.seeds));
    let done = |run: &Run| bar.step(format!("predicting {}, seed {}", run.variant, run.seed));
    let runs = prediction.runs(source, &done).map_err(Failure::of)?;
    bar.done();
    Ok(runs)
}

/// What a reader of the comparison has to know, a sentence each.
fn left_out(prediction: &Prediction, source: &Source) -> Result<Vec<String>, Failure> {
    let mut said = vec![];
    let is_huge = |name: &str| name.starts_with("transparent_hugepage") || name.starts_with("khugepaged");
    if prediction.settings.iter().any(|setting| is_huge(setting.knob.spec().name)) {
        let walks = match source {
            Source::Program(program) if !program.walked.is_empty() => {
                "What huge pages save in walks of page tables is estimated from samples of accessed bits; the size of such \
                 estimates is not proven (docs/model.md#tlb-misses)."
            }
            _ => {
                "The prediction leaves out that huge pages save TLB misses: between faults the program computes as long as it \
                 did when it was recorded, with small pages alone."
            }
        };
        said.push(walks.to_owned());
        if source.programs().iter().any(|program| program.surroundings.reports_free_pages) {
            said.push(lab::validate::HOSTS_MEMORY.to_owned());
        }
    }
    let refusals = prediction.refusals(source).map_err(Failure::of)?;
    said.extend(refusals.into_iter().map(|refusal| format!("{refusal}: predicted to change nothing.")));
    said.push(
        "Huge faults and the kernel's counters are of the whole machine while the command ran. Peak RSS is that of the largest \
         process. Run time predicted leaves out waiting for a CPU that others had."
            .to_owned(),
    );
    Ok(said)
}

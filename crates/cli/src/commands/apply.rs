//! `freehold apply`: writes a plan's settings to this machine, watches it if asked to, and takes them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use host::settings::{self, Applied, Held, Others, Settings, TakenBack};
use host::watch::{Sample, Watcher};
use lab::apply::{Broken, Kernel, Plan, Step, WINDOW_NS, Watch, WatchError, Watched, Way, check, writes};
use lab::replay::parse_settings_of_all;
use report::Style;
use report::nearest::unknown;
use schemars::JsonSchema;
use serde::Serialize;

use super::validate_program::undo_left;
use crate::args::{Apply, Global};
use crate::common::{CommandVerdict, Failure, knob, note, policy, show};
use crate::progress::Bar;

/// Faults of our own at each look, where these are watched.
const FAULTS: usize = 500;
const LOOK: Duration = Duration::from_secs(1);

/// What `--json` prints.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Report {
    /// `dry-run`, `applied`, `put back` or `nothing to write`.
    outcome: &'static str,
    settings: Vec<SettingReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watched: Vec<WatchedReport>,
    /// The bound that was broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<String>,
}

/// A setting of the plan.
#[derive(JsonSchema, Serialize)]
struct SettingReport {
    knob: &'static str,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<String>,
    /// Why nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cannot_be_undone: Option<&'static str>,
}

/// A figure that was watched.
#[derive(JsonSchema, Serialize)]
struct WatchedReport {
    bound: String,
    unit: &'static str,
    limit: Option<f64>,
    before: Option<f64>,
    during: Option<f64>,
    worst: Option<f64>,
}

pub(crate) fn run(global: &Global, options: &Apply) -> Result<CommandVerdict, Failure> {
    if options.revert {
        return revert(global, options);
    }
    let plan = plan(options)?;
    let kernel = match &options.kernel {
        None => Kernel::Running,
        Some(name) => {
            let name = if name.starts_with("linux-") { name.clone() } else { format!("linux-{name}") };
            Kernel::Of(Box::new(policy(&name)?))
        }
    };
    let steps = check(&plan, &kernel);
    if options.dry_run || options.kernel.is_some() {
        print(global, "dry-run", &steps, None)?;
        let all_can = steps.iter().all(|step| !matches!(step.way, Way::Not(_)));
        return Ok(if all_can { CommandVerdict::Fine } else { CommandVerdict::FellShort });
    }
    undo_left()?;
    apply(global, options, &steps)
}

fn plan(options: &Apply) -> Result<Plan, Failure> {
    if let Some(path) = &options.plan {
        let text = fs::read_to_string(path).map_err(|error| Failure::at(path, error))?;
        return Plan::parse(&text).map_err(|error| Failure::at(path, error));
    }
    let settings = knob(parse_settings_of_all(&options.set))?;
    if settings.is_empty() {
        return Err(Failure("apply needs a plan: a file of KNOB = VALUE lines, or --set KNOB=V".to_owned()));
    }
    if let Some(several) = settings.iter().find(|setting| setting.values.len() > 1) {
        let name = several.knob.spec().name;
        return Err(Failure(format!("--set {name} has several values; a machine has one at a time")));
    }
    Ok(Plan::of(settings.iter().map(|setting| (setting.knob, setting.values[0])).collect()))
}

/// Nothing is written unless all of the plan that a running kernel can have can be written.
fn apply(global: &Global, options: &Apply, steps: &[Step]) -> Result<CommandVerdict, Failure> {
    let cannot = steps.iter().find_map(|step| match &step.way {
        Way::Not(why) => Some(format!("{}: {why}; nothing was written", step.knob.spec().name)),
        _ => None,
    });
    if let Some(why) = cannot {
        return Err(Failure(why));
    }
    let held = writes(steps);
    for file in &held {
        let opened = fs::OpenOptions::new().write(true).open(&file.path);
        opened.map_err(|error| {
            Failure(format!("{}: {error}; apply is for root; nothing was written", file.path.display()))
        })?;
    }
    let mut watching = options.watch.map(|lasts| Watching::new(global, options, lasts)).transpose()?;
    let paths: Vec<_> = held.iter().map(|held| held.path.clone()).collect();
    let kept = Settings::keep(settings::journal_path(), &paths).map_err(Failure::of)?;
    held.iter().try_for_each(|held| kept.write(held)).map_err(Failure::of)?;
    if let Some(watching) = &mut watching {
        if let Some(end) = watching.until_the_end(global)? {
            kept.put_back().map_err(|error| Failure(format!("a setting could not be put back: {error}")))?;
            return end.said(global, steps, watching);
        }
    }
    stay(kept, &held)?;
    let outcome = if held.is_empty() { "nothing to write" } else { "applied" };
    print(global, outcome, steps, watching.as_ref().map(|watching| (watching, None)))?;
    note(
        global,
        if held.is_empty() {
            "nothing was to be written"
        } else {
            "applied; `freehold apply --revert` puts back what was there"
        },
    );
    Ok(CommandVerdict::Fine)
}

/// From here on the settings stay. What was there is noted before the journal goes: whoever is killed in between leaves both, and the
/// next start puts all back.
fn stay(kept: Settings, held: &[Held]) -> Result<(), Failure> {
    let path = settings::applied_path();
    let mut applied = Applied::read(&path).map_err(Failure::of)?;
    applied.add(kept.before(), held);
    applied.save(&path).map_err(Failure::of)?;
    kept.leave().map_err(Failure::of)
}

fn revert(global: &Global, options: &Apply) -> Result<CommandVerdict, Failure> {
    undo_left()?;
    let path = settings::applied_path();
    let mut applied = Applied::read(&path).map_err(Failure::of)?;
    if applied.changes().is_empty() {
        applied.save(&path).map_err(Failure::of)?;
        note(global, "nothing that apply has written in this boot is left to put back");
        return Ok(CommandVerdict::Fine);
    }
    let said = applied.take_back(if options.force { Others::AreWritten } else { Others::AreLeft });
    applied.save(&path).map_err(Failure::of)?;
    let settings = said.iter().map(|(change, became)| RevertedReport {
        file: change.path.display().to_string(),
        before: change.before.clone(),
        wrote: change.wrote.clone(),
        is_back: matches!(became, TakenBack::Done | TakenBack::WasBack),
    });
    let settings: Vec<RevertedReport> = settings.collect();
    let all_back = settings.iter().all(|setting| setting.is_back);
    show(global, "Settings taken back", &RevertedSettings { reverted: settings }, |style| {
        report::apply::taken_back(style, &said)
    })?;
    Ok(if all_back { CommandVerdict::Fine } else { CommandVerdict::FellShort })
}

/// What `--json` prints of them.
#[derive(JsonSchema, Serialize)]
pub(crate) struct RevertedSettings {
    reverted: Vec<RevertedReport>,
}

/// A setting that was taken back, as `--json` prints it.
#[derive(JsonSchema, Serialize)]
struct RevertedReport {
    file: String,
    before: String,
    wrote: String,
    is_back: bool,
}

/// A watch that is under way.
struct Watching {
    watch: Watch,
    watcher: Watcher,
    lasts: Duration,
    stop: Arc<AtomicBool>,
}

/// Why a watch ended before its time.
enum End {
    Broken(Broken),
    Stopped,
}

impl Watching {
    /// Reads the bounds, and looks at the machine for ten seconds where they are parts of what was before.
    fn new(global: &Global, options: &Apply, lasts: Duration) -> Result<Self, Failure> {
        let now = Watcher::new(0).look().map_err(Failure::of)?;
        let watch = if options.keep.is_empty() {
            Ok(Watch::by_default(&now))
        } else {
            Watch::parse(&options.keep, &now)
        };
        let mut watch = watch.map_err(|error| match &error {
            WatchError::Unknown { figure, known } => {
                Failure(unknown("figure", figure, known.iter().map(String::as_str), "freehold apply --help"))
            }
            _ => Failure::of(error),
        })?;
        let faults = if watch.needs_faults() { FAULTS } else { 0 };
        let stop = trace::stop_on_signals().map_err(Failure::of)?;
        let mut watching = Self { watcher: Watcher::new(faults), watch: watch.clone(), lasts, stop };
        let window =
            Duration::from_nanos(if watch.needs_before() { WINDOW_NS } else { LOOK.as_nanos() as u64 });
        let before = watching.before(global, window)?;
        watch.begin(&before).map_err(Failure::of)?;
        watching.watch = watch;
        Ok(watching)
    }

    fn before(&self, global: &Global, window: Duration) -> Result<Vec<Sample>, Failure> {
        let mut samples = vec![self.watcher.look().map_err(Failure::of)?];
        let start = Instant::now();
        let bar = Bar::new(global, window.as_secs());
        while start.elapsed() < window {
            self.pause()?;
            bar.step("looking at the machine as it is".to_owned());
            samples.push(self.watcher.look().map_err(Failure::of)?);
        }
        bar.done();
        Ok(samples)
    }

    fn pause(&self) -> Result<(), Failure> {
        let start = Instant::now();
        while start.elapsed() < LOOK {
            if self.stop.load(Ordering::Acquire) {
                return Err(Failure("stopped from outside; nothing was written".to_owned()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Looks every second; why it ended, unless by time.
    fn until_the_end(&mut self, global: &Global) -> Result<Option<End>, Failure> {
        let start = Instant::now();
        let bar = Bar::new(global, self.lasts.as_secs());
        loop {
            let sample = self.watcher.look().map_err(Failure::of)?;
            if let Some(broken) = self.watch.look(sample) {
                return Ok(Some(End::Broken(broken)));
            }
            if start.elapsed() >= self.lasts {
                bar.done();
                return Ok(None);
            }
            if self.pause().is_err() {
                return Ok(Some(End::Stopped));
            }
            bar.step("watching".to_owned());
        }
    }
}

impl End {
    fn said(self, global: &Global, steps: &[Step], watching: &Watching) -> Result<CommandVerdict, Failure> {
        match self {
            Self::Broken(broken) => {
                print(global, "put back", steps, Some((watching, Some(&broken))))?;
                Ok(CommandVerdict::FellShort)
            }
            Self::Stopped => Err(Failure("stopped from outside; settings were put back".to_owned())),
        }
    }
}

fn print(
    global: &Global,
    outcome: &'static str,
    steps: &[Step],
    watching: Option<(&Watching, Option<&Broken>)>,
) -> Result<(), Failure> {
    let watched: &[Watched] = watching.map_or(&[], |(watching, _)| watching.watch.watched());
    let broken = watching.and_then(|(_, broken)| broken).map(ToString::to_string);
    let json = Report {
        outcome,
        settings: steps.iter().map(setting).collect(),
        watched: watched.iter().map(watched_report).collect(),
        broken: broken.clone(),
    };
    show(global, "Settings for this machine", &json, |style: Style| {
        let mut text = report::apply::plan(style, steps);
        if !watched.is_empty() {
            text += "\n";
            text += &report::apply::watched(style, watched);
        }
        if let Some(broken) = &broken {
            text += &style.bad(&format!("{broken}; all settings were put back"));
            text += "\n";
        }
        text
    })
}

fn setting(step: &Step) -> SettingReport {
    let (mut file, mut now, mut write, mut why_not) = (None, None, None, None);
    match &step.way {
        Way::Write { path, text, now: held } => {
            (file, now, write) = (Some(*path), held.clone(), Some(text.clone()));
        }
        Way::IsSo { path } => (file, why_not) = (Some(*path), Some("it is so already".to_owned())),
        Way::Boot { words } => {
            why_not = Some(format!("{words} on the kernel's command line, from the next boot on"));
        }
        Way::Not(why) => why_not = Some(why.clone()),
    }
    let value = step.knob.written(step.value).to_string();
    SettingReport {
        knob: step.knob.spec().name,
        value,
        file,
        now,
        write,
        why_not,
        cannot_be_undone: step.leaves,
    }
}

fn watched_report(watched: &Watched) -> WatchedReport {
    let Watched { limit, before, during, worst, .. } = *watched;
    WatchedReport { bound: watched.bound.to_string(), unit: watched.unit(), limit, before, during, worst }
}

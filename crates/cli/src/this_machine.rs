//! `--machine this`: a profile of the machine at hand. It is measured once and kept in the user's cache directory, under
//! a name that stands for the CPUs' model, the kernel and the topology; another of these is another machine.

use std::cell::OnceCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use host::probe::Hardware;
use lab::replay::RecordedOn;
use lab::this_machine::probe::recorded_on;
use sim::Profile;
use sim::profile::digest;
use trace::{Meta, Reader};

use crate::args::Global;
use crate::common::{Failure, machine, note};
use crate::progress::Bar;

/// What the machine at hand is called where a machine is asked for.
pub(crate) const THIS: &str = "this";

/// What stands for a machine that is not known, or not yet.
pub(crate) const STAND_IN: &str = "kvm-genoa-2c";

/// The first words of a kept profile. Whatever changes what a probe measures or a profile holds raises the number.
const HEADER: &str = "# freehold machine cache 3";

/// What stands before each note.
const NOTE: &str = "# note: ";

/// What stands for a machine that made a recording.
pub(crate) fn stand_in() -> Result<RecordedOn, Failure> {
    machine(STAND_IN).map(RecordedOn::StandIn)
}

/// A profile of this machine, and what to keep in mind about it.
pub(crate) struct This {
    pub(crate) profile: Profile,
    pub(crate) notes: Vec<String>,
}

/// The machine called so; `this` is the machine at hand.
pub(crate) fn machine_or_this(global: &Global, name: &str) -> Result<Profile, Failure> {
    if name != THIS {
        return machine(name);
    }
    let this = this_machine(global)?;
    for line in &this.notes {
        note(global, &format!("this machine: {line}"));
    }
    Ok(this.profile)
}

/// The machines that a command names. The one at hand is measured when it is first needed, and once.
pub(crate) struct Machines<'a> {
    global: &'a Global,
    names: &'a [String],
    this: OnceCell<Profile>,
}

impl<'a> Machines<'a> {
    pub(crate) fn new(global: &'a Global, names: &'a [String]) -> Self {
        Self { global, names, this: OnceCell::new() }
    }

    /// All of them.
    pub(crate) fn profiles(&self) -> Result<Vec<Profile>, Failure> {
        self.names.iter().map(|name| if name == THIS { self.this() } else { machine(name) }).collect()
    }

    /// The machine that made the recording at `path`: the one at hand, if that is named and made it, else what stands for it. What is kept of the
    /// one at hand is not looked at where it is not named: a result would depend on that.
    pub(crate) fn that_made(&self, path: &Path) -> Result<RecordedOn, Failure> {
        let is_named = self.names.iter().any(|name| name == THIS);
        if is_named && Reader::open(path).is_ok_and(|reader| is_of_here(reader.meta())) {
            recorded_on(self.this()?).map_err(Failure::of)
        } else {
            stand_in()
        }
    }

    fn this(&self) -> Result<Profile, Failure> {
        if let Some(this) = self.this.get() {
            return Ok(this.clone());
        }
        let this = machine_or_this(self.global, THIS)?;
        Ok(self.this.get_or_init(|| this).clone())
    }
}

/// This machine: as it was measured before, or measured now. A note says which, and where the profile lies.
pub(crate) fn this_machine(global: &Global) -> Result<This, Failure> {
    let (this, said) = kept_or(folder().as_deref(), || measure(global))?;
    note(global, &said);
    Ok(this)
}

/// What is kept in `folder`, or what `measure` finds, which is then kept; and a line on which of these it was.
fn kept_or(
    folder: Option<&Path>,
    measure: impl FnOnce() -> Result<This, Failure>,
) -> Result<(This, String), Failure> {
    let Some(folder) = folder else {
        let said =
            "this machine was measured; not kept, for neither XDG_CACHE_HOME nor HOME is an absolute path";
        return Ok((measure()?, said.into()));
    };
    let file = folder.join(format!("machine-{}.toml", key()));
    let path = file.display();
    if let Some(this) = fs::read_to_string(&file).ok().and_then(|text| read(&text)) {
        return Ok((this, format!("this machine as measured before: {path} (delete it to measure anew)")));
    }
    let this = measure()?;
    let said = match keep(&file, &text(&this)) {
        Ok(()) => format!("this machine was measured; kept in {path}"),
        Err(error) => format!("this machine was measured; it cannot be kept in {path}: {error}"),
    };
    Ok((this, said))
}

fn measure(global: &Global) -> Result<This, Failure> {
    let bar = Bar::new(global, 0);
    bar.step("measuring this machine, 5 to 25 seconds".into());
    let probe = host::probe::run(|what| bar.step(format!("measuring this machine: {what}")));
    bar.done();
    let probed =
        lab::this_machine::probe::profile(&probe.map_err(Failure::of)?, THIS).map_err(Failure::of)?;
    Ok(This { profile: probed.profile, notes: probed.notes })
}

/// The user's cache directory for this program.
fn folder() -> Option<PathBuf> {
    // A relative path is to be ignored, says the XDG specification.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("freehold"))
}

/// Stands for the machine: CPUs, caches, memory, the kernel, and the CPUs that this process may use.
fn key() -> String {
    let hardware = Hardware { notes: vec![], ..Hardware::this() };
    let allowed = host::probe::allowed().unwrap_or_default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    digest(format!("{hardware:?} {} {allowed:?}", release.trim()))
}

/// Whether a recording's `meta` is of this machine and its kernel.
fn is_of_here(meta: &Meta) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = Hardware::this().model;
    !model.is_empty() && meta.cpu_model == model && meta.kernel == release.trim()
}

/// A profile as it is kept: a line with a digest of all that follows it.
fn text(this: &This) -> String {
    let notes = this.notes.iter().map(|note| format!("{NOTE}{}\n", note.replace('\n', " ")));
    let body = notes.collect::<String>() + &this.profile.to_toml();
    format!("{HEADER} {}\n{body}", digest(&body))
}

/// A kept profile, if it is whole and of this version.
fn read(text: &str) -> Option<This> {
    let (head, body) = text.split_once('\n')?;
    if head.strip_prefix(HEADER)?.strip_prefix(' ')? != digest(body) {
        return None;
    }
    let notes = body.lines().filter_map(|line| line.strip_prefix(NOTE)).map(str::to_owned).collect();
    Some(This { profile: Profile::parse(THIS, body).ok()?, notes })
}

/// Writes the whole file or none: several programs may do so at once.
fn keep(file: &Path, text: &str) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> This {
        let profile = Profile::parse(THIS, &Profile::load("xeon-8260").unwrap().to_toml()).unwrap();
        This { profile, notes: vec!["others were busy".into(), "two\nlines".into()] }
    }

    #[test]
    fn a_kept_profile_is_read_as_it_was() {
        let back = read(&text(&this())).unwrap();
        assert_eq!(back.profile, this().profile);
        assert_eq!(back.notes, ["others were busy", "two lines"]);
    }

    #[test]
    fn a_recording_is_of_here_by_its_cpu_and_kernel() {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim().to_owned();
        let here = Meta { cpu_model: Hardware::this().model, kernel, ..Meta::default() };
        assert!(here.cpu_model.is_empty() || is_of_here(&here));
        assert!(!is_of_here(&Meta { kernel: "6.1.0".into(), ..here.clone() }));
        assert!(!is_of_here(&Meta { cpu_model: "another".into(), ..here }));
        assert!(!is_of_here(&Meta::default()));
    }

    #[test]
    fn one_that_is_damaged_or_of_another_version_is_none() {
        let kept = text(&this());
        let other = kept.replacen(HEADER, "# freehold machine cache 2", 1);
        assert!(other != kept && read(&kept).is_some() && read(&other).is_none());
        assert!(read(&kept.replacen("value = 1", "value = 2", 1)).is_none());
        assert!(read(&kept[..kept.len() / 2]).is_none());
        assert!(read("").is_none() && read("x\ny").is_none());
    }

    #[test]
    fn it_is_measured_once_and_again_where_the_file_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("freehold");
        let (_, said) = kept_or(Some(&folder), || Ok(this())).unwrap();
        assert!(said.starts_with("this machine was measured; kept in "), "{said}");
        let (kept, said) = kept_or(Some(&folder), || panic!("measured twice")).unwrap();
        assert!(said.starts_with("this machine as measured before: "), "{said}");
        assert_eq!(kept.profile, this().profile);
        let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        assert!(said.contains(file.to_str().unwrap()), "{said}");
        fs::write(&file, &fs::read(&file).unwrap()[..1000]).unwrap();
        let (_, said) = kept_or(Some(&folder), || Ok(this())).unwrap();
        assert!(said.starts_with("this machine was measured; kept in "), "{said}");
        assert!(kept_or(Some(&folder), || panic!("measured again")).is_ok());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_said_and_no_failure() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (_, said) = kept_or(Some(file.path()), || Ok(this())).unwrap();
        assert!(said.contains("cannot be kept"), "{said}");
        let (_, said) = kept_or(None, || Ok(this())).unwrap();
        assert!(said.contains("not kept"), "{said}");
    }

    #[test]
    fn it_is_kept_whole_in_a_folder_that_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b/machine.toml");
        keep(&file, "one").unwrap();
        keep(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }
}

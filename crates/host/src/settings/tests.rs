//! The journal, on a made-up folder of settings.

use std::process::{Command, Stdio};

use super::*;

struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let house = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(house.file("enabled"), "always [madvise] never\n").unwrap();
        fs::write(house.file("reserve"), "256\t256\t32\n").unwrap();
        house
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn journal(&self) -> PathBuf {
        self.file("state/freehold/settings.journal")
    }

    fn keep(&self) -> Settings {
        Settings::keep(self.journal(), &[self.file("enabled"), self.file("reserve")]).unwrap()
    }

    fn held(&self, name: &str, text: &str) -> Held {
        Held { path: self.file(name), text: text.into() }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// A journal as a program leaves it that was killed after its writes. A child that has ended was its owner.
    fn killed(&self) {
        let settings = self.keep();
        settings.write(&self.held("enabled", "never")).unwrap();
        settings.write(&self.held("reserve", "1 2 3")).unwrap();
        std::mem::forget(settings);
        let text = fs::read_to_string(self.journal()).unwrap();
        let mut child = Command::new("true").stdout(Stdio::null()).spawn().unwrap();
        child.wait().unwrap();
        let us = format!("\n{} ", std::process::id());
        assert!(text.contains(&us), "{text}");
        fs::write(self.journal(), text.replacen(&us, &format!("\n{} ", child.id()), 1)).unwrap();
    }
}

#[test]
fn settings_are_written_and_put_back() {
    let house = House::new();
    let settings = house.keep();
    assert!(house.journal().exists(), "before the first write");
    settings.write(&house.held("enabled", "never")).unwrap();
    settings.write(&house.held("reserve", "256 128 32")).unwrap();
    assert_eq!((house.text("enabled"), house.text("reserve")), ("never\n".into(), "256 128 32\n".into()));
    settings.put_back().unwrap();
    assert_eq!((house.text("enabled"), house.text("reserve")), ("madvise\n".into(), "256\t256\t32\n".into()));
    assert!(!house.journal().exists());
}

#[test]
fn whoever_fails_puts_back_too() {
    let house = House::new();
    let settings = house.keep();
    settings.write(&house.held("enabled", "always")).unwrap();
    drop(settings);
    assert_eq!(house.text("enabled"), "madvise\n");
    assert!(!house.journal().exists());
}

#[test]
fn what_a_killed_program_left_is_undone_once() {
    let house = House::new();
    house.killed();
    assert_eq!(house.text("enabled"), "never\n");
    let undone = vec![house.held("enabled", "madvise"), house.held("reserve", "256\t256\t32")];
    assert_eq!(undo_left(&house.journal()).unwrap(), Left::Undone(undone));
    assert_eq!((house.text("enabled"), house.text("reserve")), ("madvise\n".into(), "256\t256\t32\n".into()));
    assert_eq!(undo_left(&house.journal()).unwrap(), Left::Nothing);
}

#[test]
fn one_that_runs_is_not_undone_and_has_no_second() {
    let house = House::new();
    let settings = house.keep();
    settings.write(&house.held("enabled", "never")).unwrap();
    let this = std::process::id();
    assert!(matches!(undo_left(&house.journal()), Err(SettingsError::Taken { pid }) if pid == this));
    let second = Settings::keep(house.journal(), &[house.file("enabled")]);
    assert!(matches!(second, Err(SettingsError::Taken { pid }) if pid == this));
    assert_eq!(house.text("enabled"), "never\n", "the second took nothing back");
    settings.put_back().unwrap();
}

#[test]
fn a_damaged_journal_is_refused_and_stays() {
    let house = House::new();
    house.killed();
    fs::write(house.journal(), "freehold settings 1\n12").unwrap();
    let error = undo_left(&house.journal()).unwrap_err().to_string();
    assert!(error.contains("not a journal of freehold's"), "{error}");
    assert!(house.journal().exists());
}

#[test]
fn one_of_an_earlier_boot_is_removed_and_nothing_written() {
    let house = House::new();
    house.killed();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(house.journal()).unwrap();
    fs::write(house.journal(), text.replace(boot.trim(), "another-boot")).unwrap();
    assert_eq!(undo_left(&house.journal()).unwrap(), Left::Nothing);
    assert_eq!(house.text("enabled"), "never\n");
    assert!(!house.journal().exists());
}

#[test]
fn files_that_are_missing_or_not_written_are_said() {
    let house = House::new();
    let none = Settings::keep(house.journal(), &[house.file("no-such")]).unwrap_err();
    assert!(matches!(none, SettingsError::Read { .. }) && !house.journal().exists());
    let settings = house.keep();
    fs::remove_file(house.file("enabled")).unwrap();
    let gone = settings.write(&house.held("enabled", "never")).unwrap_err();
    assert!(matches!(gone, SettingsError::Write { .. }), "{gone}");
    assert!(!house.file("enabled").exists(), "none is made");
    // The others are put back, and the journal stays for the one that could not be.
    settings.write(&house.held("reserve", "1 2 3")).unwrap();
    settings.put_back().unwrap_err();
    assert_eq!(house.text("reserve"), "256\t256\t32\n");
    assert!(house.journal().exists());
}

#[test]
fn a_file_in_bytes_is_made_0_by_the_other_if_that_was_in_force() {
    let house = House::new();
    let set = |in_parts: &str, in_bytes: &str| {
        fs::write(house.file("dirty_ratio"), in_parts).unwrap();
        fs::write(house.file("dirty_bytes"), in_bytes).unwrap();
        Settings::keep(house.journal(), &[house.file("dirty_bytes")]).unwrap()
    };
    let settings = set("20\n", "0\n");
    fs::write(house.file("dirty_ratio"), "0\n").unwrap();
    settings.write(&house.held("dirty_bytes", "0")).unwrap();
    assert_eq!(house.text("dirty_ratio"), "20\n");
    settings.put_back().unwrap();
    // A ratio of 0 was not: it would hold up whoever writes. The kernel refuses what is written instead.
    let settings = set("0\n", "4096\n");
    fs::write(house.file("dirty_ratio"), "7\n").unwrap();
    settings.write(&house.held("dirty_bytes", "0")).unwrap();
    assert_eq!((house.text("dirty_ratio").as_str(), house.text("dirty_bytes").as_str()), ("7\n", "0\n"));
    settings.put_back().unwrap();
    assert_eq!(house.text("dirty_bytes"), "4096\n");
}

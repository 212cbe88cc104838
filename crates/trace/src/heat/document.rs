//! The result of watching a program's pages: the regions, and what a reader needs to judge them.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::regions::Region;

/// How often the pages of a program are accessed.
#[derive(Clone, PartialEq, Debug)]
pub struct Heat {
    /// What was watched, in a line.
    pub title: String,
    /// The command as a shell would take it; of a process that ran already, with a word that says so.
    pub command: String,
    /// The name of the process that the figures are of.
    pub process: String,
    /// The kernel's release.
    pub kernel: String,
    /// The CPUs' model.
    pub cpu_model: String,
    /// The day, as `2026-11-22`.
    pub date: String,
    /// Rounds that the figures are medians of.
    pub rounds: usize,
    /// Rounds that the end of a process cut short, and whole ones of other processes of the tree.
    pub rounds_left_out: usize,
    /// From the start of a round to the start of the next, in seconds.
    pub interval_s: f64,
    /// How long the program had run, or had been waited for, before the first round, in seconds.
    pub after_s: f64,
    /// CPU time that the process had in a second of a round, in seconds: the median.
    pub cpu_s: f64,
    /// What a clearing took, in ns: the median.
    pub clear_ns: u64,
    /// What a look took, in ns: the median.
    pub look_ns: u64,
    /// Whether what the CPUs remembered of the page tables was thrown away after each clearing. Where it was not, pages
    /// that are in constant use can seem to be unused.
    pub flushed: bool,
    /// What of the last look stood in huge pages, in KiB.
    pub huge_kib: u64,
    /// The command's exit status, or 128 + the signal that ended it; of a command that ended by itself.
    pub exit_status: Option<i32>,
    /// All of the process as one region.
    pub all: Region,
    /// Its parts, the largest first; the rest comes last.
    pub regions: Vec<Region>,
}

/// A region as documents have it.
#[derive(Serialize)]
struct RegionEntry<'a> {
    name: &'a str,
    mib: f64,
    within_100ms: f64,
    within_1s: f64,
    within_5s: f64,
    rounds: usize,
}

impl<'a> From<&'a Region> for RegionEntry<'a> {
    fn from(region: &'a Region) -> Self {
        let [within_100ms, within_1s, within_5s] = region.within;
        Self {
            name: &region.name,
            mib: region.mib(),
            within_100ms,
            within_1s,
            within_5s,
            rounds: region.rounds,
        }
    }
}

impl Region {
    /// Resident memory in MiB.
    pub fn mib(&self) -> f64 {
        self.resident_kib as f64 / 1024.0
    }
}

impl Heat {
    /// How it was measured, in a line.
    pub fn source(&self) -> String {
        format!(
            "measured on {} with Linux {} by clear_refs and smaps, medians of {}",
            self.date,
            self.kernel,
            rounds(self.rounds)
        )
    }

    /// What else has to be known to judge the figures: a few lines.
    pub fn notes(&self) -> Vec<String> {
        let ms = |ns: u64| Duration::from_nanos(ns).as_secs_f64() * 1e3;
        let mut notes = vec![format!(
            "accessed bits cleared at the start of each round, looked at after 0.1 s, 1 s and 5 s; a round every {} s, \
             the first after {} s; the process had {:.2} s of CPU time in a second; a clearing took {:.1} ms, a look {:.1} ms",
            self.interval_s,
            self.after_s,
            self.cpu_s,
            ms(self.clear_ns),
            ms(self.look_ns),
        )];
        if self.rounds_left_out > 0 {
            notes.push(format!(
                "{} left out: cut short by the end of a process, or of another process than {}",
                rounds(self.rounds_left_out),
                self.process
            ));
        }
        if self.huge_kib > 0 {
            notes.push(format!(
                "{:.1} MiB stood in huge pages at the last look, each seen as a whole: accessed memory is overstated",
                self.huge_kib as f64 / 1024.0
            ));
        }
        if !self.flushed {
            notes.push(
                "this kernel did not flush TLBs after a clearing: pages in constant use can be missed".into(),
            );
        }
        notes
    }

    /// The document as TOML.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let mut head = |key: &str, text: &str| {
            let _ = writeln!(out, "# {key:<9}{}", comment(text));
        };
        head("command", &self.command);
        head("process", &self.process);
        head("kernel", &format!("Linux {}, {}", self.kernel, self.cpu_model));
        head("date", &self.date);
        for (number, note) in self.notes().iter().enumerate() {
            head(if number == 0 { "method" } else { "" }, note);
        }
        head("all", &summary(&self.all));
        let _ = writeln!(out, "# Made by freehold heat; docs/heat.md says how to read it.");
        let _ = writeln!(out, "title = {}\nsource = {}", quoted(&self.title), quoted(&self.source()));
        for region in &self.regions {
            let _ = writeln!(out, "\n[[region]]\nname = {}\nmib = {:.2}", quoted(&region.name), region.mib());
            for (key, share) in ["within_100ms", "within_1s", "within_5s"].into_iter().zip(region.within) {
                let _ = writeln!(out, "{key} = {share:.4}");
            }
        }
        out
    }

    /// The document as JSON: what the TOML has, and the header's figures by name.
    pub fn to_json(&self) -> serde_json::Value {
        let entries: Vec<RegionEntry<'_>> = self.regions.iter().map(RegionEntry::from).collect();
        serde_json::json!({
            "title": self.title,
            "source": self.source(),
            "command": self.command,
            "process": self.process,
            "kernel": self.kernel,
            "cpu_model": self.cpu_model,
            "date": self.date,
            "rounds": self.rounds,
            "rounds_left_out": self.rounds_left_out,
            "interval_s": self.interval_s,
            "after_s": self.after_s,
            "cpu_s": self.cpu_s,
            "clear_ns": self.clear_ns,
            "look_ns": self.look_ns,
            "flushed": self.flushed,
            "huge_kib": self.huge_kib,
            "exit_status": self.exit_status,
            "all": RegionEntry::from(&self.all),
            "region": entries,
        })
    }
}

fn rounds(count: usize) -> String {
    if count == 1 { "1 round".into() } else { format!("{count} rounds") }
}

fn summary(all: &Region) -> String {
    let [shortest, middle, longest] = all.within.map(|share| share * 100.0);
    format!(
        "{:.1} MiB resident, accessed within 100 ms {shortest:.1} %, within 1 s {middle:.1} %, within 5 s {longest:.1} %",
        all.mib()
    )
}

/// Text that stays within its line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str, resident_kib: u64, within: [f64; 3]) -> Region {
        Region { name: name.into(), resident_kib, within, rounds: 4 }
    }

    fn heat() -> Heat {
        Heat {
            title: "sqlite3: look-ups".into(),
            command: "sqlite3 \"a b.db\"\n.quit".into(),
            process: "sqlite3".into(),
            kernel: "6.18.44".into(),
            cpu_model: "a CPU".into(),
            date: "2026-11-22".into(),
            rounds: 4,
            rounds_left_out: 0,
            interval_s: 5.5,
            after_s: 0.0,
            cpu_s: 0.937,
            clear_ns: 3_210_000,
            look_ns: 1_550_000,
            flushed: true,
            huge_kib: 0,
            exit_status: Some(0),
            all: region("all", 421_990, [0.1197, 0.2999, 0.5502]),
            regions: vec![
                region("heap", 421_888, [0.12, 0.3, 0.55]),
                region("the rest", 102, [0.0, 1.0 / 3.0, 1.0]),
            ],
        }
    }

    #[test]
    fn the_document_has_a_header_and_a_table_for_each_region() {
        insta::assert_snapshot!(heat().to_toml(), @r#"
        # command  sqlite3 "a b.db" .quit
        # process  sqlite3
        # kernel   Linux 6.18.44, a CPU
        # date     2026-11-22
        # method   accessed bits cleared at the start of each round, looked at after 0.1 s, 1 s and 5 s; a round every 5.5 s, the first after 0 s; the process had 0.94 s of CPU time in a second; a clearing took 3.2 ms, a look 1.6 ms
        # all      412.1 MiB resident, accessed within 100 ms 12.0 %, within 1 s 30.0 %, within 5 s 55.0 %
        # Made by freehold heat; docs/heat.md says how to read it.
        title = "sqlite3: look-ups"
        source = "measured on 2026-11-22 with Linux 6.18.44 by clear_refs and smaps, medians of 4 rounds"

        [[region]]
        name = "heap"
        mib = 412.00
        within_100ms = 0.1200
        within_1s = 0.3000
        within_5s = 0.5500

        [[region]]
        name = "the rest"
        mib = 0.10
        within_100ms = 0.0000
        within_1s = 0.3333
        within_5s = 1.0000
        "#);
    }

    #[test]
    fn what_lessens_the_figures_is_said() {
        assert_eq!(heat().notes().len(), 1);
        let doubtful = Heat { rounds_left_out: 2, huge_kib: 2048, flushed: false, ..heat() };
        assert_eq!(doubtful.notes().len(), 4);
        assert!(
            doubtful.to_toml().contains("\n#          2.0 MiB stood in huge pages"),
            "{}",
            doubtful.to_toml()
        );
    }

    #[test]
    fn names_of_any_kind_are_strings() {
        assert_eq!(quoted("a \"b\"\\\n\u{7f}é"), r#""a \"b\"\\\u000A\u007Fé""#);
    }

    #[test]
    fn json_says_the_same() {
        let json = heat().to_json();
        assert_eq!(json["region"][0]["mib"], 412.0);
        assert_eq!(json["region"][1]["within_5s"], 1.0);
        assert_eq!(json["clear_ns"], 3_210_000);
    }
}

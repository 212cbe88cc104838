//! What of the machine each recording of a replay gets: how many copies of it run, on which CPUs, with memory of which nodes
//! (`cpuset.cpus`, `cpuset.mems`), under which memory policy (`numactl`). An option is `VALUE`, for all recordings, or
//! `NAME=VALUE`, for the one of that name.

use std::collections::BTreeMap;
use std::fmt;

use mm::vm::mempolicy::MemPolicy;
use mm::{Cpu, Node, NodeMask};
use sim::Profile;

use crate::stage::placement::{CpuListError, parse_cpu_list};

/// Where tasks run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CpuChoice {
    /// On any of these.
    Any(Vec<Cpu>),
    /// Where they ran when they were recorded.
    Recorded,
}

/// What is said of a recording; `None`: what is said of all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Copies that run at once, from 1.
    pub copies: Option<u32>,
    /// Where its tasks run.
    pub cpus: Option<CpuChoice>,
    /// Nodes that its memory may be on.
    pub mems: Option<NodeMask>,
    /// In which order they are asked.
    pub policy: Option<MemPolicy>,
}

/// What is said of all recordings, and of each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shares {
    /// Of all.
    pub everyone: Share,
    /// Of some, by name.
    pub named: BTreeMap<String, Share>,
}

impl Shares {
    /// What the recording called `name` gets.
    pub fn of(&self, name: &str) -> Share {
        let (all, own) = (&self.everyone, self.named.get(name).cloned().unwrap_or_default());
        Share {
            copies: own.copies.or(all.copies),
            cpus: own.cpus.or_else(|| all.cpus.clone()),
            mems: own.mems.or(all.mems),
            policy: own.policy.or(all.policy),
        }
    }

    /// Whether anything is said of where memory or tasks are to be.
    pub fn places(&self) -> bool {
        let says = |share: &Share| share.cpus.is_some() || share.mems.is_some() || share.policy.is_some();
        says(&self.everyone) || self.named.values().any(says)
    }
}

/// The options of a command line, as they were written.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShareOptions<'a> {
    /// `[NAME=]N`.
    pub copies: &'a [String],
    /// `[NAME=]LIST`, or `[NAME=]recorded`.
    pub cpus: &'a [String],
    /// `[NAME=]LIST`.
    pub mems: &'a [String],
    /// `[NAME=]POLICY`.
    pub policies: &'a [String],
}

/// Why recordings cannot share a machine so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShareError {
    /// No recording has the name.
    NoRecording {
        /// The name.
        name: String,
        /// Those that there are.
        names: Vec<String>,
    },
    /// The same is said twice of one recording, or of all.
    Twice {
        /// The option.
        option: &'static str,
        /// What was given.
        text: String,
    },
    /// Not a number of copies.
    Copies(String),
    /// Not a list of CPUs of the machine.
    Cpus(CpuListError),
    /// Not a list of nodes of the machine.
    Nodes {
        /// What was given.
        text: String,
        /// How many nodes the machine has.
        nodes: usize,
    },
    /// Not a policy.
    Policy(String),
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRecording { name, names } => {
                write!(f, "no recording is called '{name}'; there is {}", names.join(" and "))
            }
            Self::Twice { option, text } => write!(f, "{option} {text} is said twice of the same recording"),
            Self::Copies(text) => write!(f, "'{text}' is no number of copies; 1 to 4096 are possible"),
            Self::Cpus(error) => error.fmt(f),
            Self::Nodes { text, nodes } => {
                write!(f, "'{text}' is not a list of nodes such as 0-1; the machine has {nodes}, from 0")
            }
            Self::Policy(text) => write!(
                f,
                "'{text}' is no memory policy; local, preferred:N, bind:LIST, interleave[:LIST] and \
                 weighted-interleave[:LIST] are"
            ),
        }
    }
}

impl std::error::Error for ShareError {}

impl ShareOptions<'_> {
    /// Reads the options for recordings called `names` on the machine of `profile`.
    ///
    /// # Errors
    /// A name that no recording has, a value that cannot be, or two values for one thing.
    pub fn read(self, names: &[&str], profile: &Profile) -> Result<Shares, ShareError> {
        let (cpus, nodes) = (profile.shape().cpu_count(), profile.topology().nodes.len());
        let mut reader = Reading { names, shares: Shares::default() };
        reader.each("--copies", self.copies, copies, |share| &mut share.copies)?;
        reader.each("--cpus", self.cpus, |text| cpu_choice(text, cpus), |share| &mut share.cpus)?;
        reader.each("--mems", self.mems, |text| node_mask(text, nodes), |share| &mut share.mems)?;
        reader.each("--mempolicy", self.policies, |text| policy(text, nodes), |share| &mut share.policy)?;
        Ok(reader.shares)
    }
}

struct Reading<'a> {
    names: &'a [&'a str],
    shares: Shares,
}

impl Reading<'_> {
    fn each<T>(
        &mut self,
        option: &'static str,
        texts: &[String],
        parse: impl Fn(&str) -> Result<T, ShareError>,
        field: fn(&mut Share) -> &mut Option<T>,
    ) -> Result<(), ShareError> {
        for text in texts {
            let (share, value) = match text.split_once('=') {
                Some((name, value)) => (self.named(name)?, value),
                None => (&mut self.shares.everyone, text.as_str()),
            };
            if field(share).replace(parse(value)?).is_some() {
                return Err(ShareError::Twice { option, text: text.clone() });
            }
        }
        Ok(())
    }

    fn named(&mut self, name: &str) -> Result<&mut Share, ShareError> {
        if !self.names.contains(&name) {
            let names = self.names.iter().map(|&name| name.to_owned()).collect();
            return Err(ShareError::NoRecording { name: name.to_owned(), names });
        }
        Ok(self.shares.named.entry(name.to_owned()).or_default())
    }
}

fn copies(text: &str) -> Result<u32, ShareError> {
    let number = text.parse().ok().filter(|number| (1..=4096).contains(number));
    number.ok_or_else(|| ShareError::Copies(text.to_owned()))
}

fn cpu_choice(text: &str, cpus: u32) -> Result<CpuChoice, ShareError> {
    if text == "recorded" {
        return Ok(CpuChoice::Recorded);
    }
    parse_cpu_list(text, cpus).map(CpuChoice::Any).map_err(ShareError::Cpus)
}

fn node_mask(text: &str, nodes: usize) -> Result<NodeMask, ShareError> {
    // They are written as CPUs are.
    let list = parse_cpu_list(text, nodes as u32);
    let list = list.map_err(|_| ShareError::Nodes { text: text.to_owned(), nodes })?;
    Ok(list.into_iter().map(|Cpu(node)| Node(node)).collect())
}

/// Reads a memory policy for a machine with so many nodes: `interleave`, `bind:0-1`.
///
/// # Errors
/// Another form, or a node that the machine does not have.
pub fn policy(text: &str, nodes: usize) -> Result<MemPolicy, ShareError> {
    let unknown = || ShareError::Policy(text.to_owned());
    let (mode, list) = text.split_once(':').map_or((text, None), |(mode, list)| (mode, Some(list)));
    let mask = list.map(|list| node_mask(list, nodes)).transpose()?;
    let every = mask.unwrap_or(NodeMask::ALL);
    Ok(match mode {
        "local" if mask.is_none() => MemPolicy::Local,
        "preferred" => {
            let mut listed = mask.ok_or_else(unknown)?.nodes();
            let node = listed.next().ok_or_else(unknown)?;
            if listed.next().is_some() {
                return Err(unknown());
            }
            MemPolicy::Preferred(node)
        }
        "bind" => MemPolicy::Bind(mask.ok_or_else(unknown)?),
        "interleave" => MemPolicy::Interleave(every),
        "weighted-interleave" => MemPolicy::WeightedInterleave(every),
        _ => return Err(unknown()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cpus: &[&str], mems: &[&str], policies: &[&str]) -> Result<Shares, String> {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let (cpus, mems, policies) = (owned(cpus), owned(mems), owned(policies));
        let options = ShareOptions { copies: &[], cpus: &cpus, mems: &mems, policies: &policies };
        let profile = Profile::load("xeon-8260").expect("a profile");
        options.read(&["db", "batch"], &profile).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_said_of_one_comes_before_what_is_said_of_all() {
        let shares = read(&["db=0-1", "recorded"], &["0"], &["batch=interleave:0-1"]).unwrap();
        let (db, batch) = (shares.of("db"), shares.of("batch"));
        assert_eq!(db.cpus, Some(CpuChoice::Any(vec![Cpu(0), Cpu(1)])));
        assert_eq!((db.mems, db.policy), (Some(NodeMask::only(Node(0))), None));
        assert_eq!(batch.cpus, Some(CpuChoice::Recorded));
        let both: NodeMask = [Node(0), Node(1)].into_iter().collect();
        assert_eq!(batch.policy, Some(MemPolicy::Interleave(both)));
        assert!(!Shares::default().places());
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        let said = [
            read(&["web=0"], &[], &[]),
            read(&["0", "1"], &[], &[]),
            read(&[], &["7"], &[]),
            read(&[], &[], &["somewhere"]),
            read(&[], &[], &["preferred:0-1"]),
            read(&["db=9999"], &[], &[]),
        ];
        let said: Vec<String> = said.into_iter().filter_map(Result::err).collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        no recording is called 'web'; there is db and batch
        --cpus 1 is said twice of the same recording
        '7' is not a list of nodes such as 0-1; the machine has 2, from 0
        'somewhere' is no memory policy; local, preferred:N, bind:LIST, interleave[:LIST] and weighted-interleave[:LIST] are
        'preferred:0-1' is no memory policy; local, preferred:N, bind:LIST, interleave[:LIST] and weighted-interleave[:LIST] are
        there is no CPU 9999: the machine has 0 to 95
        ");
    }
}

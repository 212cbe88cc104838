//! The machine that a program was recorded on: its kernel, and the knobs as they stood.

use mm::version::Version;
use mm::{KNOBS, Knob, Policy};
use trace::Meta;

use super::swap::SwapFiles;

/// The first kernel whose `sched_process_exit` comes before the task's memory is freed, and not after (from memory; a recording of 6.18 shows it).
const EXIT_FIRST: Version = Version::new(6, 16);

/// Where a program was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surroundings {
    /// The kernel's release: `6.18.44-1`.
    pub kernel: String,
    /// Knobs of ours that stood at other values than their defaults, for the program as it was recorded.
    pub knobs: Vec<(Knob, u64)>,
    /// The same for programs that are not recorded: these have huge pages as the machine is set.
    pub unrecorded: Vec<(Knob, u64)>,
    /// Its swap.
    pub swap: SwapFiles,
    /// It is a guest that gives free blocks back to its host (free page reporting, Linux 5.7): what is taken from them costs a fault there.
    pub reports_free_pages: bool,
}

impl Surroundings {
    /// As the recording has them.
    pub(super) fn of(meta: &Meta) -> Self {
        let kernel = policy_of(&meta.kernel).and_then(|name| Policy::parse(&name).ok());
        let is_other = |&(knob, value): &(Knob, u64)| match &kernel {
            Some(kernel) => value != kernel.default_of(knob),
            // Another kernel's rules stand in for it, and so would their default.
            None => value != knob.spec().default || knob.spec().distributed.is_some(),
        };
        let all = KNOBS.iter().filter_map(|spec| stood(meta, spec.knob));
        let unrecorded: Vec<(Knob, u64)> = all.filter(is_other).collect();
        let mut knobs = unrecorded.clone();
        if meta.without_huge_pages {
            // PR_SET_THP_DISABLE means all sizes.
            knobs.retain(|(knob, _)| !knob.gives_large_pages());
            knobs.push((Knob::TransparentHugepage, 0));
        }
        let file = |path: &str| meta.settings.get(path).cloned().unwrap_or_default();
        // Of disks without swap a recording does not say it.
        let turns =
            meta.settings.iter().any(|(path, text)| path.ends_with("/queue/rotational") && text == "1");
        let [swaps, algorithm] = ["/proc/swaps", "/sys/block/zram0/comp_algorithm"].map(file);
        let swap = SwapFiles { swaps, algorithm, turns };
        let reports_free_pages = meta.settings.iter().any(|(path, text)| is_reporting_balloon(path, text));
        Self { kernel: meta.kernel.clone(), knobs, unrecorded, swap, reports_free_pages }
    }

    /// The policy of this kernel: `linux-6.18`; `None` where its release is not written like one.
    pub fn policy(&self) -> Option<String> {
        policy_of(&self.kernel)
    }

    /// Whether its kernel says that a task exits before it frees the task's memory.
    pub(super) fn exit_comes_first(&self) -> bool {
        self.policy()
            .and_then(|name| Policy::parse(&name).ok())
            .is_none_or(|policy| policy.kernel() >= EXIT_FIRST)
    }

    /// What distributions build into kernels of `policy`'s version, and the recorded machine's own kernel of that version had otherwise.
    pub(crate) fn built_otherwise(&self, policy: &Policy) -> Vec<(Knob, u64)> {
        let own = self.policy().and_then(|name| Policy::parse(&name).ok());
        let is_same = own.is_some_and(|own| own.kernel() == policy.kernel());
        let built = self.unrecorded.iter().filter(|(knob, _)| is_same && knob.spec().distributed.is_some());
        built.copied().collect()
    }
}

/// Whether a file says of a balloon that it negotiated VIRTIO_BALLOON_F_REPORTING: a digit for each feature, the first for bit 0.
fn is_reporting_balloon(path: &str, text: &str) -> bool {
    const REPORTING: usize = 5;
    path.contains("/virtio_balloon/") && text.as_bytes().get(REPORTING) == Some(&b'1')
}

fn policy_of(kernel: &str) -> Option<String> {
    let mut parts = kernel.split(['.', '-', '+']);
    let (major, minor) = (parts.next()?, parts.next()?);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(major) && is_number(minor)).then(|| format!("linux-{major}.{minor}"))
}

/// The value that a knob had, if the recording has it and it is one that we know.
fn stood(meta: &Meta, knob: Knob) -> Option<(Knob, u64)> {
    // Where nobody set it, the kernel computes it from the machine, and the replay's does so from its own.
    if knob.spec().computed.is_some() {
        return None;
    }
    let path = knob.spec().stands_for.path()?;
    let text = match path.strip_prefix("/proc/sys/vm/") {
        Some(name) => meta.vm.get(name),
        None => meta.settings.get(path),
    };
    let Some(text) = text else {
        // A kernel that was built without it has no file.
        let is_lacking = knob.spec().distributed.is_some() && !meta.settings.is_empty();
        return is_lacking.then_some((knob, knob.spec().min));
    };
    Some((knob, knob.parse_one(chosen(text.trim())).ok()?))
}

/// The word in brackets, where there are several: `always [madvise] never`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_says_whether_it_gives_free_memory_back() {
        let with = |path: &str, text: &str| {
            let settings = [(path.to_owned(), text.to_owned())].into();
            Surroundings::of(&Meta { settings, ..Meta::default() }).reports_free_pages
        };
        let balloon = "/sys/bus/virtio/drivers/virtio_balloon/virtio0/features";
        assert!(with(balloon, "0110010100000000") && !with(balloon, "0110000100000000"));
        assert!(!with(balloon, "") && !with("/proc/cmdline", "0110010100000000"));
        assert!(!Surroundings::of(&Meta::default()).reports_free_pages);
    }

    #[test]
    fn knobs_stand_as_their_files_say() {
        let mut meta = Meta { kernel: "6.18.44-fc".into(), ..Meta::default() };
        let huge = "/sys/kernel/mm/transparent_hugepage/enabled";
        meta.settings.insert(huge.into(), "always [madvise] never\n".into());
        meta.vm.insert("swappiness".into(), "60\n".into());
        meta.vm.insert("watermark_scale_factor".into(), "200".into());
        let here = Surroundings::of(&meta);
        let without_generations = (Knob::LruGenEnabled, 0);
        assert_eq!(
            here.knobs,
            [(Knob::WatermarkScaleFactor, 200), (Knob::TransparentHugepage, 2), without_generations]
        );
        assert_eq!(here.policy().as_deref(), Some("linux-6.18"));
        meta.without_huge_pages = true;
        let recorded = Surroundings::of(&meta);
        assert!(recorded.knobs.contains(&(Knob::TransparentHugepage, 0)));
        assert_eq!(recorded.unrecorded, here.knobs);
        let size = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
        meta.settings.insert(size.into(), "[always] inherit madvise never\n".into());
        let with_size = Surroundings::of(&meta);
        assert_eq!(with_size.knobs, recorded.knobs, "the program had none of it");
        assert!(with_size.unrecorded.contains(&(Knob::Hugepages64kB, 1)));
        assert_eq!(Surroundings { kernel: "next".into(), ..Surroundings::default() }.policy(), None);
    }

    #[test]
    fn a_kernel_is_as_it_was_built_under_its_own_rules_alone() {
        let generations = |kernel: &str, text: Option<&str>, policy: &str| {
            let mut meta = Meta { kernel: kernel.into(), ..Meta::default() };
            meta.settings.insert("/proc/cmdline".into(), "quiet".into());
            let file = text.map(|text| ("/sys/kernel/mm/lru_gen/enabled".to_owned(), text.to_owned()));
            meta.settings.extend(file);
            Surroundings::of(&meta).built_otherwise(&Policy::parse(policy).unwrap())
        };
        let (off, on) = ([(Knob::LruGenEnabled, 0)], [(Knob::LruGenEnabled, 7)]);
        assert_eq!(generations("6.18.44-fc", None, "linux-6.18"), off, "built without");
        assert_eq!(generations("6.12.63+deb13-amd64", Some("0x0000\n"), "linux-6.12"), off, "switched off");
        assert_eq!(generations("6.8.0-31-generic", Some("0x0007\n"), "linux-6.8"), on, "Ubuntu's");
        assert_eq!(
            generations("6.12.63+deb13-amd64", Some("0x0007\n"), "linux-6.12"),
            [],
            "as distributions"
        );
        assert_eq!(generations("6.18.44-fc", None, "linux-6.12"), [], "another kernel");
        assert_eq!(Surroundings::of(&Meta::default()).unrecorded, [], "nothing is known");
        let mut newer = Meta { kernel: "9.1.2".into(), ..Meta::default() };
        newer.settings.insert("/proc/cmdline".into(), "quiet".into());
        assert_eq!(Surroundings::of(&newer).knobs, off, "its proof runs under another kernel's rules");
    }
}

//! The machine that a program was recorded on: its kernel, and the knobs as they stood.

use mm::{KNOBS, Knob};
use trace::Meta;

/// Where a program was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surroundings {
    /// The kernel's release: `6.18.44-1`.
    pub kernel: String,
    /// Knobs of ours that stood at other values than their defaults, for the program as it was recorded.
    pub knobs: Vec<(Knob, u64)>,
    /// The same for programs that are not recorded: these have huge pages as the machine is set.
    pub unrecorded: Vec<(Knob, u64)>,
    /// /proc/swaps, and zram's `comp_algorithm`; empty where the recording does not have them.
    pub swaps: [String; 2],
}

impl Surroundings {
    /// As the recording has them.
    pub(super) fn of(meta: &Meta) -> Self {
        let unrecorded: Vec<(Knob, u64)> = KNOBS.iter().filter_map(|spec| stood(meta, spec.knob)).collect();
        let mut knobs = unrecorded.clone();
        if meta.without_huge_pages {
            knobs.retain(|(knob, _)| *knob != Knob::TransparentHugepage);
            knobs.push((Knob::TransparentHugepage, 0));
        }
        let file = |path: &str| meta.settings.get(path).cloned().unwrap_or_default();
        let swaps = ["/proc/swaps", "/sys/block/zram0/comp_algorithm"].map(file);
        Self { kernel: meta.kernel.clone(), knobs, unrecorded, swaps }
    }

    /// The policy of this kernel: `linux-6.18`; `None` where its release is not written like one.
    pub fn policy(&self) -> Option<String> {
        let mut parts = self.kernel.split(['.', '-', '+']);
        let (major, minor) = (parts.next()?, parts.next()?);
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(major) && is_number(minor)).then(|| format!("linux-{major}.{minor}"))
    }
}

/// The value that a knob had, if the recording has it, it is one that we know, and it is not the default.
fn stood(meta: &Meta, knob: Knob) -> Option<(Knob, u64)> {
    // Where nobody set it, the kernel computes it from the machine, and the replay's does so from its own.
    if knob.spec().computed.is_some() {
        return None;
    }
    let path = knob.spec().stands_for.path()?;
    let text = match path.strip_prefix("/proc/sys/vm/") {
        Some(name) => meta.vm.get(name),
        None => meta.settings.get(path),
    }?;
    let value = knob.parse_one(chosen(text.trim())).ok()?;
    (value != knob.spec().default).then_some((knob, value))
}

/// The word in brackets, where there are several: `always [madvise] never`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_stand_as_their_files_say() {
        let mut meta = Meta { kernel: "6.18.44-fc".into(), ..Meta::default() };
        let huge = "/sys/kernel/mm/transparent_hugepage/enabled";
        meta.settings.insert(huge.into(), "always [madvise] never\n".into());
        meta.vm.insert("swappiness".into(), "60\n".into());
        meta.vm.insert("watermark_scale_factor".into(), "200".into());
        let here = Surroundings::of(&meta);
        assert_eq!(here.knobs, [(Knob::WatermarkScaleFactor, 200), (Knob::TransparentHugepage, 2)]);
        assert_eq!(here.policy().as_deref(), Some("linux-6.18"));
        meta.without_huge_pages = true;
        let recorded = Surroundings::of(&meta);
        assert!(recorded.knobs.contains(&(Knob::TransparentHugepage, 0)));
        assert_eq!(recorded.unrecorded, here.knobs);
        assert_eq!(Surroundings { kernel: "next".into(), ..Surroundings::default() }.policy(), None);
    }
}

//! A pageset's tuning as it would be with one knob at its default: it goes through the same steps as the real one, beside
//! it, on machines that watch knobs. As long as all steps come out alike, a run with the default would not differ; the
//! first that does not is a decision that the knob changed.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{PageSizing, Pcp, Setting, Tuning};
use crate::ground::Machine;
use crate::pages::buddy::ZoneCx;
use crate::pages::zone_watch::{MARK_KNOBS, makes_marks};
use crate::rules::knobs::{KNOBS, Knob, KnobUse, Knobs, Margin};
use crate::rules::policy::{HighRule, Rules};

/// The default of `vm.pcp_batch_scale_max`.
const SCALE: u32 = KNOBS[Knob::PcpBatchScaleMax as usize].default as u32;

/// Tuning with `knob` at its default.
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    knob: Knob,
    tuning: Tuning,
}

/// Whether how page lists are tuned follows from `knob` under `rules`.
fn tunes(knob: Knob, rules: &Rules, knobs: &Knobs) -> bool {
    match knob {
        Knob::PcpBatchScaleMax | Knob::PcpBatch | Knob::PercpuPagelistHighFraction | Knob::PcpHighBatches => {
            true
        }
        // Lists of all CPUs together hold as much as the low mark keeps free.
        knob if MARK_KNOBS.contains(&knob) => {
            rules.lists.high != HighRule::SixBatches && makes_marks(knob, rules, knobs)
        }
        _ => false,
    }
}

/// The knobs whose twins are to be followed, with the sizes of a pageset by default, which `sizing` computes.
pub(crate) fn watched(
    rules: &Rules,
    knobs: &Knobs,
    sizing: impl Fn(&Knobs) -> PageSizing,
) -> Vec<(Knob, PageSizing)> {
    let tuning_knobs =
        [Knob::PcpBatchScaleMax, Knob::PcpBatch, Knob::PercpuPagelistHighFraction, Knob::PcpHighBatches];
    let candidates = tuning_knobs.into_iter().chain(MARK_KNOBS);
    let set = candidates.filter(|&knob| knobs.is_set(knob) && tunes(knob, rules, knobs));
    set.map(|knob| (knob, sizing(&knobs.with_default(knob)))).collect()
}

impl Pcp {
    /// Takes on new sizes; `watched` has those that it would have by default. A knob that was not watched before starts
    /// from the tuning as it is.
    pub(crate) fn resize(&mut self, sizing: PageSizing, watched: &[(Knob, PageSizing)]) {
        let twin = |&(knob, sizing): &(Knob, PageSizing)| {
            let before = self.twins.iter().find(|twin| twin.knob == knob);
            let mut tuning = before.map_or(self.tuning, |twin| twin.tuning);
            tuning.resize(sizing);
            Twin { knob, tuning }
        };
        let twins: Box<[Twin]> = watched.iter().map(twin).collect();
        self.twins = twins;
        self.tuning.resize(sizing);
    }

    /// A step that decides nothing yet.
    #[inline]
    pub(super) fn prepare<M: Machine>(&mut self, step: impl Fn(&mut Tuning)) {
        step(&mut self.tuning);
        if M::WATCHES_KNOBS {
            self.twins.iter_mut().for_each(|twin| step(&mut twin.tuning));
        }
    }

    /// A step of tuning.
    #[inline]
    pub(crate) fn tune<M: Machine>(
        &mut self,
        cx: ZoneCx<'_, M>,
        step: impl Fn(&mut Tuning, Setting<'_>) -> u32,
    ) -> u32 {
        let setting = cx.setting();
        let scale = setting.scale;
        let count = self.tuning.count;
        let made = step(&mut self.tuning, setting);
        if M::WATCHES_KNOBS {
            for twin in &mut self.twins {
                twin.tuning.count = count;
                let setting = twin.setting(setting);
                let by_default = step(&mut twin.tuning, setting);
                let used = KnobUse::of(&made, &by_default);
                // Of knobs of marks it is free memory that is said, not what lists hold.
                let is_of_lists = !MARK_KNOBS.contains(&twin.knob) && twin.says(count);
                let margin = is_of_lists.then(|| twin.margin(&self.tuning, (made, scale)));
                cx.cx.machine.knob_used(twin.knob, margin.map_or(used, |margin| used.with(margin)));
            }
        }
        made
    }
}

impl Twin {
    fn setting<'a>(&self, setting: Setting<'a>) -> Setting<'a> {
        if self.knob == Knob::PcpBatchScaleMax { Setting { scale: SCALE, ..setting } } else { setting }
    }

    /// Whether how near it came is worth a word. Of the sizes of a list that was empty it is not: nothing could go back, and
    /// the lists of small zones that nobody uses have the lowest marks.
    fn says(&self, count: u32) -> bool {
        self.knob == Knob::PcpBatchScaleMax || count > 0
    }

    /// For the scale, what was `moved` and the most that may be at the scale in force; for sizes, what is on the lists and
    /// what may be there.
    fn margin(&self, tuning: &Tuning, (moved, scale): (u32, u32)) -> Margin {
        if self.knob == Knob::PcpBatchScaleMax {
            let most = |scale: u32| u64::from(tuning.batch) << scale;
            return Margin { seen: moved.into(), mark: most(scale), default_mark: most(SCALE) };
        }
        let high = |tuning: &Tuning| u64::from(tuning.high);
        Margin { seen: tuning.count.into(), mark: high(tuning), default_mark: high(&self.tuning) }
    }
}

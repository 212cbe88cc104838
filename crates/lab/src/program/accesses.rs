//! How often a program walked to its pages when it was recorded, from looks at accessed bits.
//!
//! A look says of each mapping how many of its resident pages got their bit back within some CPU time. Were accesses to come at any page alike and at
//! any time alike, a share `f` within `t` would mean `-ln(1-f)/t` accesses a page. What TLBs hold gets no bit, so these are walks.
//! Where most pages have their bit already, or pages are accessed in order, it is no more than a bound.

use trace::EventKind;

use super::track::Track;

/// Shares above this say no more: the pages that have no bit are too few to be counted.
const SHARE_MAX: f64 = 0.98;
/// Terms of the logarithm's series, whose error is then below 1 %.
const TERMS: u32 = 12;

/// What a look at a process has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Walked {
    /// Walks in a second of the process's CPU time.
    pub per_second: u64,
    /// Pages that were resident.
    pub resident: u64,
}

/// From a step on, until the next of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalkedFrom {
    /// The step, as an index into the task's.
    pub step: u32,
    /// An index into [`super::Program::walked`].
    pub look: u32,
}

/// Looks, while the recording is read.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// What each has found so far.
    found: Vec<Sum>,
    /// The last one's time and address space.
    last: Option<(u64, usize)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    per_second: f64,
    resident: u64,
    /// Whether some of it stood in huge pages, whose bit says little.
    has_huge: bool,
}

impl Looks {
    /// Takes in what was found of a mapping in address space `space` at `time`: a look begins with the first of its mappings.
    pub(super) fn add(&mut self, (time, space): (u64, usize), tracks: &mut [Track], kind: &EventKind) {
        let EventKind::Accessed { accessed, cpu_ns, resident, huge, .. } = *kind else { return };
        if self.last != Some((time, space)) {
            self.last = Some((time, space));
            let look = self.found.len() as u32;
            self.found.push(Sum::default());
            tracks.iter_mut().filter(|track| track.space == Some(space)).for_each(|track| track.look(look));
        }
        let Some(sum) = self.found.last_mut() else { return };
        sum.resident += u64::from(resident);
        sum.has_huge |= huge > 0;
        if cpu_ns > 0 && resident > 0 {
            let share = (f64::from(accessed) / f64::from(resident)).min(SHARE_MAX);
            sum.per_second += f64::from(resident) * minus_ln_of_rest(share) / f64::from(cpu_ns) * 1e9;
        }
    }

    /// What all have found. One that met huge pages has found nothing.
    pub(super) fn finish(self) -> Vec<Walked> {
        let walked = |sum: Sum| Walked {
            per_second: if sum.has_huge { 0 } else { sum.per_second as u64 },
            resident: sum.resident,
        };
        self.found.into_iter().map(walked).collect()
    }
}

/// `-ln(1 - share)`, for 0 to [`SHARE_MAX`], by additions and multiplications alone: the same to the bit on every machine.
fn minus_ln_of_rest(share: f64) -> f64 {
    // Squaring halves: -ln(1-f) = 4 · -ln(⁴√(1-f)); roots are exact to the bit, and the series is quick near 1.
    let root = (1.0 - share).sqrt().sqrt();
    let ratio = (1.0 - root) / (1.0 + root);
    let square = ratio * ratio;
    let (mut power, mut sum) = (ratio, 0.0);
    for term in 0..TERMS {
        sum += power / f64::from(2 * term + 1);
        power *= square;
    }
    8.0 * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_one() {
        for (share, wanted) in
            [(0.0, 0.0), (0.1, 0.105_360_5), (0.5, std::f64::consts::LN_2), (0.98, 3.912_023)]
        {
            assert!((minus_ln_of_rest(share) - wanted).abs() < 1e-6, "{share}: {}", minus_ln_of_rest(share));
        }
    }

    #[test]
    fn mappings_of_one_look_add_up() {
        let found = |accessed, huge| EventKind::Accessed {
            address: 0,
            accessed,
            pages: 2000,
            cpu_ns: 1_000_000,
            resident: 1000,
            huge,
        };
        let mut looks = Looks::default();
        looks.add((5, 0), &mut [], &found(500, 0));
        looks.add((5, 0), &mut [], &found(0, 0));
        looks.add((9, 0), &mut [], &found(1000, 0));
        looks.add((9, 1), &mut [], &found(1000, 512));
        let found = looks.finish();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], Walked { per_second: 693_147, resident: 2000 });
        assert!(found[1].per_second > 3_900_000, "all that a full share can mean");
        assert_eq!(found[2].per_second, 0, "one bit for 512 pages says little");
    }
}

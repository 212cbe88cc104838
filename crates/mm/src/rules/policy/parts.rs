//! Parts: what a policy can have on top of a kernel's rules. A part is a patch that was never merged, or an idea that no
//! kernel has. Each has a name (`+yield`), so that its effect can be measured alone. `freehold` is the default kernel with
//! all parts that pay.

pub use super::part::Part;
use super::{Rules, compact, lists, slab, tier, zone};

/// All parts. Each stands with the rules that it changes.
pub const PARTS: &[Part] = &joined::<COUNT>();

const GROUPS: [&[Part]; 5] = [lists::PARTS, slab::PARTS, zone::PARTS, compact::PARTS, tier::PARTS];
const COUNT: usize = GROUPS[0].len() + GROUPS[1].len() + GROUPS[2].len() + GROUPS[3].len() + GROUPS[4].len();

/// The parts of all groups, in their order.
const fn joined<const COUNT: usize>() -> [Part; COUNT] {
    let mut all = [GROUPS[0][0]; COUNT];
    let (mut group, mut count) = (0, 0);
    while group < GROUPS.len() {
        let mut index = 0;
        while index < GROUPS[group].len() {
            all[count] = GROUPS[group][index];
            (index, count) = (index + 1, count + 1);
        }
        group += 1;
    }
    all
}

/// `rules` with the part `name` on top; `None` if there is no such part.
pub(super) fn apply(rules: &Rules, name: &str) -> Option<Rules> {
    let part = PARTS.iter().find(|part| part.name == name)?;
    let mut rules = *rules;
    (part.set)(&mut rules);
    Some(rules)
}

pub(super) fn freehold() -> Rules {
    let mut rules = Rules::linux(super::FREEHOLD_KERNEL);
    PARTS.iter().filter(|part| part.pays).for_each(|part| (part.set)(&mut rules));
    rules
}

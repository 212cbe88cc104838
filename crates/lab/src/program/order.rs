//! In which order the threads of a process came to the same pages.
//!
//! A replay lets each task go on by its own time, so two of them drift apart: by what they compute, by timers, by what slows one of
//! them down. Where one gives back what another touches (an allocator's background thread, a collector), the order decides which pages
//! there are; where one needs pages for a call that another touches, whose time they come in on. What was before in the recording stays
//! before: who takes pages away, or brings them in by a call, waits until the others have made the touches that they made before it, and
//! their next touches there wait for who took them away, brought them in, or mapped them anew. Touches among themselves wait for nobody.

use std::collections::BTreeMap;

use mm::vm::Vpn;

use super::steps::PageRange;

/// A step of a task, as indices into the builder's tasks and into the task's steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct At {
    pub(super) task: usize,
    pub(super) step: usize,
}

/// The step that took pages away or brought them, up to `end`.
#[derive(Clone, Copy, Debug)]
struct Changed {
    end: u32,
    by: At,
}

/// Who came to which pages of one address space.
#[derive(Debug, Default)]
struct Pages {
    /// Who touched a page last, since it was changed.
    touched: BTreeMap<u32, At>,
    /// Who changed pages last, by their first; no two overlap.
    changed: BTreeMap<u32, Changed>,
}

/// Who came to which pages, by address space.
#[derive(Debug, Default)]
pub(super) struct Order {
    spaces: BTreeMap<usize, Pages>,
    /// Up to which step of another task a task has waited for it: the first of the pair for the second.
    waited: BTreeMap<(usize, usize), usize>,
}

impl Order {
    /// What `task` waits for before it touches `page` of `space`.
    pub(super) fn before_touch(&mut self, space: usize, page: Vpn, task: usize) -> Option<At> {
        let (_, changed) = self.spaces.get(&space)?.changed.range(..=page.0).next_back()?;
        let by = Some(changed.by).filter(|_| page.0 < changed.end)?;
        self.must_wait(task, by).then_some(by)
    }

    /// The step `by` touches `page` of `space`.
    pub(super) fn touched(&mut self, space: usize, page: Vpn, by: At) {
        self.spaces.entry(space).or_default().touched.insert(page.0, by);
    }

    /// What `task` waits for before it changes `range` of `space`, the last step of each other task; nobody has touched it since.
    pub(super) fn before_change(&mut self, space: usize, range: PageRange, task: usize) -> Vec<At> {
        let pages = self.spaces.entry(space).or_default();
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        for At { task, step } in pages.take(range) {
            let known = last.entry(task).or_default();
            *known = step.max(*known);
        }
        let all = last.into_iter().map(|(task, step)| At { task, step });
        all.filter(|&at| self.must_wait(task, at)).collect()
    }

    /// The step `by` changes `range` of `space`.
    pub(super) fn changed(&mut self, space: usize, range: PageRange, by: At) {
        let changed = Changed { end: end(range), by };
        self.spaces.entry(space).or_default().changed.insert(range.start.0, changed);
    }

    /// Whether `task` has not waited for as much of the other task yet; from here on it has.
    fn must_wait(&mut self, task: usize, at: At) -> bool {
        if at.task == task {
            return false;
        }
        let next = at.step + 1;
        let waited = self.waited.entry((task, at.task)).or_default();
        let must = *waited < next;
        *waited = next.max(*waited);
        must
    }
}

impl Pages {
    /// Who touched or changed any page of `range`, which are forgotten.
    fn take(&mut self, range: PageRange) -> Vec<At> {
        let (first, end) = (range.start.0, end(range));
        self.cut(first);
        self.cut(end);
        let touched: Vec<u32> = self.touched.range(first..end).map(|(page, _)| *page).collect();
        let changed: Vec<u32> = self.changed.range(first..end).map(|(page, _)| *page).collect();
        let touched = touched.iter().filter_map(|page| self.touched.remove(page));
        let mut all: Vec<At> = touched.collect();
        all.extend(changed.iter().filter_map(|page| self.changed.remove(page)).map(|changed| changed.by));
        all
    }

    /// Divides the changed range that `at` lies in.
    fn cut(&mut self, at: u32) {
        let Some((_, changed)) = self.changed.range_mut(..at).next_back() else { return };
        if changed.end > at {
            let above = *changed;
            changed.end = at;
            self.changed.insert(at, above);
        }
    }
}

fn end(range: PageRange) -> u32 {
    range.start.0.saturating_add(range.pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(task: usize, step: usize) -> At {
        At { task, step }
    }

    const fn pages(start: u32, pages: u32) -> PageRange {
        PageRange { start: Vpn(start), pages }
    }

    #[test]
    fn who_changes_pages_waits_for_the_last_touch_of_each_other_task() {
        let mut order = Order::default();
        for (page, by) in [(10, at(0, 3)), (11, at(0, 5)), (12, at(1, 2)), (20, at(2, 9))] {
            order.touched(0, Vpn(page), by);
        }
        assert_eq!(
            order.before_change(0, pages(10, 10), 1),
            [at(0, 5)],
            "not for itself, and not for page 20"
        );
        assert_eq!(order.before_change(0, pages(10, 10), 2), [], "nobody has touched them since");
        order.touched(0, Vpn(10), at(0, 5));
        assert_eq!(order.before_change(0, pages(10, 10), 1), [], "it has waited for that");
        assert_eq!(order.before_change(1, pages(0, 100), 1), [], "another address space");
    }

    #[test]
    fn a_touch_waits_for_who_changed_the_page_once() {
        let mut order = Order::default();
        order.changed(0, pages(10, 10), at(1, 4));
        assert_eq!(order.before_touch(0, Vpn(9), 0), None);
        assert_eq!(order.before_touch(0, Vpn(20), 0), None);
        assert_eq!(order.before_touch(0, Vpn(10), 1), None, "its own");
        assert_eq!(order.before_touch(0, Vpn(19), 0), Some(at(1, 4)));
        assert_eq!(order.before_touch(0, Vpn(18), 0), None, "it has waited for that");
        assert_eq!(order.before_touch(0, Vpn(18), 2), Some(at(1, 4)), "another has not");
    }

    #[test]
    fn a_change_within_another_divides_it() {
        let mut order = Order::default();
        order.changed(0, pages(10, 30), at(1, 4));
        assert_eq!(order.before_change(0, pages(20, 10), 2), [at(1, 4)]);
        order.changed(0, pages(20, 10), at(2, 6));
        let of = |order: &mut Order, page: u32, task: usize| order.before_touch(0, Vpn(page), task);
        assert_eq!(of(&mut order, 25, 3), Some(at(2, 6)));
        assert_eq!(of(&mut order, 19, 3), Some(at(1, 4)));
        assert_eq!(of(&mut order, 30, 4), Some(at(1, 4)));
        assert_eq!(of(&mut order, 29, 4), Some(at(2, 6)));
        assert_eq!(of(&mut order, 40, 5), None);
    }
}

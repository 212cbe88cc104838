//! What a run fell short of, in the one line that stands on stderr beside exit status 1.

use lab::measurements::{CHANGES_NOT_REACHED, FAILED_ALLOCATIONS, REQUESTS_WITHOUT_A_PAGE, Run};

/// What fell short in any of `runs`, and what to do; `None` if nothing did.
pub fn line(runs: &[Run]) -> Option<String> {
    let sum = |kind: &str| runs.iter().filter_map(|run| run.omissions.get(kind)).sum::<u64>();
    let of = |kind: &str| {
        runs.iter().filter(|run| run.omissions.get(kind).is_some_and(|count| *count > 0)).count()
    };
    let where_in = |kind: &str| match (of(kind), runs.len()) {
        (count, all) if count == all => "all runs".to_owned(),
        (count, all) => format!("{count} of {all} runs"),
    };
    let mut parts = vec![];
    let failed = sum(FAILED_ALLOCATIONS);
    if failed > 0 {
        parts.push(format!(
            "{failed} allocations found no memory, in {}: take a machine with more of it, or fewer copies",
            where_in(FAILED_ALLOCATIONS)
        ));
    }
    let without = sum(REQUESTS_WITHOUT_A_PAGE);
    if without > 0 {
        parts.push(format!(
            "{without} requests of threads found no page, in {}: their speeds are of less work; keep less free \
             (vm.min_free_kbytes, vm.watermark_scale_factor), or take fewer --pages",
            where_in(REQUESTS_WITHOUT_A_PAGE)
        ));
    }
    if sum(CHANGES_NOT_REACHED) > 0 {
        let end = runs.iter().map(|run| run.simulated_ns).max().unwrap_or(0) as f64;
        parts.push(format!(
            "a change of --at was never reached, in {}: they end after {} at most; give an earlier time, or more --repeat",
            where_in(CHANGES_NOT_REACHED),
            crate::units::duration(end)
        ));
    }
    (!parts.is_empty()).then(|| format!("fell short: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(omissions: &[(&str, u64)]) -> Run {
        let omissions = omissions.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
        Run { omissions, simulated_ns: 2_000_000, ..Run::default() }
    }

    #[test]
    fn what_fell_short_is_one_line_with_advice() {
        assert_eq!(line(&[run(&[("frees_without_allocation", 4)])]), None);
        let runs = [
            run(&[(FAILED_ALLOCATIONS, 839_347), (CHANGES_NOT_REACHED, 1)]),
            run(&[(CHANGES_NOT_REACHED, 1)]),
        ];
        let threads = [run(&[(REQUESTS_WITHOUT_A_PAGE, 7)]), run(&[])];
        insta::assert_snapshot!(line(&threads).unwrap(), @"fell short: 7 requests of threads found no page, in 1 of 2 runs: their speeds are of less work; keep less free (vm.min_free_kbytes, vm.watermark_scale_factor), or take fewer --pages");
        insta::assert_snapshot!(line(&runs).unwrap(), @"fell short: 839347 allocations found no memory, in 1 of 2 runs: take a machine with more of it, or fewer copies; a change of --at was never reached, in all runs: they end after 2.000 ms at most; give an earlier time, or more --repeat");
    }
}

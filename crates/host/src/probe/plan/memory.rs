//! Caches and memory: latency, bandwidth, descriptors, memory under load and of other nodes.

use super::{ProbeRun, available_bytes};
use crate::probe::chase::Chain;
use crate::probe::region::{MappedRegion, PAGE_BYTES, Pages};
use crate::probe::samples::Samples;
use crate::probe::walks::Walked;
use crate::probe::{Grade, Result, descriptors, load, memory, on_cpu, stores, string, walks};

impl ProbeRun<'_> {
    /// In which pages the region is, for the sources.
    fn backing(&self) -> String {
        let share = self.region.huge_share();
        match share {
            Some(share) if share > 0.95 => "in 2 MiB pages".into(),
            Some(share) if share > 0.0 => format!("{:.0} % in 2 MiB pages", share * 100.0),
            _ => "in 4 KiB pages, so that TLB misses are part of it".into(),
        }
    }

    pub(super) fn caches(&mut self) {
        let backing = self.backing();
        let sizes = [(self.l1 / 2, "cache.l1_ns"), (self.l2 / 2, "cache.l2_ns")];
        for (bytes, key) in sizes {
            let how = format!("pointer chase over {} KiB in random order, {backing}", bytes >> 10);
            let samples = self.at_home(|region| Chain::new(region, bytes as usize).warm());
            self.offer(key, samples, how);
        }
        let told = self.hardware.caches;
        if told.l3.is_none() && told.l2.is_some() {
            let samples = self.at_home(|region| Chain::new(region, (self.l2 / 2) as usize).warm());
            self.offer("cache.l3_ns", samples, "no third level here: the second is the last");
        } else {
            // Well beyond the second level, and little enough of the last for guests that have neighbours under it.
            let bytes = (self.l3 / 8).max(4 * self.l2).min(self.region.bytes() as u64 / 2);
            let how = format!("pointer chase over {} MiB in random order, {backing}", bytes >> 20);
            let samples = self.at_home(|region| Chain::new(region, bytes as usize).warm());
            self.offer("cache.l3_ns", samples, how);
        }
        let last = told.l3.or(told.l2);
        self.size("cache.l1_bytes", told.l1, "sysfs: data cache of the first CPU");
        self.size("cache.l2_bytes", told.l2, "sysfs: second level of the first CPU");
        let which = if told.l3.is_some() { "last level" } else { "second level, which is the last" };
        self.size("cache.l3_bytes", last, &format!("sysfs: {which} of the first CPU"));
    }

    fn size(&mut self, key: &'static str, bytes: Option<u64>, how: &str) {
        match bytes {
            Some(bytes) => self.add(key, &Samples::of(vec![bytes as f64]), how),
            None => self.lack(key, "sysfs does not tell this cache's size"),
        }
    }

    pub(super) fn memory(&mut self) {
        let (mib, backing) = (self.region.bytes() >> 20, self.backing());
        let order = "pages in random order";
        let how = |what: &str| format!("one CPU, {what} over {mib} MiB, {backing}");
        let chase = self.at_home(|region| Chain::new(region, region.bytes()).cold());
        let how_chase = format!("pointer chase over {mib} MiB in random order, {backing}, idle otherwise");
        self.offer("dram.local_ns", chase, how_chase);
        let warm = self.l2 as usize / 2 / PAGE_BYTES;
        let hot = self.at_home(|region| memory::clear_warm(region, warm));
        let hot = hot.map(|ns| ns.map(|ns| PAGE_BYTES as f64 / ns.max(0.1)));
        let how_hot = format!("one CPU, {} of {} KiB over and over", string::HOW, (warm * PAGE_BYTES) >> 10);
        self.offer("memory.hot_gbps", hot, how_hot);
        let clear = self.at_home(memory::clear);
        self.offer("memory.clear_gbps", clear, how(&format!("{} of {order}", string::HOW)));
        let copy = self.at_home(memory::copy);
        self.offer("memory.copy_gbps", copy, how(&format!("{} of {order}", string::HOW)));
        let read = self.at_home(memory::read);
        self.offer("memory.read_gbps", read, how("loads in sequence"));
        let write = self.at_home(memory::write);
        self.offer("memory.write_gbps", write, how("ordinary stores in sequence"));
    }

    /// What walks cost is told as such; the profile's figures of them are settled by it.
    pub(super) fn walks(&mut self) {
        let entries = "tlb.entries";
        match self.at_home(walks::measure).and_then(|walked| walked) {
            Ok(Walked { entries: room, walks }) => {
                let how = "a chase along a line of each of so many 4 KiB pages, less the same in 2 MiB pages: from here on it shows half of \
                           what it shows at 8192 pages";
                self.offer(entries, room.map(|room| Samples::of(vec![room])), how);
                self.probe.walks = Some(walks);
            }
            Err(why) => {
                for key in [entries, "tlb.walk_ns", "tlb.nested_ratio"] {
                    self.lack(key, why.clone());
                }
            }
        }
    }

    pub(super) fn stores(&mut self) {
        let key = "cpu.store_ratio";
        let stored = self.at_home(stores::cold);
        match (stored, self.median("dram.local_ns")) {
            (Ok(stored), Some(miss)) => {
                let how = format!(
                    "stores to cold lines in random order with {:.0} ns of other work before each: {:.1} ns beyond those to a \
                     line in cache, over {miss:.1} ns of a miss",
                    stores::WORK_NS,
                    stored.median()
                );
                self.add(key, &stored.map(|ns| (ns / miss).clamp(0.0, 1.0)), how);
            }
            (Err(why), _) => self.lack(key, why),
            (_, None) => self.lack(key, "memory's latency is not known"),
        }
    }

    pub(super) fn descriptors(&mut self) {
        let (overlap, train) = ("prefetch.overlap_ratio", "prefetch.train_lines");
        let walked = self.at_home(descriptors::walk);
        let walked = walked.and_then(|walked| {
            Ok((walked, self.median("dram.local_ns").ok_or("memory's latency is not known")?))
        });
        let (walked, miss) = match walked {
            Ok(walked) => walked,
            Err(why) => {
                self.lack(overlap, why.clone());
                return self.lack(train, why);
            }
        };
        let (short, long) = (descriptors::SHORT, descriptors::PAGE_LINES);
        let how = format!(
            "linking cold 64-byte descriptors in runs that wait for each other, {}: {:.0} ns for a run of 1, {:.0} ns for \
             {short}, {:.0} ns for {long}, {:.2} ns each in cache, over {miss:.0} ns of a random miss",
            self.backing(),
            walked.one.median(),
            walked.short.median(),
            walked.long.median(),
            walked.warm.median()
        );
        let share = walked.overlap(miss);
        self.add(overlap, &share, format!("{how}: the share of the last {}", long - short));
        let whole = walked.train(miss, share.median());
        self.add(train, &whole, format!("{how}: what {short} cost beyond that share, in misses"));
    }

    /// The CPUs of the node of the home CPU, home first.
    fn neighbours(&self) -> Vec<u32> {
        self.cpus.iter().filter(|cpu| cpu.node == self.home.node).map(|cpu| cpu.number).collect()
    }

    pub(super) fn load(&mut self) {
        let cpus = self.neighbours();
        let bytes = self.region.bytes().min(available_bytes() as usize / 8 / cpus.len()).max(16 << 20);
        // No fewer than one CPU draws: what keeps two from their best is somebody else's work.
        let alone = self.median("memory.read_gbps").unwrap_or(0.0);
        let peak = load::bandwidth(&cpus, bytes).map(|peak| peak.map(|gbps| gbps.max(alone)));
        let how =
            format!("{} CPUs of the node reading in sequence; the memory may give more to more", cpus.len());
        let gbps = peak.as_ref().map_or(0.0, Samples::median);
        self.offer("dram.node_gbps", peak, how);
        let others = &cpus[1..];
        if others.is_empty() || gbps <= 0.0 {
            for key in ["dram.loaded_half_ratio", "dram.loaded_full_ratio"] {
                self.lack(key, "it takes a second CPU that loads the memory");
            }
            return;
        }
        let alone = if alone > 0.0 { alone } else { gbps };
        let half = ((gbps / 2.0 / alone).round() as usize).clamp(1, others.len());
        let measure = |readers: usize| {
            let loaded = load::latency(self.home.number, &self.region, &others[..readers], bytes)?;
            Ok((loaded.gbps / gbps, loaded.ratio))
        };
        let half_loaded: Result<(f64, Samples)> = measure(half);
        let full_loaded = if half == others.len() { half_loaded.clone() } else { measure(others.len()) };
        match (half_loaded, full_loaded) {
            (Ok(half), Ok(full)) => {
                let least = self.loaded("dram.loaded_half_ratio", 0.5, &half, 1.0);
                self.loaded("dram.loaded_full_ratio", 1.0, &full, least);
            }
            (Err(why), _) | (_, Err(why)) => {
                self.lack("dram.loaded_half_ratio", why.clone());
                self.lack("dram.loaded_full_ratio", why);
            }
        }
    }

    /// Latency over idle latency at `share` of the peak, by a straight line from idleness through what was measured; not
    /// less than `least`.
    fn loaded(&mut self, key: &'static str, share: f64, point: &(f64, Samples), least: f64) -> f64 {
        let (load, ratio) = (point.0.max(0.01), &point.1);
        let at = |ratio: f64| (1.0 + (ratio - 1.0) * share / load).max(least);
        let near = (load / share - 1.0).abs() <= 0.2;
        let grade = if near { Grade::Seen } else { Grade::Extrapolated };
        let how = format!(
            "pointer chase while others read {:.0} % of dram.node_gbps: {:.2} times the idle latency; straight to {:.0} %",
            load * 100.0,
            ratio.median(),
            share * 100.0
        );
        let samples = ratio.map(at);
        let value = samples.median();
        self.add_graded(key, &samples, grade, how);
        value
    }

    pub(super) fn remote(&mut self) {
        let key = "dram.remote_ns";
        let home = self.home.node as usize;
        let nodes =
            self.hardware.nodes.iter().enumerate().filter(|(index, node)| *index != home && node.kib > 0);
        let bytes = self.region.bytes();
        let (mut remote, mut why): (Vec<f64>, _) = (vec![], "no other node with memory here".to_owned());
        let mut extra = vec![];
        for (index, node) in nodes {
            let chased = on_cpu(self.home.number, || {
                let region = MappedRegion::on_node(bytes, Pages::Huge, node.number);
                region.map(|region| Chain::new(&region, region.bytes()).cold().spread())
            });
            let with_cpus = self.hardware.cpus.iter().any(|cpu| cpu.node as usize == index);
            match chased.and_then(|chased| chased.map_err(|error| format!("node {}: {error}", node.number))) {
                Ok(spread) if with_cpus => remote.extend([spread.p25, spread.median, spread.p75]),
                Ok(spread) => extra.push((index, spread.median)),
                Err(problem) => why = problem,
            }
        }
        if remote.is_empty() {
            self.lack(key, why);
        } else {
            let how = format!(
                "pointer chase over {} MiB of each other node that has CPUs; quartiles of each",
                bytes >> 20
            );
            self.add(key, &Samples::of(remote), how);
        }
        let local = self.median("dram.local_ns").unwrap_or(0.0);
        self.probe.extra_ns = extra.into_iter().map(|(index, ns)| (index, (ns - local).max(0.0))).collect();
    }
}

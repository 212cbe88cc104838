//! Pages beside those of malloc and of the buddy allocator that Rust kernels use, one thread. `freehold bench` measures
//! with many threads, and mmap too.

use std::hint::black_box;
use std::time::{Duration, Instant};

use buddy_system_allocator::LockedFrameAllocator;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use freehold_host::bench::{FreeholdPages, MallocPages, PageSource};
use mm::{Knobs, Order, Policy};

/// Blocks of a get, and of a put.
const BLOCKS: usize = 1024;

struct Buddy(LockedFrameAllocator<33>);

impl Buddy {
    fn new(frames: usize) -> Self {
        let allocator = LockedFrameAllocator::new();
        allocator.lock().add_frame(0, frames);
        Self(allocator)
    }
}

impl PageSource for Buddy {
    fn name(&self) -> &'static str {
        "buddy_system_allocator"
    }

    fn hot_pairs(&self, order: Order, pairs: u32) {
        let frames = order.pages() as usize;
        for _ in 0..pairs {
            let block = self.0.lock().alloc(frames);
            if let Some(block) = block {
                self.0.lock().dealloc(black_box(block), frames);
            }
        }
    }

    fn get(&self, order: Order, blocks: &mut Vec<usize>) {
        while blocks.len() < blocks.capacity() {
            let Some(block) = self.0.lock().alloc(order.pages() as usize) else { return };
            blocks.push(block);
        }
    }

    fn put(&self, order: Order, blocks: &mut Vec<usize>) {
        for &block in blocks.iter() {
            self.0.lock().dealloc(block, order.pages() as usize);
        }
        blocks.clear();
    }
}

fn pages(criterion: &mut Criterion) {
    let frames = (BLOCKS as u64) << 9;
    let freehold = FreeholdPages::new(frames, Policy::default(), Knobs::default()).expect("address space");
    let buddy = Buddy::new(2 * frames as usize);
    let sources: [&dyn PageSource; 3] = [&freehold, &MallocPages, &buddy];
    for order in [0, 3, 9].into_iter().filter_map(Order::new) {
        hot_pairs(criterion, &sources, order);
        gets(criterion, &sources, order);
        puts(criterion, &sources, order);
    }
}

fn hot_pairs(criterion: &mut Criterion, sources: &[&dyn PageSource], order: Order) {
    let mut group = criterion.benchmark_group(format!("hot pair/{order}"));
    for source in sources {
        group.bench_function(BenchmarkId::from_parameter(source.name()), |bench| {
            bench.iter_custom(|pairs| {
                let start = Instant::now();
                source.hot_pairs(order, pairs.min(u64::from(u32::MAX)) as u32);
                start.elapsed()
            });
        });
    }
    group.finish();
}

fn gets(criterion: &mut Criterion, sources: &[&dyn PageSource], order: Order) {
    let mut group = criterion.benchmark_group(format!("get/{order}"));
    group.throughput(Throughput::Elements(BLOCKS as u64));
    for source in sources {
        group.bench_function(BenchmarkId::from_parameter(source.name()), |bench| {
            bench.iter_custom(|rounds| {
                let mut blocks = Vec::with_capacity(BLOCKS);
                let mut total = Duration::ZERO;
                for _ in 0..rounds {
                    let start = Instant::now();
                    source.get(order, &mut blocks);
                    total += start.elapsed();
                    source.put(order, &mut blocks);
                }
                total
            });
        });
    }
    group.finish();
}

fn puts(criterion: &mut Criterion, sources: &[&dyn PageSource], order: Order) {
    let mut group = criterion.benchmark_group(format!("put/{order}"));
    group.throughput(Throughput::Elements(BLOCKS as u64));
    for source in sources {
        let full = || {
            let mut blocks = Vec::with_capacity(BLOCKS);
            source.get(order, &mut blocks);
            blocks
        };
        group.bench_function(BenchmarkId::from_parameter(source.name()), |bench| {
            bench.iter_batched(full, |mut blocks| source.put(order, &mut blocks), BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn main() {
    let second = Duration::from_secs(1);
    let mut criterion =
        Criterion::default().sample_size(20).measurement_time(second).warm_up_time(second / 4);
    criterion = criterion.configure_from_args();
    pages(&mut criterion);
    criterion.final_summary();
}

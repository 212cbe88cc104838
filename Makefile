# Freehold. `make try` runs the main job, `make test` the tests; both see to what they need first.
# Everything here is a line or two around cargo or a script under scripts/.

CARGO := scripts/cargo

.PHONY: help setup try build test lint bench results results-slab results-zonelist results-thp results-tier fuzz tsan readme mm-no-std clean

help:
	@echo "make try         record a program here, replay it on other machines, explain"
	@echo "make test        all tests"
	@echo "make lint        format, clippy, documentation, rules of the house"
	@echo "make bench       the allocator on this machine, then every benchmark"
	@echo "make results     all experiments, into docs/results.md"
	@echo "make results-slab those of the slab allocator alone, into docs/results-slab.md"
	@echo "make results-zonelist those of zones and zonelists alone, into docs/results-zonelist.md"
	@echo "make results-thp those of huge pages on fragmented memory alone, into docs/results-thp.md"
	@echo "make results-tier those of hot pages on slow memory alone, into docs/results-tier.md"
	@echo "make fuzz        every fuzz target for FUZZ_SECONDS (60); nightly Rust"
	@echo "make tsan        the stress tests under ThreadSanitizer; nightly Rust"
	@echo "make mm-no-std   mm for a machine without an operating system"
	@echo "make readme      the README's output, made anew"

# Installs what is missing if root, or else prints the one line that does.
setup:
	@scripts/setup

try: setup
	$(CARGO) run --release --locked -p freehold -- try

build: setup
	$(CARGO) build --release --locked -p freehold

test: setup
	$(CARGO) test --workspace --locked

lint: setup
	scripts/lint

bench: setup build
	target/release/freehold bench
	target/release/freehold bench contention
	$(CARGO) bench --workspace --locked

results: build
	target/release/freehold lab all --results docs/results.md >target/results.txt
	@echo "docs/results.md is written; what was printed is in target/results.txt"

results-slab: build
	target/release/freehold lab run slub-list-lock slub-sheaves slub-small --results docs/results-slab.md \
		>target/results-slab.txt
	@echo "docs/results-slab.md is written; what was printed is in target/results-slab.txt"

results-zonelist: build
	target/release/freehold lab run zonelist-order zonelist-start zonelist-dma32 zonelist-32bit zonelist-load \
		--results docs/results-zonelist.md >target/results-zonelist.txt
	@echo "docs/results-zonelist.md is written; what was printed is in target/results-zonelist.txt"

results-thp: build
	target/release/freehold lab run thp-fault thp-movable thpscale proactive --results docs/results-thp.md >target/results-thp.txt
	@echo "docs/results-thp.md is written; what was printed is in target/results-thp.txt"

results-tier: build
	target/release/freehold lab run kmmscand kmmscand-v1 hot-pages --results docs/results-tier.md >target/results-tier.txt
	@echo "docs/results-tier.md is written; what was printed is in target/results-tier.txt"

fuzz:
	scripts/fuzz

tsan:
	scripts/tsan.sh

mm-no-std: setup
	scripts/mm-no-std

readme: build
	scripts/readme

clean:
	$(CARGO) clean

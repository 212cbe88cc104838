# Freehold. `make try` runs the main job, `make test` the tests; both see to what they need first.
# Everything here is a line or two around cargo or a script under scripts/.

CARGO := scripts/cargo
# In the order of the columns in docs/knobs.md.
RECORDINGS := python-loop-128m git-clone redis compiler redis-program

.PHONY: help setup try build test browser axe screenshots lint bench results evidence fit knobs programs more-programs swap-disk busy-redis tune tune-real recordings bpf guests scenes fuzz shuttle seeded-bugs instructions tsan deb readme wheel wheel-roots python python-short mm-no-std clean

help:
	@echo "make try         record a program here, replay it on other machines, explain"
	@echo "make test        all tests"
	@echo "make browser     the pages of --report as Chromium shows them; as root it installs Chromium"
	@echo "make axe         the same, and axe-core's rules of accessibility; fetches axe-core from npm's registry"
	@echo "make screenshots the pictures of docs/pages.md anew; Chromium, pngquant"
	@echo "make lint        format, clippy, documentation, rules of the house"
	@echo "make bench       the allocator on this machine, then every benchmark"
	@echo "make results     all experiments, three seeds each, into docs/results.md and docs/results/"
	@echo "make evidence    what labels rest on, from conformance/ (make results has the other half)"
	@echo "make fit         what all machines' costs share, fitted to all published rows together, docs/costs.md and intervals of times; python3, some minutes"
	@echo "make knobs       what every knob does to the recordings, into docs/knobs.md"
	@echo "make programs    six real programs under several settings, real beside predicted, into docs/programs.md; root, ~10 min"
	@echo "make more-programs other programs as recorded, beside their kernel: the table in docs/replay.md; root, ~3 min"
	@echo "make swap-disk   what is read from swap on a disk, here and simulated; root, memory cgroups of version 1, 1 GiB, three minutes"
	@echo "make busy-redis  ten minutes of a Redis that is attached to, recorded and replayed; root, redis-server, a quarter of an hour"
	@echo "make tune        a race beside the grid that it saves, case by case (docs/tune.md); root, some minutes a case"
	@echo "make tune-real   Redis under sixteen settings, really, beside those that tune names first; root, minutes"
	@echo "make recordings  redis.rec, redis-program.rec and compiler.rec anew; root, redis-server, gcc"
	@echo "make bpf         the recorder's programs in the kernel anew; clang 14"
	@echo "make guests      conformance/guests anew: two programs in QEMU guests of two nodes; root, some minutes"
	@echo "make scenes      conformance/scenes' pairs of MGLRU and classic lists anew, in QEMU (RUNNER=run.sh); root, some half an hour"
	@echo "make fuzz        every fuzz target for FUZZ_SECONDS (60); nightly Rust"
	@echo "make shuttle     schedules of what is concurrent in mm, SHUTTLE_SCHEDULES (4000) of each test"
	@echo "make seeded-bugs whether those schedules find bugs that are put in on purpose: some minutes"
	@echo "make instructions  instructions of mm's hot paths, counted by callgrind; to compare, run it in two revisions"
	@echo "make tsan        the stress tests under ThreadSanitizer; nightly Rust"
	@echo "make mm-no-std   mm for a machine without an operating system"
	@echo "make deb         a Debian package of the command, its man pages and completions, into target/"
	@echo "make wheel       the Python package as a wheel, into target/wheels"
	@echo "make wheel-roots its tag held against auditwheel; installed and tested in clean roots of Debian 12 and 13 with several Pythons; root, a quarter of an hour, the first time twice that"
	@echo "make python-short  its tests without a cluster, as .ci/run has them"
	@echo "make python      its tests, and mypy's, in a virtual environment under target/; fetches packages from PyPI"
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

browser: setup
	scripts/browser

axe: setup
	scripts/axe

screenshots: build
	scripts/screenshots

lint: setup
	scripts/lint

bench: setup build
	target/release/freehold bench
	target/release/freehold bench contention
	$(CARGO) bench --workspace --locked

results: build
	target/release/freehold lab all --seeds 3 --results docs >target/results.txt
	$(CARGO) run --release --locked -q -p freehold -- evidence --how-wrong -o docs/how-wrong.md
	@echo "docs/results.md and docs/results/ are written; what was printed is in target/results.txt"

evidence: build
	target/release/freehold evidence --conformance conformance -o crates/lab/src/evidence/held.toml
	$(CARGO) run --release --locked -q -p freehold -- evidence --how-wrong -o docs/how-wrong.md

fit: build
	scripts/fit

knobs: build
	target/release/freehold knobs page $(RECORDINGS:%=recordings/%.rec) --machine kvm-genoa-2c,xeon-snb -o docs/knobs.md

programs: build
	scripts/programs

more-programs: build
	scripts/more-programs

swap-disk: build
	scripts/swap-disk

busy-redis: build
	scripts/busy-redis

tune-real: build
	scripts/tune-real

tune: build
	scripts/tune

recordings: build
	scripts/recordings

bpf:
	scripts/bpf

guests: build
	scripts/guests/run

# SCENES: names of captures; all pairs without.
scenes:
	scripts/scenes $(SCENES)

fuzz:
	scripts/fuzz

SHUTTLE_SCHEDULES ?= 4000

shuttle: setup
	FREEHOLD_SHUTTLE_SCHEDULES=$(SHUTTLE_SCHEDULES) scripts/shuttle.sh

instructions: setup
	scripts/instructions.sh

seeded-bugs: setup
	$(CARGO) run -q --locked -p freehold-tidy --bin seeded-bugs

tsan:
	scripts/tsan.sh

mm-no-std: setup
	scripts/mm-no-std

deb: build
	scripts/deb

readme: build
	scripts/readme

wheel: setup
	scripts/python wheel

wheel-roots: build
	scripts/wheel-roots/run

python-short: setup
	scripts/python short

python: build
	FREEHOLD=$(CURDIR)/target/release/freehold scripts/python test

clean:
	$(CARGO) clean

# The short way in. CMake does the building (CMakePresets.json has the variants); this file adds the
# set-up, so that a bare clone needs one command. `make help` lists the targets.

build: setup-build
	@cmake --preset release $(QUIET)
	@cmake --build --preset release --target dcrl dcrl_shared

demo: build
	@sh tools/demo.sh

demo-lock: build
	@sh tools/demo_lock.sh

# Fuzzers come first, so that the last lines are the summary of the whole test suite.
test: setup-test
	@cmake --preset release $(QUIET)
	@cmake --build --preset release
	@cmake --preset fuzz $(QUIET)
	@cmake --build --preset fuzz
	@ctest --preset fuzz
	@ctest --preset release

bench: setup-test
	@cmake --preset release $(QUIET)
	@cmake --build --preset release
	@for program in build/bench/bench_*; do [ ! -x $$program ] || $$program || exit 1; done

# The long run: RUNS inputs for each reader. A finding stays in build-fuzz/.
RUNS = 2000000
fuzz: setup-test
	@cmake --preset fuzz $(QUIET)
	@cmake --build --preset fuzz
	@sh tools/fuzz.sh $(RUNS)

format: setup-test
	@git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' | xargs -0 clang-format -i

lint: setup-test
	@sh tools/lint.sh

install: build
	@cmake --install build

clean:
	rm -rf build build-dev build-tsan build-clang build-fuzz build-cuda

help:
	@echo 'make            build/dcrl and build/libdcrl.so (installs what is missing first)'
	@echo 'make demo       a maze on this CPU: data, training, evaluation, maps and a page, in minutes'
	@echo 'make demo-lock  a small combination-lock comparison: table, plot, one sentence'
	@echo 'make test       all tests and a short run of every fuzzer'
	@echo 'make bench      every program of bench/, one JSON line each'
	@echo 'make fuzz       $(RUNS) inputs for every fuzzer (RUNS=n)'
	@echo 'make format     clang-format over the sources'
	@echo 'make lint       formatting, clang-tidy, layering, hygiene of the tree'
	@echo 'make install    program and library (cmake --install)'
	@echo 'make clean      delete the build folders; .venv stays'

QUIET = --log-level=WARNING >/dev/null

setup-build:
	@sh tools/setup.sh build
setup-test:
	@sh tools/setup.sh test

.DEFAULT_GOAL := build
.PHONY: build demo demo-lock test bench fuzz format lint install clean help setup-build setup-test

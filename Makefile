# The short way in. CMake does the building (CMakePresets.json has the variants); this file adds the
# set-up, so that a bare clone needs one command. `make help` lists the targets.

build: setup-build
	@$(CMAKE) --preset release $(QUIET)
	@$(CMAKE) --build --preset release --target dcrl dcrl_shared talk $(CALM)

demo: build
	@sh tools/demo.sh

demo-lock: build
	@sh tools/demo_lock.sh

paper-smoke: build
	@sh tools/paper_smoke.sh

# Fuzzers come first, so that the last lines are the summary of the whole test suite.
test: setup-test
	@$(CMAKE) --preset release $(QUIET)
	@$(CMAKE) --build --preset release $(CALM)
	@$(CMAKE) --preset fuzz $(QUIET)
	@$(CMAKE) --build --preset fuzz $(CALM)
	@ctest --preset fuzz
	@ctest --preset release

bench: setup-test
	@$(CMAKE) --preset release $(QUIET)
	@$(CMAKE) --build --preset release $(CALM)
	@for program in build/bench/bench_*; do [ ! -x $$program ] || $$program || exit 1; done

# The long run: RUNS inputs for each reader. A finding stays in build-fuzz/.
RUNS = 2000000
fuzz: setup-test
	@$(CMAKE) --preset fuzz $(QUIET)
	@$(CMAKE) --build --preset fuzz $(CALM)
	@sh tools/fuzz.sh $(RUNS)

format: setup-test
	@git ls-files -z '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format -i

lint: setup-test
	@sh tools/lint.sh

install: build
	@$(CMAKE) --install build

clean:
	rm -rf build build-dev build-tsan build-clang build-fuzz build-coverage build-cuda

help:
	@echo 'make            build/dcrl and build/libdcrl.so (installs what is missing first)'
	@echo 'make demo       a maze on this CPU: data, training, evaluation, maps and a page, in minutes'
	@echo 'make demo-lock  a small combination-lock comparison: table, plot, one sentence'
	@echo 'make paper-smoke  every table and figure of the paper at the smallest scale, in minutes'
	@echo 'make test       all tests and a short run of every fuzzer'
	@echo 'make bench      every program of bench/, one JSON line each'
	@echo 'make fuzz       $(RUNS) inputs for every fuzzer (RUNS=n)'
	@echo 'make format     clang-format over the sources'
	@echo 'make lint       formatting, clang-tidy, layering, hygiene of the tree'
	@echo 'make install    program and library (cmake --install)'
	@echo 'make clean      delete the build folders; .venv stays'

QUIET = --log-level=WARNING >/dev/null
# Ninja rewrites one line on a terminal; elsewhere its hundreds of lines would bury the rest.
CALM = $(shell [ -t 2 ] || ! ninja --help 2>&1 | grep -q -e --quiet || echo -- --quiet)
# Packages that were unpacked, since nobody could install them (tools/setup.sh), come into play by this.
CMAKE = [ ! -f .packages/env ] || . ./.packages/env; cmake

setup-build:
	@sh tools/setup.sh build
setup-test:
	@sh tools/setup.sh test

.DEFAULT_GOAL := build
.PHONY: build demo demo-lock paper-smoke test bench fuzz format lint install clean help setup-build setup-test

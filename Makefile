# make demo   set up, run the pipe on the embedded emulator, check the result
# make test   set up, run the tests
# make check  format, lint, types, tests
# make heavy   tests of a second and more, which `make test` leaves out
# make targets   every example and kernel on every chip that the emulator runs
# make kernels   every case of fly.kernels on a chip of each generation; `make heavy` has two of them for each
# make mutation  damage every function of the emulator, and a sample of the library's; the tests must notice
# make store-crash  kill 1,000 writers of one store in the middle; it must stay whole
# make host-hammer  call native launchers from threads, and under PYTHONMALLOC=debug
# make fuzz      damage the inputs of every tool; each must end with a result or an error line
# make chains    random chains of steps on the axes of tensors, judged by enumeration, torch and native code
# make programs  5,000 random kernels in Python, run by CPython and on the emulator
# make calls     1,000 random calls of fly.kernels for a chip of each family, judged by torch
# make triton    kernels that Triton compiles (installed into .peers, 1 GB), on the emulator; its own launcher
# make flydsl    FlyDSL's own runtime (installed into .peers, with torch) on the emulator's HIP library
# make bench  print the figures that README and docs quote

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)
JOBS ?= $(shell nproc)
SOURCES := fly common tools typings examples benchmarks tests test lit.cfg.py

.PHONY: help setup setup-test demo test unit lit check format lint types bench mutation fuzz store-crash host-hammer heavy targets kernels \
	calls chains programs triton flydsl clean

help:
	@sed -n 's/^# make/make/p' Makefile

setup:
	@scripts/setup run

setup-test:
	@scripts/setup test

demo: setup
	@scripts/demo

test: setup-test lit unit

unit: setup-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests

lit: setup-test
	$(BIN)/lit -j$(JOBS) -q --time-tests --param filecheck=both test/lit

check: setup-test format lint types test

format:
	$(BIN)/ruff format --check $(SOURCES)

lint:
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/lint-imports

types:
	$(BIN)/basedpyright --pythonpath $(BIN)/python

heavy: setup-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m heavy tests

targets: setup-test
	FLY_TEST_TARGETS=every $(BIN)/python -m pytest -m "heavy or not heavy" -n $(JOBS) --dist worksteal tests/examples tests/kernels tests/fly_target tests/primitives \
		tests/fly_opt/pipeline/test_pipelines.py tests/fly_opt/emission/test_emission.py tests/fly_opt/backends \
		tests/fly_run/emulator/isa tests/fly_run/emulator/test_coverage.py tests/fly_run/emulator/watch/test_occupancy.py \
		tests/fly_run/emulator/lowering/test_clamp.py \
		tests/fly/host/test_programs_on_targets.py tests/fly_plugin/test_checked_examples.py \
		tests/fly_llc/test_insert.py tests/fly_llc/test_points.py

kernels: setup-test
	FLY_TEST_TARGETS=every $(BIN)/python -m pytest -m "heavy or not heavy" -n $(JOBS) --dist worksteal tests/fly_kernels

calls: setup-test
	for target in gfx942 gfx950 gfx1100 gfx1201; do PYTHONPATH=tests $(BIN)/python -m kernel_cases --target $$target --strict 0.1 || exit 1; done

mutation: setup-test
	PYTHONPATH=tests $(BIN)/python -m mutation
	PYTHONPATH=tests $(BIN)/python -m mutation_python --sample 400

store-crash: setup-test
	PYTHONPATH=tests $(BIN)/python -m store_crash --kills 1000

host-hammer: setup-test
	PYTHONPATH=tests $(BIN)/python -m host_hammer

fuzz: setup-test
	PYTHONPATH=tests $(BIN)/python -m fuzz

chains: setup-test
	PYTHONPATH=tests $(BIN)/python -m host_chains

programs: setup-test
	PYTHONPATH=tests $(BIN)/python -m python_programs

triton: setup-test
	test -x .peers/bin/python || python3 -m venv .peers
	.peers/bin/python -m pip install -q --disable-pip-version-check triton==3.9.0
	PYTHONPATH=tests $(BIN)/python -m triton_suite --triton .peers/bin/python
	PYTHONPATH=tests $(BIN)/python -m triton_suite --triton .peers/bin/python --targets gfx1250 --strict
	PYTHONPATH=tests $(BIN)/python -m triton_suite.headers .peers/lib/python*/site-packages/triton
	PYTHONPATH=tests $(BIN)/python -m triton_suite --triton .peers/bin/python --targets gfx942,gfx1201 --launcher

flydsl: setup-test
	test -x .peers/bin/python || python3 -m venv .peers
	.peers/bin/python -m pip install -q --disable-pip-version-check flydsl==0.4.2 torch==2.13.0
	PYTHONPATH=tests $(BIN)/python -m flydsl_suite --flydsl .peers/bin/python

bench: setup-test
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/launch.py
	$(BIN)/python benchmarks/host_launcher.py
	$(BIN)/python benchmarks/compile_time.py
	$(BIN)/python benchmarks/emulator.py
	$(BIN)/python benchmarks/trace_locations.py
	$(BIN)/python benchmarks/tracing.py
	$(BIN)/python benchmarks/dialect_text.py
	$(BIN)/python benchmarks/code_quality.py
	$(BIN)/python benchmarks/insertion.py
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/primitive_costs.py
	$(BIN)/python benchmarks/observers.py

clean:
	rm -rf $(VENV) .peers .pytest_cache .ruff_cache .hypothesis test/lit/Output fuzz-findings

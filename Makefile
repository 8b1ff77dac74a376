# Rackloom: `make run` and `make test` are all that a newcomer types.
#
# Everything below sets itself up. What it needs from the machine is checked first; what is missing
# is named together with what to install. Nothing here needs root.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

PYTHON ?= python3
VENV := .venv
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
SCENARIO ?= examples/load.toml
# A scenario with several fabrics is a comparison.
VERB = $(if $(shell grep -c "^\[\[fabric\]\]" $(SCENARIO) | grep -v "^0$$"),compare,run)
# What `make run` draws of examples/load.toml.
FIGURE := --grid workload.load=0.2,0.5,0.8 --seeds 3 --log y --plot slowdown_common.short.p99 \
          --plot equipment.power_watts --plot equipment.cost_ratio

# What is measured for docs/reproduced.md, an experiment a directory; in the project, but for reports.
MEASURED := reproductions/measured
# Full runs go beside quick ones, where there are some.
FULL := $(if $(wildcard $(MEASURED)/full),--beside $(MEASURED)/full)

# One profile, one target directory and one selection of packages for every test: whoever selects
# fewer packages gets other features of their dependencies, and compiles them all again.
export CARGO_TARGET_DIR := $(TARGET)
# As maturin has it: without it the binding would be compiled once more.
export PYO3_BUILD_EXTENSION_MODULE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help prerequisites tools run bench reproduce reproduced page test quick explore check rust-check python-check \
        rust-test python-test wheel docs browser advisories fuzz-check clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

prerequisites:
	@scripts/prerequisites run $(PYTHON)

tools:
	@scripts/prerequisites test $(PYTHON)

run: prerequisites ## Slowdown against load, watts and cost of all fabrics (or SCENARIO=...), in results/
ifeq ($(SCENARIO),examples/load.toml)
	@cargo run --release --locked --package rackloom-cli -- sweep $(SCENARIO) $(FIGURE)
else
	@cargo run --release --locked --package rackloom-cli -- $(VERB) $(SCENARIO)
endif

bench: prerequisites ## Measure how fast the engines are on this machine
	@cargo run --release --locked --package rackloom-cli -- bench

reproduce: prerequisites ## Repeat the papers' experiments, in minutes
	@cargo run --release --locked --package rackloom-cli -- reproduce shoal --quick

reproduced: prerequisites ## Repeat all papers' experiments that this commit has not yet, and make docs/reproduced.md
	@cargo run --release --locked --package rackloom-cli -- reproduce all --quick --out $(MEASURED)/quick $(FULL) --page docs/reproduced.md

page: prerequisites ## Make docs/reproduced.md of what is measured in reproductions/measured, by the claims as they are
	@cargo run --release --locked --package rackloom-cli -- reproduce all --judge --out $(MEASURED)/quick $(FULL) --page docs/reproduced.md

test: tools browser check rust-test python-test ## Run every test and every check

# One crate selected, and its library alone, with its unit tests: what depends on it is not compiled, and the
# lints of examples and integration tests are left to `make check`.
# Tests that take a second or more have names that begin with `slow_`: they run if they are asked for.
quick: ## Check one crate and run its unit tests, in seconds: CRATE=shoal (TEST=word runs some)
	@[ -n "$(CRATE)" ] || { echo "name a crate: make quick CRATE=shoal" >&2; exit 2; }
	cargo clippy --quiet --locked --package rackloom-$(CRATE) --lib --profile test -- -D warnings
	cargo test --quiet --locked --package rackloom-$(CRATE) --lib -- $(or $(TEST),--skip slow_)

# One seed a round, printed, so that what fails can be repeated: PROPTEST_RNG_SEED=... cargo test ...
ROUNDS ?= 10
explore: tools ## Run the property tests with random seeds, ROUNDS=10 of them (CRATE=shoal: those of one crate)
	@for round in $$(seq $(ROUNDS)); do \
		seed=$$(od -An -N6 -tu8 /dev/urandom | tr -d ' '); \
		echo "round $$round of $(ROUNDS): PROPTEST_RNG_SEED=$$seed"; \
		PROPTEST_RNG_SEED=$$seed cargo test --quiet --locked \
			$(if $(CRATE),--package rackloom-$(CRATE),--workspace) --lib || exit 1; \
	done

check: tools rust-check python-check ## Run the checks of form alone: format, lints, types

rust-check:
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

rust-test:
	cargo test --locked --workspace --all-targets
	cargo test --locked --workspace --doc
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --no-deps

# The tools of the tests; remade when their list changes.
$(VENV)/tools: tests/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --requirement tests/requirements.txt
	@touch $@

python-check: $(VENV)/tools
	$(VENV)/bin/ruff format --check python tests scripts/site.py
	$(VENV)/bin/ruff check python tests scripts/site.py
	$(VENV)/bin/mypy

# The same wheel that `pip install .` makes, but built from what the Rust tests have compiled.
python-test: $(VENV)/tools
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" \
	$(VENV)/bin/python -m pip install --quiet --no-build-isolation --force-reinstall --no-deps \
		--config-settings=build-args="--profile dev --locked" .
	cargo test --quiet --locked --workspace --all-targets --no-run
	$(VENV)/bin/python -m pytest

# Linked by Zig, which has the symbols of old C libraries: with glibc 2.28 or newer it runs on Debian 10,
# Ubuntu 20.04, RHEL 8 and all that came after them. One wheel serves every Python from 3.11 on.
wheel: tools $(VENV)/tools ## Make a wheel for Linux in dist/, and try it where there is no compiler
	$(VENV)/bin/python -m pip install --quiet ziglang==0.17.1
	rm -f dist/rackloom-*.whl
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/maturin build --release --locked --zig \
		--compatibility manylinux_2_28 --out dist
	scripts/wheel dist/rackloom-*.whl $(PYTHON)

# The theme says in every build when its support will end; we know.
docs: tools $(VENV)/tools ## Make the documents' site, with the API of Rust and Python
	cargo doc --quiet --locked --workspace --no-deps
	NO_MKDOCS_2_WARNING=1 RACKLOOM_RUST_DOCS=$(TARGET)/doc $(VENV)/bin/mkdocs build --quiet
	@echo "made site/; python3 -m http.server --bind 127.0.0.1 --directory site 8000 shows it at http://127.0.0.1:8000"

browser:
	@scripts/browser

advisories: ## Hold dependencies against the RustSec database, where it can be reached
	@scripts/advisories

# Targets are a workspace of their own, which no other check compiles. FUZZ_SECONDS for each.
FUZZ_SECONDS ?= 5
fuzz-check: ## Build every fuzz target and run each for some seconds (needs cargo-fuzz)
	@cargo fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 1; }
	cargo fuzz build --sanitizer none --fuzz-dir fuzz --target-dir $(TARGET)/fuzz
	@for target in $$(cargo fuzz list --fuzz-dir fuzz); do \
		corpus=$$(mktemp -d); \
		echo "$$target:"; \
		cargo fuzz run --sanitizer none --fuzz-dir fuzz --target-dir $(TARGET)/fuzz $$target $$corpus \
			-- -max_total_time=$(FUZZ_SECONDS) -timeout=20 -verbosity=0; \
		rm -rf $$corpus; \
	done

clean: ## Remove everything that was built
	rm -rf $(VENV) target dist site .mypy_cache .pytest_cache .ruff_cache

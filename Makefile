# SPDX-License-Identifier: Apache-2.0
# The front door. Everything made lies in build/ and .venv/.
#
#   make          builds the library, the command line, the Python module and the tests
#   make demo     trains a network on real data, here, now, says where it ran, and writes build/demo.html
#                 (through Keras; PYTHON=none or no Python >= 3.11: through the C++ library alone)
#   make test     everything CI runs;  make test-deep adds the long tests and all sanitizers
#   make install  installs library, headers and command line below PREFIX (default /usr/local)
#   make wheel    a Python wheel that runs on other machines (PYTHON=python3.12)
#   make dist     the tools alone, as a tarball that runs on older systems too (docs/dist.md)
#   make lint | format | deps | clean

BUILD ?= build
JOBS ?= $(shell nproc)
NINJA ?= ninja
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
export JOBS NINJA BUILD
ifeq ($(PYTHON),none)
  override CMAKE_FLAGS += -DTRACEFIRE_PYTHON=OFF
endif

.PHONY: build demo test test-deep install wheel dist lint format deps clean setup
.DEFAULT_GOAL := build

setup:
	@scripts/setup

deps:
	@python3 scripts/fetch_deps

$(BUILD)/build.ninja:
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) > $(BUILD)/configure.log 2>&1 \
	  || { cat $(BUILD)/configure.log; rm -f $(BUILD)/build.ninja; exit 1; }

build: setup
	@mkdir -p $(BUILD)
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@$(NINJA) -C $(BUILD) -j$(JOBS)

demo: build
	@scripts/demo

test: build
	@scripts/setup --sanitize
	@scripts/run_tests --build $(BUILD)

test-deep: build
	@scripts/setup --sanitize
	@scripts/run_tests --build $(BUILD) --deep

# DESTDIR is put before PREFIX, as packagers expect.
install: build
	@cmake --install $(BUILD) --component cpp --prefix "$(abspath $(PREFIX))" > $(BUILD)/install.log
	@echo "installed below $(DESTDIR)$(abspath $(PREFIX)); the files are listed in $(BUILD)/install.log"

# PYTHON names the Python that the wheel is for, not the one of .venv; GLIBC the oldest C library that
# it runs with (2.28; host for the system's own).
wheel:
	@env -u PYTHON scripts/setup
	@.venv/bin/python scripts/make_wheel $(if $(PYTHON),--python $(PYTHON)) $(if $(GLIBC),--glibc $(GLIBC))

dist: setup
	@scripts/make_dist

lint:
	@python3 scripts/run_tests --only lint

format:
	@git ls-files '*.h' '*.cpp' '*.cc' '*.cu' '*.cuh' | xargs -r clang-format -i

# Keeps what set-up downloaded (build/deps, .venv).
clean:
	@find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +

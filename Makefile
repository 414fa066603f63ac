# All targets work inside the checkout. `make` alone lists them.
SHELL := /bin/bash
PYTHON ?= python3
# One environment for each interpreter: .venv, and .venv-3.X for a PYTHON=... of another version.
VENV := .venv
ifneq ($(origin PYTHON),file)
PYTHON_VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ifeq ($(PYTHON_VERSION),)
$(error PYTHON=$(PYTHON) is not a working interpreter)
endif
ifneq ($(PYTHON_VERSION),$(shell test -x .venv/bin/python && .venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
VENV := .venv-$(PYTHON_VERSION)
endif
endif
BIN := $(VENV)/bin
# The tools of `make dist`, apart from the environments of the package.
RELEASE := build/release$(VENV:.venv%=%)
comma := ,
STRIP := $(if $(filter Linux,$(shell uname -s)),-Wl$(comma)--strip-all)
TESTS ?=
# Test processes; each runs whole files.
JOBS ?= 2
# Tests of these folders need no PySpark.
SPARK := $(if $(filter-out tests/net tests/cluster tests/producer tests/consumer tests/group,$(or $(TESTS),all)),$(VENV)/spark.stamp)
KERNEL := $(shell find aiokwire -name '*.pyx' -o -name '*.pxd')
# Two notices of setuptools about what this project chooses: extension modules in pyproject.toml (experimental), and
# editable installations that type checkers can follow (`compat`). Other warnings and all errors are shown.
$(VENV)/base.stamp $(VENV)/kernel.stamp wheel dist: export PYTHONWARNINGS := \
	ignore:`[tool.setuptools.ext-modules]`:UserWarning,ignore:Compat editable installs:UserWarning

.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

# The environment is updated when the dependencies change; nothing is downloaded otherwise.
$(VENV)/base.stamp: pyproject.toml
	@command -v $${CC:-cc} >/dev/null || { echo "aiokwire: a C compiler is needed to build the record kernel (Debian: apt-get install build-essential)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1' 'setuptools>=77' 'cython>=3.1'
	$(BIN)/python -m pip install -q --no-build-isolation --config-settings editable_mode=compat -e '.[uvloop,arrow,cli]' --group demo
	@touch $@ $(VENV)/kernel.stamp

$(VENV)/dev.stamp: $(VENV)/base.stamp
	$(BIN)/python -m pip install -q --no-build-isolation --group test --group lint
	@touch $@

# PySpark is 450 MB: only targets that need it install it.
$(VENV)/spark.stamp: $(VENV)/base.stamp
	$(BIN)/python -m pip install -q --group spark
	@touch $@

# The installation above compiles the kernel; later changes are compiled here.
$(VENV)/kernel.stamp: $(VENV)/base.stamp $(KERNEL)
	@test -z "$$(find $(KERNEL) -newer $(VENV)/base.stamp)" || \
		$(BIN)/python -c 'from setuptools import setup; setup()' -q build_ext --inplace -j 2
	@touch $@

build: $(VENV)/kernel.stamp ## compile the kernel in place

demo: build ## 336,776 flights through the embedded broker
	$(BIN)/aiokwire demo

demo-spark: build $(VENV)/spark.stamp ## hourly delays of the flights on Spark, exactly once through a SIGKILL (Java 17)
	$(BIN)/aiokwire spark demo

test: build $(VENV)/dev.stamp $(SPARK) ## every test of the package (PYTHON=python3.13 chooses the interpreter, TESTS=tests/net some tests)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(TESTS)

integration: build $(VENV)/dev.stamp $(VENV)/spark.stamp ## the same scenarios on the embedded broker and on Kafka
	-$(BIN)/python -W ignore::RuntimeWarning -m integration.kafka.fetch 4.3.1 0.10.2.2 0.8.2.2
	-$(BIN)/python -W ignore::RuntimeWarning -m integration.kafka.secure_kerberos
	-$(BIN)/python -m integration.postgres
	$(BIN)/python -m pytest integration/scenarios integration/interop integration/monitoring integration/chaos integration/bench integration/outbox integration/web integration/spark/test_kills.py

integration-spark: build $(VENV)/dev.stamp $(VENV)/spark.stamp ## Spark on both brokers: pipelines that are stopped and killed, clusters, secured brokers
	$(BIN)/python -m pytest integration/spark

lint: build $(VENV)/dev.stamp $(VENV)/spark.stamp ## ruff and mypy --strict
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/dev.stamp ## ruff format and its fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: build $(VENV)/dev.stamp ## aiokwire compared with its peers on Kafka
	$(BIN)/python -m integration.bench

soak: build $(VENV)/dev.stamp ## memory, objects and tasks of a producer over five minutes (MINUTES=60): a table and build/soak.png
	$(BIN)/python -m integration.soak --minutes $(or $(MINUTES),5)

chaos: build $(VENV)/dev.stamp $(VENV)/spark.stamp ## kills of broker, workers and members under load, on both brokers: no record is lost (SEED=1 RECORDS= MINUTES=)
	$(BIN)/python -m integration.chaos produce --broker embedded --seed $(or $(SEED),1) --records $(or $(RECORDS),10_000_000)
	$(BIN)/python -m integration.chaos produce --broker 4.3.1 --seed $(or $(SEED),1) --records $(or $(RECORDS),10_000_000)
	$(BIN)/python -m integration.chaos.transactions --broker embedded --seed $(or $(SEED),1)
	$(BIN)/python -m integration.chaos.transactions --broker 4.3.1 --seed $(or $(SEED),1)
	for broker in embedded 4.3.1; do for delivery in at-least-once exactly-once at-most-once; do \
	  $(BIN)/python -m integration.chaos.worker --broker $$broker --delivery $$delivery --seed $(or $(SEED),1) --records $(or $(RECORDS),2_000_000) || exit 1; \
	done; done
	$(BIN)/python -m integration.chaos.rolling --broker embedded
	$(BIN)/python -m integration.chaos.rolling --broker 4.3.1
	$(BIN)/python -m integration.chaos.rolling --broker embedded --killed
	$(BIN)/python -m integration.chaos.rolling --broker 4.3.1 --killed
	$(BIN)/python -m integration.chaos.consume --broker embedded --killed --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10)
	$(BIN)/python -m integration.chaos.consume --broker 4.3.1 --killed --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10)
	$(BIN)/python -m integration.chaos.consume --broker 4.3.1 --killed --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10) --protocol consumer
	$(BIN)/python -m integration.spark --json build/kills.json
	$(BIN)/python -m integration.spark.spark_kills --json build/spark_kills.json

spark-versions: build $(VENV)/dev.stamp $(VENV)/spark.stamp ## the Spark tests with PySpark 4.0, 4.1 and 4.2, downloaded into build/
	$(BIN)/python -m integration.spark.versions

generate: $(VENV)/dev.stamp ## write the protocol messages from Kafka's definitions, and the generated pages of docs
	$(BIN)/python -m tools.protocol_generator
	$(BIN)/python -m tests.machines
	$(BIN)/python -m tests.file_map
	$(BIN)/python -m tests.options_page
	$(BIN)/python -m tests.metrics_page
	$(BIN)/python -m tests.acl_page
	$(BIN)/python -m tests.mistakes
	$(BIN)/python -m tests.error_codes_page

# The site has an environment of its own. It loads nothing from other hosts: scripts.sh fetches what it serves.
DOCS := .venv-docs
MKDOCS := NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs
$(DOCS)/docs.stamp: pyproject.toml
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -q --upgrade 'pip>=25.1'
	$(DOCS)/bin/python -m pip install -q --group docs
	@touch $@

build/docs-npm/fetched.stamp: tools/site/scripts.sh | $(DOCS)/docs.stamp
	PATH="$(CURDIR)/$(DOCS)/bin:$$PATH" tools/site/scripts.sh $(@D)
	@touch $@

docs: $(DOCS)/docs.stamp build/docs-npm/fetched.stamp ## build the documentation into build/site; a link without a target fails
	$(MKDOCS) build --strict -f tools/site/mkdocs.yml

docs-serve: $(DOCS)/docs.stamp build/docs-npm/fetched.stamp ## serve the documentation on 127.0.0.1:8000, built again after each change
	$(MKDOCS) serve -a 127.0.0.1:8000 -f tools/site/mkdocs.yml

check-generated: $(VENV)/dev.stamp ## fail if the committed messages differ from Kafka's definitions
	$(BIN)/python -m tools.protocol_generator --check

asan: build $(VENV)/dev.stamp ## the fuzz tests of the kernel under AddressSanitizer
	$(BIN)/python integration/asan/run.py

# Without debug information; build/lib may have modules that no longer exist.
wheel: export CFLAGS += -g0
wheel: build $(VENV)/dev.stamp $(VENV)/spark.stamp ## build a wheel, and test it and its types outside the checkout
	rm -rf build/lib* build/bdist*
	LDFLAGS="$(STRIP) $$LDFLAGS" $(BIN)/python -m pip wheel -q --no-build-isolation --no-deps -w dist .
	$(BIN)/python integration/wheel.py dist --types

$(RELEASE)/release.stamp: pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install -q --upgrade 'pip>=25.1' 'setuptools>=77' 'cython>=3.1'
	$(RELEASE)/bin/python -m pip install -q --group release
	@touch $@

dist: $(RELEASE)/release.stamp ## what a release consists of: source archive, wheel, bill of materials, all checked
	$(RELEASE)/bin/python -m integration.dist

sbom: $(RELEASE)/release.stamp ## the bill of materials (CycloneDX) of the newest wheel in dist
	$(RELEASE)/bin/python -m integration.dist --sbom

clean: ## remove build results, but not the environment
	rm -rf build dist *.egg-info demo-output .venv*/kernel.stamp .venv*/base.stamp
	find aiokwire -name '*.so' -delete -o -name '*.c' -delete

.PHONY: help build demo demo-spark test integration integration-spark lint format bench soak chaos spark-versions generate docs docs-serve check-generated asan wheel dist sbom clean

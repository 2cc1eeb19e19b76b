# Each target sets up .venv by itself, with the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint docs bench soak format clean

demo: $(READY)  ## soundings of two small networks, the bottlenecks of four Leaky ResNets: tables, pictures and reports in demo/
	OMP_WAIT_POLICY=passive $(BIN)/python -m examples.digits --out demo
	OMP_WAIT_POLICY=passive $(BIN)/python -m examples.bottleneck --out demo

test: $(READY)  ## everything that needs neither a GPU nor patience
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)  ## the site, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

bench: $(READY)  ## against a dense reference, the bare forward pass, and matrix products alone
	$(BIN)/python -m benchmarks.affinity
	OMP_WAIT_POLICY=passive $(BIN)/python -m benchmarks.signature
	OMP_WAIT_POLICY=passive $(BIN)/python -m benchmarks.leaky

soak: $(READY)  ## everything that might break it, most of an hour; writes docs/reliability.md
	OMP_NUM_THREADS=1 $(BIN)/python -m soak

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo site

$(READY): pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

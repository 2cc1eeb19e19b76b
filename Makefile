# Each target sets up .venv with the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test lint docs bench robustness format clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/: .*## /\t/; s/:  ## /\t/' | expand -t 14

demo: $(READY)  ## measure two small networks, train four Leaky ResNets; tables, pictures and reports in demo/
	OMP_WAIT_POLICY=passive $(BIN)/python -m examples.digits --out demo
	OMP_WAIT_POLICY=passive $(BIN)/python -m examples.bottleneck --out demo

test: $(READY)  ## run the tests, except those that need a GPU or take long
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

lint: $(READY)  ## check style, spelling and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell -D - -D .ci/plain-words.txt
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/request.yml
	$(BIN)/mypy

docs: $(READY)  ## build the documentation in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

bench: $(READY)  ## compare speed with a dense reference, a bare forward pass and plain matrix products
	$(BIN)/python -m benchmarks.affinity
	OMP_WAIT_POLICY=passive $(BIN)/python -m benchmarks.signature
	OMP_WAIT_POLICY=passive $(BIN)/python -m benchmarks.leaky

robustness: $(READY)  ## run the full robustness tests, most of an hour; writes docs/reliability.md
	OMP_NUM_THREADS=1 $(BIN)/pytest -m robustness -p tests.robustness.recording tests/robustness

format: $(READY)  ## repair style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove .venv, demo/ and site/
	rm -rf $(VENV) demo site

$(READY): pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

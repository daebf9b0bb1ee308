# make run   what a newcomer types first      make test   the whole suite      make check   lint, format, types
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUN := runs/first

.PHONY: run test check format clean

run: $(READY)
	$(BIN)/rewriting models fetch
	$(BIN)/rewriting rewrite --input sample:test --policy generic --output $(RUN)/generic.jsonl --show 1 --overwrite
	$(BIN)/rewriting rewrite --input sample:test --policy prompted --output $(RUN)/prompted.jsonl --show 3 --overwrite
	@echo "Done. Every line of $(RUN)/generic.jsonl and $(RUN)/prompted.jsonl is a rewrite; docs/rewriting.md explains them."

test: $(READY)
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Could not make $(VENV). On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[ab,dev]"
	@touch $@

clean:
	rm -rf $(VENV) runs .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info

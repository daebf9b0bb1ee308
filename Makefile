# make run   what a newcomer types first      make test   the whole suite      make check   lint, format, types
# make docs  the documentation as a site, in site/
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUN := runs/first

.PHONY: run test check format docs clean

run: $(READY)
	$(BIN)/rewriting models fetch
	$(BIN)/python train.py partner --output $(RUN)/partner
	$(BIN)/python evaluate.py rewrites --systems "original,generic,start=partner-start,trained=$(RUN)/partner/policy,bank" \
		--data sample:test --split all --log $(RUN)/partner/log.jsonl --html $(RUN)/report.html --json $(RUN)/report.json --overwrite true
	@echo "Done. Open $(RUN)/report.html: rewrites before and after, rationales, every reward term, the table. docs/partner.md goes on from here."

test: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "Done. Open site/index.html."

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Could not make $(VENV). On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[ab,serve,dev]"
	@touch $@

clean:
	rm -rf $(VENV) runs site .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info

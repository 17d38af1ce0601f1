# `make demo` sets all up and runs a whole study of real data, its report's path last.
# `make test` passes the tests, the same at each run.
# `make fuzz` searches from fresh seeds for SECONDS and prints how to repeat what fails.
# `make browser` looks at reports in the system's Chromium, with axe and html-validate from npm: needs node.
# `make benchmark` and `make audit` print what the documents quote.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
SECONDS ?= 600

.PHONY: demo test fuzz benchmark audit browser clean

demo: $(VENV)/demo.done
	$(BIN)/dpcausal demo --folder $(VENV)/rand-study

test: $(VENV)/test.done
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

fuzz: $(VENV)/test.done
	$(BIN)/python -m tests.fuzz $(SECONDS) $(WORKERS)

benchmark: $(VENV)/benchmark.done
	$(BIN)/python -m benchmarks

audit: $(VENV)/test.done
	$(BIN)/python -m benchmarks audit_ledger --rounds 10000
	$(BIN)/python -m benchmarks audit_table
	$(BIN)/python -m benchmarks audit_fuzz

$(VENV)/pip.done:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	touch $@

$(VENV)/demo.done: $(VENV)/pip.done pyproject.toml
	$(BIN)/pip install -q -e '.[demo]'
	touch $@

$(VENV)/test.done: $(VENV)/pip.done pyproject.toml
	$(BIN)/pip install -q -e '.[test]'
	touch $@

$(VENV)/browser/done: tests/browser/package.json
	mkdir -p $(@D) && cp $< $(@D)
	npm install --prefix $(@D) --no-audit --no-fund --silent
	touch $@

$(VENV)/benchmark.done: $(VENV)/pip.done pyproject.toml
	$(BIN)/pip install -q -e '.[benchmark]'
	touch $@

browser: $(VENV)/demo.done $(VENV)/browser/done
	$(BIN)/dpcausal demo --folder $(VENV)/rand-study
	rm -rf $(VENV)/made-study && $(BIN)/python -m tests.study.made $(VENV)/made-study
	node tests/browser/look.mjs $(VENV)/browser $(VENV)/browser/screenshots \
		$(VENV)/rand-study/report.html $(VENV)/made-study/table.html $(VENV)/made-study/panel.html

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

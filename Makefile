# `make demo` sets all up and runs a whole study of real data, its report's path last.
# `make test` passes the tests, the same at each run.
# `make fuzz` searches from fresh seeds for SECONDS and prints how to repeat what fails.
# `make browser` looks at reports in the system's Chromium, with axe and html-validate from npm: needs node and
# poppler-utils; the demonstration's report must print on two pages before its appendix.
# `make peers` passes graphs and tests through causal-learn, pgmpy, DoWhy, pydot and ibis, in an environment of its own.
# `make engines` asks Spark and Dask what rows in memory give, in an environment of its own with a JRE: no Java is needed.
# `make package` builds wheel and sdist and installs each where nothing else is.
# `make docs` builds the site, its examples run, into build/site; a warning is an error.
# `make evidence` makes the records that pages show, `make benchmark` runs all benchmarks, `make audit` searches for violations.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
SECONDS ?= 600

.PHONY: demo test fuzz peers engines package docs benchmark evidence audit browser clean

demo: $(VENV)/demo.done
	$(BIN)/dpcausal demo --folder $(VENV)/rand-study

test: $(VENV)/test.done
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

fuzz: $(VENV)/test.done
	$(BIN)/python -m tests.fuzz $(SECONDS) $(WORKERS)

peers: $(VENV)/peers/done
	$(VENV)/peers/bin/python -m pytest tests/interop/peers.py

engines: $(VENV)/engines/done
	$(VENV)/engines/bin/python -m pytest tests/data/spark_and_dask.py

package: $(VENV)/package.done
	$(BIN)/python -m tests.package

docs: $(VENV)/docs.done
	$(BIN)/python docs/site/build.py

benchmark: $(VENV)/benchmark.done
	$(BIN)/python -m benchmarks

evidence: $(VENV)/benchmark.done
	$(BIN)/python -m benchmarks evidence

audit: $(VENV)/test.done
	$(BIN)/python -m benchmarks audit_ledger --rounds 10000
	$(BIN)/python -m benchmarks audit_table
	$(BIN)/python -m benchmarks audit_fuzz
	AUDIT=full $(BIN)/pytest tests/test_registry.py -k on_its_worst_pair
	$(BIN)/python -m benchmarks audit_statistics

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
	made=$$(mktemp -d) && $(BIN)/python -m tests.study.made $$made && \
		node tests/browser/look.mjs $(VENV)/browser $(VENV)/browser/screenshots \
		$(VENV)/rand-study/report.html $$made/table.html $$made/panel.html
	$(BIN)/python -m tests.browser.pages $(VENV)/rand-study/report.html

$(VENV)/package.done: $(VENV)/pip.done pyproject.toml
	$(BIN)/pip install -q 'build>=1.2,<2' 'twine>=6,<8'
	touch $@

$(VENV)/docs.done: $(VENV)/pip.done pyproject.toml
	$(BIN)/pip install -q -e '.[docs]'
	touch $@

# DoWhy takes an older scipy than the tests run with.
$(VENV)/peers/done: $(VENV)/pip.done pyproject.toml
	$(PYTHON) -m venv $(VENV)/peers
	$(VENV)/peers/bin/pip install -q -e '.[peers]'
	touch $@

$(VENV)/engines/done: $(VENV)/pip.done pyproject.toml
	$(PYTHON) -m venv $(VENV)/engines
	$(VENV)/engines/bin/pip install -q -e '.[engines]'
	touch $@

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache

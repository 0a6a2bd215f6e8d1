# commprof. `make` builds with a C compiler alone; `make V=1` shows its commands; `make help` lists
# the rest.

VERSION_FILE := report/commprof_report/__init__.py
VERSION := $(shell sed -n 's/^__version__ = "\([^"]*\)".*/\1/p' $(VERSION_FILE))
PREFIX ?= /usr/local
BUILD ?= build

CC ?= cc
CFLAGS ?= -O2 -g
STRIP ?= strip
OBJCOPY ?= objcopy
PYTHON ?= /usr/bin/python3

# What a recipe says in place of its commands: CC src/base/host.c.
V ?=
Q := $(if $(V),,@)
SAY = $(if $(V),,@echo "  $1 $(or $2,$@)")

# DEBUG=1 for the debugger; ASAN=1, UBSAN=1, TSAN=1 for what the sanitizers can see (TSAN does not
# follow fences, and would say so).
ifdef DEBUG
CFLAGS := -O0 -g
endif
ifdef ASAN
CFLAGS += -fsanitize=address -fno-omit-frame-pointer
endif
ifdef UBSAN
CFLAGS += -fsanitize=undefined -fno-sanitize-recover=undefined
endif
ifdef TSAN
CFLAGS += -fsanitize=thread -Wno-tsan
endif

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes
NO_SANITIZERS := $(if $(ASAN)$(UBSAN)$(TSAN),-fno-sanitize=all)
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -DCOMMPROF_VERSION='"$(VERSION)"' -Isrc $(WARNINGS) $(CFLAGS)

# Initial-exec TLS costs one instruction and works in every preloaded library. Unwind tables let a
# C++ exception of the job's error handler pass through our frames; with -fexceptions it would also
# run clean-ups there, which cost each call 2 to 22 instructions.
LIBRARY_CFLAGS := $(ALL_CFLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-fasynchronous-unwind-tables -fno-strict-aliasing
# Link-time optimization lets the wrappers and the accounting grow together (a fifth fewer
# nanoseconds a call). It is used where the compiler has it; LTO= builds without. store.o holds
# assembler (the schema), which stays outside.
MAIN := int main(void){return 0;}
LTO ?= $(shell printf '$(MAIN)' | $(CC) -flto=auto -x c - -o /dev/null 2>/dev/null \
	&& echo -flto=auto)
$(BUILD)/objects/output/store.o: LTO :=
# dlsym.o, too, always with -O2 and never sanitized: see src/mpi/dlsym.c.
$(BUILD)/objects/mpi/dlsym.o: LTO = -O2 $(NO_SANITIZERS)

# What is built on a new glibc loads on 2.17 too. Functions that have moved to libc since then are
# linked against stand-ins for the libraries that had them, under the version that they had.
# Functions that are new altogether are in src/base/old_glibc.c, what starts a program in
# src/tools/old_start.c. tests/abi/test_glibc.py tells if one is missing here. On other machines and
# with other C libraries nothing is done.
MACROS := $(shell $(CC) $(CFLAGS) -dM -E -include features.h -x c /dev/null 2>/dev/null)
GLIBC_x86_64 := $(if $(filter __x86_64__,$(MACROS)),GLIBC_2.2.5)
GLIBC_aarch64 := $(if $(filter __aarch64__,$(MACROS)),GLIBC_2.17)
OLDEST_GLIBC := $(if $(filter __GLIBC__,$(MACROS)),$(GLIBC_x86_64)$(GLIBC_aarch64))
MOVED_FROM_libdl.so.2 := dladdr dlclose dlerror dlopen dlsym dlvsym
MOVED_FROM_libpthread.so.0 := $(addprefix pthread_, \
	attr_setstacksize barrier_destroy barrier_init barrier_wait create getspecific join key_create \
	once setspecific sigmask)
STAND_INS := $(if $(OLDEST_GLIBC),$(BUILD)/glibc/libdl.so.2 $(BUILD)/glibc/libpthread.so.0)
# --as-needed overlooks what only LTO objects use.
C_LIBRARIES := -Wl,--no-as-needed $(or $(STAND_INS),-ldl -lpthread)

SHARED_LDFLAGS := -shared -Wl,-z,now -Wl,-z,relro $(C_LIBRARIES)
# nodelete: exit handlers, threads and keys outlive a dlclose.
LIBRARY_LDFLAGS := -Wl,-soname,libcommprof.so -Wl,-z,nodelete $(SHARED_LDFLAGS)
LIBRARIES := $(BUILD)/lib/libcommprof.so
SCRIPTS := hvprof-report commprof-experiment commprof-tune
PROGRAMS := commprof-run commprof-replay $(SCRIPTS)

OF_OLD_GLIBC := src/base/old_glibc.c $(if $(OLDEST_GLIBC),src/tools/old_start.c)
OF_MPI := src/mpi/launcher.c src/mpi/mpi_abi.c src/base/host.c
PROGRAM_SOURCES := $(addprefix src/tools/,commprof_run.c canary.c preload.c) \
	$(wildcard src/tools/doctor/*.c) $(OF_MPI) \
	$(addprefix src/base/,settings.c settings_file.c rank_list.c filesystems.c) $(OF_OLD_GLIBC)
PLAYER_SOURCES := $(wildcard src/tools/replay/*.c) $(OF_MPI) src/mpi/datatypes.c
REPLAY_SOURCES := $(PLAYER_SOURCES) $(OF_OLD_GLIBC)
PROGRAM_HEADERS := $(wildcard src/*/*.h src/*/*/*.h src/*/*.def src/*/*/*.def)
# What the reporter reads (base/files.py): the last line for `replay source`.
READ_BY_REPORTER := src/output/schema.sql src/output/rows.def \
	src/ledger/ledger_format.h src/ledger/counters.def \
	src/base/hot.h $(PLAYER_SOURCES) $(wildcard $(PLAYER_SOURCES:.c=.h) src/tools/replay/*.def) \
	src/wrappers/calls.def src/wrappers/shapes.h
LIBRARY_SOURCES := $(filter-out src/tools/% $(if $(OLDEST_GLIBC),,src/mpi/dlsym.c), \
	$(wildcard src/*/*.c))
LIBRARY_OBJECTS := $(LIBRARY_SOURCES:src/%.c=$(BUILD)/objects/%.o)

.PHONY: all
all: ## build the library and the programs
all: $(LIBRARIES) $(PROGRAMS:%=$(BUILD)/bin/%)

$(BUILD)/objects/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(Q)$(CC) $(LIBRARY_CFLAGS) $(LTO) -MMD -MP -c $< -o $@

$(BUILD)/objects/output/store.o: src/output/schema.sql
$(BUILD)/objects/run/provenance.o $(BUILD)/bin/commprof-run: $(VERSION_FILE)

$(BUILD)/glibc/%: Makefile
	@mkdir -p $(@D)
	$(Q)printf 'void %s(void);void %s(void){}\n' \
		$(foreach function,$(MOVED_FROM_$*),$(function) $(function)) >$@.c
	$(Q)echo '$(OLDEST_GLIBC) { global: *; };' >$@.map
	$(call SAY,LD)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -shared -nostdlib $@.c -Wl,-soname,$* \
		-Wl,--version-script=$@.map -o $@

$(BUILD)/lib/libcommprof.so: $(LIBRARY_OBJECTS) $(STAND_INS)
	@mkdir -p $(@D)
	$(call SAY,LD)
	$(Q)$(CC) $(LIBRARY_CFLAGS) $(LTO) $(LIBRARY_OBJECTS) $(LIBRARY_LDFLAGS) $(LDFLAGS) -o $@

$(BUILD)/bin/commprof-run: $(PROGRAM_SOURCES) $(PROGRAM_HEADERS) $(STAND_INS) Makefile
	@mkdir -p $(@D)
	$(call SAY,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(PROGRAM_SOURCES) $(C_LIBRARIES) $(LDFLAGS) -o $@

$(BUILD)/bin/commprof-replay: $(REPLAY_SOURCES) $(PROGRAM_HEADERS) $(STAND_INS) Makefile
	@mkdir -p $(@D)
	$(call SAY,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(REPLAY_SOURCES) $(C_LIBRARIES) $(LDFLAGS) \
		-Wl,--dynamic-list=src/tools/replay/exported.list -o $@

$(addprefix $(BUILD)/bin/,$(SCRIPTS)): $(BUILD)/bin/%: report/%
	@mkdir -p $(@D)
	$(call SAY,LN)
	$(Q)ln -sf $(abspath $<) $@

COMMAND_NAMES := $(shell sed -n '/^QUESTIONS/,/^}/s/^    "\([a-z]*\)": .*/\1/p' \
	report/commprof_report/commands/__init__.py)
REPORTER := $(wildcard report/commprof_report/*.py report/commprof_report/*/*.py)
REPORT_PAGES := hvprof-report.1 $(COMMAND_NAMES:%=hvprof-report-%.1)
MANUAL_PAGES := $(patsubst docs/man/%,$(BUILD)/man/%,$(wildcard docs/man/*.[1-8])) \
	$(REPORT_PAGES:%=$(BUILD)/man/%)

.PHONY: man
man: $(MANUAL_PAGES) ## build the manual pages
$(BUILD)/man/%: docs/man/% setup/man.sh $(BUILD)/bin/commprof-run
	@mkdir -p $(@D)
	$(call SAY,MAN)
	$(Q)setup/man.sh $< $(BUILD)/bin/commprof-run >$@
$(REPORT_PAGES:%=$(BUILD)/man/%): $(BUILD)/man/.of-reports ;
$(BUILD)/man/.of-reports: $(REPORTER) | python3
	@mkdir -p $(@D)
	$(call SAY,MAN)
	$(Q)PYTHONPATH=report python3 -B -m commprof_report.manual $(@D) $(REPORT_PAGES)
	@touch $@

COMPLETIONS := $(BUILD)/completion/bash $(BUILD)/completion/zsh
$(COMPLETIONS): $(BUILD)/bin/commprof-run $(BUILD)/bin/commprof-replay $(REPORTER) | python3
	@mkdir -p $(@D)
	$(call SAY,GEN)
	$(Q)COMMPROF_CONFIG=/dev/null PYTHONPATH=report python3 -B -m commprof_report.manual $(@F) \
		$(wordlist 1,2,$^) >$@

.PHONY: python3
python3:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "make: manual pages and \
	completion are written by Python 3.9 or newer, which is not the python3 in PATH; make \
	install-programs installs the library, commprof-run and the header alone" >&2; exit 1; }

-include $(LIBRARY_OBJECTS:.o=.d)

.PHONY: demo
demo: ## profile a real training run in which one rank is late, and print its report
	@echo "make demo: installs the packages that are missing (Open MPI, mpi4py, PyTorch, numpy,"
	@echo "matplotlib; Debian and Ubuntu), builds, and trains on 2 ranks: two minutes on two idle"
	@echo "cores, plus the download. All its files are in $(BUILD)/."
	@setup/packages.sh demo
	$(MAKE) all
	examples/run-demo.sh

.PHONY: check check-all check-rest nightly
check: ## install what the tests need, build, run the tests: eight minutes on two idle cores
check: LAYER = first
check: check-layer
check-all: LAYER = all
check-all: check-layer ## every test that any machine can run, with the sanitizers and simulations
check-rest: LAYER = rest
check-rest: check-layer ## what check-all has beside check
nightly: ## what needs a quiet machine: faults, steps, advice, costs; figures in build/nightly.md
nightly: LAYER = nightly
nightly: check-layer
.PHONY: check-layer
check-layer:
	setup/packages.sh check
	$(MAKE) --jobs=$$(nproc) all man
	tests/run-all.sh $(LAYER)

.PHONY: check-unit check-report check-mpi golden fuzz check-aarch64
check-unit: all ## the unit tests in C alone
	tests/unit/run.sh
check-report: all ## the reporter's tests alone
	$(PYTHON) -m pytest -q -p no:cacheprovider tests/report
check-mpi: all ## the tests with real ranks alone
	$(PYTHON) -m pytest -q -p no:cacheprovider tests/mpi
golden: ## what has changed in every command's --json since it was taken last; TAKE=1 takes it
	$(PYTHON) -B tests/report/golden.py $(if $(TAKE),take)
fuzz: ## 100,000 files with damage or of ill intent, read (FUZZ="--first 100000" for others)
	$(PYTHON) tests/report/fuzz.py $(FUZZ)
check-aarch64: ## the unit tests, cross-compiled for AArch64 and emulated
	-setup/packages.sh check-aarch64
	tests/unit/aarch64.sh

.PHONY: check-suites
check-suites: all ## suites of mpi4py and MPICH, real training, LAMMPS and GROMACS
	@status=0; for suite in mpi4py mpich training applications; do \
		BUILD=$(BUILD) tests/suites/$$suite.sh || status=1; done; exit $$status

.PHONY: check-engines
check-engines: ## `fleet` on Spark, ClickHouse and PostgreSQL against DuckDB: the same rows
	setup/packages.sh check-engines
	$(PYTHON) -B -m pytest -q -p no:cacheprovider tests/fleet

.PHONY: check-slurm
check-slurm: all ## jobs of a real Slurm of one node, started for the tests (as root)
	setup/packages.sh check
	setup/packages.sh check-slurm
	$(PYTHON) -B -m pytest -q -p no:cacheprovider tests/slurm

.PHONY: check-packages
check-packages: all ## what pip, Debian's tools, rpmbuild, modules and pkg-config make of it
	setup/packages.sh check
	-setup/packages.sh check-packages
	$(PYTHON) -B -m pytest -q -p no:cacheprovider tests/packages

.PHONY: check-debians
check-debians: ## a user's first commands in clean Debians 11 to 13, of a release (as root)
	setup/packages.sh check-debians
	tests/check-debians.sh

.PHONY: check-faults
TIMES ?= 25
check-faults: all ## jobs killed, or in one folder, TIMES times each (25): is each call counted?
	cd tests && $(PYTHON) -B -m faults --times $(TIMES)
	TIMES=$(TIMES) $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/mpi/test_overlapping_jobs.py

.PHONY: check-truth
check-truth: TIMES := $(if $(filter file,$(origin TIMES)),20,$(TIMES))
check-truth: all ## planted faults and twins, TIMES times each (20), against the ranks' own logs
	cd tests && $(PYTHON) -B -m truth --times $(TIMES) --markdown $(abspath $(BUILD))/truth.md

.PHONY: check-mpis
check-mpis: all ## the tests with real ranks under every MPI library that can be had
	setup/packages.sh check
	setup/packages.sh check-mpis
	setup/mpis.sh
	setup/nvtx.sh
	tests/check-mpis.sh

.PHONY: bench
bench: all ## what the profiler costs: nanoseconds, instructions and memory
	$(PYTHON) bench/run.py

.PHONY: lint
lint: ## formatting and static checks, with the tools that are at hand
	setup/lint.sh

.PHONY: show-wrappers
show-wrappers: ## the wrappers as plain C
	@$(CC) $(ALL_CFLAGS) -E -P src/wrappers/wrappers.c | sed -n '/wrap_Send(/,$$p' \
		| { clang-format 2>/dev/null || cat; }

TO = $(DESTDIR)$(PREFIX)
SHARE = $(TO)/share
INSTALLED = $(patsubst $(BUILD)/%,$(TO)/%,$(LIBRARIES))
FILL_IN = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@VERSION@|$(VERSION)|g'

.PHONY: install install-programs uninstall
install: install-programs man $(COMPLETIONS) ## install under PREFIX (with DESTDIR, DEBUG_INFO=1)
	install -d $(addprefix $(SHARE)/,commprof doc/commprof/docs/gallery man/man1 man/man3 man/man7)
	install -m 755 $(SCRIPTS:%=report/%) $(TO)/bin/
	cd report && find commprof_report -type f ! -name '*.pyc' \
		-exec install -D -m 644 {} $(abspath $(SHARE))/commprof/{} \;
	for file in $(READ_BY_REPORTER); do \
		install -D -m 644 $$file $(SHARE)/commprof/commprof_report/$$file || exit 1; done
	# halves the time to start; packages are for any Python
	$(if $(DESTDIR),,-python3 -m compileall -q $(SHARE)/commprof)
	install -m 644 LICENSE README.md CHANGELOG.md $(SHARE)/doc/commprof/
	install -m 644 docs/*.md docs/*.csv docs/*.sql $(SHARE)/doc/commprof/docs/
	install -m 644 docs/gallery/* $(SHARE)/doc/commprof/docs/gallery/
	find examples -name '*.[ch]' -o -name '*.py' -o -name '*.f90' -o -name '*.md' \
		| while read -r file; do \
		install -D -m 644 $$file $(SHARE)/doc/commprof/$$file || exit 1; done
	install -m 644 $(filter %.1,$(MANUAL_PAGES)) $(SHARE)/man/man1/
	install -m 644 $(filter %.3,$(MANUAL_PAGES)) $(SHARE)/man/man3/
	install -m 644 $(filter %.7,$(MANUAL_PAGES)) $(SHARE)/man/man7/
	install -d $(addprefix $(SHARE)/,pkgconfig modulefiles/commprof zsh/site-functions \
		bash-completion/completions)
	# share/, since Fedora's pkg-config does not search lib/
	$(FILL_IN) packaging/commprof.pc.in >$(SHARE)/pkgconfig/commprof.pc
	$(FILL_IN) packaging/modulefile.tcl.in >$(SHARE)/modulefiles/commprof/$(VERSION)
	$(FILL_IN) packaging/modulefile.lua.in >$(SHARE)/modulefiles/commprof/$(VERSION).lua
	for program in $(PROGRAMS); do install -m 644 $(BUILD)/completion/bash \
		$(SHARE)/bash-completion/completions/$$program || exit 1; done
	install -m 644 $(BUILD)/completion/zsh $(SHARE)/zsh/site-functions/_commprof

# What is compiled, alone: setup/wheel.py takes it from there.
install-programs: $(LIBRARIES) $(BUILD)/bin/commprof-run $(BUILD)/bin/commprof-replay
	install -d $(addprefix $(TO)/,lib bin include/commprof)
	install -m 755 $(LIBRARIES) $(TO)/lib/
	install -m 755 $(BUILD)/bin/commprof-run $(BUILD)/bin/commprof-replay $(TO)/bin/
	install -m 644 include/commprof.h $(TO)/include/
	install -m 644 src/ledger/ledger_format.h src/ledger/counters.def $(TO)/include/commprof/
ifdef DEBUG_INFO
	for file in $(INSTALLED); do $(OBJCOPY) --only-keep-debug $$file $$file.debug || exit 1; done
endif
	$(STRIP) --strip-unneeded $(TO)/bin/commprof-run $(TO)/bin/commprof-replay $(INSTALLED)
ifdef DEBUG_INFO
	for file in $(INSTALLED); do $(OBJCOPY) --add-gnu-debuglink=$$file.debug $$file || exit 1; done
endif

# Folders that are left empty are removed, but not those that every system has.
IS_OF_SYSTEM := $(filter / /opt /usr /usr/local,$(PREFIX))
OWN_FOLDERS := $(addprefix share/,modulefiles/commprof modulefiles pkgconfig \
	bash-completion/completions bash-completion zsh/site-functions zsh man/man1 man/man3 man/man7 \
	doc) \
	$(if $(IS_OF_SYSTEM),,share/man share include lib bin)

uninstall: ## remove what `make install` has installed under PREFIX
	rm -f $(addprefix $(TO)/bin/,$(PROGRAMS)) $(TO)/include/commprof.h
	rm -f $(SHARE)/pkgconfig/commprof.pc $(SHARE)/zsh/site-functions/_commprof
	rm -f $(addprefix $(SHARE)/bash-completion/completions/,$(PROGRAMS))
	rm -f $(addprefix $(SHARE)/modulefiles/commprof/,$(VERSION) $(VERSION).lua)
	rm -f $(INSTALLED) $(INSTALLED:%=%.debug)
	rm -f $(foreach page,$(notdir $(MANUAL_PAGES)), \
		$(SHARE)/man/man$(patsubst .%,%,$(suffix $(page)))/$(page))
	rm -rf $(addprefix $(TO)/,include/commprof share/commprof share/doc/commprof)
	@rmdir $(addprefix $(TO)/,$(OWN_FOLDERS)) $(if $(IS_OF_SYSTEM),,$(TO)) 2>/dev/null || true

# The date of the files is that of the commit, so it gives the same bytes wherever it is made. With
# PKG-INFO it is Python's sdist, too.
ARCHIVE := $(BUILD)/dist/commprof-$(VERSION).tar
.PHONY: dist
dist: ## the archive of a release, from the last commit: $(BUILD)/dist/commprof-VERSION.tar.gz
	@mkdir -p $(BUILD)/dist
	printf 'Metadata-Version: 2.1\nName: commprof\nVersion: $(VERSION)\n' >$(BUILD)/PKG-INFO
	git archive --prefix=commprof-$(VERSION)/ --add-file=$(BUILD)/PKG-INFO --output=$(ARCHIVE) HEAD
	gzip --best --no-name --force $(ARCHIVE)

# The wheel for AArch64 is built where its cross compiler is.
AARCH64_CC ?= aarch64-linux-gnu-gcc
AARCH64_STRIP ?= aarch64-linux-gnu-strip

.PHONY: wheel show-platform
wheel: ## the Python wheel, into $(BUILD)/dist; for AArch64 too, where its cross compiler is
	@echo "make wheel: pip compiles the library, which takes a minute or two, and says nothing"
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir $(BUILD)/dist .
	if command -v $(AARCH64_CC) >/dev/null; then \
		CC=$(AARCH64_CC) STRIP=$(AARCH64_STRIP) \
		$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir $(BUILD)/dist .; fi

show-platform: # the tag of a wheel; empty where the oldest glibc that it runs on is not known
	@echo $(if $(OLDEST_GLIBC),manylinux_2_17_$(if $(GLIBC_x86_64),x86_64,aarch64))

.PHONY: clean
clean: ## remove all that was built
	rm -rf $(BUILD)

.PHONY: help
help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 16

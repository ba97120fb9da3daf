# Chorale: parallel training under MPI, its collectives, and what they cost.
# A newcomer needs only `make run` and `make test`. Each first installs missing packages and builds the program.
# `make help` lists the other targets; `make info` shows what was found on this machine and why something is missing.
MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/bash
.DELETE_ON_ERROR:
# ── what you may set: `make help` prints what follows `#: ` ────────────────────────────────────────────────────────────
NP       ?= 4#: NP=8                 number of ranks of `make run` (default 4)
BUDGET   ?= 45s#: BUDGET=0             time of the comparisons in `make run` (45s); 0: every layout six times
SETUP    ?= yes#: SETUP=               install no packages
MPICXX   ?= mpicxx#: MPICXX=mpicxx.mpich  build with another MPI, in a separate build folder
#: SANITIZE=thread      build with a sanitizer (address,undefined or thread), in a separate build folder
ARCH     ?= native#: ARCH=x86-64-v3       build for this processor type instead of this machine's
BUNDLES  ?= yes#: BUNDLES=             compile each source separately, without precompiled headers (for a compiler cache)
FUZZ_CXX ?= clang++-19#: FUZZ_CXX=clang++-16  compiler of `make fuzz`: clang 16 or newer (clang++-19)
#: UCX= CUDA= NCCL=     build without an optional library, even if it is found
UCX      ?= $(call pkg,--modversion ucx)
CUDA     ?= $(patsubst %/bin/nvcc,%,$(firstword $(shell ls {/usr/local,/opt}/cuda/bin/nvcc 2>&-; command -v nvcc)))
NCCL     ?= $(if $(CUDA),$(patsubst %/include/nccl.h,%,$(firstword $(shell ls {$(CUDA),/usr{,/local}}/include/nccl.h 2>&-))))
#: V=1                  show whole commands
#: CXX CXXFLAGS LDFLAGS MPIRUN PREFIX DESTDIR CUDA_ARCH: the usual meanings
CXXFLAGS ?= $(if $(SANITIZE),-O1 -g -fno-omit-frame-pointer,-O3)
MPIRUN   ?= $(subst mpicxx,mpirun,$(MPICXX))
PREFIX   ?= /usr/local
CUDA_ARCH ?= $(if $(device),native,sm_90)# 8.0 is the minimum, because attention uses tensor cores
# ── flags; B is the build folder: build/, or a folder in it for another MPI or a sanitizer ─────────────────────────────
B        := build$(shell sed -E 's/^mpicxx\>[.]?//; s|/|_|g; s/[ ,]+/-/g; s/^-|-$$//g; s|.|/&|' <<< '$(MPICXX) $(SANITIZE)')
pkg       = $(shell pkg-config $(1) 2>/dev/null)
device    = $(wildcard /dev/nvidiactl /dev/dxg)
mpicxx   := OMPI_CXX='$(CXX)' MPICH_CXX='$(CXX)' $(MPICXX)
sanitize := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
threads  := $(if $(filter thread,$(SANITIZE)),-DWITH_THREAD_SANITIZER -Wno-unknown-pragmas,-fopenmp)
# Flags that the compiler does not know are left out. GCC 12 warns falsely of overlaps in std::string and fmt. GCC 12.2
# miscompiles 32-byte constants whose halves differ, such as {5, 5, 0, 0}; 16-byte moves avoid the bug. GCC is a tenth
# faster if it collects garbage only above 800 MB. The largest compilation then needs 930 MB instead of 700.
quirks   := $(shell for flag in -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-psabi -mmove-max=128 \
              -mstore-max=128 --param=ggc-min-heapsize=800000 $(SANITIZE:%=-Wno-maybe-uninitialized); do \
              $(CXX) -Werror $$flag -E -x c++ /dev/null >/dev/null 2>&1 && echo $$flag; done)
# GCC vectorizes loops over floats only if errno and traps are ignored. Unlike -ffast-math, this changes no bit of a result.
# Only the source fuses a product and a sum, by fma. So the bits of a row do not depend on where a loop is split.
common    = -std=c++20 -march=$(ARCH) -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra \
            -Wno-missing-field-initializers -fPIC -pthread -Iinclude -I. -I$B $(found)
found    := $(call pkg,--cflags hdf5 spdlog) \
            $(foreach library,CLI11 tomlplusplus nlohmann_json catch2 ucx,$(call pkg,--cflags-only-I $(library)))
compile   = $(mpicxx) $(common) $(quirks) $(threads) $(sanitize) $(CXXFLAGS)
# For clangd: without MPI's wrapper and without options that only GCC knows.
editor    = $(CXX) $(filter -I%,$(shell $(MPICXX) -show 2>/dev/null)) $(common) $(threads) $(sanitize) $(CXXFLAGS)
# Emulates a GPU on the host for `make test`. A misaligned access ends the program there; on a real GPU it ends the kernel.
emulate   = $(mpicxx) -Itests/cuda/emulation $(common) $(quirks) -Wno-unknown-pragmas -O1 \
            -fsanitize=alignment -fsanitize-undefined-trap-on-error
# -fmad=false: as above, only the source fuses. Without FMT_USE_CONSTEXPR, fmt omits constexpr under nvcc.
nvcc      = $(CUDA)/bin/nvcc -ccbin $(CXX) -std=c++20 -O3 -arch=$(CUDA_ARCH) -fmad=false --expt-relaxed-constexpr \
            -diag-suppress 1675 -DFMT_USE_CONSTEXPR=1 -Xcompiler -fPIC -Iinclude -I. -I$B $(NCCL:%=-I%/include)
cuda_link = -shared -Xlinker -Bsymbolic -lcublasLt -Xlinker -rpath,$(CUDA)/lib64 $(NCCL:%=-L%/lib64) $(NCCL:%=-L%/lib -lnccl)
link      = $(mpicxx) $(sanitize) $(threads) -pthread -rdynamic $(LDFLAGS)
libs     := -lhdf5_hl $(call pkg,--libs hdf5 spdlog) -ldnnl -luring $(if $(UCX),$(call pkg,--libs ucx)) -ldl
# ── sources: every file below these folders, except those that need a missing library ──────────────────────────────────
below     = $(sort $(shell find $(2) -name '*.$(1)' 2>/dev/null))
absent   := experiments/peers/% tests/client/% $(if $(UCX),,collectives/backends/ucx%) $(if $(NCCL),,collectives/%.cu)
sources  := $(filter-out $(absent),$(call below,cpp,src collectives layers parallel experiments tests))
# Most compile time goes into headers, so up to 12 sources of a folder are compiled as one bundle. Sources that include a
# parser of JSON or TOML, 3 s each, have bundles of their own. Compute loops, sources that contain facts of the build, and
# sources that git calls changed are compiled alone: an edit costs one small compilation. `pairs` are "bundle:source".
alone    := src/math/% %/main.cpp src/base/built.cpp src/memory/device_plugin.cpp $(if $(findstring fuzz,$B),tests/fuzz/%)
changed  := $(shell (git diff --name-only HEAD; git ls-files -o --exclude-standard) 2>/dev/null | grep 'cpp$$')
pairs    := $(filter-out $(addprefix %:,$(changed)),$(if $(BUNDLES),$(shell \
              grep -cE '^.include .*(json|toml|ds_config)\.hpp' $(filter-out $(alone),$(sources)) | awk -F: \
              '{ room = $$1; sub($$2 == 0 ? "/[^/]*$$" : "/.*", $$2 == 0 ? "" : "/json", room); n = count[room]++; \
                 print room "/bundle_" int(n / 12) ":" $$1 }')))
bundles  := $(addprefix $B/,$(sort $(filter-out %.cpp,$(subst :, ,$(pairs)))))
units    := $(patsubst %.cpp,$B/%.o,$(filter-out $(subst :, ,$(pairs)),$(sources))) $(bundles:=.o)
# Compute loops (`hot`) keep -O3 with a sanitizer, because a vector needs one check where single elements need many. Other
# sources (`cold`) are compiled with -O1 unless you set CXXFLAGS: the build takes a tenth less time, and runs are no slower.
effort    = $(if $(filter $(addprefix $B/,experiments/% parallel/% src/base/% src/record/% src/json/% tests/%),$@),cold,hot)
hot      := $(if $(SANITIZE),-O3)
cold     := $(if $(filter-out file,$(origin CXXFLAGS))$(SANITIZE),,-O1)
pch      := $(if $(BUNDLES),$B/hot.hpp.gch $B/cold.hpp.gch)
# Loops without ThreadSanitizer (race_marks.hpp). They are linked last, so that the linker prefers copies that it watches.
loops    := $(if $(filter thread,$(SANITIZE)),$(patsubst %,$B/src/math/%.o,attention attention_backward \
              exact/attention exact/products exact/sums exact/fixed_point))
tests    := $(filter $B/tests/%,$(units))
objects  := $(filter-out $(loops) $(tests),$(units)) $(loops)
kernels  := $(patsubst %,$B/%.o,$(filter-out $(absent),$(call below,cu,src collectives)))
emulated := $(patsubst %.cu,$B/emulated/%.o,$(filter-out src/%blas.cu src/%sort.cu,$(call below,cu,src collectives tests)))
plugin   := $(if $(CUDA),$B/chorale_cuda.so)
# ── what the program and its library say of themselves ─────────────────────────────────────────────────────────────────
release  := $(shell sed -n 's/.* version = "\(.*\)";/\1/p' src/base/built.hpp)
abi      := $(basename $(release))# until 1.0 a minor version may change the interface, so it has a library name of its own
pc        = s|@RELEASE@|$(release)|; s|@SANITIZE@|$(sanitize)|; s|@HEADERS@|$(CURDIR)/include|; s|@LIBRARY@|$(CURDIR)/$B|g
commit   := $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)
why       = $(if $($(1)),,$(if $(filter undefined file,$(origin $(1))),built $(2),switched off by $(1)= at build time))
facts     = {"compiler", R"($(shell $(CXX) --version 2>/dev/null | head -n 1))"}, {"mpirun", "$(MPIRUN)"}, \
            {"cxxflags", R"(-march=$(ARCH) $(sanitize) $(CXXFLAGS))"}, {"git_commit", "$(commit:%-dirty=%)"}, \
            {"git_dirty", "$(if $(filter %-dirty,$(commit)),yes,no)"}, \
            {"without_ucx", "$(call why,UCX,where libucx-dev was not installed)"}, \
            {"without_cuda", "$(call why,CUDA,where the CUDA Toolkit was not found)"}, \
            {"without_nccl", "$(call why,NCCL,$(if $(CUDA),where nccl.h was not found,without CUDA))"},
# Must be equal in the program and the plugin. It covers all headers, so nobody has to know which headers both include.
plugin_mark = "$(shell cat $(call below,hpp,src collectives) | sha256sum | head -c 16)"
# ── targets ────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Each starts make again, because `setup` may have installed libraries that were missing when this Makefile was read. First
# `make written` writes the stamps and bundles, which a dry run cannot write. Then a dry run counts the `steps`.
worked   := all program tests library examples run check test test-all chaos fuzz fuzzer bench experiments published report \
            data install gpu-bundle testable
$(worked): setup
	+@$(MAKE) written || exit; steps=$$($(MAKE) -n V= always= steps=1 do-$@ 2>/dev/null | grep -c "printf '\["); \
	$(MAKE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) steps=$$steps do-$@
$(if $(filter $(worked) format,$(MAKECMDGOALS)),$(eval .NOTPARALLEL:))# two targets would build the same files at once
.PHONY: $(worked) $(worked:%=do-%) written peers lint format setup info clean help FORCE
elsewhere = $(if $(always),$(MAKE) steps=,:)# builds in another folder; its steps are counted there, not in this dry run
openmpi  := --bind-to none --map-by slot:OVERSUBSCRIBE $(if $(filter 0,$(shell id -u)),--allow-run-as-root)
launch    = $(MPIRUN) $(if $(findstring Open MPI,$(shell $(firstword $(MPIRUN)) --version 2>/dev/null)),$(openmpi))
suite    := experiments/suites/strategies$(if $(filter 8,$(NP)),8).toml
run_tests = /usr/bin/python3 tests/run.py $B '$(launch)' '$(SANITIZE)'
do-all: $B/chorale do-library $(plugin)  ## build the program and the library, and the CUDA plugin if the toolkit is found
do-program: $B/chorale $(if $(device),$(plugin))  ## build the program alone: all that an edit needs to be tried
do-tests: $B/tests_run  ## build the C++ tests alone: build/tests_run
do-library: $B/libchorale.so $B/chorale.pc  ## build the library and build/chorale.pc, for your own programs
do-examples: $(patsubst %.cpp,$B/%,$(wildcard examples/*.cpp))  ## build examples/*.cpp as your own program would be built
do-run: do-program  ## compare strategies on NP ranks (4): speed and memory, as a table, a record and a page of figures
	@MPIRUN='$(MPIRUN)' experiments/tools/miniature '$(BUDGET)' $B/chorale $(launch) -n $(NP) $B/chorale compare $(suite)
do-testable: $B/chorale $B/tests_run do-library $(plugin) $B/emulated/chorale_cuda.so
do-test: do-testable; @$(run_tests)  ## run all tests: in one process, on threads, under mpirun on 1 to 8 ranks, in Python
do-check: do-testable; @TEST_QUICK=yes $(run_tests)  ## run the tests whose last run took less than a second
do-test-all: do-testable $(if $(SANITIZE),,thread.sanitized address,undefined.sanitized)
do-test-all:; @TEST_ALL=yes $(run_tests)  ## run tests with every combination and more repetitions, and with each sanitizer
%.sanitized:; +@$(elsewhere) SANITIZE=$* tests
do-chaos: do-program do-tests  ## break runs on purpose, and count how often each promise of docs/reliability.md holds
	@TEST_BUILD=$B TEST_LAUNCH='$(launch)' FULL=$(FULL) ONLY=$(ONLY) COUNT=$(COUNT) /usr/bin/python3 tests/chaos.py
do-fuzz:  ## feed mutated inputs to every parser, under clang's sanitizers: MINUTES=2 for all of them, or TARGET=toml for one
	@$(FUZZ_CXX) --version >/dev/null 2>&1 || { printf '%s\n' 'error: fuzzing needs clang 16 or newer, and its libFuzzer' \
	  '  $(FUZZ_CXX) was not found' \
	  '  install clang-19, libclang-rt-19-dev and libomp-19-dev, or name another: FUZZ_CXX=clang++-16'; exit 2; }
	+@$(elsewhere) B=build/fuzz CXX=$(FUZZ_CXX) SANITIZE=fuzzer-no-link,address,undefined LDFLAGS=-lgomp fuzzer
	@/usr/bin/python3 tests/fuzz/run.py build/fuzz/fuzz $(or $(MINUTES),2) $(TARGET)
do-fuzzer: $B/fuzz
do-bench: do-tests; @$B/tests_run '[!benchmark]'  ## time the parts: kernels, random numbers, recorder
peers: $(foreach mpi,openmpi mpich,$(if $(shell command -v mpicxx.$(mpi)),build/peers/$(mpi)))  ## build MPI's own benchmark
build/peers/%: experiments/peers/mpi_native.cpp; $(call quiet,c++) mpicxx.$* -O3 -march=$(ARCH) -std=c++20 -Wall $< -o $@
do-experiments: do-program  ## run every suite in experiments/suites/*.toml, except those for several hosts
	@for suite in $$(grep -L tools/hosts experiments/suites/*.toml); do \
	  $(launch) -n $$(sed -n '0,/^ranks/s/^ranks *= *//p' $$suite) $B/chorale compare $$suite || exit; done
do-published: do-program  ## predict the steps of published tables, and compare: experiments/published/*.csv
	@for table in experiments/published/*.csv; do $B/chorale plan --table $$table || exit; done
do-report: do-program; @$B/chorale report runs/latest/run.h5 --html  ## write the newest run as one page of figures
do-data: do-program; @data/make.sh $B/chorale  ## make the English text of data/README.md, a vocabulary and its tokens
do-install: do-all  ## copy the program, its manual, suites, the library and its headers to PREFIX (/usr/local) below DESTDIR
	@packaging/install $B '$(DESTDIR)$(PREFIX)' $(release) '$(firstword $(MPICXX))' '$(sanitize)'
do-gpu-bundle:  ## pack build/gpu-bundle for a machine with a GPU and little else; its script `run` tests this build there
	+@$(elsewhere) B=build/portable ARCH=x86-64-v3 CUDA_ARCH=sm_90 testable
	@/usr/bin/python3 experiments/gpu_bundle/pack.py build/portable build/gpu-bundle
compile_commands.json: $B/editor.stamp $B/sources.stamp  ## for clangd and other editors' servers; every build updates it
	@printf '%s\n' $(sources) $(call below,cpp,tests/client examples) | sed -e 's|.*|{"directory": "$(CURDIR)", "file": "&"|' \
	  -e 's|"file": "\(.*\)"|&, "command": "$(subst ",\\",$(editor)) -c \1"}|; 1s/^/[/; $$!s/$$/,/; $$s/$$/]/' > $@
lint: setup; @/usr/bin/python3 tests/lint.py  ## check folder order, sizes and formatting
format: setup; @/usr/bin/python3 tests/lint.py --format  ## format every source (clang-format 14)
setup:  ## install missing packages (Debian, as root or through sudo)
	@$(if $(filter run,$(MAKECMDGOALS)),experiments/tools/miniature announce $(NP) '$(BUDGET)' '$(SETUP)' $B/chorale $(suite))
	@$(if $(filter yes,$(SETUP)),packaging/setup '$(MPICXX)' '$(origin UCX)' $(or $(MAKECMDGOALS),all))
info:  ## show what was found on this machine, and why something is missing
	@CXX='$(CXX)' MPIRUN='$(MPIRUN)' $(foreach n,UCX CUDA NCCL,$n='$($n)' $n_from='$(origin $n)') packaging/info
clean:; @rm -rf build compile_commands.json  ## remove build/; runs/ stays
help:  ## print this list
	@awk -F ':.*  ## ' '/^[a-z_.-]+:.*  ## / { sub("^do-", ""); printf "make %-11s %s\n", $$1, $$2 }' Makefile
	@echo; echo 'make NAME=value … sets'; sed -n 's/^[^\t#]*#: /  /p' Makefile
# ── rules ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One line per step, such as "[ 37/212] c++ FILE" if `steps` were counted; V=1 shows whole commands.
quiet     = $(if $(V),,@)mkdir -p $(@D); $(if $(V),,printf '$(count)%-5s %s\n' '$(1)' '$@';)
count     = $(if $(steps),$(eval begun += x)$(shell printf '[%3d/%d] ' $(words $(begun)) $(steps)))
cxx       = $(call quiet,c++) $(compile) $(if $(pch),-include $B/$(effort).hpp) $($(effort)) -MMD -MP -c $< -o $@
linked    = $(call quiet,link) $(link) $(filter %.o,$^) $(libs)
$B/chorale: $(objects) $B/link.stamp $B/objects.stamp; $(linked) -o $@
$B/tests_run: $(filter-out %/main.o,$(objects)) $(tests) $B/link.stamp $B/objects.stamp $B/tests.stamp
	$(linked) $(call pkg,--libs catch2) -lrapidcheck -o $@
$B/fuzz: $(filter-out %main.o %_test.o %trials.o %mutation.o,$(objects) $(filter $B/tests/fuzz/%,$(tests)))
	$(linked) -fsanitize=fuzzer -o $@
$B/libchorale.so: $(filter-out $B/experiments/%,$(objects)) $B/link.stamp $B/objects.stamp
	$(linked) -shared -Wl,-soname,$(@F).$(abi) -o $@.$(release) && ln -sf $(@F).$(release) $@.$(abi) && ln -sf $(@F).$(abi) $@
$B/chorale.pc: packaging/chorale.pc.in $B/pc.stamp; @sed '$(pc)' $< > $@
$B/examples/%: examples/%.cpp $B/libchorale.so $B/chorale.pc
	$(call quiet,c++) $(mpicxx) $(CXXFLAGS) $< $$(pkg-config --cflags --libs $B/chorale.pc) -MMD -MP -o $@
$B/chorale_cuda.so: $(kernels) $B/nvcc.stamp; $(call quiet,link) $(nvcc) $(kernels) $(cuda_link) -o $@
$B/%.cu.o: %.cu $B/nvcc.stamp; $(call quiet,nvcc) $(nvcc) -MMD -MP -c $< -o $@
$B/emulated/chorale_cuda.so: $(emulated); $(call quiet,link) $(CXX) -shared $(emulated) -o $@
$B/emulated/%.o: %.cu $B/emulate.stamp; $(call quiet,c++) $(emulate) -MMD -MP -x c++ -c $< -o $@
$B/%.o: %.cpp $B/compile.stamp $(pch); $(cxx)
$(bundles:=.o): %.o: %.cpp $B/compile.stamp $(pch); $(cxx)
$B/%.hpp.gch: src/base/standard.hpp $B/compile.stamp; $(call quiet,c++) $(compile) $($*) -MMD -MP -c -x c++-header $< -o $@
$(loops): private cxx = $(call quiet,c++) $(compile) $(hot) -fno-sanitize=thread -MMD -MP -c $< -o $@
$B/src/base/built.o: $B/facts.stamp
$B/src/memory/device_plugin.o $B/src/memory/plugin_mark.cu.o $B/emulated/src/memory/plugin_mark.o: $B/plugin_mark.stamp
# Stamps and bundles are rewritten only if their text has changed; `make always=` does not even look. A stamp holds the
# variable of its name, such as the compile command, so objects are rebuilt if the command changes.
always   := FORCE
stamps   := $(patsubst %,$B/%.stamp,compile link objects tests pc facts plugin_mark emulate $(CUDA:%=nvcc) editor sources)
written: $(stamps) $(bundles:=.cpp) $(if $(filter build,$B),compile_commands.json); @:
renew     = @mkdir -p $(@D); printf $(1) | cmp -s - $@ || printf $(1) > $@
$(stamps): $B/%.stamp: $(always); $(call renew,'%s\n' '$(subst ','\'',$($*) $(if $(filter compile,$*),$(cold)))')
$(bundles:=.cpp): $B/%.cpp: $(always); $(call renew,'#include "%s"\n' $(patsubst $*:%,%,$(filter $*:%,$(pairs))))
-include $(patsubst %.o,%.d,$(units) $(kernels) $(emulated)) $(wildcard $B/*.d $B/examples/*.d)

# Chorale: parallel training under MPI, its collectives, and what they cost.
#
# A newcomer needs only `make run` and `make test`. Each first installs missing packages and builds the program.
# `make help` lists the other targets; `make info` shows what was found on this machine and why something is missing.
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# ── what you may set ────────────────────────────────────────────────────────────────────────────────────────────────
#: NP=8                 number of ranks of `make run` (default 4)
#: BUDGET=0             time of the comparisons in `make run` (45s), or longer: every layout runs at least once; 0: six times each
#: UCX= CUDA= NCCL=     build without an optional library, even if it is found
#: MPICXX=mpicxx.mpich  build with another MPI, in a separate build folder
#: SANITIZE=thread      build with a sanitizer (address,undefined or thread), in a separate build folder
#: ARCH=x86-64-v3       build for this processor type instead of this machine's
#: SETUP=               install no packages
#: PCH=                 build without precompiled headers (a compiler cache makes them unnecessary)
#: BUNDLES=             compile each source separately, as PCH= does, too
#: FUZZ_CXX=clang++-16  compiler of `make fuzz`: clang 16 or newer (clang++-19)
#: V=1                  show whole commands
#: CXX CXXFLAGS LDFLAGS MPIRUN PREFIX DESTDIR CUDA_ARCH: the usual meanings
MPICXX    ?= mpicxx
MPIRUN    ?= $(subst mpicxx,mpirun,$(MPICXX))
ARCH      ?= $(if $(portable),x86-64-v3,native)
CXXFLAGS  ?= $(if $(SANITIZE),-O1 -g -fno-omit-frame-pointer,-O3)
NP        ?= 4
BUDGET    ?= 45s
PREFIX    ?= /usr/local
SETUP     ?= yes
PCH       ?= yes
FUZZ_CXX  ?= clang++-19
BUNDLES   ?= $(PCH)
UCX       ?= $(call pkg,--modversion ucx)
CUDA      ?= $(patsubst %/bin/nvcc,%,$(firstword $(wildcard /usr/local/cuda/bin/nvcc /opt/cuda/bin/nvcc) $(shell command -v nvcc)))
NCCL      ?= $(if $(CUDA),$(patsubst %/include/nccl.h,%,$(firstword $(wildcard $(addsuffix /include/nccl.h,$(CUDA) /usr /usr/local)))))
CUDA_ARCH ?= $(if $(portable),sm_90,$(if $(device),native,sm_90))# 8.0 is the minimum, because attention uses tensor cores

# ── Debian packages; `make SETUP= …` installs none ─────────────────────────────────────────────────────────────────
mpi_packages  := $(if $(findstring mpich,$(MPICXX)),mpich libmpich-dev,openmpi-bin libopenmpi-dev)
run_packages  := g++ git pkg-config iproute2 $(mpi_packages) libhdf5-dev libdnnl-dev liburing-dev $(if $(filter undefined file,$(origin UCX)),libucx-dev) \
                 libcli11-dev libspdlog-dev libfmt-dev libtomlplusplus-dev nlohmann-json3-dev
test_packages := catch2 cmake librapidcheck-dev python3 python3-h5py python3-xarray python3-h5netcdf python3-netcdf4 python3-protobuf python3-matplotlib hdf5-tools netcdf-bin strace python3-torch
lint_packages := git python3 clang-format
fuzz_packages := clang-19 libclang-rt-19-dev libomp-19-dev
packages       = $(if $(filter-out lint format,$(or $(MAKECMDGOALS),all)),$(run_packages)) $(if $(filter tests test test-all chaos fuzz bench gpu-bundle setup,$(MAKECMDGOALS)),$(test_packages)) \
                 $(if $(filter lint format setup,$(MAKECMDGOALS)),$(lint_packages)) $(if $(filter fuzz,$(MAKECMDGOALS)),$(fuzz_packages))

# `make gpu-bundle` builds for another machine: for all usual x86-64 processors (v3), in a separate build folder.
portable := $(filter %gpu-bundle,$(MAKECMDGOALS))

# ── flags; B is the build folder: build/, or a folder in it for another MPI or a sanitizer ─────────────────────────
space    := $() $()
comma    := ,
fuzz_folder := build/fuzz
B        := build$(addprefix /,$(subst $(space),-,$(strip $(subst /,_,$(patsubst mpicxx.%,%,$(filter-out mpicxx,$(MPICXX)))) $(subst $(comma), ,$(SANITIZE)) $(if $(portable),portable))))
mpicxx   := OMPI_CXX='$(CXX)' MPICH_CXX='$(CXX)' $(MPICXX)
pkg       = $(shell pkg-config $(1) 2>/dev/null)
sanitize := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
# GCC 12 gives false warnings of overlaps and overflows in std::string and fmt.
# -Wno-psabi: functions that return vectors are called only within one program.
quirks   := -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-psabi $(if $(findstring clang,$(CXX)),-Wno-unknown-warning-option -Wno-invalid-constexpr -Wno-unknown-pragmas -Wno-deprecated-declarations) $(if $(SANITIZE),-Wno-maybe-uninitialized)
# GCC 12.2 miscompiles 32-byte constants whose halves differ: {5, 5, 0, 0} became {5, 5, 5, 5}. 16-byte moves avoid the bug.
halves   := $(shell $(CXX) -mmove-max=128 -E -x c++ /dev/null >/dev/null 2>&1 && echo -mmove-max=128 -mstore-max=128)
# By default GCC collects garbage before it has used 128 MB. A limit of 800 MB makes a build a tenth faster, but the largest compilation then needs 930 MB instead of 700.
roomy    := $(if $(findstring clang,$(shell $(CXX) --version 2>/dev/null)),,--param ggc-min-heapsize=800000)
# GCC vectorizes loops over floats only if errno and traps are ignored. Unlike -ffast-math, these flags change no bit of a result.
# The compiler fuses a product and a sum only where the source calls fma. So the bits of a row do not depend on where a loop is split.
maths    := -fno-math-errno -fno-trapping-math -ffp-contract=off $(if $(filter thread,$(SANITIZE)),-Wno-unknown-pragmas,-fopenmp)
compile   = $(mpicxx) -std=c++20 -march=$(ARCH) $(halves) $(maths) -Wall -Wextra -Wno-missing-field-initializers $(quirks) -fPIC -pthread -Iinclude -I. -I$B \
            $(roomy) $(sanitize)$(if $(filter thread,$(SANITIZE)), -DWITH_THREAD_SANITIZER) $(found_flags) $(CXXFLAGS)
# With -O3 in CXXFLAGS, sources without compute loops are compiled with -O1 (`cold`). The build takes a tenth less time, and runs are no slower.
build_s  := 400# seconds of one processor for a build from scratch; `make run` prints the estimate
cold     := $(if $(filter -O3,$(CXXFLAGS)),-O1)
# With a sanitizer, all other sources are compiled with -O3 (`hot`), because a vector needs one check where single elements need many.
hot      := $(if $(SANITIZE),-O3)
# -fmad=false: as above, only the source decides where to use fma. Without FMT_USE_CONSTEXPR, fmt omits constexpr under nvcc.
nvcc      = $(CUDA)/bin/nvcc -ccbin $(CXX) -std=c++20 -O3 -arch=$(CUDA_ARCH) -fmad=false --expt-relaxed-constexpr -diag-suppress 1675 \
            -DFMT_USE_CONSTEXPR=1 -Xcompiler -fPIC -Iinclude -I. -I$B $(NCCL:%=-I%/include)
# Compiles the CUDA sources for a GPU that is emulated on the host, so `make test` needs no GPU. NCCL's messages go over MPI there.
# A misaligned access ends the kernel on a real GPU; here it ends the program (illegal instruction).
emulate   = $(mpicxx) -std=c++20 -march=$(ARCH) $(halves) -ffp-contract=off -Wall -Wextra -Wno-missing-field-initializers -Wno-unknown-pragmas $(quirks) \
            -fPIC -Itests/cuda/emulation -Iinclude -I. -I$B $(found_flags) -O1 \
            -fsanitize=alignment -fsanitize-undefined-trap-on-error
# The command with which clangd reads a source: `compile` without MPI's wrapper and without options that only GCC knows.
editor    = $(CXX) $(filter -I%,$(shell $(MPICXX) -show 2>/dev/null)) -std=c++20 -march=$(ARCH) $(maths) -Wall -Wextra -Wno-missing-field-initializers \
            -pthread -Iinclude -I. -I$B $(sanitize) $(found_flags) $(CXXFLAGS)
link      = $(mpicxx) $(sanitize) $(filter -fopenmp,$(maths)) -pthread -rdynamic $(LDFLAGS)
libs      = $(hdf5_folder) -lhdf5_hl $(hdf5_spdlog_libs) -ldnnl -luring $(if $(UCX),$(ucx_libs)) -ldl
cuda_libs = -lcublasLt -Xlinker -rpath,$(CUDA)/lib64
nccl_libs = $(if $(NCCL),-L$(NCCL)/lib64 -L$(NCCL)/lib -lnccl)
found_flags       := $(call pkg,--cflags hdf5 spdlog) $(foreach p,CLI11 tomlplusplus nlohmann_json catch2 ucx,$(call pkg,--cflags-only-I $p))
hdf5_spdlog_libs  := $(call pkg,--libs hdf5 spdlog)
hdf5_folder       := $(call pkg,--libs-only-L hdf5)
ucx_libs          := $(call pkg,--libs ucx)
catch_libs        := $(call pkg,--libs catch2) -lrapidcheck

# ── bundles: several sources compiled as one (src/bundles.awk) ─────────────────────────────────────────────────────
# Sources with compute loops are compiled separately. So are sources that git reports as changed. Then an edit costs one small
# compilation, and that compilation finds missing includes (CONTRIBUTING.md).
changed   = $(shell git diff --name-only HEAD -- '*.cpp' 2>/dev/null; git ls-files -o --exclude-standard -- '*.cpp' 2>/dev/null)
alone     = src/math/% experiments/commands/main.cpp tests/main.cpp src/base/built.cpp src/memory/device_plugin.cpp $(if $(filter $(fuzz_folder),$B),tests/fuzz/%) $(changed)

# ── sources: every file below these folders, except files that need a missing library ──────────────────────────────
below     = $(sort $(if $(wildcard $(2)),$(shell find $(wildcard $(2)) -name '*.$(1)')))# without a folder, find would search everything
absent   := $(call below,cpp,experiments/peers) $(if $(UCX),,$(wildcard collectives/backends/ucx*.cpp)) $(if $(NCCL),,$(wildcard collectives/backends/nccl*.cu))
sources  := $(filter-out $(absent),$(call below,cpp,src collectives layers parallel experiments))
checks   := $(filter-out tests/client/%,$(call below,cpp,tests))
edited    = $(sources) $(checks) $(call below,cpp,tests/client examples)
sorted   := $(if $(BUNDLES),$(shell awk -v most=70000 -f src/bundles.awk $(filter-out $(alone),$(sources) $(checks)) \
              $(call below,hpp,include src collectives layers parallel experiments tests)))
bundles  := $(sort $(foreach pair,$(sorted),$(firstword $(subst :, ,$(pair)))))
bundled  := $(foreach pair,$(sorted),$(lastword $(subst :, ,$(pair))))
# The objects of the bundles $(2), and of those sources in $(1) that are in no bundle.
objects_of = $(patsubst %.cpp,$B/%.o,$(filter-out $(bundled),$(1))) $(patsubst %,$B/bundles/%.o,$(2))
tests    := $(call objects_of,$(checks),$(filter tests%,$(bundles)))
kernels  := $(if $(CUDA),$(patsubst %.cu,$B/%.cu.o,$(filter-out $(absent),$(call below,cu,src collectives layers parallel))))
emulated := $(patsubst %.cu,$B/emulated/%.o,$(filter-out %/blas.cu %/sort.cu,$(call below,cu,src collectives)) $(call below,cu,tests/cuda))
headers_once := $(if $(PCH),$B/hot.hpp.gch $B/cold.hpp.gch)
plugin   := $(if $(CUDA),$B/chorale_cuda.so)
# The loops of these sources are compiled without ThreadSanitizer (src/math/race_marks.hpp). They are linked last:
# if another object also contains a copy of one of their inline functions, the linker then takes that copy, which is checked.
unwatched := $(if $(filter thread,$(SANITIZE)),$(patsubst %,$B/src/math/%.o,attention attention_backward exact/products exact/attention \
               exact/sums exact/fixed_point))
objects  := $(call objects_of,$(sources),$(filter-out tests%,$(bundles)))
objects  := $(filter-out $(unwatched),$(objects)) $(unwatched)
parts    := $(filter-out $B/experiments/% $B/bundles/experiments%,$(objects))
library  := $B/libchorale.so $B/chorale.pc
examples := $(patsubst %.cpp,$B/%,$(wildcard examples/*.cpp))
link_program = $(link) $(objects) $(libs)
link_tests   = $(link) $(filter-out $B/experiments/commands/main.o,$(objects)) $(tests) $(libs) $(catch_libs)
link_library = $(link) -shared -Wl,-soname,libchorale.so.$(abi) $(parts) $(libs)
link_plugin  = $(nvcc) -shared -Xlinker -Bsymbolic $(kernels) $(cuda_libs) $(nccl_libs)
link_emulated = $(CXX) -shared $(emulated)
device    = $(wildcard /dev/nvidiactl /dev/dxg)

# ── version, and pkg-config file for users' programs: folder of headers $(1), of library $(2) ─────────────────────
release  := $(shell sed -n 's/.* version = "\(.*\)";/\1/p' src/base/built.hpp)
# Until 1.0 a minor version may change the interface, so libchorale.so.0.2 is not the library that a program built with 0.1 loads.
abi      := $(basename $(release))
pc        = printf '%s\n' 'Name: chorale' 'Description: collectives with pluggable algorithms and backends' 'Version: $(release)' \
            'Cflags: -std=c++20 -pthread $(sanitize) -I$(1)' 'Libs: -L$(2) -Wl,-rpath,$(2) -lchorale'
pc_here   = $(call pc,$(CURDIR)/include,$(CURDIR)/$B)

# ── facts of the build, for the program ────────────────────────────────────────────────────────────────────────────
commit   := $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)
why       = $(if $(filter undefined file,$(origin $(1))),$(2),switched off by $(1)= at build time)
facts     = {"compiler", R"($(shell $(CXX) --version 2>/dev/null | head -n 1))"}, \
            {"cxxflags", R"(-march=$(ARCH) $(sanitize) $(CXXFLAGS))"}, \
            {"mpirun", "$(MPIRUN)"}, \
            {"git_commit", "$(commit:%-dirty=%)"}, \
            {"git_dirty", "$(if $(filter %-dirty,$(commit)),yes,no)"}, \
            {"without_ucx", "$(if $(UCX),,$(call why,UCX,built where libucx-dev was not installed))"}, \
            {"without_cuda", "$(if $(CUDA),,$(call why,CUDA,built where the CUDA Toolkit was not found))"}, \
            {"without_nccl", "$(if $(NCCL),,$(call why,NCCL,$(if $(CUDA),built where nccl.h was not found,built without CUDA)))"},
# A hash that must be equal in the program and the plugin. It covers all headers, so nobody has to know which headers both include.
plugin_mark = "$(shell cat $(call below,hpp,src collectives) | sha256sum | head -c 16)"

# ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────────
root   := $(filter 0,$(shell id -u))
onednn  = $(shell awk '/define DNNL_VERSION_(MAJOR|MINOR|PATCH)/ {v = v dot $$3; dot = "."} END {print v}' \
            $(firstword $(wildcard $(addsuffix /include/oneapi/dnnl/dnnl_version.h,/usr /usr/local)) /dev/null))
version = $(shell $(firstword $(MPIRUN)) --version 2>/dev/null | head -n 1)
launch  = $(MPIRUN) $(if $(findstring Open MPI,$(version)),$(if $(root),--allow-run-as-root) --bind-to none --map-by slot:OVERSUBSCRIBE)
worked  = all program tests library examples run test test-all chaos fuzz bench experiments published report data lint format install gpu-bundle
.PHONY: say-run say-gpu-bundle written $(worked) $(worked:%=do-%) peers setup info clean help FORCE

ifneq ($(filter $(worked),$(MAKECMDGOALS)),)
.NOTPARALLEL:                    # two targets would build the same files at the same time; within a target, make runs in parallel
endif
# `setup` may have installed libraries that were missing when this Makefile was read, so each target starts make again. A first dry run
# counts the build steps (`steps`). The dry run needs the stamps and bundles, so `make written` makes them first.
# The `+` is needed because the line starts make through a variable. Without it, make would not share its jobs (-j2) with the make that it starts.
make = $(MAKE) --no-print-directory $(if $(portable),portable=yes)
$(worked): setup
	+@$(if $(filter lint format,$@),,$(make) written && steps=$$($(make) -n V= always= steps=1 do-$@ 2>/dev/null | grep -c "printf '\[");) \
	$(make) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) steps=$$steps do-$@

## all         build the program and the library, and the CUDA plugin if the toolkit is found
do-all: $B/chorale $(library) $(plugin)

## program     build the program alone: all that an edit needs to be tried
do-program: $B/chorale $(if $(device),$(plugin))

## tests       build the C++ tests alone: build/tests_run
do-tests: $B/tests_run

## library     build the library and build/chorale.pc, for your own programs
do-library: $(library)

## examples    build examples/*.cpp, each as your own program would be built
do-examples: $(examples)

## run         compare strategies on NP ranks (4): speed and memory, as a table, a record and a page of figures
do-run: $B/chorale $(if $(device),$(plugin))
	@MPIRUN='$(MPIRUN)' experiments/tools/miniature '$(BUDGET)' $B/chorale $(launch) -n $(NP) $B/chorale compare $(strategies)
strategies := experiments/suites/strategies$(if $(filter 8,$(NP)),8).toml
say-run:
	@printf '%s\n' 'make run: which way to share a model among $(NP) ranks trains fastest?' \
	  '  packages    $(if $(SETUP),installs missing packages: up to a minute,none are installed (SETUP=))' \
	  "  build       $$([ -e $B/chorale ] && echo 'what has changed since the last one' || \
	    echo "the program, from scratch: about $$(($(build_s) / 60 / $$(nproc) + 1)) minutes on $$(nproc) processors, more on a busy machine")" \
	  '  hosts       experiments/suites/two_hosts.toml, every layout once on two emulated hosts, where that is allowed' \
  '  comparison  $(strategies), every layout once, which takes a minute or more,' \
	  '              and up to six times as far as BUDGET=$(BUDGET) allows, which counts both' \
	  '  and then    tables here; the record and a page of figures in runs/latest'

## test        run all tests: in one process, on threads, under mpirun on 1 to 8 ranks, in Python
## test-all    run the tests with every combination and more repetitions, and the C++ tests with each sanitizer
do-test-all: export TEST_ALL := yes
do-test-all: $(if $(SANITIZE),,thread.sanitized address,undefined.sanitized)
# Separate builds, whose steps are counted separately.
%.sanitized:
	+@$(if $(always),$(make) SANITIZE=$* steps= tests,:)
do-test do-test-all: $B/chorale $B/tests_run $(library) $(plugin) $B/emulated/chorale_cuda.so
	@/usr/bin/python3 tests/run.py $B '$(launch)' '$(SANITIZE)'

## chaos       break runs on purpose, and count how often each promise of docs/reliability.md holds; FULL=1: the whole counts
do-chaos: $B/chorale $B/tests_run
	@TEST_BUILD=$B TEST_LAUNCH='$(launch)' FULL=$(FULL) ONLY=$(ONLY) COUNT=$(COUNT) /usr/bin/python3 tests/chaos.py

## fuzz        feed mutated inputs to every parser, under clang's sanitizers: MINUTES=2 for all of them, or TARGET=toml for one
do-fuzz:
	@$(FUZZ_CXX) --version >/dev/null 2>&1 || { printf '%s\n' 'error: fuzzing needs clang 16 or newer, and its libFuzzer' \
	  '  $(FUZZ_CXX) was not found' '  install clang-19, libclang-rt-19-dev and libomp-19-dev, or name another: FUZZ_CXX=clang++-16'; exit 2; }
	+@$(fuzz_make) written && $(fuzz_make) $(fuzz_folder)/fuzz
	@/usr/bin/python3 tests/fuzz/run.py $(fuzz_folder)/fuzz $(or $(MINUTES),2) $(TARGET)
# The fuzzer has its own build folder and compiler.
fuzz_make    = $(MAKE) --no-print-directory CXX=$(FUZZ_CXX) SANITIZE=fuzzer-no-link,address,undefined B=$(fuzz_folder) LDFLAGS=-lgomp
fuzz_parts   = $(patsubst %.cpp,$B/%.o,$(filter-out %_test.cpp %/trials.cpp %/mutation.cpp,$(wildcard tests/fuzz/*.cpp)))
link_fuzz    = $(link) -fsanitize=fuzzer $(filter-out $B/experiments/commands/main.o,$(objects)) $(fuzz_parts) $(libs)
$B/fuzz: $(filter-out $B/experiments/commands/main.o,$(objects)) $(fuzz_parts) $B/link_fuzz.stamp
	$(call quiet,link) $(link_fuzz) -o $@

## bench       time the parts: kernels, random numbers, recorder
do-bench: $B/tests_run
	$B/tests_run '[!benchmark]'

## peers       build the programs that time the MPI libraries' own collectives
peers: $(patsubst mpicxx.%,build/peers/%,$(notdir $(foreach w,mpicxx.openmpi mpicxx.mpich,$(shell command -v $w))))
build/peers/%: experiments/peers/mpi_native.cpp
	@mkdir -p $(@D)
	$(call quiet,c++) mpicxx.$* -O3 -march=$(ARCH) -std=c++20 -Wall -Wextra $< -o $@

## experiments run every suite in experiments/suites/*.toml, except those for several hosts
on_hosts := cluster cluster_large placement two_hosts
do-experiments: $B/chorale
	@set -e; for suite in $(filter-out $(on_hosts:%=experiments/suites/%.toml),$(sort $(wildcard experiments/suites/*.toml))); do ranks=$$(sed -n 's/^ranks *= *//p' $$suite | head -n 1); \
	  $(launch) -n $${ranks:-$(NP)} $B/chorale compare $$suite; done

## published   predict the steps of published tables, and compare: experiments/published/*.csv
do-published: $B/chorale
	@set -e; for table in experiments/published/*.csv; do $B/chorale plan --table $$table; done

## report      write the newest run as one page of figures
do-report: $B/chorale
	$B/chorale report runs/latest/run.h5 --html

## data        make the English text of data/README.md, a vocabulary for it, and its tokens
do-data: $B/chorale
	@bash data/fetch.sh
	@[ data/english.bpe -nt data/english.txt ] || $B/chorale data train-bpe data/english.txt --vocabulary 4096
	@[ data/english.bin -nt data/english.bpe ] || $B/chorale data tokenize data/english.txt --tokenizer data/english.bpe

## install     copy the program, its manual, suites, the library and its headers to PREFIX (/usr/local) below DESTDIR
do-install: do-all
	install -D $B/chorale $(DESTDIR)$(PREFIX)/bin/chorale
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$B/chorale man > $(DESTDIR)$(PREFIX)/share/man/man1/chorale.1
	$B/chorale completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/chorale
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,lib/pkgconfig lib/cmake/Chorale include)
	install $B/libchorale.so.$(release) $(DESTDIR)$(PREFIX)/lib
	cp -P $B/libchorale.so.$(abi) $B/libchorale.so $(DESTDIR)$(PREFIX)/lib
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/chorale/machines experiments/machines/*.toml
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/chorale/suites experiments/suites/*.toml
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/chorale/published experiments/published/*
	rm -rf $(DESTDIR)$(PREFIX)/include/chorale
	cp -r include/chorale $(DESTDIR)$(PREFIX)/include
	@$(call pc,$${pcfiledir}/../../include,$${pcfiledir}/..) > $(DESTDIR)$(PREFIX)/lib/pkgconfig/chorale.pc
	for file in ChoraleConfig.cmake ChoraleConfigVersion.cmake; do \
	  sed 's|@RELEASE@|$(release)|g; s|@ABI@|$(abi)|g; s|@MPICXX@|$(firstword $(MPICXX))|g; s|@SANITIZE@|$(subst $(space),;,$(strip $(sanitize)))|g' \
	    packaging/cmake/$$file.in > $(DESTDIR)$(PREFIX)/lib/cmake/Chorale/$$file || exit 1; done
	$(if $(plugin),install -D $(plugin) $(DESTDIR)$(PREFIX)/lib/chorale/chorale_cuda.so)

## gpu-bundle  pack build/gpu-bundle for a machine with a GPU and little else; its script `run` tests and times this build there
do-gpu-bundle: $B/chorale $B/tests_run $(plugin) $B/emulated/chorale_cuda.so
	@/usr/bin/python3 experiments/gpu_bundle/pack.py $B build/gpu-bundle
say-gpu-bundle:
	@$(if $(plugin),,printf '%s\n' 'error: a bundle for a GPU needs the CUDA Toolkit, which builds its plugin' \
	  '  CUDA is $(or $(CUDA),not found: no nvcc on PATH or in /usr/local/cuda)' \
	  '  install the toolkit, or name its folder: make gpu-bundle CUDA=/opt/cuda-13'; exit 2)

## compile_commands.json  for clangd and other editors' servers; every build keeps it up to date
compile_commands.json: $B/compile_commands.json FORCE
	@ln -sf $< $@
$B/compile_commands.json: $B/editor.stamp $B/edited.stamp
	@(echo '['; tr ' ' '\n' < $B/edited.stamp | how="$$(sed 's/[\\"]/\\&/g' $B/editor.stamp)" awk -v folder='$(CURDIR)' '{ \
	  print sep "{\"directory\": \"" folder "\", \"file\": \"" $$0 "\", \"command\": \"" ENVIRON["how"] " -c " $$0 "\"}"; sep = "," }'; \
	  echo ']') > $@

## lint        check folder order, sizes and formatting
do-lint:
	@/usr/bin/python3 tests/lint.py

## format      format every source (clang-format 14)
do-format:
	@clang-format --version | grep -q ' 14\.' || { echo "make format needs clang-format 14: other versions format differently"; exit 1; }
	@git ls-files -co --exclude-standard '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs clang-format -i

## setup       install missing packages (Debian, as root or through sudo)
setup: $(filter say-run say-gpu-bundle,$(MAKECMDGOALS:%=say-%))
ifeq ($(SETUP),yes)
	@command -v dpkg-query >/dev/null || { echo "not a Debian machine: install the equivalents of $(packages)"; exit 0; }; \
	have=" $$(dpkg-query -W -f='$${db:Status-Abbrev}$${Package} ' $(packages) 2>/dev/null) "; missing=; \
	for p in $(packages); do [[ "$$have" == *"ii $$p "* ]] || missing+=" $$p"; done; \
	[ "$$missing" ] || exit 0; install="apt-get install -y --no-install-recommends --no-upgrade$$missing"; \
	if [ $$(id -u) = 0 ]; then sudo=; elif sudo -n true 2>/dev/null || [ -t 0 -a -x /usr/bin/sudo ]; then sudo=sudo; \
	else echo "missing packages; ask an administrator for: apt-get update && $$install"; exit 1; fi; echo "installing$$missing"; \
	$$sudo apt-get update -q && $$sudo env DEBIAN_FRONTEND=noninteractive $$install -q -o DPkg::Lock::Timeout=300
endif

## info        show what was found on this machine, and why something is missing
info:
	@row() { printf '%-10s %s\n' "$$1" "$$2"; }; row compiler "$$($(CXX) --version 2>&1 | head -n 1)"; \
	row MPI "$(or $(version),not found: no $(firstword $(MPIRUN)) on PATH (make setup installs openmpi-bin))"; \
	row HDF5 "$(or $(call pkg,--modversion hdf5),not found: no pkg-config file (make setup installs libhdf5-dev))"; \
	row UCX "$(or $(UCX),$(call why,UCX,not found: no pkg-config file (make setup installs libucx-dev)))"; \
	row oneDNN "$(or $(onednn),not found: no oneapi/dnnl/dnnl_version.h (make setup installs libdnnl-dev))"; \
	row CUDA "$(or $(CUDA),$(call why,CUDA,not found: no nvcc on PATH or in /usr/local/cuda (install NVIDIA's CUDA Toolkit)))"; \
	row NCCL "$(or $(NCCL:%=%/include/nccl.h),$(call why,NCCL,not found: no nccl.h beside the CUDA Toolkit (install libnccl-dev)))"; \
	row device "$(or $(device),none: /dev/nvidiactl does not exist)"

## clean       remove build/; runs/ stays
clean:
	rm -rf build compile_commands.json

## help        print this list
help:
	@sed -n 's/^## /make /p' Makefile; echo; echo 'make NAME=value … sets'; sed -n 's/^#: /  /p' Makefile

# ── rules ───────────────────────────────────────────────────────────────────────────────────────────────────────────
always := FORCE# prerequisite of files that are rewritten only if their text has changed; `make always=` skips these checks
# Prints one short line per step, such as "[ 37/212] c++ FILE" if `steps` were counted; V=1 shows whole commands.
quiet = $(if $(V),,@printf '$(if $(steps),[%3d/%d] )%-5s %s\n' $(if $(steps),$(eval begun += x)$(words $(begun)) $(steps)) '$(1)' '$@';)

$B/chorale: $(objects) $B/link_program.stamp
	$(call quiet,link) $(link_program) -o $@
$B/tests_run: $(objects) $(tests) $B/link_tests.stamp
	$(call quiet,link) $(link_tests) -o $@
$B/libchorale.so: $(parts) $B/link_library.stamp
	$(call quiet,link) $(link_library) -o $@.$(release) && ln -sf libchorale.so.$(release) $@.$(abi) && ln -sf libchorale.so.$(abi) $@
$B/chorale.pc: $B/pc_here.stamp
	@$(pc_here) > $@
$B/examples/%: examples/%.cpp $(library)
	@mkdir -p $(@D)
	$(call quiet,c++) $(mpicxx) $(CXXFLAGS) $< $$(pkg-config --cflags --libs $B/chorale.pc) -MMD -MP -o $@
$B/chorale_cuda.so: $(kernels) $B/link_plugin.stamp
	$(call quiet,link) $(link_plugin) -o $@
$B/emulated/chorale_cuda.so: $(emulated) $B/link_emulated.stamp
	$(call quiet,link) $(link_emulated) -o $@
$B/emulated/%.o: %.cu $B/emulate.stamp
	@mkdir -p $(@D)
	$(call quiet,c++) $(emulate) -MMD -MP -x c++ -c $< -o $@
$B/%.o: %.cpp $B/compile.stamp $(headers_once)
	@mkdir -p $(@D)
	$(call quiet,c++) $(compile) $(if $(PCH),-include $(prelude)) $($(effort)) $(unwatch) -MMD -MP -c $< -o $@
effort  := hot
prelude  = $B/$(effort).hpp
$(unwatched): private prelude := src/base/standard.hpp
$(unwatched): private unwatch := -fno-sanitize=thread
# `private`, because hot.hpp.gch is a prerequisite of these objects, too, and must not inherit `cold`.
$B/experiments/%.o $B/parallel/%.o $B/src/base/%.o $B/src/record/%.o $B/tests/%.o: private effort := cold
$B/bundles/experiments%.o $B/bundles/parallel%.o $B/bundles/src_base%.o $B/bundles/src_record%.o $B/bundles/library_parsers%.o $B/bundles/tests%.o: private effort := cold
$B/cold.hpp.gch: private effort := cold
$B/bundles/%.o: $B/bundles/%.cpp $B/compile.stamp $(headers_once)
	$(call quiet,c++) $(compile) $(if $(PCH),-include $(prelude)) $($(effort)) $(unwatch) -MMD -MP -c $< -o $@
$B/bundles/%.cpp: $(always)
	@mkdir -p $(@D); printf '#include "%s"\n' $(patsubst $*:%,%,$(filter $*:%,$(sorted))) > $@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(headers_once): $B/%.hpp.gch: src/base/standard.hpp $B/compile.stamp
	@mkdir -p $(@D)
	$(call quiet,c++) $(compile) $($(effort)) -MMD -MP -c -x c++-header $< -o $@
$B/%.cu.o: %.cu $B/nvcc.stamp
	@mkdir -p $(@D)
	$(call quiet,nvcc) $(nvcc) -MMD -MP -c $< -o $@
$B/src/base/built.o: $B/facts.stamp
$B/src/memory/device_plugin.o $B/src/memory/plugin_mark.cu.o $B/emulated/src/memory/plugin_mark.o: $B/plugin_mark.stamp

# All stamps and bundles. Each is rewritten only if its text has changed.
written: $(patsubst %,$B/%.stamp,compile link_program link_tests link_library pc_here emulate link_emulated facts plugin_mark \
           $(if $(CUDA),nvcc link_plugin)) $(bundles:%=$B/bundles/%.cpp) $(if $(filter build,$B),compile_commands.json)
.PRECIOUS: $B/%.stamp $B/bundles/%.cpp
# A stamp contains the value of the variable of the same name, such as the compile command. So objects are rebuilt if the command changes.
$B/%.stamp: $(always)
	@mkdir -p $(@D); text='$(subst ','\'',$($*))'; \
	printf '%s\n' "$$text" | cmp -s - $@ || printf '%s\n' "$$text" > $@

-include $(objects:.o=.d) $(tests:.o=.d) $(headers_once:.gch=.d) $(kernels:.o=.d) $(emulated:.o=.d) $(examples:=.d)

# dptrain and libdpload. `make help` lists the targets.
#
# Options (make NAME=value; an option that asks for something absent fails):
#   SAN=asan|tsan|ubsan|fuzz   build with sanitizers, in a build folder of its own
#   DNNL=0|1  WEBP=0|1         leave out / insist on oneDNN, libwebp (default: as found)
#   CUDA=0|1  CUDA_HOME=DIR    leave out / insist on GPUs; where the toolkit is (default: as found)
#   CC=gcc|clang  WERROR=1     warnings are errors
#   PREFIX=/usr/local  LIBDIR=PREFIX/lib  DESTDIR=   where `make install` puts things

ifeq ($(origin CC),default)
CC      := gcc
endif
SAN     ?=
WERROR  ?= 0
V       ?= 0

# --- detection: one place, printed by `make config` ---
HAVE     = $(shell echo 'int main(void){return 0;}' | $(CC) -include $(1) -x c - -o /dev/null $(2) 2>/dev/null && echo 1 || echo 0)
ifeq ($(SAN),tsan)
DNNL    := 0# libgomp is not instrumented: the reference backend stands in
endif
DNNL    ?= $(call HAVE,dnnl.h,-ldnnl)
WEBP    ?= $(call HAVE,webp/decode.h,-lwebp)
DNNL    := $(DNNL)# looked for once, not at each use
WEBP    := $(WEBP)
export DNNL WEBP

# --- flags ---
CC_NAME := $(notdir $(firstword $(CC)))
CONF    := $(or $(SAN),release)$(if $(filter gcc cc,$(CC_NAME)),,-$(CC_NAME))$(if $(filter 0,$(DNNL)),-nodnnl)$(if $(filter 0,$(WEBP)),-nowebp)
DEFAULT := release
B       := build/$(CONF)
BIN     := $(if $(filter $(DEFAULT),$(CONF)),build/bin,$(B)/bin)
LIB     := $(if $(filter $(DEFAULT),$(CONF)),build/lib,$(B)/lib)
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
           -Wformat=2 -Wundef $(if $(filter 1,$(WERROR)),-Werror)
SAN_asan  := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_ubsan := -fsanitize=undefined -fno-sanitize-recover=undefined
SAN_tsan  := -fsanitize=thread
SAN_fuzz  := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
SANFLAGS  := $(SAN_$(SAN))
ifneq ($(SAN),)
ifeq ($(SANFLAGS),)
$(error SAN=$(SAN): not one of asan, ubsan, tsan, fuzz)
endif
endif
OPT     ?= -O2 -g
CFLAGS  ?=
ALLFLAGS = -std=c11 -D_GNU_SOURCE -Iinclude -I. $(OPT) -fPIC -fvisibility=hidden -ffp-contract=off -pthread \
           $(WARN) $(SANFLAGS) $(if $(filter 1,$(DNNL)),-DDPT_HAVE_DNNL) $(if $(filter 1,$(WEBP)),-DDPL_HAVE_WEBP) $(CFLAGS)
LIBS_LOADER  := -ljpeg -lpng -lz $(if $(filter 1,$(WEBP)),-lwebp) -lm -ldl -pthread
LIBS_TRAINER := $(if $(filter 1,$(DNNL)),-ldnnl -lgomp) -ljansson
LIBS_PC      := libjpeg libpng zlib $(if $(filter 1,$(WEBP)),libwebp)
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
VERSION := $(shell sed -n 's/^.define DPL_VERSION "\(.*\)"/\1/p' include/dpload.h)
ifeq ($(V),0)
Q := @
endif

# --- sources, by wildcard ---
src      = $(patsubst %.c,$B/%.o,$(filter-out $(2),$(wildcard $(addsuffix /*.c,$(1)))))
LIB_OBJ := $(call src,base device kernels augment loader,)
MAIN    := trainer/dptrain_main.c tools/dpload_main.c tools/drawset_main.c
TRN_OBJ := $(call src,trainer,$(MAIN) $(if $(filter 0,$(DNNL)),$(wildcard trainer/backend_dnnl*.c)))
TOOL_OBJ := $(call src,tools,$(MAIN))
TESTS   := $(patsubst tests/%.c,$B/tests/%,$(wildcard tests/test_*.c))
THREAD_TESTS := $(foreach n,base device upload loader source parallel team train gpu comm crew fake nvtx,$(filter $B/tests/test_$n%,$(TESTS)))
KERNEL_TESTS := $(foreach n,resample convert rotate augment loader,$(filter $B/tests/test_$n%,$(TESTS)))
TEST_OBJ := $(patsubst %.c,$B/%.o,$(filter-out $(wildcard tests/test_*.c),$(wildcard tests/*.c tests/fake/*.c)))
CROSS   ?= aarch64-linux-gnu-gcc
CROSS_RUN ?= qemu-aarch64
CROSS_TESTS := $(foreach n,resample convert rotate augment,$(patsubst tests/%.c,$B/cross/%,$(wildcard tests/test_$n*.c)))
CROSS_OBJ := $(call src,base kernels augment tests/cross,) $(patsubst %,$B/%.o,loader/batch_mix loader/batch_mix_draw \
           loader/finish loader/options loader/recipe loader/order tests/augment_picture tests/testutil_memory)
FUZZERS := $(patsubst tests/fuzz/%.c,$B/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
EXAMPLES := $(patsubst examples/%.c,$B/examples/%,$(wildcard examples/*.c))
PROGS   := $(BIN)/dptrain $(BIN)/dpload $(BIN)/drawset
DOCS    := $(foreach p,dptrain dpload,$(addprefix $B/doc/$p.,1 bash zsh fish))

.PHONY: all lib docs test test-threads test-kernels test-neon cross-tests examples check format demo config help clean fuzz \
        install uninstall FORCE
.DELETE_ON_ERROR:
.PRECIOUS: $B/%.o
all: $(PROGS) lib examples $(if $(SAN),,docs) ## build programs, libraries, examples and man pages
lib: $(LIB)/libdpload.a $(LIB)/libdpload.so ## build libdpload, static and shared
docs: $(DOCS) ## build man pages and shell completions from the option tables
examples: $(EXAMPLES) ## build the examples against the shared library
install: $(BIN)/dptrain $(BIN)/dpload lib docs $B/doc/dpload.pc ## install programs, library, man pages and completions
uninstall: ## remove what install put there
install uninstall:
	$(Q)BIN=$(BIN) LIB=$(LIB) DOC=$B/doc PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)' CUDA=$(CUDA) tools/install.sh $@
test: $(TESTS) $(PROGS) ## build and run every test of this configuration
	$(Q)BIN=$(abspath $(BIN)) LIB=$(abspath $(LIB)) tools/run_tests.sh $(TESTS) $(NVCC_TESTS)
test-threads: $(THREAD_TESTS) $(PROGS) ## only the tests of what threads share (SAN=tsan)
	$(Q)BIN=$(abspath $(BIN)) LIB=$(abspath $(LIB)) tools/run_tests.sh $(THREAD_TESTS)
test-kernels: $(KERNEL_TESTS) ## only the tests of kernels (DPL_CPU=c or avx2)
	$(Q)tools/run_tests.sh $(KERNEL_TESTS)
test-neon: ## the same for aarch64: built by a cross compiler (CROSS), run by CROSS_RUN
	$(Q)$(MAKE) --no-print-directory CC=$(CROSS) CUDA=0 DNNL=0 WEBP=0 WERROR=1 cross-tests
cross-tests: EXTRA := -Itests/cross
cross-tests: $(CROSS_TESTS) # without foreign libraries: see tests/cross/cmocka.h
	$(Q)TEST_RUN=$(CROSS_RUN) tools/run_tests.sh $^
fuzz: $(FUZZERS) ## build the fuzz targets (SAN=fuzz CC=clang)
check: ## structure rules, headers alone, exported names, formatting, scripts
	$(Q)CUDA_INC='$(if $(filter 1,$(CUDA)),$(CUDA_INC))' tools/check.sh
format: ## let clang-format decide
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.hpp')
demo: ## from nothing to a trained model
	$(Q)tools/demo.sh
config: ## what was detected
	@echo "compiler $(CC), build folder $B, oneDNN $(if $(filter 1,$(DNNL)),yes,no: training uses the slow reference backend), WebP $(if $(filter 1,$(WEBP)),yes,no), CUDA $(CUDA_FOUND)"
help: ## this text
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile cuda.mk | expand -t 14
clean: ## remove the build folder
	rm -rf build

# --- rules ---
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
$B/%_avx2.o: EXTRA := -mavx2 -mfma -mbmi2 -mf16c
$B/%_avx512.o: EXTRA := -mavx512f -mavx512bw -mavx512dq -mavx512vl
$B/%_avx512vbmi.o: EXTRA := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mavx512vnni
endif
$B/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) $(EXTRA) -MMD -MP -c $< -o $@
$(LIB)/libdpload.a: $(LIB_OBJ)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar rcs $@ $^
$(LIB)/libdpload.so.0: $(LIB_OBJ) loader/libdpload.map
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -shared -Wl,-soname,libdpload.so.0 -Wl,--version-script=loader/libdpload.map $(if $(SAN),,-Wl,--no-undefined) -o $@ $(LIB_OBJ) $(LIBS_LOADER) $(LDFLAGS)
$(LIB)/libdpload.so: $(LIB)/libdpload.so.0
	$(Q)ln -sf libdpload.so.0 $@
$(BIN)/dptrain: $B/trainer/dptrain_main.o $(TRN_OBJ) $(LIB)/libdpload.a
$(BIN)/dpload: $B/tools/dpload_main.o $(TOOL_OBJ) $(LIB)/libdpload.a
$(BIN)/drawset: $B/tools/drawset_main.o $(TOOL_OBJ) $(LIB)/libdpload.a
$(PROGS):
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -o $@ $^ $(if $(filter %/dptrain,$@),$(LIBS_TRAINER)) $(LIBS_LOADER) $(LDFLAGS)
$B/tests/test_%: $B/tests/test_%.o $(TEST_OBJ) $(TRN_OBJ) $(TOOL_OBJ) $(LIB)/libdpload.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -o $@ $^ -lcmocka $(LIBS_TRAINER) $(LIBS_LOADER) $(LDFLAGS)
$B/cross/test_%: $B/tests/test_%.o $(CROSS_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -static -o $@ $^ -lm -pthread $(LDFLAGS)
$B/fuzz/%: $B/tests/fuzz/%.o $(TEST_OBJ) $(TRN_OBJ) $(TOOL_OBJ) $(LIB)/libdpload.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -fsanitize=fuzzer -o $@ $^ -lcmocka $(LIBS_TRAINER) $(LIBS_LOADER) $(LDFLAGS)
$B/bench/%: $B/tests/bench/%.o $(LIB)/libdpload.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -o $@ $^ $(LIBS_LOADER) $(LDFLAGS)
$B/examples/%: examples/%.c $(LIB)/libdpload.so include/dpload.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -o $@ $< -L$(LIB) -ldpload -Wl,-rpath,$(abspath $(LIB)) $(LDFLAGS)
$B/doc/%.1: man/%.1.in $(BIN)/%
	@mkdir -p $(@D)
	$(Q)$(BIN)/$* --print-options=man >$@.options
	$(Q)sed -e '/^@OPTIONS@$$/{r $@.options' -e 'd}' $< >$@
$(filter-out %.1,$(DOCS)): $B/doc/%: $(BIN)/dptrain $(BIN)/dpload
	@mkdir -p $(@D)
	$(Q)$(BIN)/$(basename $*) --print-options=$(subst .,,$(suffix $*)) >$@
$B/doc/dpload.pc: loader/dpload.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)rm -f $@ && sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' \
	    -e 's|@VERSION@|$(VERSION)|' -e 's|@REQUIRES@|$(strip $(LIBS_PC))|' $< >$@

include cuda.mk
-include $(shell find $B -name '*.d' 2>/dev/null)

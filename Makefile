# Hearth. `make help` lists the targets.
#
# One non-recursive file. Every src/**/*.c is in libhearth.a except src/cli, which is the binary; every
# tests/{unit,ops,golden}/test_*.c is one program linked with the library and tests/support, every tests/fuzz/fuzz_*.c
# one with the corpus driver. A new file needs no edit here. Variants (SAN) build in directories of their own.

VERSION := 0.1.0
ifeq ($(origin CC),default)
CC      := gcc
endif
SAN     ?=
STATIC  ?=
PREFIX  ?= /usr/local
PYTHON  ?= /usr/bin/python3
SHARED  ?= $(abspath ../shared)
export HEARTH_SHARED ?= $(SHARED)
export PYTHON

BUILD    := build$(if $(SAN),/$(SAN))
OBJ      := $(BUILD)/obj
SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_tsan := -fsanitize=thread
SAN_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
SANFLAGS := $(if $(SAN),$(or $(SAN_$(SAN)),$(error SAN=$(SAN): known are asan, tsan, fuzz)))

# V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $1 $(subst $(BUILD)/,,$@)")

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wwrite-strings -Werror
CFLAGS   ?= -O2 -g
TESTFLAGS = $(if $(findstring tests/,$<),-Itests/support)
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -Isrc -Iinclude $(TESTFLAGS) -pthread -ffp-contract=off $(WARN) $(SANFLAGS) \
             $(CFLAGS) -MMD -MP

# Files named *_avx2.c and *_avx512.c are built for that instruction set and chosen at run time.
ISA_avx2   := -mavx2 -mfma -mf16c
ISA_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c
isa_flags   = $(if $(findstring _avx512.,$1),$(ISA_avx512) $(ISA_san))$(if $(findstring _avx2.,$1),$(ISA_avx2) $(ISA_san))
# Sanitizers need minutes for -O2 of fully unrolled kernels, and UBSan twice that.
ISA_san    := $(if $(SAN),-O1) $(if $(filter asan fuzz,$(SAN)),-fno-sanitize=undefined)
FOREIGN    := $(if $(filter x86_64,$(shell uname -m)),,%_avx2.c %_avx512.c)

comma := ,
# STATIC=1: everything but libc statically, so that a binary built on Debian 12 runs on Ubuntu 24.04.
# libcurl is needed by `bench` alone and is opened at run time, not linked.
LIBS := $(if $(STATIC),-static-libgcc -Wl$(comma)-Bstatic) -levent_core -lpcre2-8 \
        -lutf8proc $(if $(STATIC),-Wl$(comma)-Bdynamic) -lm -ldl

LIB_SRC := $(filter-out $(FOREIGN),$(sort $(filter-out src/cli/%,$(wildcard src/*/*.c src/*/*/*.c))))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
SUPPORT := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/support/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(OBJ)/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(OBJ)/%.o)
TESTS   := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/unit/test_*.c tests/ops/test_*.c tests/golden/test_*.c)))
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
BENCHES := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/bench/bench_*.c)))
SCRIPTS := tests/tidy/tidy.py $(sort $(wildcard tests/e2e/test_*.py))
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(wildcard examples/*.c))
SOURCES := $(shell git ls-files -co --exclude-standard '*.c' '*.h' 2>/dev/null)

# CUDA operators are built for the GPU targets alone; CUDA=0, or no nvcc, leaves them out.
NVCC    := $(if $(filter 0,$(CUDA)),,$(shell command -v nvcc 2>/dev/null))
NVFLAGS := -std=c++17 -O3 -fmad=false -Isrc -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_80,code=compute_80
GPU_OBJ := $(patsubst %.cu,$(OBJ)/%.cu.o,$(wildcard src/ops/cuda/*.cu))

.PHONY: all help demo check bench fuzz lint format install clean check-gpu bench-gpu
.PRECIOUS: $(OBJ)/%.o $(OBJ)/%.cu.o

all: $(BUILD)/hearth $(BUILD)/libhearth.a $(EXAMPLES) ## build the binary, the library and the examples

help: ## this list
	@echo "make [target] [SAN=asan|tsan] [STATIC=1] [CC=clang] [PREFIX=/usr/local]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-9s %s\n", $$1, $$2}' Makefile

$(OBJ)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) $(ALL_CFLAGS) $(call isa_flags,$<) -c -o $@ $<

$(BUILD)/libhearth.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,ar)
	$(Q)ar rcs $@ $^

$(BUILD)/hearth: $(CLI_OBJ) $(BUILD)/libhearth.a $(OBJ)/linked-$(if $(STATIC),static,shared)
	$(call say,ld)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

# Changing STATIC links again.
$(OBJ)/linked-%:
	@mkdir -p $(@D)
	@rm -f $(OBJ)/linked-*
	@touch $@

$(BUILD)/tests/bench/%: $(OBJ)/tests/bench/%.o $(BUILD)/libhearth.a
	@mkdir -p $(@D)
	$(call say,ld)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/fuzz/%: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/driver.o $(BUILD)/libhearth.a
	@mkdir -p $(@D)
	$(call say,ld)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/%: $(OBJ)/tests/%.o $(SUPPORT) $(BUILD)/libhearth.a
	@mkdir -p $(@D)
	$(call say,ld)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -lcmocka $(LIBS)

$(BUILD)/examples/%: $(OBJ)/examples/%.o $(BUILD)/libhearth.a
	@mkdir -p $(@D)
	$(call say,ld)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/fuzzer/%: $(OBJ)/tests/fuzz/%.o $(BUILD)/libhearth.a
	@mkdir -p $(@D)
	$(call say,ld)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(OBJ)/%.cu.o: %.cu $(wildcard src/ops/cuda/*.h src/ops/cuda/*.cuh tests/gpu/*.cuh) Makefile
	@mkdir -p $(@D)
	$(call say,nvcc)
	$(Q)$(NVCC) $(NVFLAGS) -c -o $@ $<

$(BUILD)/tests/gpu/%: $(OBJ)/tests/gpu/%.cu.o $(GPU_OBJ) $(BUILD)/libhearth.a
	@mkdir -p $(@D)
	$(call say,ld)
	$(Q)$(NVCC) -cudart static -Xcompiler -static-libgcc,-static-libstdc++ -o $@ $^

demo: all ## serve a model, replay recorded agent turns, print the report
	HEARTH=$(BUILD)/hearth sh demo/run.sh

# The sanitizer variants run the compiled tests; scripts drive the plain binary.
check: all $(TESTS) $(FUZZERS) ## run every test (SAN=asan, SAN=tsan for the sanitizers)
	HEARTH=$(BUILD)/hearth tests/run $(BUILD)/logs $(TESTS) $(FUZZERS) $(if $(SAN),,$(SCRIPTS))

bench: all $(BENCHES) ## measure the host and CPU paths
	@for b in $(BENCHES); do $$b || exit 1; done

check-gpu: $(if $(NVCC),$(BUILD)/tests/gpu/check_cuda_ops) ## check the CUDA operators on this machine's GPU
	@$(if $(NVCC),$<,echo "skip: no nvcc, or CUDA=0"; echo "0 passed, 0 failed, 1 skipped")

bench-gpu: $(if $(NVCC),$(BUILD)/tests/gpu/bench_cuda_ops) ## measure the CUDA operators
	@$(if $(NVCC),$<,echo "skip: no nvcc, or CUDA=0")

fuzz: ## run a fuzz target with libFuzzer: make fuzz T=json [SECONDS=60]
	@[ -f tests/fuzz/fuzz_$(T).c ] || { echo "T=$(T): known are $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))"; exit 2; }
	$(MAKE) SAN=fuzz CC=clang build/fuzz/fuzzer/fuzz_$(T)
	@mkdir -p build/fuzz/found/$(T)
	build/fuzz/fuzzer/fuzz_$(T) -max_total_time=$(or $(SECONDS),60) -timeout=10 -artifact_prefix=build/fuzz/found/ \
	    build/fuzz/found/$(T) tests/fuzz/corpus/$(T)

lint: ## check format, layer rules and common mistakes
	@clang-format --dry-run -Werror $(SOURCES)
	@$(PYTHON) tests/tidy/tidy.py
	@clang-tidy --quiet $(LIB_SRC) $(CLI_SRC) -- -std=c17 -D_GNU_SOURCE -Isrc -Iinclude $(ISA_avx512)

format: ## rewrite the sources in the house format
	clang-format -i $(SOURCES)

install: all ## install binary, library, header and pkg-config file under PREFIX (DESTDIR is honoured)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 755 $(BUILD)/hearth $(DESTDIR)$(PREFIX)/bin/hearth
	install -m 644 $(BUILD)/libhearth.a $(DESTDIR)$(PREFIX)/lib/libhearth.a
	install -m 644 include/hearth.h $(DESTDIR)$(PREFIX)/include/hearth.h
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: hearth' 'Description: language-model runtime for agents on the device' \
	    'Version: $(VERSION)' 'Cflags: -I$${prefix}/include' 'Libs: -L$${prefix}/lib -lhearth -lpcre2-8 -lutf8proc -lm -pthread' \
	    >$(DESTDIR)$(PREFIX)/lib/pkgconfig/hearth.pc

clean: ## remove everything that was built
	rm -rf build

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

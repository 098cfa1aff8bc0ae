# Hearth. `make help` lists the targets.
#
# One non-recursive file. Every src/**/*.c is in libhearth.a except src/cli, which is the binary; every
# tests/{unit,ops,golden}/test_*.c is one program linked with the library and tests/support. A new file needs no edit here.
# Variants (SAN, STATIC) build in directories of their own so that they never mix.

VERSION  := 0.1.0
ifeq ($(origin CC),default)
CC       := gcc
endif
SAN      ?=
STATIC   ?=
PREFIX   ?= /usr/local
PYTHON   ?= /usr/bin/python3
SHARED   ?= $(abspath ../shared)

BUILD    := build$(if $(SAN),/$(SAN))
OBJ      := $(BUILD)/obj
SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_tsan := -fsanitize=thread
SANFLAGS := $(if $(SAN),$(or $(SAN_$(SAN)),$(error SAN=$(SAN): know asan and tsan)))

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wwrite-strings -Werror
CFLAGS   ?= -O2 -g
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -Isrc -Iinclude $(if $(findstring tests/,$<),-Itests/support) -pthread -ffp-contract=off $(WARN) $(SANFLAGS) $(CFLAGS) -MMD -MP

# ISA files carry their instruction set in the name: <family>_avx2.c, <family>_avx512.c.
export HEARTH_SHARED ?= $(SHARED)

ISA_avx2   := -mavx2 -mfma -mf16c
ISA_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c
isa_flags   = $(if $(findstring _avx512.,$1),$(ISA_avx512))$(if $(findstring _avx2.,$1),$(ISA_avx2))

LIBS_event := -levent_core -levent_extra -levent_pthreads
LIBS_text  := -lpcre2-8 -lutf8proc
LIBS_curl  := -lcurl
ifeq ($(STATIC),)
LIBS := $(LIBS_event) $(LIBS_text) $(LIBS_curl) -lm -ldl
else
# Everything but libc statically, so that a binary built on Debian 12 runs on Ubuntu 24.04.
LIBS := -static-libgcc -Wl,-Bstatic $(LIBS_event) $(LIBS_text) $(shell pkg-config --static --libs libcurl 2>/dev/null) -Wl,-Bdynamic -lm -ldl
endif

LIB_SRC  := $(sort $(filter-out src/cli/%,$(wildcard src/*/*.c src/*/*/*.c)))
CLI_SRC  := $(sort $(wildcard src/cli/*.c))
TEST_SRC := $(sort $(wildcard tests/unit/test_*.c tests/ops/test_*.c tests/golden/test_*.c))
SUPPORT_SRC := $(sort $(wildcard tests/support/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(OBJ)/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(OBJ)/%.o)
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(OBJ)/%.o)
TESTS    := $(TEST_SRC:%.c=$(BUILD)/%)

.PHONY: all help check clean
.SECONDARY:
all: $(BUILD)/hearth $(BUILD)/libhearth.a

$(OBJ)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(call isa_flags,$<) -c -o $@ $<

$(BUILD)/libhearth.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/hearth: $(CLI_OBJ) $(BUILD)/libhearth.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/%: $(OBJ)/tests/%.o $(SUPPORT_OBJ) $(BUILD)/libhearth.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $^ -lcmocka $(LIBS)

clean:
	rm -rf build

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

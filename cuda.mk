# The CUDA parts: what is there, the two plug-ins, and the fakes that stand in for a GPU in the tests.
#
#   libdpload_cuda.so    the loader's devices: C, static runtime
#   libdptrain_cuda.so   training: C, kernels (.cu), cuDNN; NCCL is opened when it is needed
#
# Each is built twice: for GPUs into LIB, and over tests/fake/cuda/ (libfakecudart.so; kernels through the CPU
# shim; the network by the reference backend) beside the tests, which open that one. See docs/cuda.md.

# --- detection; `make config` prints it ---
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc))),/usr/local/cuda)
CUDA_INC  := -isystem $(CUDA_HOME)/include
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt -pthread
CUDA_HAVE := $(call HAVE,cuda_runtime_api.h,$(CUDA_INC) $(CUDA_LIBS))
CUDA    ?= $(CUDA_HAVE)
ifeq ($(CUDA)$(CUDA_HAVE),10)
$(error CUDA=1: no cuda_runtime_api.h and libcudart_static.a found; CUDA_HOME=DIR names the toolkit (now $(CUDA_HOME)))
endif
ifeq ($(origin CUDA_HOME)$(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h),command line)
$(error CUDA_HOME=$(CUDA_HOME): no include/cuda_runtime_api.h there)
endif
export CUDA

# --- sources ---
CUDA_OBJ := $(call src,device/cuda,) $B/base/alloc.o $B/base/text.o
GPU_OBJ  := $(call src,trainer/cuda,)
GPU_REF  := $(patsubst %.c,$B/%.o,$(wildcard tests/fake/cuda/ref_exec*.c))# the network on the host
FAKE_OBJ := $(filter-out $(GPU_REF),$(call src,tests/fake/cuda,))
GPU_HOST := $(filter-out $B/trainer/cuda/backend_cudnn%,$(GPU_OBJ))# all but the network
KERNELS  := $(patsubst %.cu,$B/%.cu.o,$(wildcard trainer/cuda/*.cu))
SHIMMED  := $(patsubst %.cu,$B/shim/%.o,$(wildcard trainer/cuda/*.cu))
CUDNN_LIBS := -L$(CUDA_HOME)/lib64 -lcudnn
CUDNN_HAVE := $(if $(filter 1,$(CUDA)),$(call HAVE,cudnn.h,$(CUDA_INC) $(CUDNN_LIBS)),0)

ifeq ($(CUDA),1)
lib: $(LIB)/libdpload_cuda.so
$(TESTS): | $B/tests/libdpload_cuda.so
test test-threads test-kernels: $B/tests/libdpload_cuda.so
else
lib all: no-cuda
all: NOTE := @echo "built without CUDA ($(if $(filter 1,$(CUDA_HAVE)),CUDA=0,no toolkit in $(CUDA_HOME); CUDA_HOME=DIR names one)): devices cuda:N will say so"
.PHONY: no-cuda
no-cuda: # the part of an earlier build would still be found
	@rm -f $(LIB)/lib*_cuda.so $B/tests/lib*_cuda.so
	$(NOTE)
endif

# --- rules ---
$B/device/cuda/%.o $B/trainer/cuda/%.o $B/tests/fake/cuda/%.o: EXTRA := $(CUDA_INC)
$(FAKE_OBJ): EXTRA := $(CUDA_INC) -fvisibility=default
$(FAKE_OBJ): SANFLAGS := $(filter-out -fsanitize=thread,$(SANFLAGS))# its locks are no order: fake_cudart.h
$(LIB)/libdpload_cuda.so: $(CUDA_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -shared -Wl,-soname,$(@F) -Wl,--exclude-libs,ALL $(if $(SAN),,-Wl,--no-undefined) -o $@ $^ $(CUDA_LIBS) $(LDFLAGS)
$B/tests/libfakecudart.so: $(FAKE_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ -pthread $(LDFLAGS)
$B/tests/libdpload_cuda.so: $(CUDA_OBJ) $B/tests/libfakecudart.so
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@ $(CUDA_OBJ) -L$(@D) -lfakecudart -pthread $(LDFLAGS)
$B/libtrainer.a: $(TRN_OBJ)
	$(Q)rm -f $@ && ar rcs $@ $^
$B/tests/test_buckets: $B/trainer/cuda/buckets.o# a pure function of the plug-in

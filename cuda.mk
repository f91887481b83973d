# The CUDA parts: what is there, the two plug-ins, and the fakes that stand in for a GPU in the tests.
#
#   libdpload_cuda.so    the loader's devices: C, static runtime
#   libdptrain_cuda.so   training: C, kernels (.cu), cuDNN; NCCL is opened when it is needed
#
# Each is built for GPUs into LIB, and over tests/fake/cuda/ beside the tests, which open that one: libfakecudart.so,
# kernels as C++ through the CPU shim, the network by the reference backend. In tests/nvcc/ nvcc's own objects launch
# the same CPU kernels. libgpuplants.so: kernels of the tests. See docs/cuda.md.

# --- detection; `make config` prints it ---
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc))),/usr/local/cuda)
CUDA_INC  := -isystem $(CUDA_HOME)/include
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt -pthread
CUDA_HAVE := $(call HAVE,cuda_runtime_api.h,$(CUDA_INC) $(CUDA_LIBS))
CUDA    ?= $(CUDA_HAVE)
CUDA    := $(CUDA)
ifeq ($(CUDA)$(CUDA_HAVE),10)
$(error CUDA=1: no cuda_runtime_api.h and libcudart_static.a found; CUDA_HOME=DIR names the toolkit (now $(CUDA_HOME)))
endif
ifeq ($(origin CUDA_HOME)$(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h),command line)
$(error CUDA_HOME=$(CUDA_HOME): no include/cuda_runtime_api.h there)
endif
export CUDA
CUDNN_LIBS := -L$(CUDA_HOME)/lib64 -lcudnn
CUDNN_HAVE := $(if $(filter 1,$(CUDA)),$(call HAVE,cudnn.h,$(CUDA_INC) $(CUDNN_LIBS)),0)
NCCL_HAVE  := $(if $(filter 1,$(CUDA)),$(call HAVE,nccl.h,$(CUDA_INC)),0)# the header is enough
NVCC       := $(if $(filter 1,$(CUDA)),$(wildcard $(CUDA_HOME)/bin/nvcc))
CUDA_LACKS := $(if $(NVCC),,nvcc) $(if $(filter 0,$(CUDNN_HAVE)),cuDNN) $(if $(filter 0,$(NCCL_HAVE)),nccl.h)
CUDA_FOUND := $(if $(filter 1,$(CUDA)),$(CUDA_HOME)$(if $(strip $(CUDA_LACKS)), without training: no $(strip $(CUDA_LACKS))),no)

# --- sources ---
CUDA_OBJ := $(call src,device/cuda,) $B/base/alloc.o $B/base/text.o
GPU_OBJ  := $(call src,trainer/cuda,) $B/device/cuda/device_cuda_trace.o
GPU_HOST := $(filter-out $B/trainer/cuda/backend_cudnn%,$(GPU_OBJ))# all but the network
GPU_REF  := $(patsubst %.c,$B/%.o,$(wildcard tests/fake/cuda/ref_exec*.c))# the network on the host
KERNELS  := $(patsubst %.cu,$B/%.cu.o,$(wildcard trainer/cuda/*.cu))
SHIMMED  := $(patsubst $B/%.cu.o,$B/shim/%.o,$(KERNELS))
PLANTS   := $(patsubst %.cu,$B/%.cu.o,$(wildcard tests/fake/cuda/plants*.cu))
PLANTED  := $(patsubst $B/%.cu.o,$B/shim/%.o,$(PLANTS))
NCCL_OBJ := $(patsubst %.c,$B/%.o,$(wildcard tests/fake/cuda/fake_nccl*.c))
SHIM_OBJ := $(patsubst %.c,$B/%.o,$(wildcard tests/fake/cuda/cuda_shim_*.c))
FAKE_OBJ := $(patsubst %.c,$B/%.o,$(wildcard tests/fake/cuda/fake_cudart*.c tests/fake/cuda/fake_register*.c)) $(SHIM_OBJ)
ARCHIVES := $B/libtrainer.a $(LIB)/libdpload.a# what a plug-in needs of them comes in with it
NVCC_TESTS := $(if $(SAN),,$(if $(NVCC),$(patsubst $B/tests/%,$B/tests/nvcc/%.nvcc,$(foreach n,gpu team_cuda,$(filter $B/tests/test_$n%,$(TESTS))))))
GPU_FILES  := $(addprefix $B/tests/,libdpload_cuda.so libgpuplants.so $(if $(filter 1,$(NCCL_HAVE)),libdptrain_cuda.so libnccl.so.2))
NVCC_FILES := $(addprefix $B/tests/nvcc/,$(notdir $(GPU_FILES)) libfakecudart.so dptrain)

.PHONY: no-cuda no-training
ifeq ($(CUDA),1)
lib: $(LIB)/libdpload_cuda.so $(if $(SAN)$(strip $(CUDA_LACKS)),no-training,$(LIB)/libdptrain_cuda.so)
all: NOTE := $(if $(SAN),,@echo "built without training on GPUs (no $(strip $(CUDA_LACKS)) in $(CUDA_HOME)): dptrain --devices cuda:N will say so")
$(TESTS): | $(GPU_FILES)
test test-threads test-kernels: $(GPU_FILES) $B/tests/dptrain
test: $(NVCC_TESTS)
else
lib all: no-cuda
all: NOTE := @echo "built without CUDA ($(if $(filter 1,$(CUDA_HAVE)),CUDA=0,no toolkit in $(CUDA_HOME); CUDA_HOME=DIR names one)): devices cuda:N will say so"
endif
no-cuda: # the parts of an earlier build would still be found
	@rm -rf $(LIB)/lib*_cuda.so $B/tests/lib*.so* $B/tests/nvcc $B/tests/dptrain
	$(NOTE)
no-training:
	@rm -f $(LIB)/libdptrain_cuda.so
	$(NOTE)

# --- C ---
$B/device/cuda/%.o $B/trainer/cuda/%.o $B/tests/fake/cuda/%.o: EXTRA := $(CUDA_INC)
$(FAKE_OBJ) $(NCCL_OBJ): EXTRA := $(CUDA_INC) -fvisibility=default
$(filter-out $(SHIM_OBJ),$(FAKE_OBJ)) $(NCCL_OBJ): SANFLAGS := $(filter-out -fsanitize=thread,$(SANFLAGS))# their locks are no order: fake_cudart.h
$(SHIM_OBJ): SANFLAGS :=# they change stacks
$B/libtrainer.a: $(TRN_OBJ)
	$(Q)rm -f $@ && ar rcs $@ $^

# --- kernels: by nvcc, and as C++ ---
GPUS      := 80 90 100 120
NVCCFLAGS := -O3 -std=c++17 -fmad=false $(foreach g,$(GPUS),-gencode arch=compute_$g,code=sm_$g) \
             -gencode arch=compute_$(lastword $(GPUS)),code=compute_$(lastword $(GPUS)) \
             -Werror all-warnings -Xptxas -Werror,-warn-spills,-warn-lmem-usage,-v \
             -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-ffp-contract=off -Iinclude -I.
CXX_OF    := $(patsubst cc,c++,$(subst clang,clang++,$(subst gcc,g++,$(CC))))
CLANG     := $(findstring clang,$(CC))
SHIMSAN   := -fno-sanitize=vptr $(if $(CLANG),-fno-sanitize=function) $(if $(filter asan,$(SAN)),$(if $(CLANG),-fsanitize-address-use-after-return=never,\
             -fsanitize-sections=.shim_shared --param asan-use-after-return=0))
SHIMFLAGS  = -x c++ -std=c++17 -include tests/fake/cuda/cuda_shim.hpp $(CUDA_INC) -D_GNU_SOURCE -Iinclude -I. $(OPT) -fPIC \
             -fvisibility=hidden -ffp-contract=off -fno-exceptions -fno-rtti -pthread -Wall -Wextra \
             $(if $(filter 1,$(WERROR)),-Werror) $(SANFLAGS) $(if $(SAN),$(SHIMSAN)) $(CFLAGS)
$B/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@ 2>$(@:.o=.ptxas) || { cat $(@:.o=.ptxas) >&2; exit 1; }
$B/shim/%.o: %.cu
	@mkdir -p $(@D)
	$(Q)$(CXX_OF) $(SHIMFLAGS) -MMD -MP -c $< -o $@

.PHONY: gpu-budget
gpu-budget: $(if $(NVCC),$(KERNELS)) ## what kernels take of a GPU against trainer/cuda/registers.txt (UPDATE=1: note it there)
	$(Q)$(if $(NVCC),NVCC=$(NVCC) tools/gpu_budget.sh $(if $(UPDATE),--update) $(KERNELS:.o=.ptxas),echo "gpu-budget: no nvcc here, nothing to compare")

# --- for GPUs ---
SHARED = $(Q)mkdir -p $(@D) && $(CC) $(ALLFLAGS) -shared -Wl,-soname,$(@F) -Wl,--exclude-libs,ALL
STRICT = $(if $(SAN),,-Wl,--no-undefined)
$(LIB)/libdpload_cuda.so: $(CUDA_OBJ)
	$(SHARED) $(STRICT) -o $@ $^ $(CUDA_LIBS) $(LDFLAGS)
$(LIB)/libdptrain_cuda.so: $(GPU_OBJ) $(KERNELS) $(ARCHIVES)
	$(SHARED) $(STRICT) -o $@ $^ $(CUDNN_LIBS) $(CUDA_LIBS) -Wl,--as-needed -lstdc++ -lm $(LDFLAGS)

# --- over the fakes ---
FAKED = $(STRICT) -Wl,-rpath,'$$ORIGIN' -o $@ $(filter %.o,$^) $(filter-out %.o,$^) -Wl,--as-needed -lstdc++ -lm -ldl -pthread $(LDFLAGS)
$B/tests/libfakecudart.so: $(FAKE_OBJ)
	$(SHARED) -o $@ $^ -ldl -pthread $(LDFLAGS)
$B/tests/libdpload_cuda.so: $(CUDA_OBJ) $B/tests/libfakecudart.so
	$(SHARED) $(FAKED)
$B/tests/libnccl.so.2: $(NCCL_OBJ) $B/tests/libfakecudart.so
	$(SHARED) $(FAKED)
$B/tests/libgpuplants.so: $(PLANTED) $B/tests/libfakecudart.so
	$(SHARED) -T tests/fake/cuda/cuda_shim.ld $(FAKED)
$B/tests/libdptrain_cuda.so: $(GPU_HOST) $(GPU_REF) $(SHIMMED) $(ARCHIVES) $B/tests/libfakecudart.so
	$(SHARED) -T tests/fake/cuda/cuda_shim.ld $(FAKED)
$B/tests/dptrain: $(BIN)/dptrain # finds the fakes beside itself
	$(Q)mkdir -p $(@D) && ln -f $< $@

# --- nvcc's objects over the fakes: what they launch is in libtwins*.so ---
NVCCED = $(SHARED) -Wl,--no-as-needed $(FAKED)
$B/tests/nvcc/libtwins_%.so: $B/tests/libfakecudart.so
	$(SHARED) -T tests/fake/cuda/cuda_shim.ld $(FAKED)
$B/tests/nvcc/libtwins_plants.so: $(PLANTED)
$B/tests/nvcc/libtwins_dptrain.so: $(SHIMMED)
$B/tests/nvcc/libgpuplants.so: $(PLANTS) $B/tests/nvcc/libtwins_plants.so $B/tests/nvcc/libfakecudart.so
	$(NVCCED)
$B/tests/nvcc/libdptrain_cuda.so: $(GPU_HOST) $(GPU_REF) $(KERNELS) $(ARCHIVES) $B/tests/nvcc/libtwins_dptrain.so $B/tests/nvcc/libfakecudart.so
	$(NVCCED)
$B/tests/nvcc/%: $B/tests/%
	$(Q)mkdir -p $(@D) && ln -f $< $@
$(NVCC_TESTS): $(NVCC_FILES)
$B/tests/nvcc/%.nvcc: $B/tests/%
	$(Q)mkdir -p $(@D) && ln -f $< $@
$B/tests/test_buckets: $B/trainer/cuda/buckets.o# a pure function of the plug-in

# --- the network without a GPU: its operations on the host, and cuDNN's plans for GPUs that are only described ---
CUDNN_PROG := $(patsubst %,$B/trainer/cuda/backend_cudnn_%.o,prog key forward backward)
CUDNN_PLAN := $(patsubst %,$B/trainer/cuda/backend_cudnn_%.o,desc plan plans cache)
$B/tests/test_cudnn_prog: $(CUDNN_PROG)
ifeq ($(CUDNN_HAVE),1)
$B/tests/test_cudnn_plans: | $B/tests/plan_table $(if $(SAN),,$B/tests/exec_dry) $B/tests/nogpu/libcuda.so.1
endif
.PHONY: test-plans
test-plans: $(if $(filter 1,$(CUDNN_HAVE)),$B/tests/plan_table $B/tests/nogpu/libcuda.so.1) ## cuDNN's plans of what is compiled at run time, on all GPUs of the tables
	$(Q)$(if $(filter 1,$(CUDNN_HAVE)),tests/scripts/check_plan_table.sh $B/tests,echo "test-plans: no cuDNN here")
$B/tests/plans/%.o: EXTRA := $(CUDA_INC)
$B/tests/plan_table: $B/tests/plans/plan_table.o $(CUDNN_PROG) $(CUDNN_PLAN) $(ARCHIVES)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -o $@ $^ $(CUDNN_LIBS) -Wl,-rpath,$(CUDA_HOME)/lib64 -lm $(LDFLAGS)
$B/tests/nogpu/libcuda.so.1: tests/scripts/make_fake_libcuda.sh
	@mkdir -p $(@D)
	$(Q)$< $(CUDA_HOME)/lib64/stubs/libcuda.so >$(@D)/libcuda.c && $(CC) -std=c11 -O1 -fPIC -shared -Wl,-soname,$(@F) -o $@ $(@D)/libcuda.c
comma := ,
DRY := cudnnCreate cudnnDestroy cudnnSetStream cudnnBackendExecute dpt_cu_device_json
$B/tests/exec_dry: $B/tests/fake/cuda/exec_dry.o $(filter $B/trainer/cuda/backend_cudnn%,$(GPU_OBJ)) $(SHIMMED) $(ARCHIVES) $B/tests/libfakecudart.so
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -T tests/fake/cuda/cuda_shim.ld $(addprefix -Wl$(comma)--wrap=,$(DRY)) -Wl,-rpath,$(CUDA_HOME)/lib64 $(FAKED) $(CUDNN_LIBS)

# --- for tools/gpu_check.sh: what it measures on a card, and the same over the fake runtime ---
$B/tests/bench/bench_overlap.o: EXTRA := $(CUDA_INC)
$B/gpu/libgpuplants.so: $(PLANTS) # does a card agree with the shim?
	$(SHARED) $(STRICT) -o $@ $^ $(CUDA_LIBS) -Wl,--as-needed -lstdc++ $(LDFLAGS)
$B/gpu/bench_overlap: $B/tests/bench/bench_overlap.o $(LIB)/libdpload.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -o $@ $^ $(CUDA_LIBS) $(LIBS_LOADER) $(LDFLAGS)
$B/tests/bench_overlap: $B/tests/bench/bench_overlap.o $(LIB)/libdpload.a $B/tests/libfakecudart.so
	$(Q)$(CC) $(ALLFLAGS) -Wl,-rpath,'$$ORIGIN' -o $@ $^ $(LIBS_LOADER) $(LDFLAGS)

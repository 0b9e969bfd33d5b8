/* A stand-in for the driver's libnvidia-ml.so.1: one GPU, as the environment describes it.
 *
 * FAKE_NVML_INIT    what nvmlInit returns (default 0, success); see nvmlReturn_t in nvml.h
 * FAKE_NVML_CUDA    the driver's CUDA version as NVML counts it (default 12080 for CUDA 12.8)
 * FAKE_NVML_LOST    when set, the GPU has fallen off the bus
 */
#include <stdio.h>
#include <stdlib.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };

typedef struct {
    unsigned long long total, free, used;
} Memory;

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int copy(const char *text, char *to, unsigned int size) {
    return snprintf(to, size, "%s", text) < (int)size ? SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    return number("FAKE_NVML_INIT", SUCCESS);
}

int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int code) {
    (void)code;
    return "said by the stand-in";
}

int nvmlSystemGetDriverVersion(char *version, unsigned int size) {
    return copy("570.86.15", version, size);
}

int nvmlSystemGetCudaDriverVersion(int *version) {
    *version = number("FAKE_NVML_CUDA", 12080);
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = 1;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    static int gpu;
    *device = &gpu;
    if (getenv("FAKE_NVML_LOST")) return GPU_IS_LOST;
    return index == 0 ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetName(void *device, char *name, unsigned int size) {
    (void)device;
    return copy("NVIDIA H200", name, size);
}

int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
    (void)device;
    memory->total = 141ULL << 30;
    memory->used = 0;
    memory->free = memory->total;
    return SUCCESS;
}

/* A stand-in for the driver's libnvidia-ml.so.1, which the real pynvml loads.
 *
 * It is a healthy H200, but for what the file says that FAKE_NVML_STATE names: lines "key=value",
 * read anew at every call, so that a test can change the GPU under a program that watches it.
 * "1.key" means only the second device; the key "fail.nvmlSomething" is what that function
 * returns (nvmlReturn_t of nvml.h), "fail.gpu" what every function does that is asked of a device.
 * tests/drivers.py writes such files.
 *
 * -DOLD_DRIVER builds a driver from before R535: functions that came later are not in it.
 * -DSTATE_FILE='"PATH"' names the file where FAKE_NVML_STATE does not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    ARGUMENT_VERSION_MISMATCH = 25,
};

#ifndef STATE_FILE
#define STATE_FILE NULL
#endif

typedef unsigned int u32;
typedef unsigned long long u64;

static int initialized;

/* Names of the policies of nvmlDeviceGetViolationStatus that are counted. */
static const char *const POLICIES[] = {
    "power", "thermal", "sync_boost", "board_limit", "low_utilization", "reliability",
};

static const char *const HEALTHY[] = {
    "driver=570.86.15",
    "cuda=12080",
    "count=1",
    "name=NVIDIA H200",
    "uuid=GPU-00000000-0000-0000-0000-000000000000",
    "mem_total=151397597184", /* 141 GiB */
    "mem_used=0",
    "mem_reserved=0",
    "util=0",
    "sm_clock=1980",
    "sm_clock_max=1980",
    "mem_clock=3201",
    "temperature=40",
    "power_mw=120000",
    "power_limit_mw=700000",
    "power_default_mw=700000",
    "energy_mj=1000000",
    "violation_power=0",
    "violation_thermal=0",
    "violation_sync_boost=0",
    "violation_board_limit=0",
    "violation_low_utilization=0",
    "violation_reliability=0",
    "event_reasons=0",
    "processes=0",
    "mig=0",
    "ecc=1",
    "ecc_errors=0",
    "rows_pending=0",
    "rows_failed=0",
    "pcie_generation=5",
    "pcie_max_generation=5",
    "pcie_width=16",
    "pcie_max_width=16",
    "persistence=1",
    NULL,
};

static int matches(const char *line, const char *key, char *value, size_t size) {
    size_t length = strlen(key);
    if (strncmp(line, key, length) || line[length] != '=') return 0;
    snprintf(value, size, "%s", line + length + 1);
    value[strcspn(value, "\r\n")] = 0;
    return 1;
}

static int in_file(const char *key, char *value, size_t size) {
    const char *named = getenv("FAKE_NVML_STATE");
    const char *path = named ? named : STATE_FILE;
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    int found = 0;
    if (!file) return 0;
    while (!found && fgets(line, sizeof line, file)) found = matches(line, key, value, size);
    fclose(file);
    return found;
}

static int text_of(const char *key, char *value, size_t size) {
    if (in_file(key, value, size)) return 1;
    for (const char *const *line = HEALTHY; *line; line++)
        if (matches(*line, key, value, size)) return 1;
    return 0;
}

static int number_of(const char *key, u64 *number) {
    char value[64];
    if (!text_of(key, value, sizeof value)) return 0;
    *number = strtoull(value, NULL, 0);
    return 1;
}

/* A handle is the device's index + 1. */
static int text_at(void *device, const char *key, char *value, size_t size) {
    char own[96];
    snprintf(own, sizeof own, "%ld.%s", (long)device - 1, key);
    return in_file(own, value, size) || text_of(key, value, size);
}

static int read64(void *device, const char *key, u64 *number) {
    char value[64];
    if (!text_at(device, key, value, sizeof value)) return NOT_SUPPORTED;
    *number = strtoull(value, NULL, 0);
    return SUCCESS;
}

static int read32(void *device, const char *key, u32 *number) {
    u64 wide;
    int code = read64(device, key, &wide);
    if (code == SUCCESS) *number = (u32)wide;
    return code;
}

static int copy(const char *text, char *to, u32 size) {
    return snprintf(to, size, "%s", text) < (int)size ? SUCCESS : INSUFFICIENT_SIZE;
}

static int read_text(void *device, const char *key, char *to, u32 size) {
    char value[256];
    return text_at(device, key, value, sizeof value) ? copy(value, to, size) : NOT_SUPPORTED;
}

/* What a test wants this function to return instead of an answer. */
static int refusal(const char *function) {
    char key[128];
    u64 code;
    snprintf(key, sizeof key, "fail.%s", function);
    if (number_of(key, &code) && code) return (int)code;
    return initialized ? SUCCESS : UNINITIALIZED;
}

static int refusal_at(void *device, const char *function) {
    u64 code;
    if (read64(device, "fail.gpu", &code) == SUCCESS && code) return (int)code;
    return refusal(function);
}

static int is_instance(void *device) {
    char uuid[128];
    return text_at(device, "uuid", uuid, sizeof uuid) && !strncmp(uuid, "MIG-", 4);
}

#define ANSWER() \
    do { \
        int code_ = refusal(__func__); \
        if (code_) return code_; \
    } while (0)

#define ANSWER_OF(device) \
    do { \
        int code_ = refusal_at(device, __func__); \
        if (code_) return code_; \
    } while (0)

/* A MIG instance has no counters of its own. */
#define ANSWER_OF_WHOLE(device) \
    do { \
        ANSWER_OF(device); \
        if (is_instance(device)) return NOT_SUPPORTED; \
    } while (0)

int nvmlInitWithFlags(u32 flags) {
    u64 code;
    (void)flags;
    if (number_of("fail.nvmlInitWithFlags", &code) && code) return (int)code;
    initialized++;
    return SUCCESS;
}

int nvmlShutdown(void) {
    if (!initialized) return UNINITIALIZED;
    initialized--;
    return SUCCESS;
}

const char *nvmlErrorString(int code) {
    (void)code;
    return "said by the stand-in";
}

int nvmlSystemGetDriverVersion(char *version, u32 size) {
    char value[128];
    ANSWER();
    return text_of("driver", value, sizeof value) ? copy(value, version, size) : NOT_SUPPORTED;
}

int nvmlSystemGetCudaDriverVersion(int *version) {
    u64 number;
    ANSWER();
    if (!number_of("cuda", &number)) return NOT_SUPPORTED;
    *version = (int)number;
    return SUCCESS;
}

/* Instances are devices of the file, behind the whole GPUs, and are not counted. */
int nvmlDeviceGetCount_v2(u32 *count) {
    u64 number;
    ANSWER();
    if (!number_of("count", &number)) return NOT_SUPPORTED;
    *count = (u32)number;
    while (*count && is_instance((void *)(long)*count)) --*count;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, void **device) {
    u64 count = 0;
    ANSWER();
    if (!number_of("count", &count) || index >= count) return INVALID_ARGUMENT;
    *device = (void *)(long)(index + 1);
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    u64 count = 0;
    char own[128];
    ANSWER();
    number_of("count", &count);
    for (u64 index = 0; index < count; index++) {
        void *candidate = (void *)(long)(index + 1);
        if (text_at(candidate, "uuid", own, sizeof own) && !strcmp(own, uuid)) {
            *device = candidate;
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}

int nvmlDeviceGetName(void *device, char *name, u32 size) {
    ANSWER_OF(device);
    return read_text(device, "name", name, size);
}

int nvmlDeviceGetUUID(void *device, char *uuid, u32 size) {
    ANSWER_OF(device);
    return read_text(device, "uuid", uuid, size);
}

typedef struct {
    u64 total, free, used;
} Memory;

/* The first form counts what the driver reserves as used. */
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
    u64 reserved = 0;
    ANSWER_OF(device);
    if (read64(device, "mem_total", &memory->total)) return NOT_SUPPORTED;
    if (read64(device, "mem_used", &memory->used)) return NOT_SUPPORTED;
    read64(device, "mem_reserved", &reserved);
    memory->used += reserved;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

#ifndef OLD_DRIVER
typedef struct {
    u32 version;
    u64 total, reserved, free, used;
} Memory_v2;

int nvmlDeviceGetMemoryInfo_v2(void *device, Memory_v2 *memory) {
    ANSWER_OF(device);
    if (memory->version != (sizeof *memory | 2U << 24)) return ARGUMENT_VERSION_MISMATCH;
    if (read64(device, "mem_total", &memory->total)) return NOT_SUPPORTED;
    if (read64(device, "mem_used", &memory->used)) return NOT_SUPPORTED;
    if (read64(device, "mem_reserved", &memory->reserved)) return NOT_SUPPORTED;
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}
#endif

typedef struct {
    u32 gpu, memory;
} Utilization;

int nvmlDeviceGetUtilizationRates(void *device, Utilization *utilization) {
    ANSWER_OF_WHOLE(device);
    utilization->memory = 0;
    return read32(device, "util", &utilization->gpu);
}

int nvmlDeviceGetClockInfo(void *device, int kind, u32 *mhz) {
    ANSWER_OF(device);
    if (kind != 1 && kind != 2) return INVALID_ARGUMENT; /* SM, memory */
    return read32(device, kind == 1 ? "sm_clock" : "mem_clock", mhz);
}

int nvmlDeviceGetMaxClockInfo(void *device, int kind, u32 *mhz) {
    ANSWER_OF(device);
    return kind == 1 ? read32(device, "sm_clock_max", mhz) : INVALID_ARGUMENT;
}

int nvmlDeviceGetTemperature(void *device, int sensor, u32 *celsius) {
    ANSWER_OF(device);
    return sensor == 0 ? read32(device, "temperature", celsius) : INVALID_ARGUMENT;
}

int nvmlDeviceGetPowerUsage(void *device, u32 *milliwatts) {
    ANSWER_OF(device);
    return read32(device, "power_mw", milliwatts);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, u32 *milliwatts) {
    ANSWER_OF(device);
    return read32(device, "power_limit_mw", milliwatts);
}

int nvmlDeviceGetPowerManagementDefaultLimit(void *device, u32 *milliwatts) {
    ANSWER_OF(device);
    return read32(device, "power_default_mw", milliwatts);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, u64 *millijoules) {
    ANSWER_OF_WHOLE(device);
    return read64(device, "energy_mj", millijoules);
}

typedef struct {
    u64 reference, violation;
} ViolationTime;

int nvmlDeviceGetViolationStatus(void *device, u32 policy, ViolationTime *time) {
    char key[64];
    ANSWER_OF_WHOLE(device);
    if (policy >= sizeof POLICIES / sizeof *POLICIES) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "violation_%s", POLICIES[policy]);
    time->reference = 0;
    return read64(device, key, &time->violation);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *reasons) {
    ANSWER_OF(device);
    return read64(device, "event_reasons", reasons);
}

#ifndef OLD_DRIVER
int nvmlDeviceGetCurrentClocksEventReasons(void *device, u64 *reasons) {
    ANSWER_OF(device);
    return read64(device, "event_reasons", reasons);
}
#endif

typedef struct {
    u32 pid;
    u64 used;
    u32 gpu_instance, compute_instance;
} Process;

static int processes_of(void *device, u32 *count, Process *out) {
    u32 room = *count;
    int code = read32(device, "processes", count);
    if (code) return code;
    if (*count == 0) return SUCCESS;
    if (!out || room < *count) return INSUFFICIENT_SIZE;
    memset(out, 0, *count * sizeof *out); /* a container is not told which */
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v2(void *device, u32 *count, Process *out) {
    ANSWER_OF(device);
    return processes_of(device, count, out);
}

#ifndef OLD_DRIVER
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, u32 *count, Process *out) {
    ANSWER_OF(device);
    return processes_of(device, count, out);
}
#endif

int nvmlDeviceGetMigMode(void *device, u32 *current, u32 *pending) {
    ANSWER_OF_WHOLE(device);
    *pending = 0;
    return read32(device, "mig", current);
}

/* Every device whose UUID begins with MIG- is an instance of the first device. */
int nvmlDeviceGetMaxMigDeviceCount(void *device, u32 *count) {
    u32 mode = 0;
    ANSWER_OF_WHOLE(device);
    read32(device, "mig", &mode);
    *count = mode ? 7 : 0;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, u32 index, void **instance) {
    u64 count = 0;
    ANSWER_OF_WHOLE(device);
    number_of("count", &count);
    *instance = (void *)(long)(index + 2);
    return index + 1 < count && is_instance(*instance) ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetEccMode(void *device, u32 *current, u32 *pending) {
    ANSWER_OF_WHOLE(device);
    *pending = 1;
    return read32(device, "ecc", current);
}

int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, u64 *errors) {
    ANSWER_OF_WHOLE(device);
    if (kind != 1 || counter != 0) return INVALID_ARGUMENT; /* uncorrected, since the reset */
    return read64(device, "ecc_errors", errors);
}

int nvmlDeviceGetRemappedRows(void *device, u32 *corrected, u32 *uncorrected, u32 *pending,
                              u32 *failed) {
    ANSWER_OF_WHOLE(device);
    *corrected = *uncorrected = 0;
    if (read32(device, "rows_pending", pending)) return NOT_SUPPORTED;
    return read32(device, "rows_failed", failed);
}

int nvmlDeviceGetCurrPcieLinkGeneration(void *device, u32 *generation) {
    ANSWER_OF_WHOLE(device);
    return read32(device, "pcie_generation", generation);
}

int nvmlDeviceGetMaxPcieLinkGeneration(void *device, u32 *generation) {
    ANSWER_OF_WHOLE(device);
    return read32(device, "pcie_max_generation", generation);
}

int nvmlDeviceGetCurrPcieLinkWidth(void *device, u32 *width) {
    ANSWER_OF_WHOLE(device);
    return read32(device, "pcie_width", width);
}

int nvmlDeviceGetMaxPcieLinkWidth(void *device, u32 *width) {
    ANSWER_OF_WHOLE(device);
    return read32(device, "pcie_max_width", width);
}

int nvmlDeviceGetPersistenceMode(void *device, u32 *mode) {
    ANSWER_OF_WHOLE(device);
    return read32(device, "persistence", mode);
}

/* A small libnvidia-ml.so.1 that tells what a file says, so that tests drive the real NVML path.
 *
 * FAKE_NVML names the file. It is read anew with each call:
 *   fail CODE                                       every call answers CODE
 *   gpu UUID UTILIZATION USED TOTAL MIG NAME...     a GPU; MIG is 1 where it is cut up
 *   mig UUID USED TOTAL NAME...                     an instance of the GPU above
 *   proc PID MEMORY UTILIZATION TIMESTAMP           a process on the device above
 * A TIMESTAMP of 0 means a process without a sample of its use.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "nvml.h"

#define DEVICES 16
#define PROCESSES 16

struct process {
    unsigned pid, utilization;
    unsigned long long memory, timestamp;
};
struct nvmlDevice_st {
    char uuid[80], name[96];
    unsigned utilization, has_mig, processes;
    unsigned long long used, total;
    int parent; /* -1: a GPU */
    struct process running[PROCESSES];
};
static struct nvmlDevice_st devices[DEVICES];
static int count, failure;

static nvmlReturn_t load(void) {
    char line[256];
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    int gpu = -1;
    if (!file) return NVML_ERROR_DRIVER_NOT_LOADED;
    count = failure = 0;
    while (fgets(line, sizeof line, file)) {
        struct nvmlDevice_st *last = count ? &devices[count - 1] : NULL;
        struct nvmlDevice_st fresh = {.parent = -1};
        struct process run;
        if (sscanf(line, "fail %d", &failure) == 1) continue;
        if (last && last->processes < PROCESSES &&
            sscanf(line, "proc %u %llu %u %llu", &run.pid, &run.memory, &run.utilization,
                   &run.timestamp) == 4) {
            last->running[last->processes++] = run;
            continue;
        }
        if (count == DEVICES) break;
        if (sscanf(line, "gpu %79s %u %llu %llu %u %95[^\n]", fresh.uuid, &fresh.utilization,
                   &fresh.used, &fresh.total, &fresh.has_mig, fresh.name) == 6) {
            gpu = count;
            devices[count++] = fresh;
        } else if (sscanf(line, "mig %79s %llu %llu %95[^\n]", fresh.uuid, &fresh.used,
                          &fresh.total, fresh.name) == 4) {
            fresh.parent = gpu;
            devices[count++] = fresh;
        }
    }
    fclose(file);
    return (nvmlReturn_t)failure;
}

#define LOADED                      \
    do {                            \
        nvmlReturn_t said = load(); \
        if (said) return said;      \
    } while (0)

static nvmlReturn_t nth(int parent, unsigned index, nvmlDevice_t *device) {
    for (int place = 0; place < count; place++)
        if (devices[place].parent == parent && !index--) {
            *device = &devices[place];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags) { (void)flags; return load(); }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t result) { (void)result; return "an error"; }

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    LOADED;
    snprintf(version, length, "570.86.10");
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *found) {
    LOADED;
    *found = 0;
    for (int place = 0; place < count; place++) *found += devices[place].parent < 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    LOADED;
    return nth(-1, index, device);
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *found) {
    (void)device;
    *found = 7;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                 nvmlDevice_t *instance) {
    LOADED;
    return nth((int)(device - devices), index, instance);
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *now, unsigned *next) {
    LOADED;
    *now = *next = device->has_mig;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    LOADED;
    snprintf(name, length, "%s", device->name);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    LOADED;
    snprintf(uuid, length, "%s", device->uuid);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    LOADED;
    memory->used = device->used;
    memory->total = device->total;
    memory->free = device->total - device->used;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    LOADED;
    if (device->parent >= 0) return NVML_ERROR_NOT_SUPPORTED;
    rates->gpu = device->utilization;
    rates->memory = 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *found,
                                                     nvmlProcessInfo_t *infos) {
    LOADED;
    unsigned room = *found;
    *found = device->processes;
    if (!device->processes) return NVML_SUCCESS;
    if (room < device->processes) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned place = 0; place < device->processes; place++) {
        memset(&infos[place], 0, sizeof infos[place]);
        infos[place].pid = device->running[place].pid;
        infos[place].usedGpuMemory = device->running[place].memory;
    }
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *samples,
                                             unsigned *found, unsigned long long after) {
    LOADED;
    unsigned room = *found;
    if (device->parent >= 0) return NVML_ERROR_NOT_SUPPORTED;
    *found = 0;
    for (unsigned place = 0; place < device->processes; place++) {
        const struct process *run = &device->running[place];
        if (run->timestamp <= after) continue;
        if (samples && *found < room) {
            memset(&samples[*found], 0, sizeof samples[*found]);
            samples[*found].pid = run->pid;
            samples[*found].smUtil = run->utilization;
            samples[*found].timeStamp = run->timestamp;
        }
        ++*found;
    }
    if (!*found) return NVML_ERROR_NOT_FOUND;
    return samples ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

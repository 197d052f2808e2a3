/* Stands in for libnvidia-ml: two GPUs, the second with one MIG device. Written from the NVML API reference. As that of
 * driver 580 does, it keeps an event descriptor open from the first start after it was loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

typedef struct {
  char bus_id_legacy[16];
  unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
} pci_info;

static int gpus[2];
static int slice;

/* NOLINTBEGIN(readability-identifier-naming): the names are NVML's */
int nvmlInit_v2(void) {
  static int is_open;
  if (!is_open && eventfd(0, EFD_CLOEXEC) >= 0) is_open = 1;
  const char* status = getenv("TOPOLET_FAKE_NVML_STATUS");
  return status != NULL ? atoi(status) : 0;
}
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = &gpus[index];
  return index < 2 ? 0 : 2;
}
int nvmlDeviceGetPciInfo_v3(void* device, pci_info* info) {
  const char* address = device == &gpus[0] ? "00000000:41:00.0" : "00000000:C1:00.0";
  snprintf(info->bus_id, sizeof(info->bus_id), "%s", address);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned int length) {
  snprintf(uuid, length, "%s", device == &slice ? "MIG-slice" : device == &gpus[0] ? "GPU-a" : "GPU-b");
  return 0;
}
int nvmlDeviceGetMinorNumber(void* device, unsigned int* minor) {
  *minor = device == &gpus[0] ? 1 : 0;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned int* count) {
  *count = device == &gpus[1] ? 7 : 0;
  return device == &gpus[1] ? 0 : 3;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned int index, void** mig) {
  *mig = &slice;
  return device == &gpus[1] && index == 2 ? 0 : 6;
}
/* NOLINTEND(readability-identifier-naming) */

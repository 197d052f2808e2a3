#include "plugins/gpu/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <string>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

using NvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr int kOtherVersionThanDriver = 18;  ///< NVML_ERROR_LIB_RM_VERSION_MISMATCH

/// nvmlPciInfo_t in the NVML API reference.
struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> bus_id;
};

/// The functions used here, in the versions that drivers have offered since 2018.
struct NvmlFunctions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*by_index)(unsigned int, NvmlDevice*) = nullptr;
  int (*pci_info)(NvmlDevice, PciInfo*) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned int) = nullptr;
  int (*minor)(NvmlDevice, unsigned int*) = nullptr;
  int (*mig_count)(NvmlDevice, unsigned int*) = nullptr;                 ///< null in drivers without MIG
  int (*mig_by_index)(NvmlDevice, unsigned int, NvmlDevice*) = nullptr;  ///< the same
};

template <class Function>
bool load_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool load_symbols(void* library, NvmlFunctions& functions) {
  load_symbol(library, "nvmlDeviceGetMaxMigDeviceCount", functions.mig_count);
  load_symbol(library, "nvmlDeviceGetMigDeviceHandleByIndex", functions.mig_by_index);
  return load_symbol(library, "nvmlInit_v2", functions.init) &&
         load_symbol(library, "nvmlShutdown", functions.shutdown) &&
         load_symbol(library, "nvmlDeviceGetCount_v2", functions.count) &&
         load_symbol(library, "nvmlDeviceGetHandleByIndex_v2", functions.by_index) &&
         load_symbol(library, "nvmlDeviceGetPciInfo_v3", functions.pci_info) &&
         load_symbol(library, "nvmlDeviceGetUUID", functions.uuid) &&
         load_symbol(library, "nvmlDeviceGetMinorNumber", functions.minor);
}

std::string uuid_of(const NvmlFunctions& functions, NvmlDevice device) {
  std::array<char, 96> text{};
  return functions.uuid(device, text.data(), text.size()) == kSuccess ? std::string(text.data()) : std::string();
}

void add_mig_devices(const NvmlFunctions& functions, NvmlDevice gpu, const std::string& address, NvmlDevices& result) {
  unsigned int max_count = 0;
  if (functions.mig_count == nullptr || functions.mig_by_index == nullptr ||
      functions.mig_count(gpu, &max_count) != kSuccess)
    return;
  for (unsigned int i = 0; i < max_count; ++i) {
    NvmlDevice mig_device = nullptr;
    if (functions.mig_by_index(gpu, i, &mig_device) != kSuccess) continue;
    if (std::string uuid = uuid_of(functions, mig_device); !uuid.empty()) result.mig[std::move(uuid)] = address;
  }
}

/// A library that is missing is normal on a machine without GPUs. The linker's text for it differs only by the name
/// from that for another library which it needs.
std::string load_error(const std::string& library, const char* error) {
  const std::string text = error == nullptr ? "" : error;
  const bool is_missing = text.starts_with(library + ": ") && text.find("No such file") != std::string::npos;
  return is_missing || text.empty() ? library + " is not installed" : library + " cannot be loaded: " + printable(text);
}

std::string init_error(const std::string& library, int status) {
  const char* remedy = status == kOtherVersionThanDriver
                           ? "; the driver was replaced since it was loaded, `topolet restart` loads the present one"
                           : "";
  return library + " cannot be initialised: NVML error " + std::to_string(status) + remedy;
}

void query(const NvmlFunctions& functions, NvmlDevices& result) {
  unsigned int count = 0;
  if (functions.count(&count) != kSuccess) result.error = "NVML cannot count the GPUs";
  for (unsigned int i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    PciInfo info{};
    NvidiaGpu gpu;
    unsigned int minor = 0;
    if (functions.by_index(i, &device) == kSuccess && functions.pci_info(device, &info) == kSuccess) {
      gpu.address = parse_pci_address(info.bus_id.data()).value_or("");
      gpu.uuid = uuid_of(functions, device);
      if (functions.minor(device, &minor) == kSuccess) gpu.minor = minor;
      add_mig_devices(functions, device, gpu.address, result);
    }
    result.gpus.push_back(std::move(gpu));  // even one that gives no answer takes up an index
  }
}

}  // namespace

NvmlDevices query_nvml(const std::string& library) {
  NvmlDevices result;
  if (library.empty()) {
    result.error = "option nvml-library is empty";
    return result;
  }
  // Never unloaded: each time that it is loaded it opens an event descriptor that its shutdown leaves open.
  void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  NvmlFunctions functions;
  if (loaded == nullptr) {
    result.error = load_error(library, dlerror());
  } else if (!load_symbols(loaded, functions)) {
    result.error = library + " lacks functions of NVML that drivers since 2018 have";
  } else if (const int status = functions.init(); status != kSuccess) {
    result.error = init_error(library, status);
  } else {
    query(functions, result);
    functions.shutdown();
  }
  return result;
}

}  // namespace topolet::gpu

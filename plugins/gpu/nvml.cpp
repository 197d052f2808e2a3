#include "plugins/gpu/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <memory>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

using Device = void*;
constexpr int kSuccess = 0;

/// nvmlPciInfo_t of the NVML API reference.
struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> bus_id;
};

/// The functions that are used, of the versions that drivers have had since 2018.
struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*by_index)(unsigned int, Device*) = nullptr;
  int (*pci_info)(Device, PciInfo*) = nullptr;
  int (*uuid)(Device, char*, unsigned int) = nullptr;
  int (*minor)(Device, unsigned int*) = nullptr;
  int (*mig_count)(Device, unsigned int*) = nullptr;             ///< null in drivers without MIG
  int (*mig_by_index)(Device, unsigned int, Device*) = nullptr;  ///< the same
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Nvml& nvml) {
  find(library, "nvmlDeviceGetMaxMigDeviceCount", nvml.mig_count);
  find(library, "nvmlDeviceGetMigDeviceHandleByIndex", nvml.mig_by_index);
  return find(library, "nvmlInit_v2", nvml.init) && find(library, "nvmlShutdown", nvml.shutdown) &&
         find(library, "nvmlDeviceGetCount_v2", nvml.count) &&
         find(library, "nvmlDeviceGetHandleByIndex_v2", nvml.by_index) &&
         find(library, "nvmlDeviceGetPciInfo_v3", nvml.pci_info) && find(library, "nvmlDeviceGetUUID", nvml.uuid) &&
         find(library, "nvmlDeviceGetMinorNumber", nvml.minor);
}

std::string uuid_of(const Nvml& nvml, Device device) {
  std::array<char, 96> text{};
  return nvml.uuid(device, text.data(), text.size()) == kSuccess ? std::string(text.data()) : std::string();
}

void add_mig_devices(const Nvml& nvml, Device gpu, const std::string& address, NvmlAnswer& answer) {
  unsigned int most = 0;
  if (nvml.mig_count == nullptr || nvml.mig_by_index == nullptr || nvml.mig_count(gpu, &most) != kSuccess) return;
  for (unsigned int i = 0; i < most; ++i) {
    Device slice = nullptr;
    if (nvml.mig_by_index(gpu, i, &slice) != kSuccess) continue;
    if (std::string uuid = uuid_of(nvml, slice); !uuid.empty()) answer.mig[std::move(uuid)] = address;
  }
}

/// The linker says the same of a library and of one that it needs, but for the name.
std::string why_not_loaded(const std::string& library, const char* error) {
  const std::string text = error == nullptr ? "" : error;
  const bool is_missing = text.starts_with(library + ": ") && text.find("No such file") != std::string::npos;
  return is_missing || text.empty() ? "there is no " + library : library + " cannot be loaded: " + shown(text);
}

void ask(const Nvml& nvml, NvmlAnswer& answer) {
  unsigned int count = 0;
  if (nvml.count(&count) != kSuccess) answer.fault = "it cannot count its GPUs";
  for (unsigned int i = 0; i < count; ++i) {
    Device device = nullptr;
    PciInfo info{};
    NvidiaGpu gpu;
    unsigned int minor = 0;
    if (nvml.by_index(i, &device) == kSuccess && nvml.pci_info(device, &info) == kSuccess) {
      gpu.address = pci_address(info.bus_id.data()).value_or("");
      gpu.uuid = uuid_of(nvml, device);
      if (nvml.minor(device, &minor) == kSuccess) gpu.minor = minor;
      add_mig_devices(nvml, device, gpu.address, answer);
    }
    answer.gpus.push_back(std::move(gpu));  // one that does not answer keeps its index
  }
}

}  // namespace

NvmlAnswer ask_nvml(const std::string& library) {
  NvmlAnswer answer;
  if (library.empty()) {
    answer.fault = "option nvml-library is empty";
    return answer;
  }
  const std::unique_ptr<void, int (*)(void*)> loaded(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL), &dlclose);
  Nvml nvml;
  if (!loaded) {
    answer.fault = why_not_loaded(library, dlerror());
  } else if (!find_all(loaded.get(), nvml)) {
    answer.fault = library + " is not of a version that is known here";
  } else if (const int status = nvml.init(); status != kSuccess) {
    answer.fault = library + " does not start, with NVML's error " + std::to_string(status);
  } else {
    ask(nvml, answer);
    nvml.shutdown();
  }
  return answer;
}

}  // namespace topolet::gpu

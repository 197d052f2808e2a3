// The plugin's options as the policy uses them.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/device_kinds.hpp"
#include "plugins/gpu/inventory.hpp"

namespace topolet::gpu {

/// Devices count for more than tidy packing, and for less than having room at all.
inline constexpr std::uint32_t kDefaultWeight = 4;

enum class Affinity : std::uint8_t { kPrefer, kRequire };

/// The thing that is divided where no node has both the devices and room for all CPUs.
enum class Split : std::uint8_t {
  kDevice,  ///< some CPUs are beside the devices, the others elsewhere
  kCpus,    ///< nothing: all CPUs are on as few nodes as hold them, wherever the devices are
};

/// The options that verdicts go by.
struct Rules {
  Affinity affinity = Affinity::kPrefer;
  Split split = Split::kDevice;
  bool whole_cores = false;  ///< exclusive CPUs are handed out as whole cores: not by an option, but for each request
};

/// The beginning of a rejection's reason: the option that another outcome needs changed.
constexpr const char* kRequireText = "affinity = require: ";

/// How many CPUs beside each unused GPU are not to be taken by containers without devices, while there are others.
struct Headroom {
  /// Absent: the allowed CPUs of the GPU's node, divided by its GPUs. 0: none.
  std::optional<std::size_t> cpus_per_gpu;

  bool is_off() const { return cpus_per_gpu == 0U; }
};

/// "auto", or a number of CPUs. Throws std::invalid_argument for anything else.
Headroom parse_headroom(std::string_view text);

struct PolicyOptions {
  Rules rules;
  bool keep_free = false;
  Headroom headroom;
  std::vector<DeviceKind> kinds;
  Roots roots;
  std::string nvml_library;
};

/// Throws std::invalid_argument with the option and the reason.
PolicyOptions read_options(const sdk::Options& options);

/// Why the directory that an option names cannot be used; empty if it is there.
std::string why_missing(const char* option, const std::filesystem::path& directory);

}  // namespace topolet::gpu

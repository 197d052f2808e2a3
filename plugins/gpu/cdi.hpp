// CDI specs: which device nodes and variables a device name such as nvidia.com/gpu=0 adds to a container.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace topolet::gpu {

struct CdiDevice {
  std::vector<std::string> paths;  ///< device nodes on the host, including those that the spec adds to all its devices
  std::vector<std::pair<std::string, std::string>> env;  ///< name, value
};

/// By fully qualified name.
using CdiDevices = std::map<std::string, CdiDevice, std::less<>>;

/// The devices of one spec, JSON or YAML. Throws std::invalid_argument with the reason, and with the line if the text
/// cannot be parsed.
CdiDevices read_cdi_spec(std::string_view text);

}  // namespace topolet::gpu

// What the kubelet's CPU manager has given to containers, as it keeps it in a file.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/engine/converge/kubelet_cpus.hpp"

namespace topolet::machine {

/// Reads {"policyName":"static","entries":{"POD UID":{"CONTAINER":"1-2"}}}. No entries under another policy than
/// static. INVALID_ARGUMENT for anything else. The checksum is not checked: it is of the kubelet's own value, not of
/// the text.
Result<engine::KubeletCpus> parse_cpu_manager_state(std::string_view json);

/// Whether a kubelet hands out CPUs, as it says in that file: it does not start while another policy stands there than
/// its own. False where the file is missing or says nothing.
bool is_cpu_manager_static(const std::filesystem::path& file);

/// Of a missing file nothing, as where no kubelet with such a policy has run. One that cannot be read is logged, and is
/// as a missing one.
engine::KubeletCpus read_cpu_manager_state(const std::filesystem::path& file, Log& log);

}  // namespace topolet::machine

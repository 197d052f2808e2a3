// The CPUs that the kubelet's CPU manager has assigned to containers, read from its state file.
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

/// Returns true if the kubelet's policy in that file assigns CPUs: a kubelet does not start if the file names another
/// policy than its own. False if the file is missing or names none.
bool is_cpu_manager_static(const std::filesystem::path& file);

/// Reads the assigned CPUs from the file: none if it is missing, as when no kubelet with such a policy has run. If it
/// cannot be read, that is logged, and the result is the same.
engine::KubeletCpus read_cpu_manager_state(const std::filesystem::path& file, Log& log);

}  // namespace topolet::machine

// The setup that decisions are made with, as the audit keeps it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/config_text.hpp"
#include "core/engine/state/transition.hpp"
#include "core/plugin/host/running_plugins.hpp"

namespace topolet::daemon {

/// `raw`: the configuration that is in force. Secrets in it are left out.
engine::Setup describe_setup(std::int64_t number, const config::RawConfig& raw,
                             const std::vector<plugin::PluginDescription>& plugins);

}  // namespace topolet::daemon

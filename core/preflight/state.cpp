#include <fmt/format.h>

#include "core/base/clock.hpp"
#include "core/plugin/host/crash_log.hpp"
#include "core/preflight/findings.hpp"
#include "store/inspect.hpp"

namespace topolet::preflight {

void check_state(Report& report) {
  const std::string option = "daemon.state-dir";
  const std::filesystem::path& directory = report.options().daemon.state_dir;
  if (report.is_mistaken(option)) return;
  const auto usable = store::inspect_state_directory(directory);
  if (!usable && store::is_misconfigured(usable.error())) return report.mistake(option, usable.error().message);
  const auto crashes = plugin::CrashLog::read(directory / "plugin-crashes", Clock().wall().count());
  if (!crashes) return report.mistake(option, crashes.error().message);
  if (usable) return report.note_use(option, *usable);
  const bool is_damaged = usable.error().code == Code::kDataLoss;
  report.warning(option, fmt::format("{}; {}", usable.error().message,
                                     is_damaged ? "topoletd would move it away and create a new one"
                                                : "topoletd would run without the state database until it can write "
                                                  "it"));
}

}  // namespace topolet::preflight

#include "core/base/utc_time.hpp"

#include <fmt/chrono.h>

namespace topolet {

std::string utc_time(std::chrono::milliseconds since_epoch) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count()));
}

}  // namespace topolet

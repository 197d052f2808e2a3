#include "core/cri/messages/shown_status.hpp"

#include "core/cri/messages/lens.pb.h"
#include "core/cri/methods.hpp"

namespace topolet::cri {

std::string read_status_with_resources(const ObservedMessage& answer) {
  if (parse_method(answer.path).name != "ContainerStatus") return {};
  std::string bytes;
  for (const std::string_view piece : answer.response) bytes += piece;
  lens::ContainerStatusResponse parsed;
  if (!parsed.ParseFromString(bytes) || !parsed.status().resources().has_linux()) return {};
  return parsed.status().id();
}

}  // namespace topolet::cri

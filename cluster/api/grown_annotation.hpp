// The change of a Node by which schedulers try pods again that did not fit.
#pragma once

#include <chrono>
#include <string>

#include "cluster/api/api.hpp"
#include "core/base/rfc3339.hpp"

namespace topolet::api {

/// Sets the annotation topolet.io/grown of the Node to `wall_time`, which is since the Unix epoch.
inline ApiRequest grown_request(const std::string& node, std::chrono::milliseconds wall_time) {
  return {.verb = "patch",
          .method = "PATCH",
          .path = "/api/v1/nodes/" + node,
          .body = {{"metadata", {{"annotations", {{"topolet.io/grown", rfc3339(wall_time)}}}}}},
          .content_type = "application/merge-patch+json"};
}

}  // namespace topolet::api

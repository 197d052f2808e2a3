// Which of a container's environment and annotations is recorded: values are secrets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/placement/workload.hpp"

namespace topolet::replay {

/// What enabled plugins say they read.
struct RecordedNames {
  std::vector<std::string> env;          ///< patterns, in which * is any text
  std::vector<std::string> annotations;  ///< keys, besides all of topolet.io/

  friend bool operator==(const RecordedNames&, const RecordedNames&) = default;
};

/// The workload without the environment and the annotations that nobody reads.
placement::Workload without_secrets(placement::Workload workload, const RecordedNames& names);

/// Those of the annotations that are recorded.
SharedStringMap recorded_annotations(const SharedStringMap& annotations, const RecordedNames& names);

}  // namespace topolet::replay

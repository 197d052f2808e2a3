#include "core/replay/recorded_names.hpp"

#include <utility>

#include "core/base/pattern.hpp"
#include "core/placement/settings.hpp"

namespace topolet::replay {

SharedStringMap recorded_annotations(const SharedStringMap& annotations, const RecordedNames& names) {
  SharedStringMap::Map kept = annotations;
  std::erase_if(kept, [&names](const auto& annotation) {
    const std::string& key = annotation.first;
    const bool is_ours = key.rfind(placement::kAnnotationPrefix, 0) == 0;
    return !is_ours && first_match(names.annotations, key) == nullptr;
  });
  return kept.size() == annotations.size() ? annotations : SharedStringMap(std::move(kept));
}

placement::Workload without_secrets(placement::Workload workload, const RecordedNames& names) {
  std::erase_if(workload.env,
                [&names](const auto& variable) { return first_match(names.env, variable.first) == nullptr; });
  workload.pod_annotations = recorded_annotations(workload.pod_annotations, names);
  workload.annotations = recorded_annotations(workload.annotations, names);
  return workload;
}

placement::LedgerEntry without_secrets(placement::LedgerEntry entry, const RecordedNames& names) {
  entry.pod_annotations = recorded_annotations(entry.pod_annotations, names);
  entry.annotations = recorded_annotations(entry.annotations, names);
  return entry;
}

}  // namespace topolet::replay

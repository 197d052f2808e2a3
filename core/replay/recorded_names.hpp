// Which of a container's environment and annotations is recorded: values are secrets.
#pragma once

#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"
#include "core/plugin/call/plugin_policy.hpp"

namespace topolet::replay {

/// The names that enabled plugins say they read, and all annotations of topolet.io/.
using RecordedNames = plugin::NamesRead;

/// The workload without the environment and the annotations that nobody reads.
placement::Workload without_secrets(placement::Workload workload, const RecordedNames& names);
/// The same of a container of the ledger.
placement::LedgerEntry without_secrets(placement::LedgerEntry entry, const RecordedNames& names);

/// Those of the annotations that are recorded.
SharedStringMap recorded_annotations(const SharedStringMap& annotations, const RecordedNames& names);

}  // namespace topolet::replay

// Who yields to whom: classes of containers, as Koordinator has them.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::load_policy {

inline constexpr std::string_view kClassAnnotation = "class";
inline constexpr std::string_view kKoordinatorLabel = "koordinator.sh/qosClass";

/// Each yields to those after it.
enum class Class : std::uint8_t {
  kBe,   ///< uses what is left over
  kLs,   ///< sensitive to latency; shares CPUs
  kLsr,  ///< the same, with CPUs of its own
  kLse,  ///< the same, and nobody runs on the siblings of its CPUs
};

std::string_view to_string(Class which);  // "BE", "LS", "LSR", "LSE"

/// What a container says of its class.
struct ClassWord {
  Class which = Class::kLs;
  std::string note = {};   ///< why it is not what its pod says, for people; empty if it is
  std::string error = {};  ///< it says something that is no class; empty if not
};

/// The parts of a workload or ledger entry that tell its class.
struct ClassSource {
  std::int32_t qos;  ///< topolet_qos
  topolet_str pod_namespace;
  topolet_kvs settings;
  topolet_kvs pod_labels;
  topolet_kvs pod_annotations;
};
ClassSource source_of(const topolet_workload& workload);
ClassSource source_of(const topolet_ledger_entry& entry);

/// The annotation topolet.io/class comes before Koordinator's label, and both before what the class of quality says:
/// without a word BestEffort pods are BE, all others LS. LSE and LSR count only in namespaces that match one of
/// `taking_namespaces`; elsewhere they read as LS.
ClassWord class_of(const ClassSource& source, const std::vector<std::string>& taking_namespaces);

}  // namespace topolet::load_policy

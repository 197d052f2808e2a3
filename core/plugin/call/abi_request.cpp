#include "core/plugin/call/abi_request.hpp"

#include <algorithm>
#include <utility>

#include "core/plugin/call/abi_arrays.hpp"
#include "core/plugin/call/request_facts.hpp"

namespace topolet::plugin {

topolet_str view_of(std::string_view text) { return {text.data(), text.size()}; }

AbiRequest::AbiRequest(const placement::PolicyRequest& request, std::shared_ptr<const AbiTopology> topology,
                       LentMemory memory, const KnownValues& known)
    : AbiRequest(request, topology, std::make_shared<AbiLedger>(request.ledger, *topology, memory, known), memory,
                 known) {}

AbiRequest::AbiRequest(const placement::PolicyRequest& request, std::shared_ptr<const AbiTopology> topology,
                       std::shared_ptr<AbiLedger> ledger, LentMemory memory, const KnownValues& known)
    : request_(request),
      topology_(std::move(topology)),
      ledger_(std::move(ledger)),
      values_(known),
      block_(std::move(memory)) {
  const placement::CpuSource from = request.exclusive ? request.from : placement::CpuSource::kPool;
  view_ = block_.copy_struct(
      topolet_request{sizeof(topolet_request),
                      request.exclusive ? 1U : 0U,
                      request.exclusive ? request.exclusive_cpus : 0,
                      count_of(request.candidates),
                      copy_candidates(),
                      sizeof(topolet_candidate),
                      values_.shown(AbiValues::kOccasion, request.occasion),
                      lend_workload(block_, values_, request.workload, request.container_id, true),
                      &topology_->view(),
                      &ledger_->view(),
                      values_.shown(AbiValues::kMode, request.mode()),
                      values_.shown_flags(AbiValues::kRequestFlags, flags_of(request)),
                      values_.shown(AbiValues::kCpuSource, from),
                      values_.shown(AbiValues::kWhyShared, why_shared_of(request)),
                      block_.copy(request.had.cpus),
                      block_.copy(request.had.withheld),
                      block_.copy(request.had.mems),
                      block_.copy(request.keep),
                      request.min_shared_cpus,
                      request.largest_exclusive_cpus,
                      lend_load(block_, request.load.get(), *request.topology, request.ledger.entries)});
  block_.seal();
}

std::uint32_t AbiRequest::newest_minor() const {
  return std::max({values_.newest_minor(), ledger_->newest_minor(), topology_->newest_minor()});
}

const topolet_candidate* AbiRequest::copy_candidates() {
  const CpuSet usable = request_.usable();
  const CpuSet pool = request_.shared_cpus();
  return copy_each<topolet_candidate>(block_, request_.candidates, [&](const placement::Candidate& candidate) {
    return topolet_candidate{values_.shown(AbiValues::kDomainKind, candidate.kind),
                             candidate.is_domain ? 1U : 0U,
                             block_.copy(candidate.nodes),
                             block_.copy(candidate.cpus),
                             block_.copy(candidate.cpus & pool),
                             block_.copy(candidate.cpus & usable),
                             candidate.distance,
                             0};
  });
}

}  // namespace topolet::plugin

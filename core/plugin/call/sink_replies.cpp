#include "core/plugin/call/sink_replies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/utf8.hpp"
#include "core/placement/container_notes.hpp"
#include "core/placement/unified_value.hpp"
#include "core/plugin/guard/barrier.hpp"

namespace topolet::plugin {

static_assert(static_cast<int>(placement::Verdict::Kind::kAbstain) == TOPOLET_VERDICT_ABSTAIN);
static_assert(static_cast<int>(placement::Verdict::Kind::kReject) == TOPOLET_VERDICT_REJECT);
static_assert(static_cast<int>(placement::Verdict::Kind::kScore) == TOPOLET_VERDICT_SCORE);

namespace {

template <class Set>
Set to_set(topolet_set set) {
  return Set::from_words({set.words, set.words + set.count});
}

std::string_view bytes_of(topolet_str string) {
  return string.len == 0 ? std::string_view() : std::string_view(string.ptr, string.len);
}

/// Copies a code of the plugin to `place`, where none is yet.
std::int32_t set_reason_code(SinkReply& reply, const ReasonCodes& known, topolet_str code, std::string& place) {
  if (code.ptr == nullptr && code.len != 0) return reply.record_fault(TOPOLET_INVALID, "a code is a null pointer");
  if (!known.has(bytes_of(code))) {
    return reply.record_fault(TOPOLET_UNKNOWN,
                              fmt::format("the code '{}', which is none of its codes", sanitize_text(code)));
  }
  if (!place.empty()) return reply.record_fault(TOPOLET_DUPLICATE, "two codes for one answer");
  place = known.shown(bytes_of(code));
  return TOPOLET_OK;
}

void add_code(std::string& reason, const std::string& code) {
  if (!reason.empty() && !code.empty()) reason += " (" + code + ")";
}

/// By the PCI address or the name of an OS device.
bool has_device(const topology::Topology& topology, std::string_view name) {
  const auto is_address = [name](const topology::PciDevice& device) { return device.address == name; };
  const auto is_name = [name](const topology::OsDevice& device) { return device.name == name; };
  return std::any_of(topology.pci_devices.begin(), topology.pci_devices.end(), is_address) ||
         std::any_of(topology.os_devices.begin(), topology.os_devices.end(), is_name);
}

/// True for the keys by which the kubelet tells runtimes what to do, and those of Kubernetes and the Container Device
/// Interface.
bool is_forbidden_annotation(std::string_view key) {
  if (key.starts_with("io.kubernetes.") || key.starts_with("cdi.k8s.io/")) return true;
  const std::size_t slash = key.find('/');
  const std::string_view domain = slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
  return domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
}

using Fields = std::vector<std::pair<std::string, std::string>>;

std::int32_t add_field(AdjustReply& reply, Fields& fields, const char* noun, topolet_str key, topolet_str value) {
  if (reply.call_abandoned) return TOPOLET_LATE;
  if ((key.ptr == nullptr && key.len != 0) || (value.ptr == nullptr && value.len != 0)) {
    return reply.record_fault(TOPOLET_INVALID, fmt::format("{} is a null pointer", noun));
  }
  if (key.len == 0) return reply.record_fault(TOPOLET_INVALID, fmt::format("{} has no name", noun));
  if (key.len > TOPOLET_ADJUST_MAX_KEY || value.len > TOPOLET_ADJUST_MAX_VALUE) {
    return reply.record_fault(TOPOLET_OUT_OF_RANGE,
                              fmt::format("{} has {} and {} bytes; the limits are {} and {}", noun, key.len, value.len,
                                          TOPOLET_ADJUST_MAX_KEY, TOPOLET_ADJUST_MAX_VALUE));
  }
  if (!is_utf8(bytes_of(key)) || !is_utf8(bytes_of(value))) {
    return reply.record_fault(TOPOLET_INVALID, fmt::format("{} {} is not UTF-8", noun, sanitize_text(key)));
  }
  const auto is_this = [&key](const auto& field) { return field.first == bytes_of(key); };
  if (std::any_of(fields.begin(), fields.end(), is_this)) {
    return reply.record_fault(TOPOLET_DUPLICATE, fmt::format("{} {} is set twice", noun, sanitize_text(key)));
  }
  const placement::AddedFields& added = reply.adjustment.added;
  if (added.env.size() + added.annotations.size() >= TOPOLET_ADJUST_MAX_FIELDS) {
    return reply.record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("more than {} fields", TOPOLET_ADJUST_MAX_FIELDS));
  }
  fields.emplace_back(bytes_of(key), bytes_of(value));
  return TOPOLET_OK;
}

}  // namespace

std::int32_t SinkReply::record_fault(topolet_status status, std::string why) {
  if (fault.empty()) fault = std::move(why);
  return status;
}

std::int32_t SinkReply::set_error(topolet_str message) {
  if (call_abandoned) return TOPOLET_LATE;
  error = sanitize_text(message);
  return TOPOLET_OK;
}

static_assert(TOPOLET_SET_MAX == (kMaxOsIndex + 1) / 64);

std::int32_t SinkReply::check_set(topolet_set set, const char* what, bool already_set) {
  if (call_abandoned) return TOPOLET_LATE;
  if (already_set) return record_fault(TOPOLET_DUPLICATE, fmt::format("{} is set twice", what));
  if (set.words == nullptr && set.count != 0)
    return record_fault(TOPOLET_INVALID, fmt::format("{} is a null pointer", what));
  if (set.count <= TOPOLET_SET_MAX) return TOPOLET_OK;
  return record_fault(TOPOLET_OUT_OF_RANGE,
                      fmt::format("{} has {} words; the highest index is {}", what, set.count, kMaxOsIndex));
}

std::int32_t ScoreReply::set(std::uint32_t candidate, std::int32_t kind, std::int32_t score, topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  if (candidate >= verdicts.size()) {
    return record_fault(TOPOLET_UNKNOWN,
                        fmt::format("a verdict on candidate {}, but there are only {}", candidate, seen.size()));
  }
  if (seen[candidate]) return record_fault(TOPOLET_DUPLICATE, fmt::format("two verdicts on candidate {}", candidate));
  // A later version of the ABI may have more kinds.
  if (kind < TOPOLET_VERDICT_ABSTAIN || kind > TOPOLET_VERDICT_SCORE) {
    return TOPOLET_UNSUPPORTED;
  }
  if (kind == TOPOLET_VERDICT_SCORE && (score < TOPOLET_SCORE_MIN || score > TOPOLET_SCORE_MAX)) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("the score {} on candidate {} is not between -100 and 100", score, candidate));
  }
  if (reason.ptr == nullptr && reason.len != 0) return record_fault(TOPOLET_INVALID, "a reason is a null pointer");
  seen[candidate] = true;
  placement::Verdict& verdict = verdicts[candidate];
  verdict.kind = static_cast<placement::Verdict::Kind>(kind);
  verdict.score = kind == TOPOLET_VERDICT_SCORE ? score : 0;
  verdict.reason = sanitize_text(reason);
  return TOPOLET_OK;
}

std::int32_t ScoreReply::set_code(std::uint32_t candidate, topolet_str code) {
  if (call_abandoned) return TOPOLET_LATE;
  if (candidate >= verdicts.size()) {
    return record_fault(TOPOLET_UNKNOWN,
                        fmt::format("a code for candidate {}, but there are only {}", candidate, verdicts.size()));
  }
  return set_reason_code(*this, known, code, verdicts[candidate].code);
}

std::vector<placement::Verdict> ScoreReply::take() {
  for (placement::Verdict& verdict : verdicts) add_code(verdict.reason, verdict.code);
  return std::move(verdicts);
}

std::int32_t ProposeReply::add(topolet_set nodes) {
  if (const std::int32_t status = check_set(nodes, "a proposal", false); status != TOPOLET_OK) return status;
  if (proposals.size() >= TOPOLET_PROPOSE_MAX_SETS) {
    return record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("more than {} proposals", TOPOLET_PROPOSE_MAX_SETS));
  }
  NodeSet proposal = to_set<NodeSet>(nodes);
  if (proposal.empty()) return record_fault(TOPOLET_INVALID, "a proposal has no nodes");
  proposals.push_back(std::move(proposal));
  return TOPOLET_OK;
}

std::int32_t PickReply::set_narrow(topolet_set cpus) {
  const std::int32_t status = check_set(cpus, "narrow", pick.narrow.has_value());
  if (status == TOPOLET_OK) pick.narrow = to_set<CpuSet>(cpus);
  return status;
}

std::int32_t PickReply::set_withhold(topolet_set cpus) {
  const std::int32_t status = check_set(cpus, "withhold", std::exchange(withheld, true));
  if (status == TOPOLET_OK) pick.withhold = to_set<CpuSet>(cpus);
  return status;
}

std::int32_t PickReply::set_order(const std::uint32_t* os_indices, std::size_t count) {
  if (call_abandoned) return TOPOLET_LATE;
  if (std::exchange(ordered, true)) return record_fault(TOPOLET_DUPLICATE, "order is set twice");
  if (os_indices == nullptr && count != 0) return record_fault(TOPOLET_INVALID, "order is a null pointer");
  if (count > kMaxOsIndex + 1) return record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("order has {} CPUs", count));
  std::vector<bool> seen(kMaxOsIndex + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t cpu = os_indices[i];
    if (cpu > kMaxOsIndex) return record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("order names CPU {}", cpu));
    if (seen[cpu]) return record_fault(TOPOLET_DUPLICATE, fmt::format("order names CPU {} twice", cpu));
    seen[cpu] = true;
  }
  pick.order.assign(os_indices, os_indices + count);
  return TOPOLET_OK;
}

std::int32_t PickReply::set_reason(topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  pick.reason = sanitize_text(reason);
  return TOPOLET_OK;
}

std::int32_t PickReply::set_unmet(topolet_str what) {
  if (call_abandoned) return TOPOLET_LATE;
  if (what.ptr == nullptr || what.len == 0) return record_fault(TOPOLET_INVALID, "unmet has no text");
  pick.unmet = sanitize_text(what);
  return TOPOLET_OK;
}

std::int32_t PickReply::add_minimum(topolet_set cpus, std::uint32_t count) {
  const std::int32_t status = check_set(cpus, "at_least", false);
  if (status != TOPOLET_OK) return status;
  if (pick.at_least.size() == TOPOLET_PICK_MAX_SHARES) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("at_least is set more than {} times", TOPOLET_PICK_MAX_SHARES));
  }
  pick.at_least.push_back({to_set<CpuSet>(cpus), count});
  return TOPOLET_OK;
}

std::int32_t PickReply::set_rejected(topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  if (reason.ptr == nullptr || reason.len == 0) return record_fault(TOPOLET_INVALID, "reject has no reason");
  if (!pick.rejected.empty()) return record_fault(TOPOLET_DUPLICATE, "reject is called twice");
  pick.rejected = sanitize_text(reason);
  return TOPOLET_OK;
}

std::int32_t PickReply::set_code(topolet_str code) {
  if (call_abandoned) return TOPOLET_LATE;
  return set_reason_code(*this, known, code, pick.code);
}

std::int32_t PickReply::add_replacement(std::uint32_t entry, std::uint32_t flags, topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  if ((flags & ~(TOPOLET_REPLACE_OTHER_NODES | TOPOLET_REPLACE_NOW)) != 0) return TOPOLET_UNSUPPORTED;
  if (entry >= ledger.entries.size()) {
    return record_fault(TOPOLET_UNKNOWN,
                        fmt::format("a move of entry {}, but there are only {}", entry, ledger.entries.size()));
  }
  const placement::LedgerEntry& other = ledger.entries[entry];
  if (other.placement.mode == placement::Mode::kForeign)
    return record_fault(TOPOLET_UNKNOWN, fmt::format("a move of entry {}, which topolet does not place", entry));
  if (reason.ptr == nullptr && reason.len != 0)
    return record_fault(TOPOLET_INVALID, fmt::format("the reason to move entry {} is a null pointer", entry));
  const auto is_this = [&other](const placement::Replacement& one) { return one.key == other.key; };
  if (std::any_of(pick.replace.begin(), pick.replace.end(), is_this))
    return record_fault(TOPOLET_DUPLICATE, fmt::format("two moves of entry {}", entry));
  pick.replace.push_back({other.key, (flags & TOPOLET_REPLACE_OTHER_NODES) != 0, sanitize_text(reason)});
  return TOPOLET_OK;
}

std::int32_t PickReply::soften() {
  if (call_abandoned) return TOPOLET_LATE;
  pick.soft_home = true;
  return TOPOLET_OK;
}

placement::Pick PickReply::take() {
  for (std::string* reason : {&pick.reason, &pick.unmet, &pick.rejected}) add_code(*reason, pick.code);
  return std::move(pick);
}

std::int32_t AdjustReply::set_mems(topolet_set nodes) {
  const std::int32_t status = check_set(nodes, "mems", adjustment.mems.has_value());
  if (status == TOPOLET_OK) adjustment.mems = to_set<NodeSet>(nodes);
  return status;
}

std::int32_t AdjustReply::add_env(topolet_str name, topolet_str value) {
  const auto has = [](topolet_str text, char byte) {
    return text.ptr != nullptr && bytes_of(text).find(byte) != std::string_view::npos;
  };
  if (!call_abandoned && (has(name, '=') || has(name, '\0') || has(value, '\0'))) {
    // What follows a '=' may be meant as the value.
    const topolet_str shown{name.ptr, std::min(name.len, bytes_of(name).find('='))};
    return record_fault(TOPOLET_INVALID,
                        fmt::format("variable {} has '=' in its name, or a zero byte", sanitize_text(shown)));
  }
  return add_field(*this, adjustment.added.env, "variable", name, value);
}

std::int32_t AdjustReply::add_annotation(topolet_str key, topolet_str value) {
  if (!call_abandoned && key.ptr != nullptr && is_forbidden_annotation(bytes_of(key))) {
    return record_fault(TOPOLET_FORBIDDEN, fmt::format("annotation {} is not a plugin's to set", sanitize_text(key)));
  }
  return add_field(*this, adjustment.added.annotations, "annotation", key, value);
}

std::int32_t AdjustReply::set_reason(topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  adjustment.reason = sanitize_text(reason);
  return TOPOLET_OK;
}

std::int32_t AdjustReply::add_used_device(topolet_str device) {
  if (call_abandoned) return TOPOLET_LATE;
  if (device.ptr == nullptr || device.len == 0) return record_fault(TOPOLET_INVALID, "a used device has no name");
  std::vector<std::string>& used = adjustment.used_devices;
  if (device.len > TOPOLET_ADJUST_MAX_KEY || used.size() >= TOPOLET_ADJUST_MAX_DEVICES) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("more than {} used devices, or one of {} bytes; at most {}",
                                    TOPOLET_ADJUST_MAX_DEVICES, device.len, TOPOLET_ADJUST_MAX_KEY));
  }
  const std::string_view name = bytes_of(device);
  if (std::find(used.begin(), used.end(), name) != used.end())
    return record_fault(TOPOLET_DUPLICATE, fmt::format("device {} is used twice", sanitize_text(device)));
  // No fault: what a container was found to use may have been unplugged when it is placed anew.
  if (!has_device(*request.topology, name)) return TOPOLET_UNKNOWN;
  used.emplace_back(name);
  return TOPOLET_OK;
}

std::int32_t AdjustReply::add_tag(topolet_str key, topolet_str value) {
  if (call_abandoned) return TOPOLET_LATE;
  if ((key.ptr == nullptr && key.len != 0) || (value.ptr == nullptr && value.len != 0))
    return record_fault(TOPOLET_INVALID, "tag is a null pointer");
  if (key.len == 0) return record_fault(TOPOLET_INVALID, "tag has no key");
  const std::string prefix = placement::tag_prefix(plugin);
  if (key.len > TOPOLET_ADJUST_MAX_TAG - prefix.size() || value.len > TOPOLET_ADJUST_MAX_TAG) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("tag has {} bytes, with '{}', and {}; at most {} are allowed",
                                    prefix.size() + key.len, prefix, value.len, TOPOLET_ADJUST_MAX_TAG));
  }
  if (!is_utf8(bytes_of(key)) || !is_utf8(bytes_of(value)))
    return record_fault(TOPOLET_INVALID, fmt::format("tag {} is not UTF-8", sanitize_text(key)));
  Fields& tags = adjustment.added.tags;
  std::string full_key = prefix;
  full_key += bytes_of(key);
  const auto is_this = [&full_key](const auto& tag) { return tag.first == full_key; };
  if (std::any_of(tags.begin(), tags.end(), is_this))
    return record_fault(TOPOLET_DUPLICATE, fmt::format("tag {} is set twice", sanitize_text(key)));
  if (tags.size() >= TOPOLET_ADJUST_MAX_TAGS)
    return record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("more than {} tags", TOPOLET_ADJUST_MAX_TAGS));
  tags.emplace_back(std::move(full_key), bytes_of(value));
  return TOPOLET_OK;
}

std::int32_t AdjustReply::add_file(topolet_str key, topolet_str value) {
  if (call_abandoned) return TOPOLET_LATE;
  if ((key.ptr == nullptr && key.len != 0) || (value.ptr == nullptr && value.len != 0))
    return record_fault(TOPOLET_INVALID, "unified is a null pointer");
  const std::string_view file = bytes_of(key);
  if (file != placement::kMemoryHigh) return TOPOLET_UNSUPPORTED;
  const std::string_view said = bytes_of(value);
  if (said != placement::kNoLimit && !placement::parse_bytes(said))
    return record_fault(TOPOLET_INVALID, fmt::format("unified {} is neither bytes nor 'max'", file));
  Fields& files = adjustment.added.unified;
  if (!files.empty()) return record_fault(TOPOLET_DUPLICATE, fmt::format("unified {} is set twice", file));
  files.emplace_back(file, said);
  return TOPOLET_OK;
}

std::int32_t AdjustReply::set_rdt_class(topolet_str name) {
  if (call_abandoned) return TOPOLET_LATE;
  if (name.ptr == nullptr || name.len == 0) return record_fault(TOPOLET_INVALID, "rdt_class has no name");
  if (name.len > TOPOLET_ADJUST_MAX_KEY) {
    return record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("rdt_class has {} bytes; at most {} are allowed", name.len,
                                                          TOPOLET_ADJUST_MAX_KEY));
  }
  if (bytes_of(name) != sanitize_text(name)) return record_fault(TOPOLET_INVALID, "rdt_class is not printable");
  if (!adjustment.added.rdt_class.empty()) return record_fault(TOPOLET_DUPLICATE, "rdt_class is set twice");
  std::string wanted(bytes_of(name));
  if (!request.any_rdt_class && std::count(request.rdt_classes.begin(), request.rdt_classes.end(), wanted) == 0) {
    unusable_rdt_class = std::move(wanted);
    return TOPOLET_UNSUPPORTED;
  }
  adjustment.added.rdt_class = std::move(wanted);
  return TOPOLET_OK;
}

/// Others stand where one is wrong.
std::int32_t TickReply::refuse(topolet_status status, std::string why) {
  if (answer.refused.empty()) answer.refused = std::move(why);
  return status;
}

std::int32_t TickReply::replace(std::uint32_t entry, std::uint32_t flags, topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  if ((flags & ~(TOPOLET_REPLACE_OTHER_NODES | TOPOLET_REPLACE_NOW)) != 0) return TOPOLET_UNSUPPORTED;
  if (entry >= ledger.entries.size()) {
    return refuse(TOPOLET_UNKNOWN,
                  fmt::format("a move of entry {}, but there are only {}", entry, ledger.entries.size()));
  }
  const placement::LedgerEntry& holder = ledger.entries[entry];
  if (holder.placement.mode == placement::Mode::kForeign)
    return refuse(TOPOLET_UNKNOWN, fmt::format("a move of entry {}, which topolet does not place", entry));
  if (reason.ptr == nullptr && reason.len != 0)
    return refuse(TOPOLET_INVALID, fmt::format("the reason to move entry {} is a null pointer", entry));
  const auto is_this = [&holder](const MoveRequest& move) { return move.key == holder.key; };
  if (std::any_of(answer.moves.begin(), answer.moves.end(), is_this))
    return refuse(TOPOLET_DUPLICATE, fmt::format("two moves of entry {}", entry));
  answer.moves.push_back({plugin, holder.key, (flags & TOPOLET_REPLACE_OTHER_NODES) != 0, sanitize_text(reason),
                          (flags & TOPOLET_REPLACE_NOW) != 0});
  return TOPOLET_OK;
}

}  // namespace topolet::plugin

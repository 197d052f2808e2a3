#include "core/plugin/call/plugin_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/forked_child.hpp"
#include "core/base/log.hpp"
#include "core/plugin/guard/barrier.hpp"
#include "core/plugin/guard/plugin_tables.hpp"

namespace topolet::plugin {

static_assert(static_cast<int>(ContainerEvent::Kind::kPlaced) == TOPOLET_EVENT_PLACED);
static_assert(static_cast<int>(ContainerEvent::Kind::kStarted) == TOPOLET_EVENT_STARTED);
static_assert(static_cast<int>(ContainerEvent::Kind::kMoved) == TOPOLET_EVENT_MOVED);
static_assert(static_cast<int>(ContainerEvent::Kind::kResized) == TOPOLET_EVENT_RESIZED);
static_assert(static_cast<int>(ContainerEvent::Kind::kReleased) == TOPOLET_EVENT_RELEASED);
static_assert(static_cast<int>(ContainerEvent::Kind::kExited) == TOPOLET_EVENT_EXITED);
static_assert(static_cast<int>(ContainerEvent::Kind::kPodRemoved) == TOPOLET_EVENT_POD_REMOVED);
static_assert(static_cast<int>(ContainerEvent::Kind::kDenied) == TOPOLET_EVENT_DENIED);
static_assert(static_cast<int>(ContainerEvent::Kind::kUnpinned) == TOPOLET_EVENT_UNPINNED);

namespace {

/// Sandboxes, and containers whose CPUs others choose, are not adjusted so far.
topolet_asks asks_for(const placement::PolicyRequest& request) {
  const placement::Occasion occasion = request.occasion;
  const bool is_created = occasion == placement::Occasion::kCreate || occasion == placement::Occasion::kRestart;
  return is_created ? TOPOLET_ASKS_CREATE : TOPOLET_ASKS_UPDATE;
}

/// Runs one call and judges how it ended. `call` returns the plugin's status.
template <class Call>
CallStatus ask(const std::string& plugin, const char* function, const SinkReply& reply, Call&& call) {
  const auto failed = [&](CallFault fault, const std::string& what) {
    return CallFailure{fault, fmt::format("{}: {} {}", plugin, function, what)};
  };
  std::int32_t status = TOPOLET_FAILED;
  if (const auto thrown = thrown_by([&] { status = call(); })) return failed(CallFault::kThrew, *thrown);
  if (!reply.fault.empty()) {
    return failed(CallFault::kInvalidReply, "gave an invalid answer: " + reply.fault);
  }
  if (status == TOPOLET_OK) return {};
  const std::string why = reply.error.empty() ? "no reason given" : reply.error;
  if (status == TOPOLET_FAILED) return failed(CallFault::kDeclined, "failed: " + why);
  if (status == TOPOLET_THREW) return failed(CallFault::kThrew, "threw: " + why);
  return failed(CallFault::kBadStatus, fmt::format("returned the status {}, which is not allowed: {}", status, why));
}

std::uint32_t flags_of(const ContainerEvent& container_event) {
  const bool is_unknown_exit = container_event.kind == ContainerEvent::Kind::kExited && !container_event.exit_code;
  return (container_event.adopted ? TOPOLET_EVENT_ADOPTED : 0U) |
         (is_unknown_exit ? TOPOLET_EVENT_EXIT_CODE_UNKNOWN : 0U);
}

template <class Function>
std::string fault_of_member(Function* function) {
  return function == nullptr ? "has no function" : "";
}

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// As Kubernetes has it of the part of an annotation's key behind the slash.
bool is_annotation_name(std::string_view name) {
  const auto is_allowed = [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; };
  return !name.empty() && name.size() <= TOPOLET_ANNOTATIONS_MAX_LENGTH && is_letter_or_digit(name.front()) &&
         is_letter_or_digit(name.back()) && std::all_of(name.begin(), name.end(), is_allowed);
}

std::vector<std::string> strings_of(topolet_strs views) {
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < views.count; ++i) strings.emplace_back(views.items[i].ptr, views.items[i].len);
  return strings;
}

std::vector<placement::TakingAnnotation> marks_of(topolet_kvs views) {
  std::vector<placement::TakingAnnotation> marks;
  for (std::size_t i = 0; i < views.count; ++i) {
    const auto& [name, value] = views.items[i];
    marks.push_back({{name.ptr, name.len}, value.len > 0 ? std::string(value.ptr, value.len) : ""});
  }
  return marks;
}

std::string fault_of_member(topolet_strs names) {
  if (names.count > TOPOLET_ANNOTATIONS_MAX_NAMES)
    return fmt::format("gives {} names; at most {} are allowed", names.count, TOPOLET_ANNOTATIONS_MAX_NAMES);
  if (names.count > 0 && names.items == nullptr) return "gives names at no address";
  for (std::size_t i = 0; i < names.count; ++i) {
    const topolet_str name = names.items[i];
    if (std::string fault = fault_of_text(name); !fault.empty()) return fmt::format("gives a name that {}", fault);
    if (name.ptr != nullptr && is_annotation_name({name.ptr, name.len})) continue;
    return fmt::format(
        "gives the name '{}'; it must be the name of an annotation without topolet.io/: 1 to {} letters, digits, '-', "
        "'_' and '.', with a letter or digit at both ends",
        sanitize_text(name), TOPOLET_ANNOTATIONS_MAX_LENGTH);
  }
  return {};
}

/// Reads the names that the plugin says it reads.
std::string fault_of_patterns(topolet_strs patterns) {
  if (patterns.count > TOPOLET_READS_MAX_PATTERNS)
    return fmt::format("gives {} patterns; at most {} are allowed", patterns.count, TOPOLET_READS_MAX_PATTERNS);
  if (patterns.count > 0 && patterns.items == nullptr) return "gives patterns at no address";
  for (std::size_t i = 0; i < patterns.count; ++i) {
    const topolet_str pattern = patterns.items[i];
    if (std::string fault = fault_of_text(pattern); !fault.empty())
      return fmt::format("gives a pattern that {}", fault);
    if (pattern.len == 0 || pattern.len > TOPOLET_READS_MAX_LENGTH)
      return fmt::format("gives a pattern of {} bytes; it must have 1 to {}", pattern.len, TOPOLET_READS_MAX_LENGTH);
  }
  return {};
}

template <class Struct>
std::string fault_of_appended(const Struct& /*given*/) {
  return {};
}

std::string fault_of_appended(const topolet_reads& given) {
  return TOPOLET_HAS(&given, annotations) ? fault_of_patterns(given.annotations) : "";
}

std::string fault_of_appended(const topolet_annotations& given) {
  if (!TOPOLET_HAS(&given, taking)) return {};
  const topolet_kvs taking = given.taking;
  if (taking.count > TOPOLET_ANNOTATIONS_MAX_NAMES)
    return fmt::format("marks {} names as taking; at most {} are allowed", taking.count, TOPOLET_ANNOTATIONS_MAX_NAMES);
  if (taking.count > 0 && taking.items == nullptr) return "marks names at no address as taking";
  const std::vector<std::string> names = strings_of(given.names);
  for (std::size_t i = 0; i < taking.count; ++i) {
    const auto& [name, value] = taking.items[i];
    if (std::string fault = fault_of_text(name); !fault.empty())
      return fmt::format("marks a name as taking that {}", fault);
    if (std::string fault = fault_of_text(value); !fault.empty())
      return fmt::format("marks a value as taking that {}", fault);
    if (std::find(names.begin(), names.end(), std::string_view(name.ptr, name.len)) == names.end())
      return fmt::format("marks the name '{}' as taking, which is none of its names", sanitize_text(name));
  }
  return {};
}

bool is_code(std::string_view text) {
  const auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= TOPOLET_CODES_MAX_LENGTH &&
         std::all_of(text.begin(), text.end(), is_allowed) && text.front() != '-' && text.back() != '-' &&
         text.find("--") == std::string_view::npos;
}

std::string fault_of_member(topolet_kvs codes) {
  if (codes.count > TOPOLET_CODES_MAX)
    return fmt::format("gives {} codes; at most {} are allowed", codes.count, TOPOLET_CODES_MAX);
  if (codes.count > 0 && codes.items == nullptr) return "gives codes at no address";
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < codes.count; ++i) {
    const auto& [code, help] = codes.items[i];
    if (std::string fault = fault_of_text(code); !fault.empty()) return fmt::format("gives a code that {}", fault);
    const std::string_view name(code.len == 0 ? "" : code.ptr, code.len);
    if (!is_code(name)) {
      return fmt::format(
          "gives the code '{}'; it must be words of a-z and 0-9 with a '-' between them, of at most {} "
          "bytes",
          sanitize_text(code), TOPOLET_CODES_MAX_LENGTH);
    }
    if (!seen.insert(name).second) return fmt::format("gives the code '{}' twice", name);
    if (std::string fault = fault_of_text(help); !fault.empty())
      return fmt::format("gives the code '{}' a help that {}", name, fault);
    if (help.len == 0 || help.len > TOPOLET_CODES_MAX_HELP) {
      return fmt::format("gives the code '{}' a help of {} bytes; it must have 1 to {}", name, help.len,
                         TOPOLET_CODES_MAX_HELP);
    }
  }
  return {};
}

/// Returns the fault of the struct that a plugin gave for a capability; empty also if it gave none.
template <class Struct, class Member>
std::string fault_of(const Struct* given, const Capability<Struct, Member>& capability) {
  if (given == nullptr) return {};
  std::string fault = fault_of_size(given->struct_size, least_size_of(capability));
  // In the struct for ticks something else is in that place.
  if constexpr (requires { given->reserved; }) {
    if (fault.empty()) fault = fault_of_reserved(given->reserved);
  }
  if constexpr (std::is_same_v<Struct, topolet_reads>) {
    if (fault.empty()) fault = fault_of_patterns(given->env);
  } else {
    if (fault.empty()) fault = fault_of_member(given->*capability.member);
  }
  return fault.empty() ? fault_of_appended(*given) : fault;
}

}  // namespace

PluginPolicy::PluginPolicy(std::string name, std::unique_ptr<PluginHost> host, const topolet_instance* instance)
    : name_(std::move(name)), host_(std::move(host)), instance_(instance), codes_{name_, {}} {}

PluginPolicy::~PluginPolicy() {
  if (instance_ == nullptr || instance_->destroy == nullptr) return;
  if (const auto thrown = thrown_by([this] { instance_->destroy(instance_); })) host_->log_thrown("destroy", *thrown);
}

Result<std::shared_ptr<PluginPolicy>> PluginPolicy::wrap(std::string name, std::unique_ptr<PluginHost> host,
                                                         const topolet_instance* instance) {
  constexpr std::size_t kLeast = offsetof(topolet_instance, destroy) + sizeof(topolet_instance::destroy);
  std::string fault = fault_of_size(instance->struct_size, kLeast);
  if (fault.empty()) fault = fault_of_reserved(instance->reserved);
  if (!fault.empty()) {
    return Error{Code::kInternal, fmt::format("{}: the instance from create {}", name, fault)};
  }
  if (instance->get_capability == nullptr || instance->destroy == nullptr) {
    return Error{Code::kInternal, name + ": create returned an instance without get_capability or destroy"};
  }
  std::shared_ptr<PluginPolicy> policy(new PluginPolicy(std::move(name), std::move(host), instance));
  if (auto status = policy->read_capabilities(); !status) return status.error();
  return policy;
}

Status PluginPolicy::read_capabilities() {
  const char* inconstant = nullptr;
  const auto ask_for = [this](const char* id) {
    const void* const answer = instance_->get_capability(instance_, view_of(id));
    end_if_forked_child();
    return answer;
  };
  const auto read = [&](const auto& capability) {
    auto& given = struct_of(capabilities_, capability);
    using Given = std::remove_reference_t<decltype(given)>;
    given = static_cast<Given>(ask_for(capability.id));
    if (ask_for(capability.id) != given && inconstant == nullptr) inconstant = capability.id;
  };
  if (const auto thrown = thrown_by([&read] { for_each_capability(read); })) {
    return Error{Code::kInternal, fmt::format("{}: get_capability {}", name_, *thrown)};
  }
  if (inconstant != nullptr) {
    return Error{
        Code::kInternal,
        fmt::format("{}: get_capability gave two answers for {}; it must always give the same", name_, inconstant)};
  }
  Status first_fault;
  for_each_capability([&](const auto& capability) {
    const std::string fault = fault_of(struct_of(capabilities_, capability), capability);
    if (fault.empty() || !first_fault) return;
    first_fault = Error{Code::kInternal, fmt::format("{}: its capability {} {}", name_, capability.id, fault)};
  });
  if (!first_fault) return first_fault;
  if (const topolet_annotations* const given = struct_of(capabilities_, kAnnotations); given != nullptr) {
    annotations_ = strings_of(given->names);
    if (TOPOLET_HAS(given, taking)) taking_annotations_ = marks_of(given->taking);
  }
  if (const topolet_reads* const given = struct_of(capabilities_, kReads); given != nullptr) {
    names_read_.env = strings_of(given->env);
    names_read_.load = (given->flags & TOPOLET_READS_LOAD) != 0;
    if (TOPOLET_HAS(given, annotations)) names_read_.annotations = strings_of(given->annotations);
  }
  if (const topolet_codes* const given = struct_of(capabilities_, kCodes); given != nullptr) {
    for (std::size_t i = 0; i < given->codes.count; ++i)
      codes_.codes.emplace_back(given->codes.items[i].key.ptr, given->codes.items[i].key.len);
  }
  const std::chrono::milliseconds::rep interval = tick_interval().count();
  const bool ticks = struct_of(capabilities_, kTick) != nullptr;
  if (ticks && (interval < TOPOLET_TICK_MIN_MS || interval > TOPOLET_TICK_MAX_MS)) {
    return Error{Code::kInternal, fmt::format("{}: its tick interval of {} ms is not between {} and {} ms", name_,
                                              interval, TOPOLET_TICK_MIN_MS, TOPOLET_TICK_MAX_MS)};
  }
  return {};
}

std::vector<std::string> PluginPolicy::capabilities() const {
  std::vector<std::string> ids;
  for_each_capability([&](const auto& capability) {
    if (struct_of(capabilities_, capability) != nullptr) ids.emplace_back(capability.id);
  });
  return ids;
}

std::chrono::milliseconds PluginPolicy::tick_interval() const {
  const topolet_tick* const tick = struct_of(capabilities_, kTick);
  return std::chrono::milliseconds(tick == nullptr ? 0 : tick->interval_ms);
}

const std::atomic<bool>& PluginPolicy::begin_call() {
  arguments_->clear();
  return host_->call_abandoned();
}

template <class Struct, class Function, class Request, class Reply>
CallStatus PluginPolicy::call(const Capability<Struct, Function>& capability, const Request* request, Reply& reply,
                              const Shown& shown) {
  const Function function = struct_of(capabilities_, capability)->*capability.member;
  const auto* sink = host_->sinks().of(reply);
  arguments_->seal();
  if (!arguments_->is_intact()) {
    return CallFailure{CallFault::kWroteToLent,
                       fmt::format("{}: was not asked to {}: it has unmapped or protected the memory for its arguments",
                                   name_, capability.name)};
  }
  const CallStatus asked = [&] {
    const ReplyScope<Reply> scope(reply);
    return ask(name_, capability.name, reply, [&] { return function(instance_, request, sink); });
  }();
  if (std::optional<CallFailure> written = check_lent_memory(shown, capability.name)) return *std::move(written);
  return asked;
}

std::optional<CallFailure> PluginPolicy::check_lent_memory(const Shown& shown, const char* function) {
  std::string written;
  const auto note = [&written](LentState state, const char* name) {
    if (state == LentState::kIntact) return false;
    written += (written.empty() ? "" : ", ") + std::string(name);
    if (state == LentState::kGone) written += ", unmapped or protected";
    return true;
  };
  const bool is_its_own = note(arguments_->check(), "the arguments of the call");
  if (shown.request != nullptr) note(shown.request->check(), "the workload and the candidates");
  if (shown.ledger != nullptr) note(shown.ledger->check(), "the ledger");
  if (shown.topology != nullptr && watches_topology_) note(shown.topology->check(), "the topology");
  if (written.empty()) return std::nullopt;
  return CallFailure{is_its_own ? CallFault::kWroteToLent : CallFault::kWroteToShown,
                     fmt::format("{}: {} wrote to memory that it was lent to read ({})", name_, function, written)};
}

CallResult<std::vector<placement::Verdict>> PluginPolicy::score(const AbiRequest& request) {
  const std::size_t count = request.request().candidates.size();
  ScoreReply reply{{begin_call()}, std::vector<placement::Verdict>(count), std::vector<bool>(count), codes_};
  if (!has(kScore)) return std::move(reply.verdicts);
  if (const CallStatus asked = call(kScore, &request.view(), reply, shown_of(request)); !asked) return asked.failure();
  return reply.take();
}

CallResult<std::vector<NodeSet>> PluginPolicy::propose(const AbiRequest& request) {
  if (!has(kPropose)) return std::vector<NodeSet>();
  ProposeReply reply{{begin_call()}};
  if (const CallStatus asked = call(kPropose, &request.view(), reply, shown_of(request)); !asked)
    return asked.failure();
  return std::move(reply.proposals);
}

CallResult<placement::Pick> PluginPolicy::pick(const AbiRequest& request, std::size_t candidate, const CpuSet& usable,
                                               std::size_t count, topolet_pick_stage stage, const CpuSet& chosen) {
  if (!has(kPick) || !known_.has(AbiValues::kPickStage, stage)) return placement::Pick();
  PickReply reply{{begin_call()}, codes_, request.request().ledger};
  const auto* pick_request = arguments_->copy_struct(topolet_pick_request{
      sizeof(topolet_pick_request), static_cast<std::uint32_t>(candidate), &request.view(), arguments_->copy(usable),
      arguments_->copy(chosen), static_cast<std::uint32_t>(count), static_cast<std::int32_t>(stage)});
  if (const CallStatus asked = call(kPick, pick_request, reply, shown_of(request)); !asked) return asked.failure();
  return reply.take();
}

CallResult<placement::Adjustment> PluginPolicy::adjust(const AbiRequest& request,
                                                       const placement::ChosenPlacement& chosen) {
  if (!has(kAdjust)) return placement::Adjustment();
  AdjustReply reply{{begin_call()}, name_, request.request()};
  ValueTranslator values(known_);
  const placement::Placement& placement = chosen.placement;
  const auto* adjust_request = arguments_->copy_struct(topolet_adjust_request{
      sizeof(topolet_adjust_request), static_cast<std::uint32_t>(chosen.candidate), &request.view(),
      values.shown(AbiValues::kMode, placement.mode), values.shown(AbiValues::kAsks, asks_for(request.request())),
      arguments_->copy(placement.cpus), arguments_->copy(placement.withheld), arguments_->copy(chosen.memory)});
  if (const CallStatus asked = call(kAdjust, adjust_request, reply, shown_of(request)); !asked) return asked.failure();
  warn_of_search_paths(reply.adjustment.added);
  warn_of_unusable_class(reply.unusable_rdt_class);
  warn_of_unusable_settings(reply.unusable_settings, request.request().settable);
  return std::move(reply.adjustment);
}

void PluginPolicy::warn_of_search_paths(const placement::AddedFields& added) {
  for (const auto& [variable, value] : added.env) {
    if (variable != "PATH" && !variable.starts_with("LD_")) continue;
    if (!warned_of_.insert(variable).second) continue;
    host_->log().warn(
        "plugin {} sets the environment variable {} of containers: it decides which programs or "
        "libraries they run",
        name_, variable);
  }
}

void PluginPolicy::warn_of_unusable_class(const std::string& rdt_class) {
  if (rdt_class.empty() || !warned_of_.insert("RDT class " + rdt_class).second) return;
  host_->log().warn(
      "plugin {} wants containers in the RDT class '{}', which is not used: the kernel has no such group in "
      "/sys/fs/resctrl, or the runtime has refused it; enable RDT in the runtime's configuration, with that class",
      name_, rdt_class);
}

void PluginPolicy::warn_of_unusable_settings(const std::vector<std::string>& settings,
                                             const placement::Settable& settable) {
  for (const std::string& setting : settings) {
    if (!warned_of_.insert(setting).second) continue;
    host_->log().warn(
        "plugin {} wants to set {} of containers, which cannot be done through {}: it takes daemon.front = nri, NRI "
        "0.10 "
        "for an I/O priority, 0.11 for a scheduler class, 0.12 for a memory policy, and a kernel that has the policy",
        name_, setting, settable.through.empty() ? "this front end" : settable.through);
  }
}

CallStatus PluginPolicy::notify(const ContainerEvent& container_event, const AbiTopology& topology) {
  if (!hears_of(container_event.kind)) return {};
  SinkReply reply{begin_call()};
  ValueTranslator values(known_);
  topolet_event event{};
  event.struct_size = sizeof(event);
  event.kind = static_cast<std::int32_t>(container_event.kind);
  event.workload = lend_workload(*arguments_, values, container_event.workload, container_event.container_id, false);
  event.mode = values.shown(AbiValues::kMode, container_event.placement.mode);
  event.flags = values.shown_flags(AbiValues::kEventFlags, flags_of(container_event));
  event.cpus = arguments_->copy(container_event.placement.cpus);
  event.withheld = arguments_->copy(container_event.placement.withheld);
  event.mems = arguments_->copy(container_event.placement.mems);
  event.topology = &topology.view();
  event.sequence = container_event.sequence;
  event.container_id = arguments_->copy(container_event.container_id);
  event.reason = arguments_->copy(container_event.reason);
  event.exit_code = container_event.exit_code.value_or(0);
  const auto* lent = arguments_->copy_struct(event);
  const PluginHost::StateWriteScope writing(*host_);
  return call(kEvents, lent, reply, {.topology = &topology});
}

CallResult<TickAnswer> PluginPolicy::tick(const TickSnapshot& tick, const AbiTopology& topology,
                                          const AbiLedger& ledger, const TickTime& now) {
  if (!has(kTick)) return TickAnswer();
  TickReply reply{{begin_call()}, name_, tick.ledger};
  const topolet_load* load =
      tick.topology == nullptr ? nullptr : lend_load(*arguments_, tick.load.get(), *tick.topology, tick.ledger.entries);
  const auto* request = arguments_->copy_struct(
      topolet_tick_request{sizeof(topolet_tick_request), 0, static_cast<std::uint64_t>(now.steady.count()),
                           &topology.view(), &ledger.view(), load, now.wall.count()});
  const PluginHost::StateWriteScope writing(*host_);
  if (const CallStatus asked = call(kTick, request, reply, {.ledger = &ledger, .topology = &topology}); !asked)
    return asked.failure();
  return std::move(reply.answer);
}

}  // namespace topolet::plugin

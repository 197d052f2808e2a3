#include "core/plugin/plugin_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/plugin/barrier.hpp"

namespace topolet {
namespace {

constexpr std::size_t kMaxSetWords = (kMaxOsIndex + 1) / 64;

spdlog::level::level_enum spdlog_level(std::int32_t level) {
  switch (level) {
    case TOPOLET_LOG_DEBUG:
      return spdlog::level::debug;
    case TOPOLET_LOG_WARN:
      return spdlog::level::warn;
    case TOPOLET_LOG_ERROR:
      return spdlog::level::err;
    default:
      return spdlog::level::info;
  }
}

/// What all sinks of one call have in common: the first wrong answer, and whether anybody still waits for it.
struct Answer {
  const std::atomic<bool>& given_up;
  std::string fault;
  std::string error;

  std::int32_t wrong(topolet_status status, std::string why) {
    if (fault.empty()) fault = std::move(why);
    return status;
  }

  std::int32_t set_error(topolet_str message) {
    if (given_up) return TOPOLET_LATE;
    error = clean_text(message);
    return TOPOLET_OK;
  }
};

struct ScoreAnswer : Answer {
  std::vector<Verdict> verdicts;
  std::vector<bool> seen;

  std::int32_t set(std::uint32_t candidate, std::int32_t kind, std::int32_t score, topolet_str reason) {
    if (given_up) return TOPOLET_LATE;
    if (candidate >= verdicts.size()) {
      return wrong(TOPOLET_UNKNOWN, fmt::format("a verdict on candidate {}, but there are {}", candidate, seen.size()));
    }
    if (seen[candidate]) return wrong(TOPOLET_DUPLICATE, fmt::format("two verdicts on candidate {}", candidate));
    if (kind < TOPOLET_VERDICT_ABSTAIN || kind > TOPOLET_VERDICT_SCORE) {
      return wrong(TOPOLET_INVALID, fmt::format("a verdict of the unknown kind {} on candidate {}", kind, candidate));
    }
    if (kind == TOPOLET_VERDICT_SCORE && (score < TOPOLET_SCORE_MIN || score > TOPOLET_SCORE_MAX)) {
      return wrong(TOPOLET_OUT_OF_RANGE,
                   fmt::format("the score {} on candidate {}; scores reach from -100 to 100", score, candidate));
    }
    if (reason.ptr == nullptr && reason.len != 0) return wrong(TOPOLET_INVALID, "a reason without text");
    seen[candidate] = true;
    verdicts[candidate] = {static_cast<Verdict::Kind>(kind), kind == TOPOLET_VERDICT_SCORE ? score : 0,
                           clean_text(reason)};
    return TOPOLET_OK;
  }
};
static_assert(static_cast<int>(Verdict::Kind::kAbstain) == TOPOLET_VERDICT_ABSTAIN);
static_assert(static_cast<int>(Verdict::Kind::kReject) == TOPOLET_VERDICT_REJECT);
static_assert(static_cast<int>(Verdict::Kind::kScore) == TOPOLET_VERDICT_SCORE);

struct PickAnswer : Answer {
  Pick pick;
  bool withheld = false;
  bool ordered = false;

  /// Whether the CPUs are of the candidate is for the core to judge; here it is only made sure that they can be read.
  std::int32_t check(topolet_set cpus, const char* what, bool said_before) {
    if (given_up) return TOPOLET_LATE;
    if (said_before) return wrong(TOPOLET_DUPLICATE, fmt::format("{} said twice", what));
    if (cpus.words == nullptr && cpus.count != 0) return wrong(TOPOLET_INVALID, fmt::format("{} without words", what));
    if (cpus.count > kMaxSetWords) {
      return wrong(TOPOLET_OUT_OF_RANGE,
                   fmt::format("{} of {} words; the highest index is {}", what, cpus.count, kMaxOsIndex));
    }
    return TOPOLET_OK;
  }

  std::int32_t set_narrow(topolet_set cpus) {
    const std::int32_t status = check(cpus, "narrow", pick.narrow.has_value());
    if (status == TOPOLET_OK) pick.narrow = CpuSet::from_words({cpus.words, cpus.words + cpus.count});
    return status;
  }

  std::int32_t set_withhold(topolet_set cpus) {
    const std::int32_t status = check(cpus, "withhold", std::exchange(withheld, true));
    if (status == TOPOLET_OK) pick.withhold = CpuSet::from_words({cpus.words, cpus.words + cpus.count});
    return status;
  }

  std::int32_t set_order(const std::uint32_t* os_indices, std::size_t count) {
    if (given_up) return TOPOLET_LATE;
    if (std::exchange(ordered, true)) return wrong(TOPOLET_DUPLICATE, "order said twice");
    if (os_indices == nullptr && count != 0) return wrong(TOPOLET_INVALID, "order without CPUs");
    if (count > kMaxOsIndex + 1) return wrong(TOPOLET_OUT_OF_RANGE, fmt::format("order of {} CPUs", count));
    std::vector<bool> seen(kMaxOsIndex + 1);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t cpu = os_indices[i];
      if (cpu > kMaxOsIndex) return wrong(TOPOLET_OUT_OF_RANGE, fmt::format("order names CPU {}", cpu));
      if (seen[cpu]) return wrong(TOPOLET_DUPLICATE, fmt::format("order names CPU {} twice", cpu));
      seen[cpu] = true;
    }
    pick.order.assign(os_indices, os_indices + count);
    return TOPOLET_OK;
  }

  std::int32_t set_reason(topolet_str reason) {
    if (given_up) return TOPOLET_LATE;
    pick.reason = clean_text(reason);
    return TOPOLET_OK;
  }
};

template <class AnswerType, class Sink>
AnswerType& answer_of(const Sink* sink) {
  return *static_cast<AnswerType*>(sink->context);
}

topolet_score_sink sink_into(ScoreAnswer& answer) {
  topolet_score_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &answer;
  sink.set = [](const topolet_score_sink* to, std::uint32_t candidate, std::int32_t kind, std::int32_t score,
                topolet_str reason) { return answer_of<ScoreAnswer>(to).set(candidate, kind, score, reason); };
  sink.error = [](const topolet_score_sink* to, topolet_str message) {
    return answer_of<ScoreAnswer>(to).set_error(message);
  };
  return sink;
}

topolet_pick_sink sink_into(PickAnswer& answer) {
  topolet_pick_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &answer;
  sink.narrow = [](const topolet_pick_sink* to, topolet_set cpus) {
    return answer_of<PickAnswer>(to).set_narrow(cpus);
  };
  sink.withhold = [](const topolet_pick_sink* to, topolet_set cpus) {
    return answer_of<PickAnswer>(to).set_withhold(cpus);
  };
  sink.order = [](const topolet_pick_sink* to, const std::uint32_t* os_indices, std::size_t count) {
    return answer_of<PickAnswer>(to).set_order(os_indices, count);
  };
  sink.reason = [](const topolet_pick_sink* to, topolet_str reason) {
    return answer_of<PickAnswer>(to).set_reason(reason);
  };
  sink.error = [](const topolet_pick_sink* to, topolet_str message) {
    return answer_of<PickAnswer>(to).set_error(message);
  };
  return sink;
}

/// Runs one call and judges how it ended. `call` returns the plugin's status.
template <class Call>
Status ask(const std::string& plugin, const char* function, const Answer& answer, Call&& call) {
  std::int32_t status = TOPOLET_FAILED;
  if (const auto thrown = thrown_by([&] { status = call(); })) {
    return Error{Code::kInternal, fmt::format("{}: {} {}", plugin, function, *thrown)};
  }
  if (!answer.fault.empty()) {
    return Error{Code::kInternal,
                 fmt::format("{}: {} gave an answer that makes no sense: {}", plugin, function, answer.fault)};
  }
  if (status == TOPOLET_OK) return {};
  const std::string why = answer.error.empty() ? "no reason given" : answer.error;
  if (status == TOPOLET_FAILED)
    return Error{Code::kUnavailable, fmt::format("{}: {} failed: {}", plugin, function, why)};
  if (status == TOPOLET_THREW) return Error{Code::kInternal, fmt::format("{}: {} threw: {}", plugin, function, why)};
  return Error{Code::kInternal,
               fmt::format("{}: {} returned {}, which it must not: {}", plugin, function, status, why)};
}

template <class Capability, class Function>
bool callable(const Capability* capability, Function Capability::*function) {
  return capability->struct_size >= sizeof(Capability) && capability->*function != nullptr;
}

}  // namespace

std::string clean_text(topolet_str text) {
  if (text.ptr == nullptr) return {};
  std::string clean(text.ptr, std::min(text.len, kMaxPluginTextBytes));
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; }, ' ');
  return clean;
}

PluginHost::PluginHost(std::string plugin, std::shared_ptr<Log> log)
    : plugin_(std::move(plugin)), log_(std::move(log)) {
  log_capability_.struct_size = sizeof(log_capability_);
  log_capability_.write = &write_log;
  view_.struct_size = sizeof(view_);
  view_.context = this;
  view_.get_capability = &get_capability;
}

const void* PluginHost::get_capability(const topolet_host* host, topolet_str id) {
  return topolet_str_is(id, TOPOLET_LOG_ID) ? &static_cast<PluginHost*>(host->context)->log_capability_ : nullptr;
}

void PluginHost::write_log(const topolet_host* host, std::int32_t level, topolet_str message) {
  const auto& self = *static_cast<PluginHost*>(host->context);
  self.log_->log(spdlog_level(level), "{}: {}", self.plugin_, clean_text(message));
}

PluginPolicy::PluginPolicy(std::string name, std::unique_ptr<PluginHost> host, const topolet_instance* instance)
    : name_(std::move(name)), host_(std::move(host)), instance_(instance) {}

PluginPolicy::~PluginPolicy() {
  if (instance_ == nullptr || instance_->destroy == nullptr) return;
  // A destroy() that throws has nobody to tell; the instance is gone either way.
  (void)thrown_by([this] { instance_->destroy(instance_); });
}

Result<std::shared_ptr<PluginPolicy>> PluginPolicy::adopt(std::string name, std::unique_ptr<PluginHost> host,
                                                          const topolet_instance* instance) {
  if (instance->struct_size < sizeof(topolet_instance) || instance->get_capability == nullptr ||
      instance->destroy == nullptr) {
    return Error{Code::kInternal, name + ": create gave an instance without get_capability or destroy"};
  }
  std::shared_ptr<PluginPolicy> policy(new PluginPolicy(std::move(name), std::move(host), instance));
  if (auto status = policy->read_capabilities(); !status) return status.error();
  return policy;
}

Status PluginPolicy::read_capabilities() {
  const auto get = [this](std::string_view id) { return instance_->get_capability(instance_, view_of(id)); };
  const auto thrown = thrown_by([&] {
    score_ = static_cast<const topolet_score*>(get(TOPOLET_SCORE_ID));
    pick_ = static_cast<const topolet_pick*>(get(TOPOLET_PICK_ID));
  });
  if (thrown) return Error{Code::kInternal, fmt::format("{}: get_capability {}", name_, *thrown)};
  if (score_ != nullptr && !callable(score_, &topolet_score::score)) {
    return Error{Code::kInternal, fmt::format("{}: its capability {} has no function", name_, TOPOLET_SCORE_ID)};
  }
  if (pick_ != nullptr && !callable(pick_, &topolet_pick::pick)) {
    return Error{Code::kInternal, fmt::format("{}: its capability {} has no function", name_, TOPOLET_PICK_ID)};
  }
  return {};
}

std::vector<std::string> PluginPolicy::capabilities() const {
  std::vector<std::string> ids;
  if (score_ != nullptr) ids.emplace_back(TOPOLET_SCORE_ID);
  if (pick_ != nullptr) ids.emplace_back(TOPOLET_PICK_ID);
  return ids;
}

Result<std::vector<Verdict>> PluginPolicy::score(const PolicyRequest& request) {
  return score(RequestView(request, std::make_shared<const TopologyView>(request.topology)));
}

Result<Pick> PluginPolicy::pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable) {
  return pick(RequestView(request, std::make_shared<const TopologyView>(request.topology)), candidate, usable);
}

Result<std::vector<Verdict>> PluginPolicy::score(const RequestView& request) {
  const std::size_t count = request.view().candidate_count;
  ScoreAnswer answer{{given_up_, {}, {}}, std::vector<Verdict>(count), std::vector<bool>(count)};
  if (score_ == nullptr) return std::move(answer.verdicts);
  given_up_ = false;
  const topolet_score_sink sink = sink_into(answer);
  const Status asked = ask(name_, "score", answer, [&] { return score_->score(instance_, &request.view(), &sink); });
  if (!asked) return asked.error();
  return std::move(answer.verdicts);
}

Result<Pick> PluginPolicy::pick(const RequestView& request, std::size_t candidate, const CpuSet& usable) {
  PickAnswer answer{{given_up_, {}, {}}, {}};
  if (pick_ == nullptr) return std::move(answer.pick);
  given_up_ = false;
  const topolet_pick_sink sink = sink_into(answer);
  const topolet_pick_request pick_request{sizeof(topolet_pick_request), static_cast<std::uint32_t>(candidate),
                                          &request.view(), view_of(usable)};
  const Status asked = ask(name_, "pick", answer, [&] { return pick_->pick(instance_, &pick_request, &sink); });
  if (!asked) return asked.error();
  return std::move(answer.pick);
}

}  // namespace topolet

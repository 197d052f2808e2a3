#include "plugins/smt/use_history.hpp"

#include <algorithm>
#include <charconv>

#include "plugins/smt/kinds.hpp"

namespace topolet::smt {
namespace {

constexpr std::string_view kDayPrefix = "day/";
constexpr std::int64_t kHourMs = 3600000;
constexpr std::int32_t kMostPermille = 9999;

std::string key_of(std::string_view kind) { return std::string(kDayPrefix) + std::string(kind); }

/// Takes a number and the space behind it from the text; nothing if it does not begin with one.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return number;
}

std::int64_t cpus_of(const topolet_ledger_entry& entry) {
  if (entry.mode == TOPOLET_MODE_EXCLUSIVE) return static_cast<std::int64_t>(sdk::size_of(entry.cpus));
  const std::int64_t request = entry.demand == nullptr ? 0 : entry.demand->cpu_request_milli;
  return std::max<std::int64_t>(1, (request + 999) / 1000);
}

/// Measurements of one kind at the same time.
struct Together {
  std::int64_t permille = 0;
  std::int64_t containers = 0;
};

std::map<std::string, Together> measured_now(const topolet_tick_request& request) {
  std::map<std::string, Together> all;
  const auto entries = sdk::entries(*request.ledger);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].mode == TOPOLET_MODE_FOREIGN || (entries[i].flags & TOPOLET_ENTRY_STARTED) == 0) continue;
    const std::optional<UseOfCpus> use = recent_use(request.load, *request.ledger, i);
    if (!use) continue;
    Together& of_kind = all[kind_of(entries[i])];
    of_kind.permille += use->permille();
    ++of_kind.containers;
  }
  return all;
}

}  // namespace

std::int32_t UseOfCpus::permille() const {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(used_milli / std::max<std::int64_t>(1, cpus), 0, kMostPermille));
}

std::optional<UseOfCpus> recent_use(const topolet_load* load, const topolet_ledger& ledger, std::size_t position) {
  if (load == nullptr || load->entries == nullptr || position >= ledger.entry_count) return std::nullopt;
  const auto& known = *TOPOLET_AT(topolet_entry_load, load->entries, load->entry_stride, position);
  if (known.cpu_milli < 0 || known.age_ms < 0 || known.age_ms > kOldestLoadMs) return std::nullopt;
  return UseOfCpus{cpus_of(sdk::entries(ledger)[position]), known.cpu_milli};
}

std::optional<DayOfUse> parse_day(std::string_view text) {
  DayOfUse day;
  const auto hour = take_number(text);
  if (!hour) return std::nullopt;
  day.last_hour = *hour;
  for (std::int32_t& permille : day.permille) {
    const auto number = take_number(text);
    if (!number || *number < -1 || *number > kMostPermille) return std::nullopt;
    permille = static_cast<std::int32_t>(*number);
  }
  return text.empty() ? std::optional(day) : std::nullopt;
}

std::string to_text(const DayOfUse& day) {
  std::string text = std::to_string(day.last_hour);
  for (const std::int32_t permille : day.permille) text += ' ' + std::to_string(permille);
  return text;
}

void UseHistory::begin() {
  for (const std::string& key : host_.keys()) {
    if (key.rfind(kDayPrefix, 0) != 0) continue;
    const auto day = parse_day(host_.get(key).value_or(""));
    measured_last_[key.substr(kDayPrefix.size())] = day ? day->last_hour : 0;
  }
}

std::optional<DayOfUse> UseHistory::day_of(const std::string& kind) const {
  const auto saved = host_.get(key_of(kind));
  return saved ? parse_day(*saved) : std::nullopt;
}

void UseHistory::tick(const topolet_tick_request& request) {
  if (!TOPOLET_HAS(&request, unix_ms) || request.unix_ms <= 0) return;
  const std::int64_t hour = request.unix_ms / kHourMs;
  forget_old(hour);
  if (not_saved_.size() > kMostKinds) not_saved_.clear();
  for (const auto& [kind, now] : measured_now(request)) learn(kind, now.permille / now.containers, hour);
}

/// What was measured for less than ten minutes of an hour says too little about it.
void UseHistory::learn(const std::string& kind, std::int64_t permille, std::int64_t hour) {
  NotSaved& of_kind = not_saved_[kind];
  if (of_kind.hour != hour) of_kind = {hour, 0, 0};
  of_kind.permille += permille;
  if (++of_kind.measurements < kMeasurementsSaved) return;
  save(kind, of_kind.permille / of_kind.measurements, hour);
  not_saved_.erase(kind);
}

/// Of an hour's value three quarters are from the last day on which all of it was measured, as five or six times a
/// quarter is.
void UseHistory::save(const std::string& kind, std::int64_t permille, std::int64_t hour) {
  const std::string key = key_of(kind);
  if (key.size() > TOPOLET_STATE_MAX_KEY) return;
  std::optional<DayOfUse> day = day_of(kind);
  if (!day) day.emplace().permille.fill(-1);
  std::int32_t& slot = day->permille[static_cast<std::size_t>(hour % 24)];
  slot = static_cast<std::int32_t>(slot < 0 ? permille : (3 * slot + permille + 2) / 4);
  day->last_hour = hour;
  if (measured_last_.count(kind) == 0 && measured_last_.size() >= kMostKinds) {
    forget(std::min_element(measured_last_.begin(), measured_last_.end(), [](const auto& a, const auto& b) {
             return a.second < b.second;
           })->first);
  }
  if (host_.set(key, to_text(*day)) == TOPOLET_OK) measured_last_[kind] = hour;
}

void UseHistory::forget_old(std::int64_t hour) {
  if (looked_at_ == hour) return;
  looked_at_ = hour;
  std::vector<std::string> old;
  for (const auto& [kind, last] : measured_last_) {
    if (last + kRememberedHours < hour) old.push_back(kind);
  }
  for (const std::string& kind : old) forget(kind);
}

void UseHistory::forget(const std::string& kind) {
  const std::string gone = kind;
  host_.remove(key_of(gone));
  measured_last_.erase(gone);
}

}  // namespace topolet::smt

#include "core/replay/ledger_lines.hpp"

#include <set>
#include <tuple>
#include <utility>

#include "core/replay/recorded_fields.hpp"

namespace topolet::replay {
namespace {

using placement::LedgerEntries;
using placement::LedgerSnapshot;

/// Calls `visit(name, member)` for each set of CPUs of a snapshot.
template <class Visit>
void for_each_set(Visit visit) {
  visit("allowed", &LedgerSnapshot::allowed);
  visit("reserved", &LedgerSnapshot::reserved);
  visit("pool", &LedgerSnapshot::pool);
  visit("exclusive", &LedgerSnapshot::exclusive);
  visit("withheld", &LedgerSnapshot::withheld);
  visit("isolated", &LedgerSnapshot::isolated);
  visit("barred", &LedgerSnapshot::barred);
}

/// Both are in the order of their keys, and share what has not changed.
void add_entries(const LedgerEntries& before, const LedgerEntries& now, const RecordedNames& names, Json& changes) {
  Json put = Json::array();
  Json gone = Json::array();
  auto old = before.shared().begin();
  for (const LedgerEntries::Shared& entry : now.shared()) {
    while (old != before.shared().end() && (*old)->key < entry->key) gone.push_back(to_json((*old++)->key));
    const bool was_there = old != before.shared().end() && (*old)->key == entry->key;
    if (!was_there || *old != entry) put.push_back(to_json(without_secrets(*entry, names)));
    if (was_there) ++old;
  }
  while (old != before.shared().end()) gone.push_back(to_json((*old++)->key));
  if (!put.empty()) changes["put"] = std::move(put);
  if (!gone.empty()) changes["gone"] = std::move(gone);
}

Json unmovable_of(const LedgerSnapshot& snapshot) {
  Json list = Json::array();
  for (const placement::Unmovable& unmovable : snapshot.unmovable)
    list.push_back({{"name", unmovable.name}, {"cpus", unmovable.cpus.to_string()}, {"why", unmovable.why}});
  return list;
}

/// The reasons that the core has, of which there are a few: they stay for as long as the process lives.
const char* kept_text(const std::string& text) {
  static std::set<std::string>& texts = *new std::set<std::string>();
  return texts.insert(text).first->c_str();
}

Json changes_between(const LedgerSnapshot& before, const LedgerSnapshot& now, const RecordedNames& names) {
  Json changes = Json::object();
  if (now.generation != before.generation) changes["generation"] = now.generation;
  for_each_set([&](const char* name, CpuSet LedgerSnapshot::*set) {
    if (now.*set != before.*set) changes[name] = to_json(now.*set);
  });
  Json unmovable = unmovable_of(now);
  if (unmovable != unmovable_of(before)) changes["unmovable"] = std::move(unmovable);
  add_entries(before.entries, now.entries, names, changes);
  return changes;
}

}  // namespace

Json LedgerWriter::changes(const LedgerSnapshot& now, const RecordedNames& names) {
  Json changes = changes_between(last_, now, names);
  last_ = now;
  return changes;
}

Json LedgerWriter::whole(const RecordedNames& names) const { return changes_between({}, last_, names); }

const LedgerSnapshot& LedgerReader::apply(const Json& changes) {
  if (!changes.is_object()) throw InvalidLine("the ledger is missing");
  if (const auto found = changes.find("generation"); found != changes.end()) read_json(*found, now_.generation);
  for_each_set([&](const char* name, CpuSet LedgerSnapshot::*set) {
    if (const auto found = changes.find(name); found != changes.end()) read_json(*found, now_.*set);
  });
  if (const auto found = changes.find("unmovable"); found != changes.end()) {
    now_.unmovable.clear();
    for (const Json& one : *found) {
      now_.unmovable.push_back({one.at("name").get<std::string>(), from_json<CpuSet>(one.at("cpus")),
                                kept_text(one.at("why").get<std::string>())});
    }
  }
  std::map<placement::ContainerKey, LedgerEntries::Shared> entries;
  const bool has_changed = changes.contains("put") || changes.contains("gone");
  if (!has_changed) return now_;
  for (const LedgerEntries::Shared& entry : now_.entries.shared()) entries[entry->key] = entry;
  for (const Json& key : changes.value("gone", Json::array())) entries.erase(from_json<placement::ContainerKey>(key));
  for (const Json& put : changes.value("put", Json::array())) {
    auto entry = std::make_shared<const placement::LedgerEntry>(from_json<placement::LedgerEntry>(put));
    entries[entry->key] = std::move(entry);
  }
  now_.entries = {};
  for (auto& [key, entry] : entries) now_.entries.push_back(std::move(entry));
  return now_;
}

}  // namespace topolet::replay

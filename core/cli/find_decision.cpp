#include "core/cli/find_decision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "core/base/suggestion.hpp"
#include "core/placement/workload.hpp"

namespace topolet::cli {
namespace {

/// The number of rows that a query reads at most: the newest.
constexpr int kMostRows = 10'000;
constexpr std::size_t kMostListed = 20;
constexpr std::size_t kShortestId = 3;
/// Tables with an index that begins with the name of a pod: its uid, or its name.
constexpr std::string_view kDecidedTable = "decided";
constexpr std::string_view kHistoryTable = "pod_history";

struct Match {
  std::int64_t decision = 0;
  std::string uid;
  std::string pod_namespace;
  std::string pod;
  std::string container;
  bool decides = false;  ///< false for what was only recorded of the container: a drift, an overlap

  auto name() const { return std::tie(pod_namespace, pod, container); }
};
using Matches = std::vector<Match>;

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char letter : name) {
    if (letter == '/') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

bool fits(const Match& match, const std::vector<std::string>& parts) {
  switch (parts.size()) {
    case 1:
      return parts[0].empty() || parts[0] == match.container || parts[0] == match.pod;
    case 2:
      return (parts[0] == match.pod && parts[1] == match.container) ||
             (parts[0] == match.pod_namespace && parts[1] == match.pod);
    default:
      return parts.size() == 3 && std::tie(parts[0], parts[1], parts[2]) == match.name();
  }
}

/// Writes what follows FROM in a query for the newest decisions on containers whose names meet the condition.
std::string named(const std::string& condition) {
  return fmt::format(
      "decided WHERE decision IN (SELECT decision FROM pod_history WHERE {} ORDER BY decision DESC LIMIT {}) "
      "ORDER BY decision DESC",
      condition, kMostRows);
}

class Finder {
 public:
  explicit Finder(const StateDatabase& database) : database_(database) {}

  /// `from`: what follows SELECT … FROM, and gives the columns of `decided` and, if it is another table, a decision.
  template <class... Values>
  Status add(Matches& matches, const std::string& from, const Values&... values) const {
    const auto found = database_.table(
        fmt::format("SELECT decision, pod_uid, pod_namespace, pod_name, container, holds OR event = 'denied' "
                    "FROM {} LIMIT {}",
                    from, kMostRows),
        values...);
    if (!found) return found.error();
    for (const Row& row : found->rows) {
      matches.push_back({row[0].get<std::int64_t>(), row[1].get<std::string>(), row[2].get<std::string>(),
                         row[3].get<std::string>(), row[4].get<std::string>(), row[5].get<int>() != 0});
    }
    return {};
  }

  /// The decisions of a pod, which is named by the conditions `pod` on `table`. It has few containers and any number of
  /// decisions: the index leads from each container to the next and to its newest decisions.
  template <class... Values>
  Status add_containers(Matches& matches, std::string_view table, const std::string& pod,
                        const Values&... values) const {
    const std::string next = fmt::format("SELECT min(container) FROM {} WHERE {}", table, pod);
    const auto containers = database_.table(
        fmt::format("WITH RECURSIVE one(container) AS ({0} UNION ALL SELECT ({0} AND container > one.container) FROM "
                    "one WHERE container IS NOT NULL) SELECT container FROM one WHERE container IS NOT NULL",
                    next),
        values...);
    if (!containers) return containers.error();
    for (const Row& row : containers->rows) {
      const std::string condition = fmt::format("{} AND container = ?{}", pod, sizeof...(values) + 1);
      const std::string decisions =
          table == kDecidedTable ? fmt::format("decided WHERE {} ORDER BY decision DESC", condition) : named(condition);
      if (Status added = add(matches, decisions, values..., row[0].get<std::string>()); !added) return added;
    }
    return {};
  }

  Status add_named(Matches& matches, const std::vector<std::string>& parts) const {
    if (parts.size() == 3) {
      return add(matches, named("pod_namespace = ?1 AND pod_name = ?2 AND container = ?3"), parts[0], parts[1],
                 parts[2]);
    }
    if (parts.size() == 2) {
      const Status added = add(matches, named("pod_name = ?1 AND container = ?2"), parts[0], parts[1]);
      return added ? add_containers(matches, kHistoryTable, "pod_namespace = ?1 AND pod_name = ?2", parts[0], parts[1])
                   : added;
    }
    if (parts.size() != 1) return {};
    const Status added = add(matches, named("container = ?1"), parts[0]);
    return added ? add_containers(matches, kHistoryTable, "pod_name = ?1", parts[0]) : added;
  }

  /// A create's container id is in its outcome, as it is not known yet when it is decided.
  Status add_by_id(Matches& matches, const std::string& id) const {
    if (id.size() < kShortestId) return {};
    std::string end = id;
    ++end.back();
    const Status added = add(matches, "decided WHERE container_id >= ?1 AND container_id < ?2", id, end);
    if (!added) return added;
    return add(matches,
               "(SELECT decision AS number FROM outcome WHERE container_id >= ?1 AND container_id < ?2) CROSS JOIN "
               "decided ON decision = number",
               id, end);
  }

  /// Finds the allocations of this pod's containers, or those with this name or id.
  Result<Matches> current(const std::vector<std::string>& parts, const std::string& uid) const {
    Matches all;
    const Status added =
        add(all, "(SELECT *, 1 AS holds, '' AS event FROM allocation WHERE ?1 = '' OR pod_uid = ?1)", uid);
    if (!added) return added.error();
    std::erase_if(all, [&](const Match& match) { return !fits(match, parts); });
    return all;
  }

  /// All that are meant if no container of this name holds anything now.
  Result<Matches> former(const std::string& name, const std::string& uid) const {
    Matches matches;
    const std::vector<std::string> parts = parts_of(name);
    if (!uid.empty()) {
      if (Status added = add_containers(matches, kDecidedTable, "pod_uid = ?1", uid); !added) return added.error();
      std::erase_if(matches, [&](const Match& match) { return !fits(match, parts); });
      return matches;
    }
    if (Status added = add_named(matches, parts); !added) return added.error();
    return matches;
  }

  /// Finds the allocations and decisions with this container id; if any of them holds something now, only these.
  Result<Matches> with_id(const std::string& id, const std::string& uid) const {
    Matches matches;
    if (Status added = add_by_id(matches, id); !added) return added.error();
    std::erase_if(matches, [&](const Match& match) { return !uid.empty() && match.uid != uid; });
    const auto held = current({""}, uid);
    if (!held) return held.error();
    Matches current;
    std::copy_if(matches.begin(), matches.end(), std::back_inserter(current), [&](const Match& match) {
      return std::any_of(held->begin(), held->end(), [&](const Match& other) {
        return other.uid == match.uid && other.container == match.container;
      });
    });
    return current.empty() ? matches : current;
  }

  /// The newest decisions on containers of this very name, and for each older pod at least one.
  Result<Matches> of_name(const Match& match, const std::string& uid) const {
    Matches all;
    const Status added = uid.empty() ? add_named(all, {match.pod_namespace, match.pod, match.container})
                                     : add(all, "decided WHERE pod_uid = ?1 AND container = ?2 ORDER BY decision DESC",
                                           uid, match.container);
    if (!added) return added.error();
    if (uid.empty() && all.size() == kMostRows) {
      if (Status more = add_pods_before(all); !more) return more.error();
    }
    return all;
  }

  /// Pods of one name come one after the other, so that their older decisions can be skipped.
  Status add_pods_before(Matches& matches) const {
    for (std::size_t pods = 0; pods < kMostListed; ++pods) {
      const Match oldest = matches.back();
      const Status added =
          add(matches,
              "decided WHERE decision = (SELECT max(decision) FROM pod_history WHERE pod_namespace = ?1 AND "
              "pod_name = ?2 AND container = ?3 AND "
              "decision < (SELECT min(decision) FROM decided WHERE pod_uid = ?4 AND container = ?3))",
              oldest.pod_namespace, oldest.pod, oldest.container, oldest.uid);
      if (!added || matches.back().decision == oldest.decision) return added;
    }
    return {};
  }

  /// In as many parts as the name that was asked for.
  std::vector<std::string> recent_names(std::size_t parts) const {
    const auto rows = database_.table(
        "SELECT DISTINCT pod_namespace, pod_name, container FROM (SELECT pod_namespace, pod_name, container FROM "
        "decided "
        "ORDER BY decision DESC LIMIT 1000)");
    std::vector<std::string> names;
    if (!rows) return names;
    for (const Row& row : rows->rows) {
      const auto [pod_namespace, pod, container] =
          std::tuple(row[0].get<std::string>(), row[1].get<std::string>(), row[2].get<std::string>());
      if (parts == 1) names.insert(names.end(), {pod, container});
      if (parts == 2) names.insert(names.end(), {pod + '/' + container, pod_namespace + '/' + pod});
      if (parts == 3) names.push_back(placement::display_name(pod_namespace, pod, container));
    }
    return names;
  }

  std::string container_id(std::int64_t decision) const {
    const auto row = database_.table("SELECT container_id FROM decision WHERE decision = ?1", decision);
    return row && !row->rows.empty() ? row->rows[0][0].get<std::string>() : std::string();
  }

 private:
  const StateDatabase& database_;
};

void newest_first(Matches& matches) {
  std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) { return a.decision > b.decision; });
}

/// The newest match of each name.
Matches one_per_name(const Matches& matches) {
  Matches names;
  for (const Match& match : matches) {
    const bool is_known =
        std::any_of(names.begin(), names.end(), [&](const Match& other) { return other.name() == match.name(); });
    if (!is_known) names.push_back(match);
    if (names.size() > kMostListed) break;
  }
  return names;
}

Error several(const Finder& finder, const std::string& name, const Matches& names) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < std::min(names.size(), kMostListed); ++i) {
    list.push_back(fmt::format("{}  {}",
                               placement::display_name(names[i].pod_namespace, names[i].pod, names[i].container),
                               finder.container_id(names[i].decision)));
  }
  if (names.size() > kMostListed) list.emplace_back("and more");
  return listed_error(Code::kInvalidArgument, fmt::format("'{}' matches several containers; name one of these:", name),
                      list);
}

/// Takes what was only recorded of the container where its decisions are deleted already.
FoundDecision newest_of(const Matches& matches) {
  const auto decided = std::find_if(matches.begin(), matches.end(), [](const Match& match) { return match.decides; });
  const Match& newest = decided == matches.end() ? matches.front() : *decided;
  FoundDecision found{.decision = newest.decision};
  std::vector<std::string>& uids = found.older_uids;
  for (const Match& match : matches) {
    if (match.uid != newest.uid && std::find(uids.begin(), uids.end(), match.uid) == uids.end()) {
      uids.push_back(match.uid);
    }
  }
  return found;
}

}  // namespace

Result<FoundDecision> find_decision(const StateDatabase& database, const std::string& name, const std::string& uid) {
  const Finder finder(database);
  auto matches = finder.current(parts_of(name), uid);
  if (matches && matches->empty()) matches = finder.former(name, uid);
  const bool is_by_id = matches && matches->empty();
  if (is_by_id) matches = finder.with_id(name, uid);
  if (!matches) return matches.error();
  if (matches->empty()) {
    return Error{Code::kNotFound, with_hint(fmt::format("no container '{}' is known{}{}", name,
                                                        uid.empty() ? "" : fmt::format(" in a pod with UID '{}'", uid),
                                                        suggestion(name, finder.recent_names(parts_of(name).size()))),
                                            "`topolet ps` lists the current ones")};
  }
  newest_first(*matches);
  const Matches names = one_per_name(*matches);
  if (names.size() > 1) return several(finder, name.empty() ? uid : name, names);
  if (!is_by_id) matches = finder.of_name(names.front(), uid);
  if (!matches) return matches.error();
  FoundDecision found = newest_of(*matches);
  if (is_by_id) found.older_uids.clear();
  return found;
}

}  // namespace topolet::cli

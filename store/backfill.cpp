#include "store/backfill.hpp"

#include <algorithm>
#include <bit>

namespace topolet::store {
namespace {

Status run(const Database& database, const char* sql, std::int64_t first, std::int64_t last) {
  auto statement = database.prepare(sql, "complete the history of an older version");
  if (!statement) return statement.error();
  return statement->run(first, last);
}

Status add_lifetimes(const Database& database, std::int64_t first, std::int64_t last) {
  auto ended = database.prepare(
      "SELECT e.decision, d.at_ms, e.at_ms FROM ended e JOIN decided d USING (decision) "
      "WHERE e.decision BETWEEN ?1 AND ?2",
      "read the lifetimes of an older version");
  if (!ended) return ended.error();
  auto add =
      database.prepare("INSERT OR IGNORE INTO lifetime (span, until_ms, decision, from_ms) VALUES (?1, ?2, ?3, ?4)",
                       "record the lifetime of a decision");
  if (!add) return add.error();
  if (Status bound = ended->bind(first, last); !bound) return bound;
  while (true) {
    const auto more = ended->next();
    if (!more) return more.error();
    if (!*more) return {};
    const std::int64_t from = ended->integer(1);
    const std::int64_t until = ended->integer(2);
    if (Status added = add->run(span_of(from, until), until, ended->integer(0), from); !added) return added;
  }
}

}  // namespace

std::int64_t span_of(std::int64_t from_ms, std::int64_t until_ms) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(1, until_ms - from_ms))) - 1;
}

Result<bool> backfill_slice(Database& database, std::int64_t rows) {
  const auto next = database.integer("SELECT next FROM backfill WHERE subject = 'decided'", "read what is complete");
  if (!next) return next.error();
  if (*next == 0) return false;
  const auto last = database.integer("SELECT last FROM backfill WHERE subject = 'decided'", "read what is complete");
  if (!last) return last.error();
  const std::int64_t until = std::min(*last, *next + rows - 1);
  for (const char* sql :
       {"INSERT OR IGNORE INTO pod_history SELECT pod_name, container, pod_namespace, decision FROM decided "
        "WHERE decision BETWEEN ?1 AND ?2 AND container <> ''",
        "INSERT OR IGNORE INTO event_history SELECT event, at_ms, decision FROM decided "
        "WHERE decision BETWEEN ?1 AND ?2 AND event <> 'placed'",
        "INSERT OR IGNORE INTO event_history SELECT state, at_ms, decision FROM outcome "
        "WHERE decision BETWEEN ?1 AND ?2 AND state <> 'bound'"}) {
    if (Status added = run(database, sql, *next, until); !added) return added.error();
  }
  if (Status added = add_lifetimes(database, *next, until); !added) return added.error();
  if (until < *last) {
    Status noted =
        run(database, "UPDATE backfill SET next = ?2 WHERE subject = 'decided' AND next = ?1", *next, until + 1);
    if (!noted) return noted.error();
    return true;
  }
  if (Status done = database.execute("DELETE FROM backfill WHERE subject = 'decided'", "complete the history"); !done) {
    return done.error();
  }
  return false;
}

}  // namespace topolet::store

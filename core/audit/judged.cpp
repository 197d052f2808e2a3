#include "core/audit/judged.hpp"

namespace topolet::audit {
namespace {

/// `is_at`: since when it is there. Of the decisions that judged candidates, the newest that put it on the same place
/// counts, one that was undone only where there is no other. Older versions gave a return verdicts without candidates.
constexpr const char* kJudged = R"sql(
WITH is_at AS (
  SELECT p.* FROM decided d CROSS JOIN decided p USING (pod_uid, container)
  WHERE d.decision = ?1 AND p.decision <= d.decision AND (p.holds OR p.decision = d.decision)
    AND (p.verdicts IS NOT NULL OR p.reason_code IN ('returned', 'reverted'))
  ORDER BY p.decision DESC LIMIT 1)
SELECT j.decision FROM is_at CROSS JOIN decided j USING (pod_uid, container)
WHERE j.decision <= is_at.decision AND (j.holds OR j.decision = is_at.decision) AND j.verdicts IS NOT NULL
  AND NOT (j.reason_code = 'returned' AND coalesce(json_extract(j.verdicts, '$.candidates'), 0) = 0)
  AND (j.decision = is_at.decision OR (j.mode = is_at.mode AND (
    CASE is_at.mode WHEN 'exclusive' THEN j.cpus = is_at.cpus ELSE j.within = is_at.within END
    OR (j.nodes <> '' AND j.nodes = is_at.nodes))))
ORDER BY j.decision = is_at.decision DESC,
  CASE is_at.mode WHEN 'exclusive' THEN j.cpus = is_at.cpus ELSE j.within = is_at.within END DESC,
  EXISTS (SELECT 1 FROM decided u WHERE u.pod_uid = j.pod_uid AND u.container = j.container
          AND u.supersedes = j.decision AND u.reason_code = 'reverted'),
  j.decision DESC
LIMIT 1)sql";

}  // namespace

Result<std::optional<std::int64_t>> judged_in(const store::Database& database, std::int64_t decision) {
  auto statement = database.prepare(kJudged, "find why a container is where it is");
  if (!statement) return statement.error();
  return statement->first_integer(decision);
}

}  // namespace topolet::audit

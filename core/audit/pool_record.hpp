// The CPUs that nobody had alone, as the audit tells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::audit {

struct PoolRecord {
  std::uint64_t generation = 0;
  std::int64_t at_ms = 0;
  CpuSet pool;
  std::optional<CpuSet> free_reserved;  ///< none: an older topolet did not record it
  CpuSet free_isolated;
  std::optional<std::int64_t> caused_by;  ///< the decision that was made, changed or ended
  std::string cause;                      ///< as in `pool_version`

  CpuSet all() const { return pool | free_isolated | free_reserved.value_or(CpuSet()); }
};

/// The newest that was recorded at that time; nothing if that was before the first.
Result<std::optional<PoolRecord>> pool_at(const store::Database& database, std::int64_t at_ms);
/// The newest of an earlier generation; nothing if there is none.
Result<std::optional<PoolRecord>> pool_before(const store::Database& database, std::int64_t generation);
/// Those that were recorded after `since_ms` up to `until_ms`, in their order.
Result<std::vector<PoolRecord>> pools_between(const store::Database& database, std::int64_t since_ms,
                                              std::int64_t until_ms);

}  // namespace topolet::audit

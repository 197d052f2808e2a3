// The history as functions of SQL.
#pragma once

#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::audit {

/// Makes held_at(time), on_cpu(cpu, time), moves(since, until), node_usage_at(time, min_shared_cpus), devices_at(time)
/// and judged_in(decision) tables of this connection, and cpus_overlap(list, list), cpu_count(list) and moment(time)
/// functions. store/README.md documents them, and docs/audit.md shows what they are for. `database` must outlive its
/// statements that use them.
Status add_table_functions(store::Database& database);

}  // namespace topolet::audit

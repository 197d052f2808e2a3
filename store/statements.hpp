#pragma once

#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::store {

/// Every statement of the store, prepared once.
struct Statements {
  Statement begin;
  Statement commit;
  Statement roll_back;
  Statement begin_savepoint;
  Statement release_savepoint;
  Statement roll_back_savepoint;

  Statement add_boot;
  Statement set_generation;
  Statement find_boot;
  Statement find_other_boots;
  Statement forget_other_pods;

  Statement add_decided;
  Statement add_held_cpu;
  Statement add_outcome;
  Statement add_ended;
  Statement find_decided_time;
  Statement add_lifetime;
  Statement add_repeat;
  Statement add_pool;
  Statement add_load_sample;
  Statement add_decided_load;

  Statement set_whole_pool;
  Statement remove_allocation;
  Statement remove_pod;
  Statement remove_capacity;
  Statement remove_recent_sizes;
  Statement add_recent_size;

  Statement find_pool;
  Statement find_allocations;
  Statement find_pods;
  Statement find_capacities;
  Statement find_recent_sizes;
  Statement find_last_generation;
  Statement find_last_decision;
  Statement find_last_setup;

  /// An error means that the file's tables are not those of the newest schema version.
  static Result<Statements> prepare(const Database& database);
};

}  // namespace topolet::store

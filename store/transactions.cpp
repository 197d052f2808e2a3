#include "store/transactions.hpp"

#include <utility>

namespace topolet::store {

void Transactions::undo() {
  if (database_.in_transaction()) static_cast<void>(statements_.roll_back.run());
}

Status Transactions::begin() {
  if (is_open_) return Error{Code::kFailedPrecondition, "a transaction is open already; commit it first"};
  Status begun = statements_.begin.run();
  is_open_ = begun.has_value();
  return begun;
}

Status Transactions::commit() {
  if (!is_open_) return Error{Code::kFailedPrecondition, "no transaction is open; begin one first"};
  is_open_ = false;
  if (failure_) return *std::exchange(failure_, std::nullopt);
  Status committed = statements_.commit.run();
  if (!committed) undo();
  return committed;
}

void Transactions::roll_back() {
  undo();
  forget();
}

void Transactions::forget() {
  is_open_ = false;
  failure_.reset();
}

Status Transactions::savepoint(const std::function<Status()>& work) {
  if (!is_open_) return Error{Code::kFailedPrecondition, "a savepoint needs an open transaction; begin one first"};
  if (failure_) return *failure_;
  if (Status begun = statements_.begin_savepoint.run(); !begun) return begun;
  in_savepoint_ = true;
  Status done = work();
  in_savepoint_ = false;
  // SQLite itself has ended all of it, as it does when the disk is full.
  if (failure_) return *failure_;
  if (!done) {
    if (Status undone = statements_.roll_back_savepoint.run(); !undone) return fail(undone.error());
  }
  if (Status ended = statements_.release_savepoint.run(); !ended) return fail(ended.error());
  return done;
}

Error Transactions::fail(const Error& error) {
  undo();
  failure_ = error;
  return error;
}

}  // namespace topolet::store

// The transactions of one connection: one for each call, or an open one that several calls share.
#pragma once

#include <functional>
#include <optional>

#include "core/base/result.hpp"
#include "store/database.hpp"
#include "store/statements.hpp"

namespace topolet::store {

/// The rules of Store about begin(), commit(), roll_back() and savepoint(). Both references must outlive it; the
/// objects behind them may change while no transaction is open. Not synchronised.
class Transactions {
 public:
  Transactions(const Database& database, Statements& statements) : database_(database), statements_(statements) {}

  Status begin();
  Status commit();
  void roll_back();
  Status savepoint(const std::function<Status()>& work);

  /// Runs `work` in the open transaction or else in a transaction of its own. If it fails, all of it is rolled back;
  /// SQLite itself ends the transaction on some errors, so that later work in an open one must not run either.
  template <class Work>
  auto run(Work work) -> decltype(work());

  /// Forgets an open transaction, which has ended with its connection.
  void forget();

 private:
  void undo();
  Error fail(const Error& error);

  const Database& database_;
  Statements& statements_;
  bool is_open_ = false;
  bool in_savepoint_ = false;
  std::optional<Error> failure_;  ///< of the open transaction
};

template <class Work>
auto Transactions::run(Work work) -> decltype(work()) {
  if (failure_) return *failure_;
  if (!is_open_) {
    if (Status begun = statements_.begin.run(); !begun) return begun.error();
  }
  auto done = work();
  if (done && !is_open_) {
    if (Status committed = statements_.commit.run(); !committed) done = committed.error();
  }
  // A failure in a savepoint is undone with it, if its transaction is still there.
  if (!done && !(in_savepoint_ && database_.in_transaction())) {
    undo();
    if (is_open_) failure_ = done.error();
  }
  return done;
}

}  // namespace topolet::store

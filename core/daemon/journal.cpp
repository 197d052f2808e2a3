#include "core/daemon/journal.hpp"

#include <fmt/format.h>

#include <utility>

namespace topolet {

Status Journal::attempt(const Write& write) {
  if (Status begun = store_.begin(); !begun) return begun;
  Status written = write(store_);
  if (written) written = store_.commit();
  if (!written) store_.roll_back();
  return written;
}

/// A write that can never succeed must not hold up the others.
bool Journal::dropped(const Error& error) {
  const bool hopeless =
      error.code == Code::kNotFound || error.code == Code::kAlreadyExists || error.code == Code::kInvalidArgument;
  if (hopeless) log_.error("a write to the state database was dropped: {}", error.message);
  return hopeless;
}

void Journal::write(Write write) {
  if (!backlog_.empty()) {
    backlog_.push_back(std::move(write));
    return;
  }
  const Status written = attempt(write);
  if (written || dropped(written.error())) return;
  log_.error("the state database cannot be written: {}; decisions go on from memory", written.error().message);
  failing_since_ = clock_.wall();
  backlog_.push_back(std::move(write));
}

void Journal::catch_up() {
  if (backlog_.empty()) return;
  const DecidedRow gap = gap_row();
  const auto add_gap = [&gap](Store& store) -> Status {
    const auto added = store.add(gap);
    return added ? Status() : Status(added.error());
  };
  if (!gap_recorded_) {
    if (!attempt(add_gap)) return;
    gap_recorded_ = true;
    log_.warn("{}", gap.reason);
  }
  while (!backlog_.empty()) {
    const Status written = attempt(backlog_.front());
    if (!written && !dropped(written.error())) return;
    backlog_.pop_front();
  }
  gap_recorded_ = false;
}

DecidedRow Journal::gap_row() const {
  DecidedRow gap;
  gap.at_ms = clock_.wall().count();
  gap.event = "gap";
  gap.holds = false;
  gap.reason = fmt::format("the state database could not be written for {} ms; {} writes were kept and follow late",
                           gap.at_ms - failing_since_.count(), backlog_.size());
  return gap;
}

}  // namespace topolet

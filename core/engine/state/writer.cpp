#include "core/engine/state/writer.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace topolet::engine {
namespace {

/// The most writes in one transaction: if it fails, all are done again.
constexpr std::size_t kLargestGroup = 256;
/// How many decisions of an older topolet's history are completed at a time, a few milliseconds, and the pause after
/// it.
constexpr std::int64_t kBackfillDecisions = 100;
constexpr std::chrono::milliseconds kBackfillPause{5};

/// A write that can never succeed must not hold up the others.
bool is_permanent(const Error& error) {
  return error.code == Code::kNotFound || error.code == Code::kAlreadyExists || error.code == Code::kInvalidArgument;
}

}  // namespace

Writer::Writer(Options options, store::Store& store, Loop& loop, Clock clock, Log& log,
               std::function<void(const Gap&)> recovered)
    : options_(options),
      store_(store),
      loop_(loop),
      clock_(std::move(clock)),
      log_(log),
      recovered_(std::move(recovered)) {
  if (options_.thread != Thread::kOwn) return;
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "topolet-writer");
}

Writer::~Writer() { stop(); }

void Writer::submit(std::uint64_t generation, Write write, std::function<void()> done, Urgency urgency) {
  const std::uint64_t number = ++last_number_;
  waiters_.push_back({number, generation, clock_.steady(), std::move(done)});
  {
    MutexLock lock(mutex_);
    jobs_.push_back({number, generation, std::move(write)});
    if (urgency == Urgency::kNow) hurry_ = true;
  }
  if (options_.thread == Thread::kLoop) {
    write_on_loop();
  } else if (urgency == Urgency::kNow) {
    wake_up_.notify_one();
  } else {
    schedule_hurry();
  }
  if (degraded_) {
    // Whatever comes meanwhile goes on from memory too, in its turn.
    post([this] { check_patience(); });
  } else {
    schedule_patience_check();
  }
}

void Writer::schedule_hurry() {
  if (std::exchange(hurry_scheduled_, true)) return;
  post([this] {
    hurry_scheduled_ = false;
    {
      MutexLock lock(mutex_);
      hurry_ = !jobs_.empty();
    }
    wake_up_.notify_one();
  });
}

void Writer::write_on_loop() {
  do {
    MutexLock lock(mutex_);
    if (group_.empty() && jobs_.empty()) return;
  } while (wait_for_group() && write_group());
  loop_.after(options_.retry, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.lock()) write_on_loop();
  });
}

void Writer::run() {
  while (true) {
    backfill_while_idle();
    if (!wait_for_group()) return;
    if (!write_group() && !wait_before_retry()) return;
  }
}

void Writer::backfill_while_idle() {
  while (may_have_backfill_ && group_.empty()) {
    const Result<bool> more = store_.backfill(kBackfillDecisions);
    // The next start goes on with it.
    if (!more) log_.warn("the history of an older version is not completed now: {}", more.error().message);
    may_have_backfill_ = more && *more;
    const auto until = std::chrono::steady_clock::now() + kBackfillPause;
    MutexLock lock(mutex_);
    while (jobs_.empty() && !stopping_ && wake_up_.wait_until(mutex_, until)) {
    }
    if (!jobs_.empty() || stopping_) return;
  }
}

/// Takes what is waiting, unless a group is left that could not be written. False at the end, when nothing is left.
bool Writer::wait_for_group() {
  if (!group_.empty()) return true;
  MutexLock lock(mutex_);
  const bool at_once = options_.thread == Thread::kLoop;
  while ((jobs_.empty() || !(hurry_ || at_once)) && !stopping_) wake_up_.wait(mutex_);
  const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(std::min(jobs_.size(), kLargestGroup));
  group_.assign(std::make_move_iterator(jobs_.begin()), std::make_move_iterator(end));
  jobs_.erase(jobs_.begin(), end);
  hurry_ = !jobs_.empty();
  return !group_.empty();
}

/// After a failure. False if it is to end.
bool Writer::wait_before_retry() {
  const auto until = std::chrono::steady_clock::now() + options_.retry;
  MutexLock lock(mutex_);
  while (!stopping_ && wake_up_.wait_until(mutex_, until)) {
  }
  return !stopping_;
}

bool Writer::write_group() {
  const Status written = write_all();
  if (!written) {
    post([this, error = written.error()] { on_write_failed(error); });
    return false;
  }
  store_.write_generation_file(group_.back().generation);
  post([this, number = group_.back().number] { on_written(number); });
  group_.clear();
  return true;
}

Status Writer::write_all() {
  if (Status begun = store_.begin(); !begun) return begun;
  Status written;
  for (const Job& job : group_) {
    if (written) written = job.write(store_);
  }
  if (written) written = store_.commit();
  if (!written) store_.roll_back();
  if (written || !is_permanent(written.error())) return written;
  return write_each_whole();
}

/// With a savepoint each, which costs: one of them fails, and only that one must be left out.
Status Writer::write_each_whole() {
  if (Status begun = store_.begin(); !begun) return begun;
  for (const Job& job : group_) {
    const Status written = store_.savepoint([&] { return job.write(store_); });
    if (written) continue;
    if (!is_permanent(written.error())) {
      store_.roll_back();
      return written;
    }
    log_.error("a write to the state database was dropped: {}", written.error().message);
  }
  Status done = store_.commit();
  if (!done) store_.roll_back();
  return done;
}

void Writer::post(std::function<void()> work) {
  loop_.post([alive = std::weak_ptr<bool>(alive_), work = std::move(work)] {
    if (alive.lock()) work();
  });
}

void Writer::on_written(std::uint64_t number) {
  last_written_ = number;
  while (!waiters_.empty() && waiters_.front().number <= number) answer_first_waiter();
  if (!degraded_ || last_written_ != last_number_) return;
  degraded_ = false;
  const Gap gap{clock_.wall() - degraded_since_, std::exchange(late_, 0)};
  log_.warn("the state database can be written again");
  recovered_(gap);
}

void Writer::on_write_failed(const Error& error) {
  enter_degraded_mode("cannot be written: " + error.message);
  check_patience();
}

void Writer::answer_first_waiter() {
  const std::function<void()> done = std::move(waiters_.front().done);
  waiters_.pop_front();
  done();
}

void Writer::schedule_patience_check() {
  if (std::exchange(patience_check_scheduled_, true)) return;
  loop_.after(options_.patience, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.lock()) return;
    patience_check_scheduled_ = false;
    check_patience();
    if (!waiters_.empty()) schedule_patience_check();
  });
}

void Writer::check_patience() {
  while (!waiters_.empty()) {
    const bool is_late = clock_.steady() - waiters_.front().since >= options_.patience;
    if (!degraded_ && !is_late) return;
    enter_degraded_mode(
        fmt::format("takes longer than {} ms to write (daemon.store-patience)", options_.patience.count()));
    ++late_;
    // Should all end before it is written, the next start sees that something is missing.
    store_.write_generation_file(waiters_.front().generation);
    answer_first_waiter();
  }
}

void Writer::enter_degraded_mode(const std::string& why) {
  if (std::exchange(degraded_, true)) return;
  degraded_since_ = clock_.wall();
  log_.error("the state database {}; topoletd keeps new decisions in memory until it can write them", why);
}

void Writer::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_up_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Until here the thread posts by it.
  alive_.reset();
  // What failed before may be taken now.
  while (wait_for_group() && write_group()) {
  }
}

}  // namespace topolet::engine

#include "core/engine/state/writer.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/rfc3339.hpp"

namespace topolet::engine {
namespace {

/// The most writes in one transaction: if it fails, all are done again.
constexpr std::size_t kLargestGroup = 256;
/// The time between two retention passes where nothing is left to do.
constexpr std::chrono::seconds kRetentionPassEvery{5};
constexpr std::chrono::minutes kRetentionPassAfterFailure{1};

/// A write that can never succeed must not hold up the others.
bool is_permanent(const Error& error) {
  return error.code == Code::kNotFound || error.code == Code::kAlreadyExists || error.code == Code::kInvalidArgument;
}

/// The time between two checks of the file.
constexpr std::chrono::milliseconds kCheckEvery{500};
constexpr int kFailuresOfADamagedFile = 3;
constexpr auto kNever = std::chrono::steady_clock::time_point::max();

/// Returns true for an error that passes by itself, or when people mend the disk.
bool may_pass(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kResourceExhausted ||
         error.code == Code::kPermissionDenied;
}

/// An error that neither a full disk nor a lock or the like explains, but a file that contradicts itself.
bool shows_damage(const Error& error) {
  return error.code == Code::kDataLoss || error.code == Code::kInternal || error.code == Code::kFailedPrecondition;
}

}  // namespace

Writer::Writer(Options options, store::Store& store, Loop& loop, Clock clock, Log& log, Callbacks callbacks)
    : options_(options),
      store_(store),
      loop_(loop),
      clock_(std::move(clock)),
      log_(log),
      callbacks_(std::move(callbacks)),
      next_check_(callbacks_.rewrite ? std::chrono::steady_clock::time_point() : kNever) {
  if (options_.thread != Thread::kOwn) return;
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "topolet-writer");
}

Writer::~Writer() { stop(); }

std::uint64_t Writer::submit(std::uint64_t generation, Write write, std::function<void()> done, Urgency urgency) {
  const std::uint64_t number = ++last_number_;
  waiters_.push_back({number, generation, clock_.steady(), std::move(done)});
  {
    MutexLock lock(mutex_);
    jobs_.push_back({number, generation, std::move(write)});
    if (urgency == Urgency::kNow) hurry_ = true;
  }
  if (urgency == Urgency::kNow || (options_.thread == Thread::kLoop && !options_.transaction_time)) {
    wake_writer();
  } else {
    schedule_hurry();
  }
  if (degraded_) {
    // Whatever comes meanwhile goes on from memory too, in its turn.
    post([this] { check_patience(); });
  } else {
    schedule_patience_check();
  }
  return number;
}

void Writer::schedule_hurry() {
  if (std::exchange(hurry_scheduled_, true)) return;
  post([this] {
    hurry_scheduled_ = false;
    {
      MutexLock lock(mutex_);
      hurry_ = !jobs_.empty();
    }
    wake_writer();
  });
}

void Writer::wake_writer() {
  if (options_.thread == Thread::kLoop) return write_on_loop();
  wake_up_.notify_one();
}

void Writer::write_on_loop() {
  if (writing_on_loop_) return;
  {
    MutexLock lock(mutex_);
    if (group_.empty()) take_group();
    if (group_.empty()) return;
  }
  writing_on_loop_ = true;
  if (!options_.transaction_time) return finish_on_loop();
  after(options_.transaction_time(), [this] { finish_on_loop(); });
}

void Writer::finish_on_loop() {
  const bool written = write_group();
  if (!written) return after(options_.retry, [this] { finish_on_loop(); });
  writing_on_loop_ = false;
  bool goes_on = false;
  {
    MutexLock lock(mutex_);
    goes_on = hurry_;
  }
  if (goes_on) write_on_loop();
}

void Writer::run() {
  serve();
  write_rest();
  MutexLock lock(mutex_);
  ended_ = true;
  wake_up_.notify_all();
}

void Writer::serve() {
  for (Next next = wait_for_work(); next != Next::kEnd; next = wait_for_work()) {
    if (next == Next::kRetentionPass) {
      run_retention_pass();
      continue;
    }
    const bool done = check_for_loss() && (next == Next::kCheck || write_group());
    // A lost file is opened again at once, and after a failure as everything else.
    if (!done && !(loss_ && reopen()) && !wait_before_retry()) return;
  }
}

void Writer::run_retention_pass() {
  const auto began = std::chrono::steady_clock::now();
  // Not clock_, which is for the loop's thread.
  const store::Moment now{options_.retention_clock.wall().count(), options_.retention_clock.steady()};
  const Result<store::RetentionPass> done = store_.run_retention_pass(now, retention_pace_.rows());
  const auto ended = std::chrono::steady_clock::now();
  if (!done) {
    log_.warn("the history cannot be tidied up now: {}", done.error().message);
    next_retention_pass_ = ended + kRetentionPassAfterFailure;
    return;
  }
  for (const std::string& notice : done->notices) log_.warn("{}", notice);
  retention_pace_.note(*done, ended - began);
  deleted_ += done->deleted;
  deleted_until_ms_ = std::max(deleted_until_ms_, done->deleted_until_ms);
  next_retention_pass_ = ended + (done->has_more ? store::RetentionPace::kPause
                                                 : std::chrono::steady_clock::duration(kRetentionPassEvery));
  if (done->has_more || deleted_ == 0) return;
  log_.info("deleted from the audit what had ended before {}: {} decisions and pool versions",
            rfc3339(std::chrono::milliseconds(deleted_until_ms_)), std::exchange(deleted_, 0));
}

/// Writes what is left. A group that failed before may succeed now.
void Writer::write_rest() {
  while (!loss_) {
    {
      MutexLock lock(mutex_);
      if (group_.empty()) take_group();
    }
    if (group_.empty() || !write_group()) return;
  }
}

void Writer::take_group() {
  const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(std::min(jobs_.size(), kLargestGroup));
  group_.assign(std::make_move_iterator(jobs_.begin()), std::make_move_iterator(end));
  jobs_.erase(jobs_.begin(), end);
  hurry_ = !jobs_.empty();
}

/// Takes what is waiting, unless a group is left that could not be written. The rest is for when nothing waits.
Writer::Next Writer::wait_for_work() {
  MutexLock lock(mutex_);
  while (group_.empty() && (jobs_.empty() || !hurry_) && !stopping_) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_check_) return Next::kCheck;
    if (now >= next_retention_pass_ && jobs_.empty() && !loss_) return Next::kRetentionPass;
    wake_up_.wait_until(mutex_, std::min(next_check_, loss_ ? kNever : next_retention_pass_));
  }
  if (stopping_) return Next::kEnd;
  if (group_.empty()) take_group();
  return Next::kWrite;
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
    judge_failure(written.error());
    return false;
  }
  failures_of_a_damaged_file_ = 0;
  store_.write_generation_file(group_.back().generation);
  post([this, number = group_.back().number] { on_written(number); });
  group_.clear();
  return true;
}

void Writer::judge_failure(const Error& error) {
  if (callbacks_.rewrite && shows_damage(error) &&
      (error.code == Code::kDataLoss || ++failures_of_a_damaged_file_ >= kFailuresOfADamagedFile)) {
    return note_loss({error.message, store::Leftover::kDamaged});
  }
  // Whatever becomes of topoletd before it is written, the next start sees that something is missing.
  store_.write_generation_file(group_.back().generation);
  post([this, error] { on_write_failed(error); });
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

/// False if the file is lost.
bool Writer::check_for_loss() {
  if (loss_ || !callbacks_.rewrite) return !loss_;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_check_) return true;
  next_check_ = now + kCheckEvery;
  if (auto loss = store_.find_file_loss()) note_loss(*std::move(loss));
  return !loss_;
}

void Writer::note_loss(store::FileLoss loss) {
  loss_ = std::move(loss);
  failures_of_a_damaged_file_ = 0;
  post([this, loss = *loss_] { answer_rewrite(loss); });
}

/// Asks for the contents of a new database. Everything posted before was written to the lost file, and nothing is
/// written until this is answered.
void Writer::answer_rewrite(const store::FileLoss& loss) {
  Rewrite rewrite = callbacks_.rewrite(loss);
  {
    MutexLock lock(mutex_);
    rewrite_ = std::move(rewrite);
  }
  wake_up_.notify_one();
}

std::optional<Writer::Rewrite> Writer::wait_for_rewrite() {
  MutexLock lock(mutex_);
  while (!rewrite_ && !stopping_) wake_up_.wait(mutex_);
  if (stopping_) return std::nullopt;
  return rewrite_;
}

bool Writer::reopen() {
  const std::optional<Rewrite> rewrite = wait_for_rewrite();
  if (!rewrite) return false;
  const auto set_aside = store_.reopen(*loss_, rewrite->last, rewrite->wall_time.count());
  const Status written = set_aside ? write_anew(*rewrite) : Status(set_aside.error());
  if (!written) {
    // The present file was begun just before.
    if (set_aside) loss_->leftover = may_pass(written.error()) ? store::Leftover::kKept : store::Leftover::kDamaged;
    post([this, error = written.error()] { on_write_failed(error); });
    return false;
  }
  store_.write_generation_file(rewrite->last.generation);
  post([this, reopened = Reopened{*std::exchange(loss_, std::nullopt), *set_aside}] { callbacks_.reopened(reopened); });
  MutexLock lock(mutex_);
  rewrite_.reset();
  return true;
}

Status Writer::write_anew(const Rewrite& rewrite) {
  if (Status begun = store_.begin(); !begun) return begun;
  Status written = rewrite.write(store_);
  if (written) written = store_.commit();
  if (!written) store_.roll_back();
  return written;
}

void Writer::post(std::function<void()> work) {
  loop_.post([alive = std::weak_ptr<bool>(alive_), work = std::move(work)] {
    if (alive.lock()) work();
  });
}

void Writer::after(std::chrono::milliseconds delay, std::function<void()> work) {
  loop_.after(delay, [alive = std::weak_ptr<bool>(alive_), work = std::move(work)] {
    if (alive.lock()) work();
  });
}

void Writer::on_written(std::uint64_t number) {
  last_written_ = number;
  if (callbacks_.written) callbacks_.written(number);
  while (!waiters_.empty() && waiters_.front().number <= number) answer_first_waiter();
  if (!degraded_ || last_written_ != last_number_) return;
  degraded_ = false;
  degraded_because_.clear();
  const Gap gap{clock_.wall() - degraded_since_, std::exchange(late_, 0)};
  log_.warn("the state database can be written again");
  callbacks_.recovered(gap);
}

void Writer::on_write_failed(const Error& error) {
  const std::string why = "cannot be written: " + error.message;
  enter_degraded_mode(why);
  // It may have been late before it was known why.
  if (std::exchange(degraded_because_, why) != why) log_.error("the state database {}", why);
  check_patience();
}

void Writer::answer_first_waiter() {
  const std::function<void()> done = std::move(waiters_.front().done);
  waiters_.pop_front();
  done();
}

void Writer::schedule_patience_check() {
  if (std::exchange(patience_check_scheduled_, true)) return;
  after(options_.patience / 2, [this] {
    patience_check_scheduled_ = false;
    note_late();
    check_patience();
    if (!waiters_.empty()) schedule_patience_check();
  });
}

/// Should all end before what somebody goes on with from memory is written, the next start sees that something is
/// missing. So it is noted by the time that patience is over, which costs a wait of its own on a slow disk.
void Writer::note_late() {
  if (waiters_.empty() || clock_.steady() - waiters_.front().since < options_.patience / 2) return;
  store_.note_generation(waiters_.front().generation);
}

void Writer::check_patience() {
  while (!waiters_.empty()) {
    const bool is_late = clock_.steady() - waiters_.front().since >= options_.patience;
    if (!degraded_ && !is_late) return;
    enter_degraded_mode(
        fmt::format("takes longer than {} ms to write (daemon.store-patience)", options_.patience.count()));
    ++late_;
    store_.note_generation(waiters_.front().generation);
    answer_first_waiter();
  }
}

void Writer::enter_degraded_mode(const std::string& why) {
  if (std::exchange(degraded_, true)) return;
  degraded_because_ = why;
  degraded_since_ = clock_.wall();
  log_.error("the state database {}; topoletd keeps new decisions in memory until it can write them", why);
}

bool Writer::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_up_.notify_all();
  if (thread_.joinable() && !wait_until_ended()) {
    log_.error("the state database does not return; what was not written is lost");
    return false;
  }
  if (thread_.joinable()) thread_.join();
  // Until here the thread posts by it.
  alive_.reset();
  if (options_.thread == Thread::kLoop) write_rest();
  return true;
}

bool Writer::wait_until_ended() {
  const auto until = std::chrono::steady_clock::now() + options_.longest_end;
  MutexLock lock(mutex_);
  while (!ended_) {
    if (!wake_up_.wait_until(mutex_, until)) return ended_;
  }
  return true;
}

}  // namespace topolet::engine

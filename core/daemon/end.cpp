// The ways in which a topoletd ends: by itself, or because another one takes its place.
#include <fmt/format.h>

#include <future>
#include <thread>
#include <utility>

#include "core/base/log.hpp"
#include "core/daemon/daemon.hpp"
#include "core/daemon/service_manager.hpp"
#include "core/plugin/guard/crash_mark.hpp"

namespace topolet::daemon {
namespace {

/// The time that the end of topoletd waits for the file system.
constexpr std::chrono::seconds kLongestClose{5};
/// The time that calls have to end before those under way fall in doubt.
constexpr std::chrono::seconds kLongestEnd{5};
/// Less than a runtime waits for the answer to an event of NRI, with what the successor takes to start.
constexpr std::chrono::milliseconds kLongestNri{500};
/// Before a connection is spoken to beside gRPC, gRPC must have said its first words on it.
constexpr std::chrono::milliseconds kGreeting{50};
/// A successor has been checked by then; it opens the store and compares it with the runtime.
constexpr std::chrono::seconds kLongestStart{25};
/// Clients that do as they are asked have moved by then.
constexpr std::chrono::milliseconds kLongestMove{200};
/// The time between two checks that clients have moved.
constexpr std::chrono::milliseconds kCheckEvery{5};
/// A client that has not called for so long makes its next call on a new connection.
constexpr std::chrono::seconds kQuiet{10};

/// Runs `work` on a thread of its own. False if it takes too long, as on a frozen file system: it is left behind.
bool ends_in_time(std::function<void()> work) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> future = done->get_future();
  std::thread([done, work = std::move(work)]() mutable {
    work();
    work = nullptr;
    done->set_value();
  }).detach();
  return future.wait_for(kLongestClose) == std::future_status::ready;
}

}  // namespace

/// Makes clients wait for the process that accepts next: those that connect from here on, and the connected ones, which
/// are asked to connect anew.
void Daemon::move_clients() {
  if (!listener_) return;
  std::vector<UniqueFd> connections = listener_->stop_accepting();
  std::this_thread::sleep_for(kGreeting);
  proxy_->ask_to_reconnect(std::move(connections));
  const auto until = std::chrono::steady_clock::now() + kLongestMove;
  while (listener_->open_connections() != 0 && !proxy_->is_quiet_for(4 * kCheckEvery) &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(kCheckEvery);
}

bool Daemon::hand_over(Successor& successor, const std::function<void()>& release_path) {
  if (const Status wanted = successor.read_request(options_); !wanted) {
    log_->error("process {} asked to take over, and was refused: {}", successor.process(), wanted.error().message);
    successor.refuse(wanted.error().message);
    return false;
  }
  if (UniqueFd plugin = successor.take_nri_plugin()) {
    adopt_nri_plugin(std::move(plugin), successor);
    return false;
  }
  log_->info("process {} takes over; calls that are under way are brought to an end", successor.process());
  const bool hands_watch_over = watch_server_ && successor.wants_watch();
  sockets_ = {listener_ ? listener_->duplicate_sockets() : cri::Listener::Sockets(), control_->duplicate_sockets(),
              hands_watch_over ? watch_server_->duplicate_sockets() : cri::Listener::Sockets(),
              runtime_lock_ ? runtime_lock_->duplicate() : std::vector<UniqueFd>()};
  is_serving_ = false;
  watchdog_.reset();
  health_watch_.reset();
  notify_alive();
  notify_status(fmt::format("process {} takes over", successor.process()));
  move_clients();
  if (listener_) proxy_->forward_to("unix://" + options_.listen);
  if (nri_front_ && successor.wants_nri()) sockets_.nri = nri_front_->release(kLongestNri);
  if (!proxy_->wait_for_core(kLongestEnd)) {
    log_->warn("some calls did not end within {} s; what they did is read from the runtime", kLongestEnd.count());
  }
  // The engine answers this after it has processed the last answers.
  static_cast<void>(engine_->summary(kLongestEnd));
  // Not before the creates under way have ended, which wait for the guard.
  if (nri_guard_ && successor.wants_nri()) sockets_.nri = nri_guard_->release(kLongestNri);
  if (listener_) listener_->disown_file();
  control_->disown_file();
  if (hands_watch_over) watch_server_->disown_file();
  release_path();
  end_core();
  notify_alive();
  proxy_->take_calls_from_core();
  end_plugins();
  plugin::record_crashes_to(-1);
  close_store();
  if (is_stuck_) {
    log_->error(
        "the state database or a plugin does not return; this process ends at once, so that process {} can go "
        "on",
        successor.process());
    notify_replaced_by(successor.process());
    successor.hand_over(sockets_);
    release_runtime(successor);
    return true;
  }
  notify_alive();
  if (!successor.hand_over(sockets_) || !successor.wait_until_serving(kLongestStart)) {
    log_->error("process {} ended before it served; starting again", successor.process());
    must_respawn_ = true;
    return false;
  }
  sockets_ = {};
  release_runtime(successor);
  notify_replaced_by(successor.process());
  successor.let_go();
  proxy_->end_streams();
  log_->info("process {} serves; this one ends with the calls that are under way on its connections",
             successor.process());
  return true;
}

/// The other process has the locks; here they would outlive it.
void Daemon::release_runtime(const Successor& successor) {
  if (runtime_lock_ && successor.wants_runtime_locks()) runtime_lock_->disown();
  runtime_lock_.reset();
}

bool Daemon::is_deserted() const {
  return !listener_ || listener_->open_connections() == 0 || proxy_->is_quiet_for(kQuiet);
}

void Daemon::stop() {
  watchdog_.reset();
  health_watch_.reset();
  notify_stopping();
  notify_status("stopping; containers keep running where they are");
  // Somebody else, such as systemd, goes on listening: clients wait there for the next process.
  if (std::exchange(is_serving_, false) && listener_ && !listener_->owns_file()) {
    move_clients();
    proxy_->end_streams();
    const auto until = std::chrono::steady_clock::now() + kLongestEnd;
    while (listener_->open_connections() != 0 && !proxy_->is_quiet_for(4 * kCheckEvery) &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(kCheckEvery);
  }
  if (watch_server_) watch_server_->stop();
  if (control_) control_->stop();
  if (listener_) listener_->stop();
  if (proxy_) proxy_->drain();
  if (listener_) listener_->disconnect_all();
  if (proxy_) proxy_->stop();
  end_core();
  if (!writer_ended_) {
    // Its thread may come back to them at any time.
    static_cast<void>(engine_.release());
    static_cast<void>(store_.release());
  }
  front_.reset();
  engine_.reset();
  proxy_.reset();
  watch_server_.reset();
  control_.reset();
  end_plugins();
  close_store();
  listener_.reset();
}

/// Destroys the instances, so that threads of theirs that read their state are gone before it is closed.
void Daemon::end_plugins() {
  plugins_.reset();
  deps_.control.drain();
  is_stuck_ = is_stuck_ || deps_.control.has_abandoned_calls();
}

/// Stops the core. Its objects do nothing any more, but may still be called.
void Daemon::end_core() {
  if (watch_server_) watch_server_->stop();
  if (control_) control_->stop();
  audit_outlet_->close();
  if (watch_) watch_->stop();
  if (sampler_) sampler_->stop();
  if (plugins_) plugins_->wake_by({});
  if (plugins_) is_stuck_ = is_stuck_ || plugins_->has_abandoned_calls();
  nri_front_.reset();
  nri_guard_.reset();
  if (!engine_) return;
  writer_ended_ = engine_->stop();
  // Whoever takes this one's place goes on in the same file.
  if (recorder_) recorder_->finish();
  is_stuck_ = is_stuck_ || !writer_ended_;
}

void Daemon::close_store() {
  if (store_ && writer_ended_ &&
      !ends_in_time([store = std::shared_ptr<store::Store>(std::move(store_))]() mutable { store.reset(); }))
    is_stuck_ = true;
}

}  // namespace topolet::daemon

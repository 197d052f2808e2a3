#include "core/watch/feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

#include "core/engine/state/ledger.hpp"
#include "core/engine/state/transition.hpp"
#include "core/watch/messages.hpp"

namespace topolet::watch {
namespace {

/// The time in which clients are told that the stream ends.
constexpr std::chrono::milliseconds kFarewell{100};

/// No two starts have the same one.
std::string new_instance() {
  std::ifstream in("/proc/sys/kernel/random/uuid");
  std::string uuid;
  std::getline(in, uuid);
  return uuid;
}

std::shared_ptr<const std::string> bytes_of(const v1::WatchResponse& response) {
  return std::make_shared<const std::string>(response.SerializeAsString());
}

}  // namespace

struct Feed::Thread {
  boost::asio::thread_pool pool{1};
  boost::asio::steady_timer wake_up{pool};
};

Feed::Feed(Options options)
    : options_(std::move(options)), instance_(new_instance()), thread_(std::make_unique<Thread>()) {
  v1::Snapshot nothing;
  nothing.set_instance(instance_);
  nothing.set_version(options_.version);
  nothing.set_host(options_.host);
  state_.begin(nothing);
}

Feed::~Feed() { stop(); }

void Feed::on_loaded(const engine::Ledger& ledger) {
  inventory_ = ledger.inventory();
  v1::Delta all;
  all.set_generation(ledger.generation());
  *all.mutable_cpus() = cpus_of(inventory_, ledger.pool(), ledger.free_isolated());
  for (const auto& [key, allocation] : ledger.allocations()) *all.add_changed() = container_of(allocation);
  for (const auto& [node, told] : ledger.reported_capacities()) *all.add_capacities() = capacity_of(told);
  boost::asio::post(thread_->pool, [this, all = std::move(all)] { state_.apply(all); });
}

void Feed::on_durable(const engine::Transition& transition) {
  if (transition.inventory) inventory_ = *transition.inventory;
  boost::asio::post(thread_->pool,
                    [this, delta = delta_of(transition, inventory_)]() mutable { apply(std::move(delta)); });
}

void Feed::on_reconciled() {
  boost::asio::post(thread_->pool, [this] {
    v1::Delta delta = begin_delta();
    delta.set_reconciled(true);
    apply(std::move(delta));
  });
}

void Feed::set_plugins(v1::PluginList plugins) {
  boost::asio::post(thread_->pool, [this, plugins = std::move(plugins)]() mutable {
    v1::Delta delta = begin_delta();
    *delta.mutable_plugins() = std::move(plugins);
    apply(std::move(delta));
  });
}

void Feed::set_illnesses(v1::IllnessList illnesses) {
  boost::asio::post(thread_->pool, [this, illnesses = std::move(illnesses)]() mutable {
    v1::Delta delta = begin_delta();
    *delta.mutable_illnesses() = std::move(illnesses);
    apply(std::move(delta));
  });
}

void Feed::set_load(v1::Load load) {
  boost::asio::post(thread_->pool, [this, load = std::move(load)]() mutable {
    forget_ended();
    v1::WatchResponse response;
    *response.mutable_load() = std::move(load);
    const std::shared_ptr<const std::string> bytes = bytes_of(response);
    for (const std::shared_ptr<cri::OwnCall>& reader : load_readers_) {
      if (reader->unsent_bytes() == 0) reader->send(bytes);
    }
  });
}

void Feed::subscribe(std::shared_ptr<cri::OwnCall> call) {
  boost::asio::post(thread_->pool, [this, call = std::move(call)] { begin(call); });
}

/// Begins a delta that does not come from a transition.
v1::Delta Feed::begin_delta() const {
  v1::Delta delta;
  delta.set_generation(state_.head().generation());
  delta.set_time_ms(options_.clock.wall().count());
  return delta;
}

void Feed::apply(v1::Delta delta) {
  state_.apply(delta);
  if (readers_.empty() || stopped_) return;
  const bool is_first = gathered_.deltas().empty();
  *gathered_.add_deltas() = std::move(delta);
  if (!is_first) return;
  due_ = std::max(options_.clock.steady() + options_.gather, last_sent_ + options_.pace);
  wake_when_due();
}

void Feed::wake_when_due() {
  thread_->wake_up.expires_after(due_ - options_.clock.steady());
  thread_->wake_up.async_wait([this](const boost::system::error_code& error) {
    if (!error) send_if_due();
  });
}

void Feed::send_if_due() {
  if (gathered_.deltas().empty()) return;
  if (options_.clock.steady() < due_) return wake_when_due();
  flush();
}

void Feed::run_due() {
  std::promise<void> done;
  boost::asio::post(thread_->pool, [&] {
    send_if_due();
    done.set_value();
  });
  done.get_future().wait();
}

void Feed::flush() {
  if (gathered_.deltas().empty()) return;
  v1::WatchResponse response;
  *response.mutable_deltas() = std::exchange(gathered_, {});
  last_sent_ = options_.clock.steady();
  const std::shared_ptr<const std::string> bytes = bytes_of(response);
  for (const std::shared_ptr<cri::OwnCall>& reader : readers_) {
    if (reader->unsent_bytes() > options_.max_unread_bytes) {
      reader->cut_off();
    } else {
      reader->send(bytes);
    }
  }
  forget_ended();
}

/// Starts a reader with a snapshot. The snapshot includes the gathered changes, so the other readers get those first.
void Feed::begin(const std::shared_ptr<cri::OwnCall>& call) {
  if (stopped_) return call->reject({Code::kUnavailable, "topoletd is shutting down; connect again"});
  v1::WatchRequest request;
  if (!request.ParseFromString(call->request()))
    return call->reject({Code::kInvalidArgument, "the request of Watch cannot be read"});
  flush();
  forget_ended();
  if (readers_.size() >= options_.max_readers) {
    return call->reject(
        {Code::kResourceExhausted, fmt::format("{} watch already; end one of them", options_.max_readers)});
  }
  v1::WatchResponse response;
  *response.mutable_snapshot() = state_.whole();
  call->send(bytes_of(response));
  readers_.push_back(call);
  if (!request.load()) return;
  load_readers_.push_back(call);
  wants_load_ = true;
}

void Feed::forget_ended() {
  const auto has_ended = [](const std::shared_ptr<cri::OwnCall>& reader) { return reader->has_ended(); };
  std::erase_if(readers_, has_ended);
  std::erase_if(load_readers_, has_ended);
  wants_load_ = !load_readers_.empty();
}

void Feed::stop() {
  if (is_stopping_.exchange(true)) return;
  std::promise<std::vector<std::shared_ptr<cri::OwnCall>>> ended;
  boost::asio::post(thread_->pool, [this, &ended] {
    stopped_ = true;
    flush();
    for (const std::shared_ptr<cri::OwnCall>& reader : readers_) {
      reader->reject({Code::kUnavailable, "topoletd ends, or another one takes its place; connect again"});
    }
    load_readers_.clear();
    ended.set_value(std::exchange(readers_, {}));
  });
  const std::vector<std::shared_ptr<cri::OwnCall>> told = ended.get_future().get();
  const auto until = std::chrono::steady_clock::now() + kFarewell;
  while (std::chrono::steady_clock::now() < until &&
         !std::all_of(told.begin(), told.end(), [](const auto& reader) { return reader->has_ended(); })) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  thread_->pool.stop();
  thread_->pool.join();
}

}  // namespace topolet::watch

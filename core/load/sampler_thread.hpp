// Measures once a second, on a thread of its own, while somebody wants to know.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/clock.hpp"
#include "core/base/mutex.hpp"
#include "core/load/sampler.hpp"

namespace topolet::load {

/// When load is measured: while a plugin reads it or somebody asks (kAuto), always, or never.
enum class Sampling : std::uint8_t { kAuto, kOn, kOff };
/// "auto", "on" or "off", and back; any other word is kAuto.
std::string_view to_string(Sampling sampling);
Sampling sampling_named(std::string_view word);

/// How it is with the measurements.
struct SamplerState {
  Sampling sampling = Sampling::kAuto;
  bool is_measuring = false;
  std::shared_ptr<const Sample> newest = {};  ///< null: there is none
  std::chrono::milliseconds age{};            ///< of that
};

/// Nobody waits for it, and it waits for nobody: what it is to measure is told to it by tell(), and what it measures is
/// handed out as it is. Any thread, but for start() and stop().
class SamplerThread {
 public:
  struct Deps {
    Sampler::Deps sampler;
    Sampling sampling = Sampling::kAuto;
    /// Has tell() called with what there is to measure, some time later and on any thread.
    std::function<void()> ask_for_subjects;
    /// Returns true while a plugin, or somebody who watches, reads what is measured; see kAuto.
    std::function<bool()> is_read;
    /// Takes each sample, and what it was made of, on this thread.
    std::function<void(const Sample&, const Subjects&)> on_sample = [](const Sample&, const Subjects&) {};
    std::chrono::milliseconds period{1000};
  };
  explicit SamplerThread(Deps deps);
  ~SamplerThread() { stop(); }
  SamplerThread(const SamplerThread&) = delete;
  SamplerThread& operator=(const SamplerThread&) = delete;

  void start();
  /// No call of the functions is running when this returns, and none comes after it.
  void stop();

  void tell(Subjects subjects) TOPOLET_EXCLUDES(mutex_);
  /// Somebody reads: with kAuto, there are measurements for the next minute.
  void note_reader() TOPOLET_EXCLUDES(mutex_);

  SamplerState state() const TOPOLET_EXCLUDES(mutex_);
  /// Returns what is known, with ages of now in whole seconds; null if nothing is. While these stay the same, so does
  /// what is returned.
  std::shared_ptr<const Load> load() const TOPOLET_EXCLUDES(mutex_);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void run();
  /// False: it is to end.
  bool wait_for_turn() TOPOLET_EXCLUDES(mutex_);
  bool is_wanted() const TOPOLET_EXCLUDES(mutex_);
  void measure(Sampler& sampler) TOPOLET_EXCLUDES(mutex_);
  void forget() TOPOLET_EXCLUDES(mutex_);

  const Deps deps_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  Time read_until_ TOPOLET_GUARDED_BY(mutex_);
  std::shared_ptr<const Subjects> subjects_ TOPOLET_GUARDED_BY(mutex_) = std::make_shared<const Subjects>();
  std::shared_ptr<const Sample> newest_ TOPOLET_GUARDED_BY(mutex_);
  /// `newest_`, and how old it was then.
  struct Aged {
    std::shared_ptr<const Load> load;
    std::chrono::seconds by{};
  };
  mutable Aged aged_ TOPOLET_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace topolet::load

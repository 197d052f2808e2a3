#include "core/load/sampler_thread.hpp"

#include <optional>
#include <utility>

namespace topolet::load {
namespace {

/// Whoever asks again and again is never without values.
constexpr std::chrono::seconds kReaderStays{60};

std::chrono::seconds whole_seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration);
}

Load aged(Load load, std::chrono::milliseconds by) {
  for (auto& [id, container] : load.containers) container.age += by;
  for (auto& [os_index, node] : load.nodes) node.age += by;
  for (auto& [os_index, cpu] : load.cpus) cpu.age += by;
  return load;
}

}  // namespace

std::string_view to_string(Sampling sampling) {
  if (sampling == Sampling::kAuto) return "auto";
  return sampling == Sampling::kOn ? "on" : "off";
}

Sampling sampling_named(std::string_view word) {
  for (const Sampling sampling : {Sampling::kOn, Sampling::kOff}) {
    if (to_string(sampling) == word) return sampling;
  }
  return Sampling::kAuto;
}

SamplerThread::SamplerThread(Deps deps) : deps_(std::move(deps)) {}

void SamplerThread::start() {
  if (deps_.sampling != Sampling::kOff) thread_ = std::thread([this] { run(); });
}

void SamplerThread::stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void SamplerThread::tell(Subjects subjects) {
  auto told = std::make_shared<const Subjects>(std::move(subjects));
  MutexLock lock(mutex_);
  subjects_ = std::move(told);
}

void SamplerThread::note_reader() {
  const Time until = deps_.sampler.clock.steady() + kReaderStays;
  MutexLock lock(mutex_);
  const bool was_read = std::exchange(read_until_, until) > until - kReaderStays;
  if (!was_read) changed_.notify_all();
}

SamplerState SamplerThread::state() const {
  const Time now = deps_.sampler.clock.steady();
  MutexLock lock(mutex_);
  SamplerState state{.sampling = deps_.sampling, .is_measuring = newest_ != nullptr, .newest = newest_, .age = {}};
  if (newest_) state.age = std::chrono::duration_cast<std::chrono::milliseconds>(now - newest_->taken_at);
  return state;
}

std::shared_ptr<const Load> SamplerThread::load() const {
  const Time now = deps_.sampler.clock.steady();
  MutexLock lock(mutex_);
  if (!newest_) return nullptr;
  const std::chrono::seconds by = whole_seconds(now - newest_->taken_at);
  if (!aged_.load || aged_.by != by) aged_ = {std::make_shared<const Load>(aged(newest_->load, by)), by};
  return aged_.load;
}

void SamplerThread::run() {
  std::optional<Sampler> sampler;
  while (wait_for_turn()) {
    if (is_wanted()) {
      if (!sampler) sampler.emplace(deps_.sampler);
      measure(*sampler);
    } else if (sampler) {
      sampler.reset();
      forget();
    }
  }
}

bool SamplerThread::wait_for_turn() {
  MutexLock lock(mutex_);
  // Of real time: what is to be measured goes by that.
  if (!is_stopping_) changed_.wait_until(mutex_, std::chrono::steady_clock::now() + deps_.period);
  return !is_stopping_;
}

bool SamplerThread::is_wanted() const {
  if (deps_.sampling == Sampling::kOn || deps_.is_read()) return true;
  const Time now = deps_.sampler.clock.steady();
  MutexLock lock(mutex_);
  return now < read_until_;
}

void SamplerThread::measure(Sampler& sampler) {
  std::shared_ptr<const Subjects> subjects;
  {
    MutexLock lock(mutex_);
    subjects = subjects_;
  }
  deps_.ask_for_subjects();
  const auto sample = std::make_shared<const Sample>(sampler.sample(*subjects));
  {
    MutexLock lock(mutex_);
    newest_ = sample;
    aged_ = {};
  }
  deps_.on_sample(*sample, *subjects);
}

void SamplerThread::forget() {
  MutexLock lock(mutex_);
  newest_ = nullptr;
  aged_ = {};
}

}  // namespace topolet::load

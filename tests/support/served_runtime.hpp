// The runtime in memory behind a real socket, which records every call: for tests of the core and of whole programs. It
// fails and delays in the ways that a runtime can.
#pragma once

#include <string>
#include <vector>

#include "core/base/mutex.hpp"
#include "tests/support/memory_runtime.hpp"
#include "tests/support/recording_runtime.hpp"

namespace topolet::testing {

/// Any thread may call any function.
class ServedRuntime {
 public:
  /// Where a container was told to be.
  struct Row {
    std::string cpus;                 ///< what the runtime spec has now
    std::string mems;                 ///< what the runtime spec has now
    std::vector<std::string> ran_on;  ///< every set it had while it ran
  };
  /// The fate of the next create.
  enum class Fate { kMade, kRefused, kCreatedAnswerLost, kNotCreatedAnswerLost };

  explicit ServedRuntime(const std::string& socket_path);
  ~ServedRuntime() { release(); }
  ServedRuntime(const ServedRuntime&) = delete;
  ServedRuntime& operator=(const ServedRuntime&) = delete;

  RecordingRuntime& recorder() { return recorder_; }

  void next_create(Fate fate);
  /// Calls of the method arrive but are not answered until release().
  void hold(const std::string& method);
  void release();
  void fail_updates(bool fail);
  /// As a runtime that takes connections and does not serve yet.
  void fail_lists(bool fail);

  /// Empty if there is none.
  Row row(const std::string& container_id) const;
  std::vector<std::string> ids() const;
  void exit(const std::string& container_id, std::int32_t code = 0);
  void forget(const std::string& container_id);
  /// Somebody makes a pod with a container without topolet.
  std::string make(const std::string& pod, const std::string& cpus);
  /// Somebody changes a container without topolet.
  void set_cpus(const std::string& container_id, const std::string& cpus);

 private:
  grpc::Status answer(const std::string& method, std::string& message);

  mutable Mutex mutex_;
  CondVar released_;
  std::string held_ TOPOLET_GUARDED_BY(mutex_);
  Fate next_ TOPOLET_GUARDED_BY(mutex_) = Fate::kMade;
  bool fail_updates_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool fail_lists_ TOPOLET_GUARDED_BY(mutex_) = false;
  MemoryRuntime memory_ TOPOLET_GUARDED_BY(mutex_);
  RecordingRuntime recorder_;  // last: its threads use what is above
};

}  // namespace topolet::testing

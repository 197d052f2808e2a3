#include "core/plugin/call/kept_page.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"
#include "core/plugin/guard/lent_pages.hpp"

namespace topolet::plugin {
namespace {

std::atomic<const char*> g_host_name = "topoletd";

/// What the instances of one plugin are shown, as it lies in memory.
struct Shown {
  static constexpr std::size_t kHosts = 48;

  HostFunctions functions;
  Sinks sinks;
  std::array<topolet_host, kHosts> hosts;
};

class KeptPage {
 public:
  KeptPage(std::string_view name, const HostFunctions& functions) : pages_(sizeof(Shown) + name.size()) {
    auto* const shown = new (pages_.data()) Shown{functions, make_sinks(), {}};
    char* const own_name = reinterpret_cast<char*>(pages_.data() + sizeof(Shown));  // NOLINT
    std::copy(name.begin(), name.end(), own_name);
    for (std::size_t i = 0; i < Shown::kHosts; ++i) {
      shown->hosts[i] = {sizeof(topolet_host),     TOPOLET_ABI_MINOR,       &links_[i],
                         functions.get_capability, {own_name, name.size()}, TOPOLET_STR(TOPOLET_VERSION)};
      links_[i].show(shown->functions);
    }
    pages_.forbid_writing();
    shown_ = shown;
  }

  bool is_full() const { return used_ == Shown::kHosts; }

  KeptByPlugin take() {
    const std::size_t next = used_++;
    return {&shown_->hosts[next], &shown_->sinks, &links_[next]};
  }

 private:
  LentPages pages_;
  const Shown* shown_ = nullptr;
  std::array<HostLink, Shown::kHosts> links_;
  std::size_t used_ = 0;
};

struct KeptPages {
  using Key = std::pair<std::string, std::string>;  ///< the plugin, and the name that it is told

  Mutex mutex;
  std::map<Key, std::vector<std::unique_ptr<KeptPage>>> pages TOPOLET_GUARDED_BY(mutex);
};

/// Never destroyed: plugins may call what they were shown until the process has ended.
KeptPages& kept_pages() {
  static auto* const kPages = new KeptPages;
  return *kPages;
}

}  // namespace

HostLink::Visit::Visit(HostLink& link) {
  // Without the lock, so that those who come too late do not hold up end().
  if (link.has_ended_) return;
  lock_ = std::shared_lock(link.mutex_);
  if (!link.has_ended_) host_ = link.host_;
}

void HostLink::end() {
  has_ended_ = true;
  const std::unique_lock lock(mutex_);
  host_ = nullptr;
}

void introduce_host_as(const char* name) { g_host_name = name; }

KeptByPlugin kept_by_new_instance(const std::string& plugin, const HostFunctions& functions) {
  KeptPages& kept = kept_pages();
  const std::string name = g_host_name.load();
  MutexLock lock(kept.mutex);
  auto& pages = kept.pages[{plugin, name}];
  if (pages.empty() || pages.back()->is_full()) pages.push_back(std::make_unique<KeptPage>(name, functions));
  return pages.back()->take();
}

}  // namespace topolet::plugin

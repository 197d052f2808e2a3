#include "core/plugin/call/kept_page.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"
#include "core/plugin/guard/lent_pages.hpp"

namespace topolet::plugin {
namespace {

/// What the instances of one plugin are shown, as it lies in memory.
struct Shown {
  static constexpr std::size_t kHosts = 48;

  HostFunctions functions;
  Sinks sinks;
  std::array<topolet_host, kHosts> hosts;
};

class KeptPage {
 public:
  KeptPage(const HostIdentity& identity, const HostFunctions& functions)
      : pages_(sizeof(Shown) + identity.name.size() + identity.version.size()) {
    auto* const shown = new (pages_.data()) Shown{functions, make_sinks(), {}};
    char* const texts = reinterpret_cast<char*>(pages_.data() + sizeof(Shown));  // NOLINT
    char* const version = std::copy(identity.name.begin(), identity.name.end(), texts);
    std::copy(identity.version.begin(), identity.version.end(), version);
    for (std::size_t i = 0; i < Shown::kHosts; ++i) {
      shown->hosts[i] = {sizeof(topolet_host),      TOPOLET_ABI_MINOR,
                         &links_[i],                functions.get_capability,
                         {texts, identity.name.size()}, {version, identity.version.size()}};
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
  using Key = std::pair<std::string, HostIdentity>;

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

KeptByPlugin kept_by_new_instance(const std::string& plugin, const HostIdentity& identity,
                                  const HostFunctions& functions) {
  KeptPages& kept = kept_pages();
  MutexLock lock(kept.mutex);
  auto& pages = kept.pages[{plugin, identity}];
  if (pages.empty() || pages.back()->is_full()) pages.push_back(std::make_unique<KeptPage>(identity, functions));
  return pages.back()->take();
}

}  // namespace topolet::plugin

#include "core/plugin_checker/instance_proxy.hpp"

#include "core/plugin_checker/enlarged_structs.hpp"

namespace topolet::plugin_checker {
namespace {

InstanceProxy& proxy_of(const topolet_instance* view) { return *static_cast<InstanceProxy*>(view->context); }

}  // namespace

InstanceProxy::InstanceProxy(const topolet_instance* plugin) : plugin_(plugin) {
  view_ = {sizeof(view_), 0, this, &get_capability, &destroy};
  score_ = {sizeof(score_), 0, [](auto* view, auto* request, auto* sink) {
              const InstanceProxy& self = proxy_of(view);
              EnlargedStructs enlarged;
              self.before_call();
              return self.plugin_score_->score(self.plugin_, enlarged.enlarge(request), enlarged.enlarge_flat(sink));
            }};
  propose_ = {sizeof(propose_), 0, [](auto* view, auto* request, auto* sink) {
                const InstanceProxy& self = proxy_of(view);
                EnlargedStructs enlarged;
                self.before_call();
                return self.plugin_propose_->propose(self.plugin_, enlarged.enlarge(request),
                                                     enlarged.enlarge_flat(sink));
              }};
  pick_ = {sizeof(pick_), 0, [](auto* view, auto* request, auto* sink) {
             const InstanceProxy& self = proxy_of(view);
             EnlargedStructs enlarged;
             self.before_call();
             return self.plugin_pick_->pick(self.plugin_, enlarged.enlarge(request), enlarged.enlarge_flat(sink));
           }};
  adjust_ = {sizeof(adjust_), 0, [](auto* view, auto* request, auto* sink) {
               const InstanceProxy& self = proxy_of(view);
               EnlargedStructs enlarged;
               self.before_call();
               return self.plugin_adjust_->adjust(self.plugin_, enlarged.enlarge(request), enlarged.enlarge_flat(sink));
             }};
  events_ = {sizeof(events_), 0, [](auto* view, auto* event, auto* sink) {
               const InstanceProxy& self = proxy_of(view);
               EnlargedStructs enlarged;
               self.before_call();
               return self.plugin_events_->notify(self.plugin_, enlarged.enlarge(event), enlarged.enlarge_flat(sink));
             }};
  tick_ = {sizeof(tick_), 0, [](auto* view, auto* request, auto* sink) {
             const InstanceProxy& self = proxy_of(view);
             EnlargedStructs enlarged;
             self.before_call();
             return self.plugin_tick_->tick(self.plugin_, enlarged.enlarge(request), enlarged.enlarge_flat(sink));
           }};
}

const void* InstanceProxy::get_capability(const topolet_instance* instance, topolet_str id) {
  InstanceProxy& self = proxy_of(instance);
  const void* found = self.plugin_->get_capability(self.plugin_, id);
  if (found == nullptr) return nullptr;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) {
    self.plugin_score_ = static_cast<const topolet_score*>(found);
    return &self.score_;
  }
  if (topolet_str_is(id, TOPOLET_PROPOSE_ID)) {
    self.plugin_propose_ = static_cast<const topolet_propose*>(found);
    return &self.propose_;
  }
  if (topolet_str_is(id, TOPOLET_PICK_ID)) {
    self.plugin_pick_ = static_cast<const topolet_pick*>(found);
    return &self.pick_;
  }
  if (topolet_str_is(id, TOPOLET_ADJUST_ID)) {
    self.plugin_adjust_ = static_cast<const topolet_adjust*>(found);
    return &self.adjust_;
  }
  if (topolet_str_is(id, TOPOLET_EVENTS_ID)) {
    self.plugin_events_ = static_cast<const topolet_events*>(found);
    return &self.events_;
  }
  if (topolet_str_is(id, TOPOLET_TICK_ID)) {
    self.plugin_tick_ = static_cast<const topolet_tick*>(found);
    self.tick_.interval_ms = self.plugin_tick_->interval_ms;
    return &self.tick_;
  }
  return found;
}

void InstanceProxy::destroy(const topolet_instance* instance) {
  const topolet_instance* plugin = proxy_of(instance).plugin_;
  plugin->destroy(plugin);
}

}  // namespace topolet::plugin_checker

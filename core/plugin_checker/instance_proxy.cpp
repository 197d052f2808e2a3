#include "core/plugin_checker/instance_proxy.hpp"

namespace topolet::plugin_checker {
namespace {

InstanceProxy& proxy_of(const topolet_instance* view) { return *static_cast<InstanceProxy*>(view->context); }

}  // namespace

template <class Function, class Request, class Sink>
std::int32_t InstanceProxy::pass_on(Function* function, const Request* request, const Sink* sink) const {
  EnlargedStructs enlarged(values_);
  const Request* const larger_request = enlarged.enlarge(request);
  const Sink* const larger_sink = enlarged.enlarge_flat(sink);
  enlarged.seal();
  before_call();
  return function(plugin_, larger_request, larger_sink);
}

InstanceProxy::InstanceProxy(const topolet_instance* plugin, ShownValues values) : plugin_(plugin), values_(values) {
  view_ = {sizeof(view_), 0, this, &get_capability, &destroy};
  score_ = {sizeof(score_), 0, [](auto* view, auto* request, auto* sink) {
              const InstanceProxy& self = proxy_of(view);
              return self.pass_on(self.plugin_score_->score, request, sink);
            }};
  propose_ = {sizeof(propose_), 0, [](auto* view, auto* request, auto* sink) {
                const InstanceProxy& self = proxy_of(view);
                return self.pass_on(self.plugin_propose_->propose, request, sink);
              }};
  pick_ = {sizeof(pick_), 0, [](auto* view, auto* request, auto* sink) {
             const InstanceProxy& self = proxy_of(view);
             return self.pass_on(self.plugin_pick_->pick, request, sink);
           }};
  adjust_ = {sizeof(adjust_), 0, [](auto* view, auto* request, auto* sink) {
               const InstanceProxy& self = proxy_of(view);
               return self.pass_on(self.plugin_adjust_->adjust, request, sink);
             }};
  events_ = {sizeof(events_), 0, [](auto* view, auto* event, auto* sink) {
               const InstanceProxy& self = proxy_of(view);
               return self.pass_on(self.plugin_events_->notify, event, sink);
             }};
  tick_ = {sizeof(tick_), 0, [](auto* view, auto* request, auto* sink) {
             const InstanceProxy& self = proxy_of(view);
             return self.pass_on(self.plugin_tick_->tick, request, sink);
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

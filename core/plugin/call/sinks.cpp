// The functions that a plugin answers with, each of which goes to the reply of its thread's call.
#include <cstdint>

#include "core/plugin/call/sink_replies.hpp"
#include "core/plugin/guard/control_thread.hpp"

namespace topolet::plugin {
namespace {

/// The reply that the current call of this thread into a plugin writes to. A sink does not say so itself: it is lent,
/// and a plugin may have written to it.
struct OpenReply {
  SinkReply* reply = nullptr;
  const void* type = nullptr;
};
constinit thread_local OpenReply t_open_reply;

template <class Reply>
constexpr char kTypeOf = 0;

/// The function of a sink that calls `Method` of the reply. In any other call than the sink's own, and on any other
/// thread, nothing happens.
template <class Sink, class Reply, auto Method>
struct Forward;
template <class Sink, class Reply, class Owner, class... Arguments, std::int32_t (Owner::*Method)(Arguments...)>
struct Forward<Sink, Reply, Method> {
  static std::int32_t call(const Sink* /*sink*/, Arguments... arguments) {
    if (t_open_reply.type != &kTypeOf<Reply> || is_abandoned_control_call()) return TOPOLET_LATE;
    return (static_cast<Reply*>(t_open_reply.reply)->*Method)(arguments...);
  }
};

}  // namespace

template <class Reply>
ReplyScope<Reply>::ReplyScope(Reply& reply) : outer_reply_(t_open_reply.reply), outer_type_(t_open_reply.type) {
  t_open_reply = {&reply, &kTypeOf<Reply>};
}

template <class Reply>
ReplyScope<Reply>::~ReplyScope() {
  t_open_reply = {outer_reply_, outer_type_};
}

template class ReplyScope<ScoreReply>;
template class ReplyScope<ProposeReply>;
template class ReplyScope<PickReply>;
template class ReplyScope<AdjustReply>;
template class ReplyScope<SinkReply>;
template class ReplyScope<TickReply>;
template class ReplyScope<CreateReply>;

namespace {

template <class Reply, auto Method, class Sink, class... Arguments>
void forward(std::int32_t (*&function)(const Sink* sink, Arguments... arguments)) {
  function = &Forward<Sink, Reply, Method>::call;
}

}  // namespace

Sinks make_sinks() {
  Sinks sinks{};
  sinks.score.struct_size = sizeof(sinks.score);
  forward<ScoreReply, &ScoreReply::set>(sinks.score.set);
  forward<ScoreReply, &ScoreReply::set_error>(sinks.score.error);
  forward<ScoreReply, &ScoreReply::set_code>(sinks.score.code);

  sinks.propose.struct_size = sizeof(sinks.propose);
  forward<ProposeReply, &ProposeReply::add>(sinks.propose.nodes);
  forward<ProposeReply, &ProposeReply::set_error>(sinks.propose.error);

  sinks.pick.struct_size = sizeof(sinks.pick);
  forward<PickReply, &PickReply::set_narrow>(sinks.pick.narrow);
  forward<PickReply, &PickReply::set_withhold>(sinks.pick.withhold);
  forward<PickReply, &PickReply::set_order>(sinks.pick.order);
  forward<PickReply, &PickReply::set_reason>(sinks.pick.reason);
  forward<PickReply, &PickReply::set_error>(sinks.pick.error);
  forward<PickReply, &PickReply::set_unmet>(sinks.pick.unmet);
  forward<PickReply, &PickReply::add_minimum>(sinks.pick.at_least);
  forward<PickReply, &PickReply::set_rejected>(sinks.pick.reject);
  forward<PickReply, &PickReply::set_code>(sinks.pick.code);
  forward<PickReply, &PickReply::add_replacement>(sinks.pick.replace);
  forward<PickReply, &PickReply::soften>(sinks.pick.soften);

  sinks.adjust.struct_size = sizeof(sinks.adjust);
  forward<AdjustReply, &AdjustReply::set_mems>(sinks.adjust.mems);
  forward<AdjustReply, &AdjustReply::add_env>(sinks.adjust.env);
  forward<AdjustReply, &AdjustReply::add_annotation>(sinks.adjust.annotation);
  forward<AdjustReply, &AdjustReply::set_reason>(sinks.adjust.reason);
  forward<AdjustReply, &AdjustReply::set_error>(sinks.adjust.error);
  forward<AdjustReply, &AdjustReply::add_used_device>(sinks.adjust.uses);
  forward<AdjustReply, &AdjustReply::add_tag>(sinks.adjust.tag);
  forward<AdjustReply, &AdjustReply::add_file>(sinks.adjust.unified);
  forward<AdjustReply, &AdjustReply::set_rdt_class>(sinks.adjust.rdt_class);
  forward<AdjustReply, &AdjustReply::set_memory_policy>(sinks.adjust.memory_policy);
  forward<AdjustReply, &AdjustReply::set_scheduler>(sinks.adjust.scheduler);
  forward<AdjustReply, &AdjustReply::set_io_priority>(sinks.adjust.io_priority);

  sinks.event.struct_size = sizeof(sinks.event);
  forward<SinkReply, &SinkReply::set_error>(sinks.event.error);

  sinks.tick.struct_size = sizeof(sinks.tick);
  forward<TickReply, &TickReply::replace>(sinks.tick.replace);
  forward<TickReply, &TickReply::set_error>(sinks.tick.error);

  sinks.create.struct_size = sizeof(sinks.create);
  forward<CreateReply, &CreateReply::set_error>(sinks.create.set);
  return sinks;
}

}  // namespace topolet::plugin

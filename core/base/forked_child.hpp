// Tells a process from the children that foreign code forks of it.
#pragma once

namespace topolet {

/// From now on is_forked_child() is true in every process that comes of this one without an exec, by fork, vfork or
/// clone. `when_back`: what such a child does before end_if_forked_child() ends it; only what a signal handler may do.
void note_this_process(void (*when_back)() = nullptr);

/// False as long as no process was noted. Async-signal-safe.
bool is_forked_child();

/// Ends a forked child at once, as failed, and without exit handlers. To be called wherever foreign code returns: a
/// child of it that comes back would go on in this program's own work, and call the foreign code again.
void end_if_forked_child();

}  // namespace topolet

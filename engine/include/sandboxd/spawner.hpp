// `sandboxd spawn`: starts launchers for a host whose own process is too large to be copied for each of them.
#pragma once

namespace sandboxd {

/// Serves `socket`, on which each launch is two connections: what they carry is told in spawner.cpp.
/// Ends with whoever started it, and every launcher ends with it. `program` is the launchers' name for
/// themselves.
[[nodiscard]] int spawn_launchers(const char* program, const char* socket);

}  // namespace sandboxd

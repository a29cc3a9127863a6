// `sandboxd launch`: starts one container, stays its parent, serves its relay, and reports its end.
#pragma once

namespace sandboxd {

/// Reads the configuration from standard input. The status that the container ended with.
[[nodiscard]] int launch();
/// `sandboxd sweep <dir>...`: removes the scratch that killed launchers of an ordinary user left behind.
[[nodiscard]] int sweep(int count, char** directories);

}  // namespace sandboxd

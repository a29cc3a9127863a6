#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "sandboxd/agent/runtime.hpp"

namespace sandboxd::agent {

/// Awaited operations give their error code with their result and never throw it.
inline constexpr auto awaiting = asio::as_tuple(asio::use_awaitable);

}  // namespace sandboxd::agent

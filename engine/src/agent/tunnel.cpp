#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <memory>

#include "sandboxd/agent/asio.hpp"
#include "sandboxd/agent/server.hpp"

namespace sandboxd::agent {
namespace {

using asio::ip::tcp;
using boost::system::error_code;
constexpr std::size_t kBuffer = std::size_t{64} << 10U;

/// Copies one way until its end, and passes the end on.
template <class From, class To>
Task<void> copy(std::shared_ptr<From> from, std::shared_ptr<To> to) {
  const auto buffer = std::make_unique<std::array<char, kBuffer>>();
  while (true) {
    const auto [error, count] = co_await from->async_read_some(asio::buffer(*buffer), awaiting);
    if (error) break;
    const auto [write_error, written] =
        co_await asio::async_write(*to, asio::buffer(*buffer, count), awaiting);
    if (write_error) {
      error_code ignored;
      from->close(ignored);
      break;
    }
  }
  error_code ignored;
  to->shutdown(To::shutdown_send, ignored);
}

Task<void> answer(ControlSocket& socket, std::string text) {
  co_await asio::async_write(socket, asio::buffer(text), awaiting);
}

}  // namespace

Task<void> serve_port(App& app, ControlSocket socket, std::uint16_t port, std::string first) {
  const auto inside = std::make_shared<tcp::socket>(app.runtime.io());
  error_code last;
  for (const char* address : {"127.0.0.1", "::1"}) {
    error_code ignored;
    inside->close(ignored);
    const auto [error] = co_await inside->async_connect({asio::ip::make_address(address), port}, awaiting);
    // The first refusal says more than one of an address family that may not be there.
    if (!error || !last) last = error;
    if (!error) break;
  }
  if (last) {
    const char* name = ::strerrorname_np(last.value());
    co_await answer(socket, std::string("ERR ") + (name == nullptr ? "EIO" : name) + "\n");
    co_return;
  }
  inside->set_option(tcp::no_delay(true));
  const auto outside = std::make_shared<ControlSocket>(std::move(socket));
  co_await answer(*outside, "OK\n");
  const auto [error, count] = co_await asio::async_write(*inside, asio::buffer(first), awaiting);
  if (error) co_return;
  app.runtime.detach(copy(outside, inside));
  co_await copy(inside, outside);
}

}  // namespace sandboxd::agent

#include "sandboxd/relay.hpp"

#include <arpa/inet.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <optional>
#include <vector>

#include "sandboxd/dns.hpp"

namespace sandboxd {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using boost::system::error_code;
using Stream = asio::generic::stream_protocol::socket;
using Tcp = asio::ip::tcp;
using Udp = asio::ip::udp;
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t chunk_size = std::size_t{128} << 10U;
constexpr std::size_t most_connections = 2048;

struct Destination {
  std::string address;
  std::uint16_t port = 0;
  std::optional<std::string> name;
};

std::optional<Destination> destination_v4(int socket, const NameTable& names) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockopt(socket, SOL_IP, SO_ORIGINAL_DST, &address, &size) != 0) return std::nullopt;
  std::array<std::uint8_t, 4> bytes{};
  std::memcpy(bytes.data(), &address.sin_addr, bytes.size());
  // Somebody inside who connects to the relay itself has no destination.
  if (bytes[0] == 127) return std::nullopt;
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return Destination{text.data(), ntohs(address.sin_port), names.name_of_v4(bytes)};
}

std::optional<Destination> destination_v6(int socket, const NameTable& names) {
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  if (::getsockopt(socket, SOL_IPV6, IP6T_SO_ORIGINAL_DST, &address, &size) != 0) return std::nullopt;
  if (IN6_IS_ADDR_LOOPBACK(&address.sin6_addr)) return std::nullopt;
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &address.sin6_addr, bytes.size());
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
  return Destination{text.data(), ntohs(address.sin6_port), names.name_of_v6(bytes)};
}

// Names and addresses hold no character that JSON would want escaped.
std::string introduction(const Destination& destination) {
  std::string line = R"({"kind":"tcp","destination":")" + destination.address + R"(","port":)" +
                     std::to_string(destination.port);
  if (destination.name) line += R"(,"host":")" + *destination.name + '"';
  return line + "}\n";
}

// The peer learns at once that the connection is gone, rather than that it has ended.
void abort_stream(Stream& stream) {
  error_code ignored;
  stream.set_option(asio::socket_base::linger(true, 0), ignored);
  stream.close(ignored);
}

}  // namespace

struct Relay::State {
  State(asio::io_context& io, std::string path)
      : io(io), egress_path(std::move(path)), scratch(chunk_size), room(io) {}

  awaitable<void> accept(Tcp::acceptor& acceptor, bool v6);
  awaitable<void> serve(Stream client, bool v6);
  awaitable<std::optional<Stream>> connect_host();
  awaitable<void> pump(Stream& from, Stream& to);
  awaitable<void> answer_datagrams();
  awaitable<void> accept_queries();
  awaitable<void> answer_stream(Tcp::socket client);

  asio::io_context& io;
  std::string egress_path;
  NameTable names;
  bool ipv6 = false;
  std::optional<Tcp::acceptor> relay_v4;
  std::optional<Tcp::acceptor> relay_v6;
  std::optional<Udp::socket> dns_udp;
  std::optional<Tcp::acceptor> dns_tcp;
  // One buffer for all: between a read and the write that follows nobody else runs. What does not fit is kept
  // apart.
  std::vector<char> scratch;
  std::size_t connections = 0;
  asio::steady_timer room;
};

awaitable<void> Relay::State::accept(Tcp::acceptor& acceptor, bool v6) {
  for (;;) {
    while (connections >= most_connections) {
      // The rest waits in the backlog.
      room.expires_at(asio::steady_timer::time_point::max());
      co_await room.async_wait(quietly);
    }
    auto [error, socket] = co_await acceptor.async_accept(quietly);
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    if (error) {
      asio::steady_timer pause(io, std::chrono::milliseconds(20));
      co_await pause.async_wait(quietly);
      continue;
    }
    error_code ignored;
    socket.set_option(Tcp::no_delay(true), ignored);
    asio::co_spawn(io, serve(Stream(std::move(socket)), v6), asio::detached);
  }
}

awaitable<std::optional<Stream>> Relay::State::connect_host() {
  // A full backlog means a busy host: wait for it a little, not for ever.
  for (int attempt = 0; attempt < 200; ++attempt) {
    asio::local::stream_protocol::socket host(io);
    auto [error] = co_await host.async_connect(asio::local::stream_protocol::endpoint(egress_path), quietly);
    if (!error) co_return Stream(std::move(host));
    if (error != asio::error::try_again && error != asio::error::would_block) co_return std::nullopt;
    asio::steady_timer pause(io, std::chrono::milliseconds(10));
    co_await pause.async_wait(quietly);
  }
  co_return std::nullopt;
}

awaitable<void> Relay::State::serve(Stream client, bool v6) {
  struct Counted {
    State& state;
    explicit Counted(State& owner) : state(owner) { ++state.connections; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() {
      --state.connections;
      state.room.cancel();
    }
  } counted(*this);
  const auto destination =
      v6 ? destination_v6(client.native_handle(), names) : destination_v4(client.native_handle(), names);
  if (!destination) {
    abort_stream(client);
    co_return;
  }
  auto host = co_await connect_host();
  if (!host) {
    abort_stream(client);
    co_return;
  }
  const std::string line = introduction(*destination);
  auto [error, count] = co_await asio::async_write(*host, asio::buffer(line), quietly);
  if (error) {
    abort_stream(client);
    co_return;
  }
  error_code ignored;
  client.non_blocking(true, ignored);
  host->non_blocking(true, ignored);
  using namespace asio::experimental::awaitable_operators;
  co_await (pump(client, *host) && pump(*host, client));
}

awaitable<void> Relay::State::pump(Stream& from, Stream& to) {
  const auto give_up = [&] {
    abort_stream(from);
    abort_stream(to);
  };
  for (;;) {
    auto [wait_error] = co_await from.async_wait(Stream::wait_read, quietly);
    if (wait_error || !from.is_open() || !to.is_open()) {
      give_up();
      co_return;
    }
    error_code error;
    const std::size_t count = from.read_some(asio::buffer(scratch), error);
    if (error == asio::error::would_block) continue;
    if (error == asio::error::eof) {
      to.shutdown(Stream::shutdown_send, error);
      co_return;
    }
    if (error) {
      give_up();
      co_return;
    }
    std::size_t sent = to.write_some(asio::buffer(scratch.data(), count), error);
    if (error == asio::error::would_block) sent = 0;
    if (error && error != asio::error::would_block) {
      give_up();
      co_return;
    }
    if (sent == count) continue;
    const std::vector<char> rest(scratch.begin() + static_cast<std::ptrdiff_t>(sent),
                                 scratch.begin() + static_cast<std::ptrdiff_t>(count));
    auto [write_error, written] = co_await asio::async_write(to, asio::buffer(rest), quietly);
    if (write_error) {
      give_up();
      co_return;
    }
  }
}

awaitable<void> Relay::State::answer_datagrams() {
  std::array<char, 4096> query;
  for (;;) {
    Udp::endpoint peer;
    auto [error, count] = co_await dns_udp->async_receive_from(asio::buffer(query), peer, quietly);
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    if (error) continue;
    const auto response = answer_dns({query.data(), count}, names, ipv6);
    if (!response) continue;
    // A resolver may drop what it cannot send at once.
    error_code ignored;
    dns_udp->send_to(asio::buffer(*response), peer, 0, ignored);
  }
}

awaitable<void> Relay::State::accept_queries() {
  for (;;) {
    auto [error, socket] = co_await dns_tcp->async_accept(quietly);
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    if (!error) asio::co_spawn(io, answer_stream(std::move(socket)), asio::detached);
  }
}

awaitable<void> Relay::State::answer_stream(Tcp::socket client) {
  std::array<std::uint8_t, 2> length{};
  std::string query;
  for (;;) {
    auto [head_error, head] = co_await asio::async_read(client, asio::buffer(length), quietly);
    if (head_error) co_return;
    query.resize(static_cast<std::size_t>((length[0] << 8U) | length[1]));
    auto [body_error, body] = co_await asio::async_read(client, asio::buffer(query), quietly);
    if (body_error) co_return;
    auto response = answer_dns(query, names, ipv6);
    if (!response) co_return;
    const auto size = response->size();
    const std::array<char, 2> prefix{static_cast<char>(size >> 8U), static_cast<char>(size & 0xffU)};
    response->insert(0, prefix.data(), prefix.size());
    auto [write_error, written] = co_await asio::async_write(client, asio::buffer(*response), quietly);
    if (write_error) co_return;
  }
}

Relay::Relay(asio::io_context& io, NetworkSockets sockets, std::string egress_path)
    : state_(std::make_unique<State>(io, std::move(egress_path))) {
  State& state = *state_;
  state.ipv6 = static_cast<bool>(sockets.relay_v6);
  state.relay_v4.emplace(io, Tcp::v4(), sockets.relay_v4.release());
  asio::co_spawn(io, state.accept(*state.relay_v4, false), asio::detached);
  if (sockets.relay_v6) {
    state.relay_v6.emplace(io, Tcp::v6(), sockets.relay_v6.release());
    asio::co_spawn(io, state.accept(*state.relay_v6, true), asio::detached);
  }
  state.dns_udp.emplace(io, Udp::v4(), sockets.dns_udp.release());
  state.dns_tcp.emplace(io, Tcp::v4(), sockets.dns_tcp.release());
  asio::co_spawn(io, state.answer_datagrams(), asio::detached);
  asio::co_spawn(io, state.accept_queries(), asio::detached);
}

Relay::~Relay() = default;

}  // namespace sandboxd

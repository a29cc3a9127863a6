// What leaves a container: connections that its network rules sent here go on to the host with the
// destination they were meant for, and its name where the resolver gave one.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "sandboxd/network.hpp"

namespace sandboxd {

/// Serves relay and resolver until it is destroyed with the io_context. Runs outside the container, on
/// sockets that were made inside.
class Relay {
 public:
  /// `egress_path` is the socket that the host listens on.
  Relay(boost::asio::io_context& io, NetworkSockets sockets, std::string egress_path);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sandboxd

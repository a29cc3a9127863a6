#include "sandboxd/agent/agent.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <csignal>
#include <cstdio>

#include "sandboxd/agent/asio.hpp"
#include "sandboxd/agent/server.hpp"
#include "sandboxd/agent/session.hpp"

namespace sandboxd::agent {
namespace {

/// How long children get to end themselves after SIGTERM.
constexpr auto kShutdownGrace = std::chrono::milliseconds(1000);

Task<void> accept_connections(App& app, asio::local::stream_protocol::acceptor& acceptor) {
  while (true) {
    auto [error, socket] = co_await acceptor.async_accept(awaiting);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      // Out of descriptors, most likely: those that serve now will give some back.
      co_await app.runtime.sleep(std::chrono::milliseconds(20));
      continue;
    }
    app.runtime.detach(serve_connection(app, std::move(socket)));
  }
}

bool nothing_left(App& app) {
  return ::getpid() == 1 ? ::kill(-1, 0) < 0 : app.runtime.children().empty();
}

void signal_everything(App& app, int signal) {
  if (::getpid() == 1) {
    ::kill(-1, signal);
    return;
  }
  for (const pid_t child : app.runtime.children()) signal_tree({child, true, 0}, signal);
}

Task<void> shut_down(App& app) {
  const auto until = Clock::now() + kShutdownGrace;
  // Idle shells hold no data; only what commands left running is worth a wait.
  app.sessions->remove_all();
  signal_everything(app, SIGTERM);
  while (Clock::now() < until && !nothing_left(app)) {
    co_await app.runtime.sleep(std::chrono::milliseconds(2));
    app.runtime.reap();
  }
  signal_everything(app, SIGKILL);
  app.runtime.io().stop();
}

Task<void> handle_signals(App& app, UniqueFd fd) {
  asio::posix::stream_descriptor descriptor(app.runtime.io(), fd.release());
  bool stopping = false;
  while (true) {
    signalfd_siginfo info{};
    const auto [error, count] =
        co_await descriptor.async_read_some(asio::buffer(&info, sizeof info), awaiting);
    if (error || count != sizeof info) co_return;
    if (info.ssi_signo == SIGCHLD) {
      app.runtime.reap();
    } else if (!stopping) {
      stopping = true;
      app.runtime.detach(shut_down(app));
    }
  }
}

}  // namespace

int run_agent(const AgentConfig& config, std::optional<WaitingShell> shell) {
  sigset_t handled;
  ::sigemptyset(&handled);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&handled, signal);
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd signals(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) {
    std::perror("sandboxd agent: signalfd");
    return 70;
  }
  App app(config);
  if (shell) app.sessions->adopt(std::move(*shell));
  boost::system::error_code error;
  asio::local::stream_protocol::acceptor acceptor(app.runtime.io());
  acceptor.assign(asio::local::stream_protocol(), config.control_listen_fd, error);
  if (error) {
    std::fprintf(stderr, "sandboxd agent: control socket: %s\n", error.message().c_str());
    return 70;
  }
  app.runtime.detach(handle_signals(app, std::move(signals)));
  app.runtime.detach(accept_connections(app, acceptor));
  app.runtime.reap();
  app.runtime.io().run();
  return 0;
}

}  // namespace sandboxd::agent

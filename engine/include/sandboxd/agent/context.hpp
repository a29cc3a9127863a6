#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxd/agent/child.hpp"
#include "sandboxd/agent/http.hpp"

namespace sandboxd::agent {

/// The programs that keep a context's variables and run its code; they speak JSON lines on descriptors 3
/// and 4.
std::string_view python_driver();
std::string_view javascript_driver();

enum class Language : std::uint8_t { python, javascript, typescript };
std::optional<Language> parse_language(std::string_view name);
std::string_view language_name(Language language);

struct ContextOptions {
  std::string id;
  Language language = Language::python;
  std::string cwd;
  std::map<std::string, std::string> env;
};

/// One interpreter whose variables stay between runs.
class Context : public std::enable_shared_from_this<Context> {
 public:
  Context(Runtime& runtime, ContextOptions options);
  /// Starts the interpreter unless it runs.
  Result<void> start();
  /// Runs the code and sends stdout, stderr, result, error and execution_complete events.
  Task<void> run(Sink& sink, std::string code, std::optional<std::chrono::milliseconds> timeout,
                 std::shared_ptr<Cancellation> cancellation);
  void end();
  [[nodiscard]] Json describe() const;
  [[nodiscard]] const ContextOptions& options() const { return options_; }

 private:
  struct Run;
  Task<bool> pump(Sink& sink, Run& run);
  Task<bool> send_text(Sink& sink, const char* type, std::string text);
  Task<bool> send_line(Sink& sink, Run& run, const std::string& line);
  Task<void> interrupt(Run& run);
  Task<void> finish(Sink& sink, Run& run);

  Runtime& runtime_;
  ContextOptions options_;
  std::shared_ptr<Child> child_;
  std::shared_ptr<OutputPump> events_;
  std::shared_ptr<FdWatch> requests_;
  Mutex mutex_;
  std::string created_at_;
  std::string used_at_;
  int runs_ = 0;
};

class Contexts {
 public:
  explicit Contexts(Runtime& runtime) : runtime_(runtime) {}
  Result<std::shared_ptr<Context>> create(ContextOptions options);
  [[nodiscard]] Result<std::shared_ptr<Context>> find(const std::string& id) const;
  /// The one that runs without a context id of a language share.
  Result<std::shared_ptr<Context>> shared(Language language);
  bool remove(const std::string& id);
  [[nodiscard]] std::vector<std::shared_ptr<Context>> all() const;

 private:
  Runtime& runtime_;
  std::map<std::string, std::shared_ptr<Context>> contexts_;
};

}  // namespace sandboxd::agent

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sandboxd/squash/metadata.hpp"

namespace sandboxd::squash {

struct StoredBlock {
  std::uint64_t start = 0;
  std::uint32_t size = 0;  ///< with the format's flag when it is not compressed
};

inline constexpr std::uint32_t kRawBlock = 1U << 24U;

/// Compresses blocks on threads of its own and writes them in the order in which they were given. Holds only
/// a few, so that an archive of any size takes the same memory.
class BlockWriter {
 public:
  BlockWriter(int fd, std::uint64_t position, unsigned threads);
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  /// `stored` is called on this thread, by a later call at the latest by `drain`.
  Outcome<void> submit(std::string bytes, std::function<void(StoredBlock)> stored);
  /// Until everything is written.
  Outcome<void> drain();
  /// Where the next block goes; only after `drain`.
  [[nodiscard]] std::uint64_t position() const { return position_; }
  void rewind(std::uint64_t position) { position_ = position; }
  /// Reads what was stored, as it stands in the archive.
  Outcome<std::string> read(std::uint64_t start, std::size_t size) const;
  /// Writes at the end; only after `drain`.
  Outcome<void> write(std::string_view bytes);

 private:
  struct Job {
    std::string raw;
    std::optional<std::string> packed;
    std::function<void(StoredBlock)> stored;
    bool done = false;
  };
  void compress_jobs();
  Outcome<void> retire_first();

  int fd_;
  std::uint64_t position_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::condition_variable done_;
  std::deque<std::shared_ptr<Job>> ordered_;
  std::deque<std::shared_ptr<Job>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sandboxd::squash

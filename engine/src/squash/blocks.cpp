#include "sandboxd/squash/blocks.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sandboxd::squash {

BlockWriter::BlockWriter(int fd, std::uint64_t position, unsigned threads) : fd_(fd), position_(position) {
  for (unsigned index = 0; index < threads; ++index) threads_.emplace_back([this] { compress_jobs(); });
}

BlockWriter::~BlockWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    waiting_.clear();
  }
  given_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void BlockWriter::compress_jobs() {
  std::unique_lock lock(mutex_);
  while (true) {
    given_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const auto job = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    job->packed = compressed(job->raw);
    lock.lock();
    job->done = true;
    done_.notify_one();
  }
}

Outcome<void> BlockWriter::submit(std::string bytes, std::function<void(StoredBlock)> stored) {
  while (ordered_.size() >= 2 * threads_.size() + 2) {
    if (auto written = retire_first(); !written) return written;
  }
  auto job = std::make_shared<Job>();
  job->raw = std::move(bytes);
  job->stored = std::move(stored);
  ordered_.push_back(job);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  given_.notify_one();
  return {};
}

Outcome<void> BlockWriter::drain() {
  while (!ordered_.empty()) {
    if (auto written = retire_first(); !written) return written;
  }
  return {};
}

Outcome<void> BlockWriter::retire_first() {
  const auto job = ordered_.front();
  ordered_.pop_front();
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&job] { return job->done; });
  }
  const std::string& bytes = job->packed ? *job->packed : job->raw;
  const StoredBlock block{position_,
                          static_cast<std::uint32_t>(bytes.size()) | (job->packed ? 0U : kRawBlock)};
  if (auto written = write(bytes); !written) return written;
  job->stored(block);
  return {};
}

Outcome<std::string> BlockWriter::read(std::uint64_t start, std::size_t size) const {
  std::string out(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::pread(fd_, out.data() + done, size - done, static_cast<off_t>(start + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return tl::unexpected(std::string("cannot read the archive: ") + std::strerror(errno));
    done += static_cast<std::size_t>(count);
  }
  return out;
}

Outcome<void> BlockWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(position_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return tl::unexpected(std::string("cannot write the archive: ") + std::strerror(errno));
    position_ += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace sandboxd::squash

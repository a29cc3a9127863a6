#include "sandboxd/squash/files.hpp"

#include <lz4.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

namespace sandboxd::squash {
namespace {

/// Finds what may be the same. It is compared before it is taken for the same.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      add(word);
    }
    for (const char byte : bytes) add(static_cast<unsigned char>(byte));
  }
  void add(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9E3779B97F4A7C15U;
    value_ ^= value_ >> 29U;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

bool all_zero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

/// Up to `size` bytes; fewer where the file ends; nothing when it cannot be read.
std::optional<std::string> read_at(int fd, std::uint64_t offset, std::size_t size) {
  std::string out(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(fd, out.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  out.resize(done);
  return out;
}

/// Knows without reading where nothing is stored: a hole of a terabyte takes no time.
class Holes {
 public:
  Holes(int fd, bool any) : fd_(fd), any_(any) {}
  bool cover(std::uint64_t offset, std::uint64_t length) {
    if (!any_) return false;
    if (offset >= data_end_) look(offset);
    return offset + length <= data_begin_;
  }

 private:
  void look(std::uint64_t offset) {
    data_begin_ = data_end_ = std::numeric_limits<std::uint64_t>::max();
    const off_t begin = ::lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
    // Nothing but a hole from here on.
    if (begin < 0 && errno == ENXIO) return;
    // Where the file system cannot tell, all is read.
    any_ = begin >= 0;
    data_begin_ = any_ ? static_cast<std::uint64_t>(begin) : 0;
    if (!any_) return;
    const off_t end = ::lseek(fd_, begin, SEEK_HOLE);
    if (end >= 0) data_end_ = static_cast<std::uint64_t>(end);
  }

  int fd_;
  bool any_;
  std::uint64_t data_begin_ = 0;
  std::uint64_t data_end_ = 0;
};

std::uint64_t stored_bytes(const FileData& data) {
  std::uint64_t total = 0;
  for (const std::uint32_t block : data.blocks) total += block & ~kRawBlock;
  return total;
}

}  // namespace

Outcome<std::shared_ptr<FileData>> FilePacker::pack(int fd, std::uint64_t size, std::uint64_t stored_size) {
  const bool holes = stored_size < size;
  auto first = read_at(fd, 0, static_cast<std::size_t>(std::min<std::uint64_t>(size, kBlockSize)));
  if (!first) return nullptr;
  if (first->size() < kBlockSize) return pack_small(*first);
  return pack_large(fd, size, holes, std::move(*first));
}

Outcome<std::shared_ptr<FileData>> FilePacker::pack_small(const std::string& bytes) {
  auto data = std::make_shared<FileData>();
  data->size = bytes.size();
  if (bytes.empty()) return data;
  Hash hash;
  hash.add(bytes);
  const auto [first, last] = known_.equal_range(hash.value());
  for (auto known = first; known != last; ++known) {
    if (known->second->size != bytes.size()) continue;
    auto same = same_fragment(*known->second, bytes);
    if (!same) return tl::unexpected(std::move(same.error()));
    if (*same) return known->second;
  }
  if (fragment_.size() + bytes.size() > kBlockSize) {
    if (auto flushed = flush_fragment(); !flushed) return tl::unexpected(std::move(flushed.error()));
  }
  data->fragment = static_cast<std::uint32_t>(fragments_.size());
  data->offset = static_cast<std::uint32_t>(fragment_.size());
  fragment_ += bytes;
  known_.emplace(hash.value(), data);
  return data;
}

Outcome<std::shared_ptr<FileData>> FilePacker::pack_large(int fd, std::uint64_t size, bool holes,
                                                          std::string first) {
  auto data = std::make_shared<FileData>();
  Holes known_holes(fd, holes);
  Hash hash;
  std::string bytes = std::move(first);
  std::uint64_t count = bytes.size();
  while (count > 0) {
    data->size += count;
    if (bytes.empty() || all_zero(bytes)) {
      hash.add(count);
      data->sparse += count;
      data->blocks.push_back(0);
    } else {
      hash.add(bytes);
      if (auto added = add_block(*data, std::move(bytes)); !added) {
        return tl::unexpected(std::move(added.error()));
      }
    }
    if (count < kBlockSize) break;
    count = std::min<std::uint64_t>(size - data->size, kBlockSize);
    bytes.clear();
    if (known_holes.cover(data->size, count)) continue;
    auto read = read_at(fd, data->size, count);
    if (!read) {
      if (auto dropped = drop(*data); !dropped) return tl::unexpected(std::move(dropped.error()));
      return nullptr;
    }
    bytes = std::move(*read);
    count = bytes.size();
  }
  return keep_large(hash.value(), std::move(data));
}

Outcome<std::shared_ptr<FileData>> FilePacker::keep_large(std::uint64_t hash,
                                                          std::shared_ptr<FileData> data) {
  const auto [begin, end] = known_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    auto same = same_blocks(*known->second, *data);
    if (!same) return tl::unexpected(std::move(same.error()));
    if (!*same) continue;
    if (auto dropped = drop(*data); !dropped) return tl::unexpected(std::move(dropped.error()));
    return known->second;
  }
  known_.emplace(hash, data);
  return data;
}

Outcome<void> FilePacker::drop(const FileData& last) {
  if (auto drained = blocks_.drain(); !drained) return drained;
  blocks_.rewind(blocks_.position() - stored_bytes(last));
  return {};
}

Outcome<void> FilePacker::add_block(FileData& data, std::string bytes) {
  const std::size_t index = data.blocks.size();
  data.blocks.push_back(0);
  const bool first = data.size - data.sparse == bytes.size();
  return blocks_.submit(std::move(bytes), [&data, index, first](StoredBlock block) {
    data.blocks[index] = block.size;
    if (first) data.start = block.start;
  });
}

Outcome<bool> FilePacker::same_fragment(const FileData& data, std::string_view bytes) {
  if (data.fragment == kNoFragment) return false;
  if (data.fragment == fragments_.size()) return fragment_.compare(data.offset, bytes.size(), bytes) == 0;
  if (loaded_ != data.fragment) {
    if (auto drained = blocks_.drain(); !drained) return tl::unexpected(std::move(drained.error()));
    const StoredBlock& stored = fragments_[data.fragment];
    auto read = blocks_.read(stored.start, stored.size & ~kRawBlock);
    if (!read) return tl::unexpected(std::move(read.error()));
    loaded_ = data.fragment;
    loaded_bytes_ = std::move(*read);
    if ((stored.size & kRawBlock) == 0) {
      std::string whole(kBlockSize, '\0');
      const int size =
          LZ4_decompress_safe(loaded_bytes_.data(), whole.data(), static_cast<int>(loaded_bytes_.size()),
                              static_cast<int>(whole.size()));
      whole.resize(static_cast<std::size_t>(std::max(size, 0)));
      loaded_bytes_ = std::move(whole);
    }
  }
  if (loaded_bytes_.size() < data.offset + bytes.size()) {
    loaded_ = kNoFragment;
    return tl::unexpected(std::string("the archive does not hold what was written"));
  }
  return loaded_bytes_.compare(data.offset, bytes.size(), bytes) == 0;
}

Outcome<bool> FilePacker::same_blocks(const FileData& one, const FileData& other) {
  if (one.size != other.size || one.fragment != kNoFragment) return false;
  // The same bytes are compressed to the same bytes.
  if (auto drained = blocks_.drain(); !drained) return tl::unexpected(std::move(drained.error()));
  if (one.blocks != other.blocks) return false;
  const std::uint64_t total = stored_bytes(one);
  for (std::uint64_t done = 0; done < total;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(total - done, kBlockSize));
    auto first = blocks_.read(one.start + done, count);
    if (!first) return tl::unexpected(std::move(first.error()));
    auto second = blocks_.read(other.start + done, count);
    if (!second) return tl::unexpected(std::move(second.error()));
    if (*first != *second) return false;
    done += count;
  }
  return true;
}

Outcome<void> FilePacker::flush_fragment() {
  if (fragment_.empty()) return {};
  const std::size_t index = fragments_.size();
  fragments_.emplace_back();
  std::string bytes;
  bytes.reserve(kBlockSize);
  bytes.swap(fragment_);
  return blocks_.submit(std::move(bytes), [this, index](StoredBlock block) { fragments_[index] = block; });
}

Outcome<void> FilePacker::finish() {
  if (auto flushed = flush_fragment(); !flushed) return flushed;
  return blocks_.drain();
}

}  // namespace sandboxd::squash

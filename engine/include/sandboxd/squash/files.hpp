#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sandboxd/squash/blocks.hpp"

namespace sandboxd::squash {

inline constexpr std::uint32_t kNoFragment = 0xFFFFFFFF;

/// Where the contents of a file are. Files that hold the same share one.
struct FileData {
  std::uint64_t size = 0;
  std::uint64_t start = 0;
  std::uint64_t sparse = 0;
  std::uint32_t fragment = kNoFragment;
  std::uint32_t offset = 0;
  std::vector<std::uint32_t> blocks;
};

/// Stores the contents of files: small ones many to a block, large ones in blocks of their own, the same
/// contents once.
class FilePacker {
 public:
  explicit FilePacker(BlockWriter& blocks) : blocks_(blocks) {}

  /// As many bytes as there are, at most `size`: what a file is while it is read, whoever writes to it.
  /// `stored_size` is what it takes on its disk, where less says that it has holes.
  /// A file that cannot be read is no data; only a fault of the archive is an error.
  Outcome<std::shared_ptr<FileData>> pack(int fd, std::uint64_t size, std::uint64_t stored_size);
  /// The last fragment too; only then the archive has all data.
  Outcome<void> finish();
  /// The entries of the fragment table.
  [[nodiscard]] const std::vector<StoredBlock>& fragments() const { return fragments_; }

 private:
  using Candidates = std::unordered_multimap<std::uint64_t, std::shared_ptr<FileData>>;
  Outcome<std::shared_ptr<FileData>> pack_small(const std::string& bytes);
  Outcome<std::shared_ptr<FileData>> pack_large(int fd, std::uint64_t size, bool holes, std::string first);
  Outcome<std::shared_ptr<FileData>> keep_large(std::uint64_t hash, std::shared_ptr<FileData> data);
  /// Takes the blocks of what was stored last out of the archive.
  Outcome<void> drop(const FileData& last);
  Outcome<void> add_block(FileData& data, std::string bytes);
  Outcome<bool> same_fragment(const FileData& data, std::string_view bytes);
  Outcome<bool> same_blocks(const FileData& one, const FileData& other);
  Outcome<void> flush_fragment();

  BlockWriter& blocks_;
  std::vector<StoredBlock> fragments_;
  std::string fragment_;
  std::uint32_t loaded_ = kNoFragment;
  std::string loaded_bytes_;
  Candidates known_;
};

}  // namespace sandboxd::squash

#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sandboxd/squash/excludes.hpp"
#include "sandboxd/squash/files.hpp"

namespace sandboxd::squash {

/// As the format numbers them; the extended ones are seven higher.
enum class Kind : std::uint16_t { directory = 1, file, link, block_device, character_device, fifo, socket };

inline constexpr std::uint32_t kNoXattrs = 0xFFFFFFFF;
inline constexpr std::uint64_t kUnwritten = ~std::uint64_t{0};

struct Inode;
struct Entry {
  std::string name;
  Inode* inode = nullptr;
};

struct Inode {
  Kind kind = Kind::file;
  std::uint16_t mode = 0;
  std::uint16_t owner = 0;  ///< indexes of the id table
  std::uint16_t group = 0;
  std::uint32_t mtime = 0;
  std::uint32_t number = 0;
  std::uint32_t links = 1;
  std::uint32_t xattrs = kNoXattrs;
  std::uint32_t device = 0;
  std::string target;
  std::shared_ptr<FileData> data;
  std::vector<Entry> entries;
  std::uint32_t directories = 0;
  std::uint64_t place = kUnwritten;  ///< in the inode table
};

/// Every owner, and every set of extended attributes, once.
class Ids {
 public:
  Outcome<std::uint16_t> index(std::uint32_t id);
  [[nodiscard]] const std::string& table() const { return table_; }
  [[nodiscard]] std::uint16_t count() const { return static_cast<std::uint16_t>(known_.size()); }

 private:
  std::unordered_map<std::uint32_t, std::uint16_t> known_;
  std::string table_;
};

class Xattrs {
 public:
  /// Those of the file that the format can hold.
  std::uint32_t read(const std::string& path);
  [[nodiscard]] bool empty() const { return known_.empty(); }
  /// The attributes, and behind them the table of the sets.
  Table table(std::uint64_t position);

 private:
  MetadataWriter values_;
  std::string sets_;
  std::map<std::string, std::uint32_t> known_;
};

/// Walks a directory once, storing the contents of its files on the way.
class Tree {
 public:
  Tree(FilePacker& files, const Excludes& excludes) : files_(files), excludes_(excludes) {}
  Outcome<Inode*> scan(std::string path);
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(inodes_.size()); }
  Ids ids;
  Xattrs xattrs;

 private:
  using Stat = struct ::stat;
  Outcome<Inode*> add(const std::string& path, const Stat& status, const Excludes::State& state);
  Outcome<Inode*> make(const std::string& path, const Stat& status);
  Outcome<void> read_file(Inode& inode, const std::string& path);
  Outcome<bool> read_directory(Inode& inode, const std::string& path, const Excludes::State& state);

  FilePacker& files_;
  const Excludes& excludes_;
  std::deque<Inode> inodes_;
  std::map<std::pair<dev_t, ino_t>, Inode*> linked_;
};

}  // namespace sandboxd::squash

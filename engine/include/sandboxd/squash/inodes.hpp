#pragma once

#include "sandboxd/squash/tree.hpp"

namespace sandboxd::squash {

/// The tables of inodes and directories. Those in a directory come before it: it says where they are.
class InodeWriter {
 public:
  explicit InodeWriter(std::uint32_t count) : places_(count, 0) {}
  void write(Inode& root);
  [[nodiscard]] const std::string& inodes() { return inodes_.finish(); }
  [[nodiscard]] const std::string& directories() { return directories_.finish(); }
  /// The place of each inode, by its number.
  [[nodiscard]] std::string export_table() const;

 private:
  void write(Inode& inode, std::uint32_t parent);
  void write_directory(const Inode& inode, std::uint32_t parent, std::string& out);
  std::uint32_t write_entries(const Inode& directory);

  MetadataWriter inodes_;
  MetadataWriter directories_;
  std::vector<std::uint64_t> places_;
};

}  // namespace sandboxd::squash

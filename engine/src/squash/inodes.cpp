#include "sandboxd/squash/inodes.hpp"

#include <algorithm>
#include <limits>

namespace sandboxd::squash {
namespace {

/// An extended inode has room for what a plain one has not.
void put_head(std::string& out, const Inode& inode, bool extended) {
  constexpr std::uint16_t kExtended = 7;
  const auto kind = static_cast<std::uint16_t>(inode.kind);
  put(out, static_cast<std::uint16_t>(extended ? kind + kExtended : kind));
  put(out, inode.mode);
  put(out, inode.owner);
  put(out, inode.group);
  put(out, inode.mtime);
  put(out, inode.number);
}

void put_file(std::string& out, const Inode& inode) {
  const FileData& data = *inode.data;
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();
  const bool extended = inode.links > 1 || inode.xattrs != kNoXattrs || data.sparse != 0 ||
                        data.start > kLargest || data.size > kLargest;
  put_head(out, inode, extended);
  if (extended) {
    put(out, data.start);
    put(out, data.size);
    // A file that takes nothing at all would be taken for one without contents.
    put(out, data.sparse == data.size && data.size != 0 ? data.size - 1 : data.sparse);
    put(out, inode.links);
    put(out, data.fragment);
    put(out, data.offset);
    put(out, inode.xattrs);
  } else {
    put(out, static_cast<std::uint32_t>(data.start));
    put(out, data.fragment);
    put(out, data.offset);
    put(out, static_cast<std::uint32_t>(data.size));
  }
  for (const std::uint32_t block : data.blocks) put(out, block);
}

void put_other(std::string& out, const Inode& inode) {
  const bool extended = inode.xattrs != kNoXattrs;
  put_head(out, inode, extended);
  put(out, inode.links);
  if (inode.kind == Kind::link) {
    put(out, static_cast<std::uint32_t>(inode.target.size()));
    out += inode.target;
  }
  if (inode.kind == Kind::block_device || inode.kind == Kind::character_device) put(out, inode.device);
  if (extended) put(out, inode.xattrs);
}

}  // namespace

void InodeWriter::write(Inode& root) {
  // Above the root there is what has no number.
  write(root, static_cast<std::uint32_t>(places_.size() + 1));
}

void InodeWriter::write(Inode& inode, std::uint32_t parent) {
  if (inode.place != kUnwritten) return;
  for (const auto& entry : inode.entries) write(*entry.inode, inode.number);
  std::string out;
  if (inode.kind == Kind::directory) {
    write_directory(inode, parent, out);
  } else if (inode.kind == Kind::file) {
    put_file(out, inode);
  } else {
    put_other(out, inode);
  }
  inode.place = inodes_.here().packed();
  places_[inode.number - 1] = inode.place;
  inodes_.append(out);
}

void InodeWriter::write_directory(const Inode& inode, std::uint32_t parent, std::string& out) {
  const MetadataPlace place = directories_.here();
  // Readers count the entries `.` and `..`, which are nowhere, as three bytes.
  const std::uint32_t size = write_entries(inode) + 3;
  const std::uint32_t links = inode.directories + 2;
  const auto block = static_cast<std::uint32_t>(place.block);
  const bool extended = inode.xattrs != kNoXattrs || size > std::numeric_limits<std::uint16_t>::max();
  put_head(out, inode, extended);
  if (extended) {
    put(out, links);
    put(out, size);
    put(out, block);
    put(out, parent);
    put(out, std::uint16_t{0});
    put(out, place.offset);
    put(out, inode.xattrs);
    return;
  }
  put(out, block);
  put(out, links);
  put(out, static_cast<std::uint16_t>(size));
  put(out, place.offset);
  put(out, parent);
}

std::uint32_t InodeWriter::write_entries(const Inode& directory) {
  constexpr std::ptrdiff_t kMost = 256;
  std::uint32_t size = 0;
  auto first = directory.entries.begin();
  while (first != directory.entries.end()) {
    // One head for all that are in the same block, with numbers that are near.
    const std::uint64_t block = first->inode->place >> 16U;
    const std::int64_t number = first->inode->number;
    const auto fits = [block, number](const Entry& entry) {
      const std::int64_t away = entry.inode->number - number;
      return entry.inode->place >> 16U == block && away >= std::numeric_limits<std::int16_t>::min() &&
             away <= std::numeric_limits<std::int16_t>::max();
    };
    const auto most = first + std::min(kMost, directory.entries.end() - first);
    const auto last = std::find_if_not(first, most, fits);
    std::string out;
    put(out, static_cast<std::uint32_t>(last - first - 1));
    put(out, static_cast<std::uint32_t>(block));
    put(out, static_cast<std::uint32_t>(number));
    for (; first != last; ++first) {
      put(out, static_cast<std::uint16_t>(first->inode->place));
      put(out, static_cast<std::int16_t>(first->inode->number - number));
      put(out, static_cast<std::uint16_t>(first->inode->kind));
      put(out, static_cast<std::uint16_t>(first->name.size() - 1));
      out += first->name;
    }
    size += static_cast<std::uint32_t>(out.size());
    directories_.append(out);
  }
  return size;
}

std::string InodeWriter::export_table() const {
  std::string out;
  for (const std::uint64_t place : places_) put(out, place);
  return out;
}

}  // namespace sandboxd::squash

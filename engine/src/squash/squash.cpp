#include "sandboxd/squash/squash.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

#include "sandboxd/agent/fd.hpp"
#include "sandboxd/squash/inodes.hpp"

namespace sandboxd::squash {
namespace {

constexpr std::size_t kSuperblockSize = 96;
constexpr std::uint16_t kLz4 = 5;

struct Tables {
  std::uint64_t root = 0;
  std::uint64_t inodes = 0;
  std::uint64_t directories = 0;
  std::uint64_t fragments = 0;
  std::uint64_t exports = 0;
  std::uint64_t ids = 0;
  std::uint64_t xattrs = ~std::uint64_t{0};
  std::uint64_t end = 0;
};

std::string superblock(const Tree& tree, const FilePacker& files, const Tables& tables) {
  constexpr std::uint32_t kMagic = 0x73717368;
  constexpr std::uint16_t kBlockLog = 17;
  // Without duplicates, exportable, with options of the compressor.
  constexpr std::uint16_t kFlags = 0x40 | 0x80 | 0x400;
  std::string out;
  put(out, kMagic);
  put(out, tree.count());
  put(out, static_cast<std::uint32_t>(std::time(nullptr)));
  put(out, static_cast<std::uint32_t>(kBlockSize));
  put(out, static_cast<std::uint32_t>(files.fragments().size()));
  put(out, kLz4);
  put(out, kBlockLog);
  put(out, kFlags);
  put(out, tree.ids.count());
  put(out, std::uint16_t{4});
  put(out, std::uint16_t{0});
  for (const std::uint64_t place : {tables.root, tables.end, tables.ids, tables.xattrs, tables.inodes,
                                    tables.directories, tables.fragments, tables.exports}) {
    put(out, place);
  }
  return out;
}

/// lz4's only options: its first version, compressed fast.
std::string compressor_options() {
  std::string out;
  put(out, std::uint16_t{0x8000 | 8});
  put(out, std::uint32_t{1});
  put(out, std::uint32_t{0});
  return out;
}

std::string fragment_table(const FilePacker& files) {
  std::string out;
  for (const auto& [start, size] : files.fragments()) {
    put(out, start);
    put(out, size);
    put(out, std::uint32_t{0});
  }
  return out;
}

Outcome<std::uint64_t> write_table(BlockWriter& archive, const Table& table) {
  if (auto written = archive.write(table.bytes); !written) return tl::unexpected(std::move(written.error()));
  return table.start;
}

Outcome<void> write_tables(BlockWriter& archive, Tree& tree, const FilePacker& files, Inode& root,
                           Tables& tables) {
  InodeWriter writer(tree.count());
  writer.write(root);
  tables.root = root.place;
  tables.inodes = archive.position();
  if (auto written = archive.write(writer.inodes()); !written) return written;
  tables.directories = archive.position();
  if (auto written = archive.write(writer.directories()); !written) return written;
  for (const auto& [data, start] :
       {std::pair(fragment_table(files), &tables.fragments),
        std::pair(writer.export_table(), &tables.exports), std::pair(tree.ids.table(), &tables.ids)}) {
    auto written = write_table(archive, indexed_table(data, archive.position()));
    if (!written) return tl::unexpected(std::move(written.error()));
    *start = *written;
  }
  if (!tree.xattrs.empty()) {
    auto written = write_table(archive, tree.xattrs.table(archive.position()));
    if (!written) return tl::unexpected(std::move(written.error()));
    tables.xattrs = *written;
  }
  tables.end = archive.position();
  return {};
}

Outcome<void> make_archive(const SquashOptions& options) {
  const agent::UniqueFd fd(
      ::open(options.archive.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return tl::unexpected(options.archive + ": " + std::strerror(errno));
  BlockWriter archive(fd.get(), kSuperblockSize, options.threads);
  if (auto written = archive.write(compressor_options()); !written) return written;
  FilePacker files(archive);
  const Excludes excludes(options.excludes);
  Tree tree(files, excludes);
  auto root = tree.scan(options.directory);
  if (!root) return tl::unexpected(std::move(root.error()));
  if (auto finished = files.finish(); !finished) return finished;
  Tables tables;
  if (auto written = write_tables(archive, tree, files, **root, tables); !written) return written;
  // As a block device has it.
  constexpr std::uint64_t kPadding = 4096;
  const std::uint64_t size = (tables.end + kPadding - 1) / kPadding * kPadding;
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) < 0) {
    return tl::unexpected(std::string("cannot write the archive: ") + std::strerror(errno));
  }
  archive.rewind(0);
  return archive.write(superblock(tree, files, tables));
}

}  // namespace

int squash(const SquashOptions& options) {
  const auto made = make_archive(options);
  if (made) return 0;
  std::fprintf(stderr, "%s\n", made.error().c_str());
  return 1;
}

int squash(std::span<char*> arguments) {
  SquashOptions options;
  if (arguments.size() != 4) return 2;
  options.directory = arguments[0];
  options.archive = arguments[1];
  std::ifstream file(arguments[2], std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: %s\n", arguments[2], std::strerror(errno));
    return 1;
  }
  for (std::string pattern; std::getline(file, pattern, '\0');) options.excludes.push_back(pattern);
  const std::string_view threads = arguments[3];
  std::from_chars(threads.data(), threads.data() + threads.size(), options.threads);
  return squash(options);
}

}  // namespace sandboxd::squash

#include "sandboxd/squash/metadata.hpp"

#include <lz4.h>

#include <algorithm>

namespace sandboxd::squash {
namespace {

constexpr std::size_t kMetadataSize = 8192;
constexpr std::uint16_t kRawMetadata = 0x8000;

void append_block(std::string& out, std::string_view bytes) {
  if (const auto packed = compressed(bytes)) {
    put(out, static_cast<std::uint16_t>(packed->size()));
    out += *packed;
    return;
  }
  put(out, static_cast<std::uint16_t>(bytes.size() | kRawMetadata));
  out += bytes;
}

}  // namespace

std::optional<std::string> compressed(std::string_view bytes) {
  if (bytes.size() < 2) return std::nullopt;
  std::string out(bytes.size() - 1, '\0');
  const int size = LZ4_compress_default(bytes.data(), out.data(), static_cast<int>(bytes.size()),
                                        static_cast<int>(out.size()));
  if (size <= 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(size));
  return out;
}

void MetadataWriter::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kMetadataSize - pending_.size());
    pending_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
    if (pending_.size() == kMetadataSize) flush();
  }
}

MetadataPlace MetadataWriter::here() const {
  return {blocks_.size(), static_cast<std::uint16_t>(pending_.size())};
}

const std::string& MetadataWriter::finish() {
  if (!pending_.empty()) flush();
  return blocks_;
}

void MetadataWriter::flush() {
  append_block(blocks_, pending_);
  pending_.clear();
}

Table indexed_table(std::string_view data, std::uint64_t position, std::string_view head) {
  Table table;
  std::string index;
  while (!data.empty()) {
    put(index, position + table.bytes.size());
    append_block(table.bytes, data.substr(0, kMetadataSize));
    data.remove_prefix(std::min(data.size(), kMetadataSize));
  }
  table.start = position + table.bytes.size();
  table.bytes.append(head).append(index);
  return table;
}

}  // namespace sandboxd::squash

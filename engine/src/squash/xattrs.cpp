#include <sys/xattr.h>

#include <array>

#include "sandboxd/squash/tree.hpp"

namespace sandboxd::squash {
namespace {

struct Prefix {
  std::string_view text;
  std::uint16_t type;
};
constexpr Prefix kPrefixes[] = {{"user.", 0}, {"trusted.", 1}, {"security.", 2}};

/// Nothing when the attribute is of another kind, or gone.
bool append_attribute(std::string& out, const std::string& path, const char* name) {
  for (const auto& prefix : kPrefixes) {
    const std::string_view full = name;
    if (!full.starts_with(prefix.text)) continue;
    // As large as the kernel lets one be.
    static std::array<char, XATTR_SIZE_MAX> value;
    const ssize_t size = ::lgetxattr(path.c_str(), name, value.data(), value.size());
    if (size < 0) return false;
    const std::string_view rest = full.substr(prefix.text.size());
    put(out, prefix.type);
    put(out, static_cast<std::uint16_t>(rest.size()));
    out += rest;
    put(out, static_cast<std::uint32_t>(size));
    out.append(value.data(), static_cast<std::size_t>(size));
    return true;
  }
  return false;
}

}  // namespace

std::uint32_t Xattrs::read(const std::string& path) {
  static std::array<char, XATTR_LIST_MAX> names;
  const ssize_t size = ::llistxattr(path.c_str(), names.data(), names.size());
  if (size <= 0) return kNoXattrs;
  std::string set;
  std::uint32_t count = 0;
  std::string_view rest(names.data(), static_cast<std::size_t>(size));
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (append_attribute(set, path, name.data())) ++count;
    rest.remove_prefix(name.size() + 1);
  }
  if (count == 0) return kNoXattrs;
  const auto [known, added] = known_.emplace(set, static_cast<std::uint32_t>(known_.size()));
  if (!added) return known->second;
  put(sets_, values_.here().packed());
  put(sets_, count);
  put(sets_, static_cast<std::uint32_t>(set.size()));
  values_.append(set);
  return known->second;
}

Table Xattrs::table(std::uint64_t position) {
  const std::string& values = values_.finish();
  std::string head;
  put(head, position);
  put(head, static_cast<std::uint32_t>(known_.size()));
  put(head, std::uint32_t{0});
  Table table = indexed_table(sets_, position + values.size(), head);
  table.bytes.insert(0, values);
  return table;
}

}  // namespace sandboxd::squash

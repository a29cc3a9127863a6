#pragma once

#include <string>
#include <string_view>

#include "sandboxd/agent/error.hpp"

namespace sandboxd::agent {

/// A write request's fields, read without copying its content through a JSON tree.
struct WriteBody {
  std::string path;
  std::string session_id;
  std::string encoding;
  std::string permissions;
  std::string_view content;  ///< inside the request's body, unescaped in place
  bool has_content = false;
};
/// Unescapes in place: `body` is not valid JSON afterwards.
Result<WriteBody> parse_write_body(std::string& body);

}  // namespace sandboxd::agent

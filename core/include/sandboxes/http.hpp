#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxes {

/// Header fields in order, repeats kept. The views live as long as the request they were read from.
using Header = std::pair<std::string_view, std::string_view>;
using HeaderList = std::vector<Header>;
/// The same, owned: for headers that the core makes.
using OwnedHeaders = std::vector<std::pair<std::string, std::string>>;

/// The parts of a request that a decision looks at. An absent body and an empty one are the same here.
struct RequestView {
  std::string_view method;
  std::string_view url;
  HeaderList headers;
  std::string_view body;
};

/// A method, header name or subprotocol: one or more of RFC 9110's `tchar`.
[[nodiscard]] bool is_token(std::string_view text);
/// First value of that name, whatever its case.
[[nodiscard]] std::optional<std::string_view> find_header(const HeaderList& headers,
                                                          std::string_view lower_name);
[[nodiscard]] std::size_t count_headers(const HeaderList& headers, std::string_view lower_name);
/// The elements of a comma-separated field, trimmed, without the empty ones.
[[nodiscard]] std::vector<std::string_view> split_list(std::string_view value);
/// Whether a header concerns one connection only, or is named by `Connection` as one that does.
[[nodiscard]] bool is_hop_by_hop(std::string_view lower_name);
/// `percent-decoded` bytes; a `%` that no two hexadecimal digits follow stays as it is.
[[nodiscard]] std::string percent_decode(std::string_view text);
/// As JavaScript's encodeURIComponent does it.
[[nodiscard]] std::string encode_uri_component(std::string_view text);

}  // namespace sandboxes

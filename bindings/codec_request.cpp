#include "request_json.hpp"

namespace sandboxes::bindings {

Result<HeaderList> read_headers(Input object) {
  const auto given = find(object, "headers");
  if (!given || given->is_null()) return HeaderList();
  return read_pairs(object, "headers");
}

Result<RequestView> read_request(Input object, std::string_view body) {
  const auto method = read_optional_string(object, "method");
  if (!method) return propagate(method);
  const auto url = read_string(object, "url");
  if (!url) return propagate(url);
  auto headers = read_headers(object);
  if (!headers) return propagate(headers);
  return RequestView{method->value_or("GET"), *url, std::move(*headers), body};
}

Result<std::optional<Gateway>> read_gateway(Input object) {
  const auto given = read_optional_object(object, "gateway");
  if (!given) return propagate(given);
  if (!*given) return std::optional<Gateway>();
  const auto key = read_optional_string(**given, "apiKey");
  if (!key) return propagate(key);
  const auto ttl = read_optional_int(**given, "cacheTtlSeconds");
  if (!ttl) return propagate(ttl);
  if (*ttl && **ttl < 0) {
    return tl::unexpected(
        wrong_type("cacheTtlSeconds", find(**given, "cacheTtlSeconds"), "null or at least 0"));
  }
  const auto metadata = read_optional_object(**given, "metadata");
  if (!metadata) return propagate(metadata);
  return std::optional(
      Gateway{std::string(key->value_or("")), *ttl, *metadata ? header_text(**metadata) : std::string("{}")});
}

Json headers_json(const OwnedHeaders& headers) {
  Json list = Json::array();
  for (const auto& [name, value] : headers) {
    Json pair = Json::array();
    pair.push_back(name);
    pair.push_back(value);
    list.push_back(std::move(pair));
  }
  return list;
}

std::string references_text(const std::vector<Reference>& references) {
  std::string text = "[";
  for (const Reference& reference : references) {
    if (text.size() > 1) text += ',';
    text += reference.kind == ReferenceKind::secret ? R"({"kind":"secret","path":)"
                                                    : R"({"kind":"platform","path":)";
    append_string(text, reference.path);
    if (reference.field) {
      text += ",\"field\":";
      append_string(text, *reference.field);
    }
    text += '}';
  }
  return text + ']';
}

std::optional<HeaderList> read_header_fields(std::span<const std::string_view> fields, std::size_t first) {
  if (fields.size() < first || (fields.size() - first) % 2 != 0) return std::nullopt;
  HeaderList headers;
  headers.reserve((fields.size() - first) / 2);
  for (std::size_t i = first; i < fields.size(); i += 2) headers.emplace_back(fields[i], fields[i + 1]);
  return headers;
}

std::string header_text(Input value) {
  const auto scalar = [](const Json& json) { return print(json, true); };
  std::string text;
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (value.get_object().get(object) == simdjson::SUCCESS) {
    for (const auto field : object) {
      text +=
          (text.empty() ? "" : ",") + scalar(Json(std::string(field.key))) + ":" + header_text(field.value);
    }
    return "{" + text + "}";
  }
  if (value.get_array().get(array) == simdjson::SUCCESS) {
    for (const Input item : array) text += (text.empty() ? "" : ",") + header_text(item);
    return "[" + text + "]";
  }
  return scalar(to_json(value));
}

}  // namespace sandboxes::bindings

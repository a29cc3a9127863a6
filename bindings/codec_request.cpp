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

Json references_json(const std::vector<Reference>& references) {
  Json list = Json::array();
  for (const Reference& reference : references) {
    Json one = Json::object();
    one["kind"] = reference.kind == ReferenceKind::secret ? "secret" : "platform";
    one["path"] = reference.path;
    if (reference.field) one["field"] = *reference.field;
    list.push_back(std::move(one));
  }
  return list;
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

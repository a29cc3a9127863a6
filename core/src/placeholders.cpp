#include "sandboxes/placeholders.hpp"

#include <algorithm>

#include "json_text.hpp"
#include "placeholders_internal.hpp"
#include "sandboxes/limits.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace internal {

std::optional<Range> basic_token(std::string_view value) {
  constexpr std::string_view kScheme = "basic";
  std::size_t begin = 0;
  while (begin < value.size() && is_space(value[begin])) ++begin;
  if (!equals_ignoring_case(value.substr(begin, kScheme.size()), kScheme)) return std::nullopt;
  begin += kScheme.size();
  const std::size_t after_scheme = begin;
  while (begin < value.size() && is_space(value[begin])) ++begin;
  std::size_t end = value.size();
  while (end > begin && is_space(value[end - 1])) --end;
  if (begin == after_scheme || begin == end) return std::nullopt;
  return Range{begin, end};
}

std::optional<std::string> decode_basic(std::string_view token) {
  std::string normal;
  normal.reserve(token.size() + 3);
  while (!token.empty() && token.back() == '=') token.remove_suffix(1);
  for (const char c : token) normal += c == '-' ? '+' : c == '_' ? '/' : c;
  while (normal.size() % 4 != 0) normal += '=';
  return base64_decode(normal);
}

DecodedText::DecodedText(std::string_view raw, std::size_t offset) {
  text.reserve(raw.size());
  offsets.reserve(raw.size() + 1);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    offsets.push_back(offset + i);
    const int high = raw[i] == '%' && i + 2 < raw.size() ? hex_value(raw[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(raw[i + 2]) : -1;
    if (low < 0) {
      text += raw[i];
    } else {
      text += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  offsets.push_back(offset + raw.size());
}

}  // namespace internal

namespace {

using Place = PlaceholderSite::Place;

constexpr std::string_view kTemplateHeader = "x-iterate-secret-template";

class Scanner {
 public:
  explicit Scanner(const RequestView& request) : request_(request) {}

  Result<PlaceholderScan> run() {
    if (auto done = url(); !done) return propagate(done);
    for (std::size_t i = 0; i < request_.headers.size(); ++i) {
      if (auto done = header(i); !done) return propagate(done);
    }
    if (auto done = body(); !done) return propagate(done);
    return std::move(scan_);
  }

 private:
  /// Notes every placeholder of `text`; `map` turns an offset in it into one of what will be edited.
  /// `part` gives the name of the place for an error.
  template <class Part, class Map>
  Result<void> text(std::string_view text, PlaceholderSite site, const Part& part, const Map& map) {
    std::size_t at = find_placeholder_name(text, 0);
    while (at != std::string_view::npos) {
      PlaceholderParse parsed = parse_placeholder(text, at);
      std::size_t next = at + 1;
      if (const auto* bad = std::get_if<MalformedPlaceholder>(&parsed))
        return malformed(*bad, part(), map(bad->position));
      if (auto* found = std::get_if<FoundPlaceholder>(&parsed)) {
        site.range = {map(at), map(found->end)};
        site.reference = note(std::move(found->reference));
        scan_.sites.push_back(site);
        next = found->end;
      }
      at = find_placeholder_name(text, next);
    }
    return {};
  }

  static tl::unexpected<Error> malformed(const MalformedPlaceholder& bad, std::string_view part,
                                         std::size_t position) {
    const auto where = static_cast<std::int64_t>(position);
    if (bad.wrong_path)
      return fail(SecretReferenceInvalidPath{std::string(part), bad.path, bad.reason, where});
    return fail(SecretReferenceUnparseable{std::string(part), bad.reason, where});
  }

  std::size_t note(Reference reference) {
    auto& known = scan_.references;
    const auto found = std::find(known.begin(), known.end(), reference);
    if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
    known.push_back(std::move(reference));
    return known.size() - 1;
  }

  Result<void> outside(std::string_view part, std::string_view raw) {
    if (raw.empty() || !mentions_placeholder(percent_decode(raw))) return {};
    return fail(SecretReferenceOutsideUrlPath{std::string(part)});
  }

  Result<void> url() {
    const auto parsed = parse_url(request_.url);
    if (!parsed) return propagate(parsed);
    std::string query(parsed->query.of(request_.url));
    std::replace(query.begin(), query.end(), '+', ' ');
    const std::pair<std::string_view, std::string_view> parts[] = {
        {"username", parsed->username.of(request_.url)}, {"password", parsed->password.of(request_.url)},
        {"host", parsed->host_range.of(request_.url)},   {"query", query},
        {"fragment", parsed->fragment.of(request_.url)},
    };
    for (const auto& [part, raw] : parts) {
      if (auto fine = outside(part, raw); !fine) return fine;
    }
    const std::string_view raw = parsed->path.of(request_.url);
    if (raw.find_first_of("%S") == std::string_view::npos) return {};
    const internal::DecodedText path(raw, parsed->path.begin);
    PlaceholderSite site;
    site.place = Place::path;
    const auto part = [] { return std::string("url path"); };
    return text(path.text, site, part, [&path](std::size_t at) { return path.offsets[at]; });
  }

  Result<void> header(std::size_t index) {
    const auto& [name, value] = request_.headers[index];
    const auto part = [&name = name] { return "header " + to_lower_ascii(name); };
    const auto same = [](std::size_t at) { return at; };
    PlaceholderSite site;
    site.header = index;
    site.place = Place::header;
    if (auto done = text(value, site, part, same); !done) return done;
    const auto token = internal::basic_token(value);
    if (!token) return {};
    const auto credentials = internal::decode_basic(token->of(value));
    if (!credentials) return {};
    site.place = Place::basic;
    return text(
        *credentials, site, [&part] { return part() + " (Basic credentials)"; }, same);
  }

  Result<void> body() {
    const auto wanted = find_header(request_.headers, kTemplateHeader);
    if (!wanted) return {};
    if (!equals_ignoring_case(trim(*wanted), "json") ||
        count_headers(request_.headers, kTemplateHeader) > 1) {
      return fail(
          SecretTemplateInvalid{"the header x-iterate-secret-template has one value that is known: json"});
    }
    if (request_.body.size() > static_cast<std::size_t>(kMaxTemplateBodyBytes)) {
      return fail(SecretTemplateInvalid{"the body has " + std::to_string(request_.body.size()) +
                                        " bytes; the limit is " + std::to_string(kMaxTemplateBodyBytes)});
    }
    if (const auto problem = internal::json_problem(request_.body)) {
      return fail(SecretTemplateInvalid{"the body is not JSON at position " + std::to_string(*problem)});
    }
    return strings();
  }

  /// The body is valid JSON: every quote outside a string begins one.
  Result<void> strings() {
    internal::JsonText reader(request_.body);
    for (std::size_t at = request_.body.find('"'); at != std::string_view::npos;
         at = request_.body.find('"', reader.at())) {
      reader.move_to(at);
      if (!reader.string()) break;
      const Range inner{at + 1, reader.at() - 1};
      const std::string content = internal::unescape_json(inner.of(request_.body));
      if (find_placeholder_name(content, 0) == std::string::npos) continue;
      reader.skip_space();
      if (auto done = string(content, inner, reader.next_is(':')); !done) return done;
    }
    return {};
  }

  Result<void> string(const std::string& content, Range inner, bool is_key) {
    if (!mentions_placeholder(content)) return {};
    PlaceholderParse parsed = parse_placeholder(content, find_placeholder_name(content, 0));
    if (const auto* bad = std::get_if<MalformedPlaceholder>(&parsed))
      return malformed(*bad, "body", inner.begin);
    auto* found = std::get_if<FoundPlaceholder>(&parsed);
    const bool whole =
        found != nullptr && find_placeholder_name(content, 0) == 0 && found->end == content.size();
    if (is_key || !whole) {
      const MalformedPlaceholder problem{
          0, "in a JSON body a placeholder is the whole of a string value", false, {}};
      return malformed(problem, "body", inner.begin);
    }
    PlaceholderSite site;
    site.place = Place::body;
    site.range = inner;
    site.reference = note(std::move(found->reference));
    scan_.sites.push_back(site);
    return {};
  }

  const RequestView& request_;
  PlaceholderScan scan_;
};

bool same_secret(const Reference& left, const Reference& right) {
  return left.kind == right.kind && left.path == right.path;
}

}  // namespace

const Reference* PlaceholderScan::foreign() const {
  for (const Reference& reference : references) {
    if (!same_secret(reference, references.front())) return &reference;
  }
  return nullptr;
}

Result<PlaceholderScan> scan_placeholders(const RequestView& request) {
  return Scanner(request).run();
}

Result<void> require_one_secret(const PlaceholderScan& scan) {
  const Reference* other = scan.foreign();
  if (other == nullptr) return {};
  return fail(SecretReferenceForeign{reference_key(scan.references.front()), reference_key(*other)});
}

}  // namespace sandboxes

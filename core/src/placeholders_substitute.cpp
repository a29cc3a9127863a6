#include <algorithm>

#include "json_text.hpp"
#include "placeholders_internal.hpp"
#include "sandboxes/placeholders.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

using Place = PlaceholderSite::Place;

/// Replaces ranges of one text, given from left to right.
class Splice {
 public:
  explicit Splice(std::string_view text) : text_(text) {}

  void replace(Range range, std::string_view value) {
    out_ += text_.substr(done_, range.begin - done_);
    out_ += value;
    done_ = range.end;
    changed_ = true;
  }
  [[nodiscard]] bool changed() const { return changed_; }
  [[nodiscard]] std::string finish() { return out_ += text_.substr(done_); }

 private:
  std::string_view text_;
  std::string out_;
  std::size_t done_ = 0;
  bool changed_ = false;
};

/// The value of each reference, in the scan's order. All are there and safe, or nothing is substituted.
Result<std::vector<std::string_view>> choose_values(const PlaceholderScan& scan, const SecretValues& values) {
  std::vector<std::string_view> chosen;
  for (const Reference& reference : scan.references) {
    const std::string key = reference_key(reference);
    const auto found =
        std::find_if(values.begin(), values.end(), [&key](const auto& one) { return one.first == key; });
    if (found == values.end()) return fail(SecretNotFound{reference.path, key});
    if (found->second.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
      return fail(SecretMaterialNotHeaderSafe{key});
    }
    chosen.push_back(found->second);
  }
  return chosen;
}

bool is_dot_segment(std::string_view segment) {
  const std::string plain = percent_decode(segment);
  return plain == "." || plain == "..";
}

/// A value that turns its segment into `.` or `..` would change the path instead of filling it.
bool has_new_dot_segment(std::string_view before, std::string_view after) {
  const auto dots = [](std::string_view path) {
    std::size_t count = 0;
    std::size_t begin = 0;
    while (begin <= path.size()) {
      const std::size_t end = std::min(path.find_first_of("/\\", begin), path.size());
      count += is_dot_segment(path.substr(begin, end - begin)) ? 1 : 0;
      begin = end + 1;
    }
    return count;
  };
  return dots(after) > dots(before);
}

class Substitution {
 public:
  Substitution(const RequestView& request, const PlaceholderScan& scan,
               const std::vector<std::string_view>& values)
      : request_(request), scan_(scan), values_(values) {}

  Result<SubstitutedRequest> run() {
    SubstitutedRequest out;
    auto url = new_url();
    if (!url) return propagate(url);
    out.url = std::move(*url);
    for (std::size_t i = 0; i < request_.headers.size(); ++i) {
      out.headers.emplace_back(std::string(request_.headers[i].first), new_header(i));
    }
    Splice body(request_.body);
    each(Place::body, 0, [&](const PlaceholderSite& site, std::string_view value) {
      body.replace(site.range, internal::escape_json(value));
    });
    if (body.changed()) out.body = body.finish();
    return out;
  }

 private:
  template <class Visit>
  void each(Place place, std::size_t header, const Visit& visit) const {
    for (const PlaceholderSite& site : scan_.sites) {
      if (site.place == place && site.header == header) visit(site, values_[site.reference]);
    }
  }

  Result<std::string> new_url() const {
    Splice url(request_.url);
    const Reference* last = nullptr;
    each(Place::path, 0, [&](const PlaceholderSite& site, std::string_view value) {
      url.replace(site.range, encode_uri_component(value));
      last = &scan_.references[site.reference];
    });
    std::string text = url.finish();
    if (last == nullptr) return text;
    const auto before = parse_url(request_.url);
    const auto after = parse_url(text);
    if (!before) return propagate(before);
    if (!after || has_new_dot_segment(before->path.of(request_.url), after->path.of(text))) {
      return fail(SecretMaterialNotPathSafe{reference_key(*last)});
    }
    return text;
  }

  std::string new_header(std::size_t index) const {
    const std::string_view value = request_.headers[index].second;
    Splice plain(value);
    each(Place::header, index,
         [&](const PlaceholderSite& site, std::string_view secret) { plain.replace(site.range, secret); });
    if (plain.changed()) return plain.finish();
    const auto token = internal::basic_token(value);
    const auto credentials = token ? internal::decode_basic(token->of(value)) : std::nullopt;
    if (!credentials) return std::string(value);
    Splice decoded(*credentials);
    each(Place::basic, index,
         [&](const PlaceholderSite& site, std::string_view secret) { decoded.replace(site.range, secret); });
    if (!decoded.changed()) return std::string(value);
    Splice whole(value);
    whole.replace(*token, base64_encode(decoded.finish()));
    return whole.finish();
  }

  const RequestView& request_;
  const PlaceholderScan& scan_;
  const std::vector<std::string_view>& values_;
};

}  // namespace

Result<SubstitutedRequest> substitute_placeholders(const RequestView& request, const SecretValues& values) {
  const auto scan = scan_placeholders(request);
  if (!scan) return propagate(scan);
  if (auto one = require_one_secret(*scan); !one) return propagate(one);
  const auto chosen = choose_values(*scan, values);
  if (!chosen) return propagate(chosen);
  return Substitution(request, *scan, *chosen).run();
}

}  // namespace sandboxes

#include "sandboxes/egress_policy.hpp"

#include <algorithm>
#include <limits>

#include "ordering.hpp"
#include "policy_schemes.hpp"

namespace sandboxes {

namespace {

constexpr std::uint64_t kSeed = 0xCBF29CE484222325U;
constexpr std::uint64_t kPrime = 0x100000001B3U;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
/// A rule with more combinations than this is filed under fewer of its parts; the rest is tested when it is
/// hit.
constexpr std::size_t kMaxCombinations = 1024;

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = kSeed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return hash;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t part) {
  hash = (hash ^ part) * 0x9E3779B97F4A7C15U;
  return hash ^ hash >> 29;
}

/// `.example.com` of `a.b.example.com` for two labels; empty when the host has no more labels than that.
std::string_view last_labels(std::string_view host, std::uint32_t labels) {
  for (std::size_t at = host.size(); at > 0; --at) {
    if (host[at - 1] == '.' && --labels == 0) return host.substr(at - 1);
  }
  return {};
}

/// hash_text of every beginning of a text, made in one pass when the first is wanted.
class PrefixHashes {
 public:
  explicit PrefixHashes(std::string_view text) : text_(text) {}

  [[nodiscard]] std::uint64_t of(std::size_t bytes) {
    if (states_.empty()) states_.push_back(kSeed);
    for (std::size_t i = states_.size() - 1; i < bytes; ++i) {
      states_.push_back((states_.back() ^ static_cast<unsigned char>(text_[i])) * kPrime);
    }
    return states_[bytes];
  }

 private:
  std::string_view text_;
  std::vector<std::uint64_t> states_;
};

bool matches_any(const std::vector<Pattern>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [text](const Pattern& one) { return one.matches(text); });
}

template <class List, class T>
bool contains(const List& sorted, const T& value) {
  return std::binary_search(sorted.begin(), sorted.end(), value,
                            [](const auto& a, const auto& b) { return a < b; });
}

}  // namespace

bool PolicyRule::matches(const PolicyRequest& request) const {
  const std::uint8_t scheme = request.secure ? (request.web_socket ? internal::kWss : internal::kHttps)
                                             : (request.web_socket ? internal::kWs : internal::kHttp);
  if ((schemes & scheme) == 0) return false;
  if (!ports.empty() && !contains(ports, request.port)) return false;
  if (!methods.empty() && !contains(methods, request.method)) return false;
  if (!paths.empty() && !matches_any(paths, request.path)) return false;
  if (!secret_paths.empty() && std::none_of(request.secret_paths.begin(), request.secret_paths.end(),
                                            [this](auto path) { return matches_any(secret_paths, path); })) {
    return false;
  }
  if (any_host || contains(hosts, request.host)) return true;
  if (request.host_is_address) return false;
  for (std::size_t dot = request.host.find('.'); dot != std::string_view::npos;
       dot = request.host.find('.', dot + 1)) {
    if (contains(host_suffixes, request.host.substr(dot))) return true;
  }
  return false;
}

bool PolicyRule::names_host(std::string_view host) const {
  return contains(hosts, host);
}

bool EgressPolicy::Shape::operator==(const Shape& other) const {
  return host == other.host && port == other.port && method == other.method && path == other.path &&
         secret == other.secret && host_labels == other.host_labels && path_bytes == other.path_bytes &&
         secret_bytes == other.secret_bytes;
}

/// The hashes that make a key, one of each part.
struct EgressPolicy::Parts {
  std::uint64_t host = 0;
  std::uint64_t port = 0;
  std::uint64_t method = 0;
  std::uint64_t path = 0;
  std::uint64_t secret = 0;

  [[nodiscard]] std::uint64_t key(std::size_t shape) const {
    std::uint64_t hash = mix(kSeed, shape);
    for (const std::uint64_t part : {host, port, method, path, secret}) hash = mix(hash, part);
    return hash;
  }
};

/// Files one rule under every combination of the parts it tests.
class EgressPolicy::Filing {
 public:
  Filing(EgressPolicy& policy, std::uint32_t number)
      : policy_(policy), rule_(policy.rules_[number]), number_(number) {
    const std::size_t hosts = rule_.any_host ? 1 : rule_.hosts.size() + rule_.host_suffixes.size();
    std::size_t product = hosts;
    const auto take = [&product](std::size_t count, bool& use) {
      use = count > 0 && product * count <= std::max(kMaxCombinations, product);
      if (use) product *= count;
    };
    take(rule_.paths.size(), use_path_);
    take(rule_.secret_paths.size(), use_secret_);
    take(rule_.ports.size(), use_port_);
    take(rule_.methods.size(), use_method_);
  }

  void run() {
    if (rule_.any_host) return over_paths();
    shape_.host = Test::exact;
    for (const std::string& host : rule_.hosts) {
      parts_.host = hash_text(host);
      over_paths();
    }
    shape_.host = Test::prefix;
    for (const std::string& suffix : rule_.host_suffixes) {
      shape_.host_labels = static_cast<std::uint32_t>(std::count(suffix.begin(), suffix.end(), '.'));
      parts_.host = hash_text(suffix);
      over_paths();
    }
  }

 private:
  void over_paths() {
    if (!use_path_) return over_secrets();
    for (const Pattern& path : rule_.paths) {
      shape_.path = path.prefix ? Test::prefix : Test::exact;
      shape_.path_bytes = path.prefix ? static_cast<std::uint32_t>(path.text.size()) : 0;
      parts_.path = hash_text(path.text);
      over_secrets();
    }
  }

  void over_secrets() {
    if (!use_secret_) return over_ports();
    for (const Pattern& secret : rule_.secret_paths) {
      shape_.secret = secret.prefix ? Test::prefix : Test::exact;
      shape_.secret_bytes = secret.prefix ? static_cast<std::uint32_t>(secret.text.size()) : 0;
      parts_.secret = hash_text(secret.text);
      over_ports();
    }
  }

  void over_ports() {
    shape_.port = use_port_;
    if (!use_port_) return over_methods();
    for (const std::uint16_t port : rule_.ports) {
      parts_.port = port;
      over_methods();
    }
  }

  void over_methods() {
    shape_.method = use_method_;
    if (!use_method_) return file();
    for (const std::string& method : rule_.methods) {
      parts_.method = hash_text(method);
      file();
    }
  }

  void file() {
    auto& shapes = policy_.shapes_;
    // Rules come in order and neighbours tend to be alike, so the last shape is tried first.
    std::size_t shape = last_shape_ < shapes.size() && shapes[last_shape_] == shape_ ? last_shape_ : 0;
    while (shape < shapes.size() && !(shapes[shape] == shape_)) ++shape;
    if (shape == shapes.size()) {
      shapes.push_back(shape_);
      shapes.back().first_rule = number_;
    }
    last_shape_ = shape;
    policy_.entries_.push_back({parts_.key(shape), number_});
  }

  EgressPolicy& policy_;
  const PolicyRule& rule_;
  std::uint32_t number_;
  bool use_port_ = false;
  bool use_method_ = false;
  bool use_path_ = false;
  bool use_secret_ = false;
  Shape shape_;
  Parts parts_;
  std::size_t last_shape_ = 0;
};

void EgressPolicy::index() {
  for (std::uint32_t number = 0; number < rules_.size(); ++number) Filing(*this, number).run();
  build_slots();
}

void EgressPolicy::build_slots() {
  internal::order(entries_, [](const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.rule < b.rule;
  });
  std::size_t size = 2;
  while (size < entries_.size() * 2) size *= 2;
  slots_.assign(size, Slot{});
  std::uint32_t begin = 0;
  while (begin < entries_.size()) {
    std::uint32_t end = begin;
    while (end < entries_.size() && entries_[end].key == entries_[begin].key) ++end;
    std::size_t place = static_cast<std::size_t>(entries_[begin].key) & (size - 1);
    while (slots_[place].end != slots_[place].begin) place = (place + 1) & (size - 1);
    slots_[place] = {entries_[begin].key, begin, end};
    begin = end;
  }
}

const PolicyRule* EgressPolicy::match(const PolicyRequest& request) const {
  // Without a secret the pass with an empty one finds the rules that test none: no rule names an empty path.
  std::uint32_t best = kNone;
  if (request.secret_paths.empty()) best = first_match(request, {}, best);
  for (const auto secret_path : request.secret_paths) best = first_match(request, secret_path, best);
  return best == kNone ? nullptr : &rules_[best];
}

std::uint32_t EgressPolicy::first_match(const PolicyRequest& request, std::string_view secret_path,
                                        std::uint32_t best) const {
  const std::uint64_t host = hash_text(request.host);
  const std::uint64_t method = hash_text(request.method);
  const std::uint64_t path = hash_text(request.path);
  const std::uint64_t secret = hash_text(secret_path);
  PrefixHashes path_prefixes(request.path);
  PrefixHashes secret_prefixes(secret_path);
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const Shape& shape = shapes_[i];
    if (shape.first_rule >= best) break;
    if (shape.path_bytes > request.path.size() || shape.secret_bytes > secret_path.size()) continue;
    Parts parts;
    if (shape.host == Test::exact) parts.host = host;
    if (shape.host == Test::prefix) {
      const auto suffix =
          request.host_is_address ? std::string_view() : last_labels(request.host, shape.host_labels);
      if (suffix.empty()) continue;
      parts.host = hash_text(suffix);
    }
    if (shape.port) parts.port = request.port;
    if (shape.method) parts.method = method;
    if (shape.path == Test::exact) parts.path = path;
    if (shape.path == Test::prefix) parts.path = path_prefixes.of(shape.path_bytes);
    if (shape.secret == Test::exact) parts.secret = secret;
    if (shape.secret == Test::prefix) parts.secret = secret_prefixes.of(shape.secret_bytes);
    best = probe(parts.key(i), request, best);
  }
  return best;
}

std::uint32_t EgressPolicy::probe(std::uint64_t key, const PolicyRequest& request, std::uint32_t best) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t place = static_cast<std::size_t>(key) & mask; slots_[place].end != slots_[place].begin;
       place = (place + 1) & mask) {
    if (slots_[place].key != key) continue;
    for (std::uint32_t i = slots_[place].begin; i < slots_[place].end && entries_[i].rule < best; ++i) {
      if (rules_[entries_[i].rule].matches(request)) return entries_[i].rule;
    }
    break;
  }
  return best;
}

}  // namespace sandboxes

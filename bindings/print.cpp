#include <algorithm>
#include <array>
#include <cmath>

#include "codec.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes::bindings {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::uint32_t kReplacement = 0xFFFD;

class Printer {
 public:
  explicit Printer(bool ascii) : ascii_(ascii) {}

  void value(const Json& json) {
    switch (json.type()) {
      case Json::value_t::object:
        return object(json.get_ref<const Json::object_t&>());
      case Json::value_t::array:
        return array(json.get_ref<const Json::array_t&>());
      case Json::value_t::string:
        return string(json.get_ref<const Json::string_t&>());
      case Json::value_t::boolean:
        out_ += json.get<bool>() ? "true" : "false";
        return;
      case Json::value_t::number_integer:
        out_ += std::to_string(json.get<std::int64_t>());
        return;
      case Json::value_t::number_unsigned:
        out_ += std::to_string(json.get<std::uint64_t>());
        return;
      case Json::value_t::number_float:
        return number(json.get<double>());
      case Json::value_t::null:
      case Json::value_t::binary:
      case Json::value_t::discarded:
        out_ += "null";
        return;
    }
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void object(const Json::object_t& fields) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, member] : fields) {
      if (!first) out_ += ',';
      first = false;
      string(key);
      out_ += ':';
      value(member);
    }
    out_ += '}';
  }

  void array(const Json::array_t& items) {
    out_ += '[';
    bool first = true;
    for (const Json& item : items) {
      if (!first) out_ += ',';
      first = false;
      value(item);
    }
    out_ += ']';
  }

  void number(double number) {
    if (!std::isfinite(number)) {
      out_ += "null";
      return;
    }
    std::array<char, 64> buffer{};
    const char* end = nlohmann::detail::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
    out_.append(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  }

  void string(std::string_view text) {
    out_ += '"';
    std::size_t position = 0;
    while (position < text.size()) {
      const char c = text[position];
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        control(c);
      } else if (is_ascii(c) && !(ascii_ && c == 0x7F)) {
        out_ += c;
      } else {
        position += beyond_ascii(text, position);
        continue;
      }
      ++position;
    }
    out_ += '"';
  }

  void control(char c) {
    constexpr std::string_view kShort = "btnfr";
    constexpr std::string_view kMeaning = "\b\t\n\f\r";
    const std::size_t index = kMeaning.find(c);
    if (index == std::string_view::npos) return unit(static_cast<unsigned char>(c));
    out_ += '\\';
    out_ += kShort[index];
  }

  /// Gives how many bytes it took.
  std::size_t beyond_ascii(std::string_view text, std::size_t position) {
    const CodePoint found = read_code_point(text, position);
    const std::uint32_t value = found.length == 0 ? kReplacement : found.value;
    const std::size_t taken = found.length == 0 ? 1 : found.length;
    if (!ascii_) {
      out_ += found.length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(position, taken);
    } else if (value < 0x10000) {
      unit(value);
    } else {
      unit(0xD7C0 + (value >> 10));
      unit(0xDC00 + (value & 0x3FF));
    }
    return taken;
  }

  void unit(std::uint32_t value) {
    out_ += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out_ += kHexDigits[(value >> shift) & 15U];
  }

  bool ascii_;
  std::string out_;
};

}  // namespace

void append_string(std::string& out, std::string_view text) {
  const auto plain = [](char c) { return c >= 0x20 && c != '"' && c != '\\' && is_ascii(c); };
  if (std::all_of(text.begin(), text.end(), plain)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += print(Json(text));
  }
}

void ObjectText::name(std::string_view name) {
  if (out_.size() > 1) out_ += ',';
  out_ += '"';
  out_ += name;
  out_ += "\":";
}

void ObjectText::raw(std::string_view name, std::string_view json) {
  this->name(name);
  out_ += json;
}

void ObjectText::string(std::string_view name, std::string_view text) {
  this->name(name);
  append_string(out_, text);
}

void ObjectText::optional_string(std::string_view name, const std::optional<std::string>& text) {
  if (text) return string(name, *text);
  raw(name, "null");
}

void ObjectText::strings(std::string_view name, const std::vector<std::string>& texts) {
  ArrayText list;
  for (const std::string& text : texts) {
    std::string quoted;
    append_string(quoted, text);
    list.raw(quoted);
  }
  raw(name, list.take());
}

void ArrayText::raw(std::string_view json) {
  if (out_.size() > 1) out_ += ',';
  out_ += json;
}

Output text_output(std::string json) {
  return Output{Json(), std::nullopt, std::move(json)};
}

std::string print(const Json& json, bool ascii) {
  Printer printer(ascii);
  printer.value(json);
  return printer.take();
}

}  // namespace sandboxes::bindings

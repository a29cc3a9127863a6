#include "sandboxes/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

constexpr double kMostSeconds = 100.0 * 366 * 24 * 60 * 60;

tl::unexpected<Error> refuse(std::string got) {
  return fail(InvalidSleepAfter{std::move(got)});
}

}  // namespace

Result<double> validate_sleep_after(double seconds) {
  if (std::isfinite(seconds) && seconds > 0 && seconds <= kMostSeconds) return seconds;
  return refuse(number_text(seconds));
}

Result<double> validate_sleep_after(std::string_view text) {
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  const bool digits = error == std::errc() && is_digit(text.front()) && stop + 1 == end;
  const std::int64_t unit = !digits ? 0 : *stop == 's' ? 1 : *stop == 'm' ? 60 : *stop == 'h' ? 3600 : 0;
  const double seconds = static_cast<double>(count) * static_cast<double>(unit);
  if (unit == 0 || !(seconds > 0) || seconds > kMostSeconds) return refuse(in_quotes(text));
  return seconds;
}

bool is_env_key(std::string_view key) {
  if (key.empty() || !(is_alpha(key.front()) || key.front() == '_')) return false;
  return std::all_of(key.begin(), key.end(), [](char c) { return is_alnum(c) || c == '_'; });
}

}  // namespace sandboxes

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/result.hpp"

namespace sandboxes::bindings {

/// Long-lived values that JavaScript names by an integer: `generation * 2^20 + index`, so that a handle that
/// was freed is not mistaken for its successor in the same place.
template <class T>
class SlotTable {
 public:
  explicit SlotTable(std::string_view kind) : kind_(kind) {}

  [[nodiscard]] std::int64_t add(T value) {
    std::size_t index = 0;
    while (index < slots_.size() && slots_[index].value != nullptr) ++index;
    if (index == slots_.size()) slots_.emplace_back();
    slots_[index].value = std::make_unique<T>(std::move(value));
    return slots_[index].generation * kIndexRange + static_cast<std::int64_t>(index);
  }

  [[nodiscard]] Result<T*> get(std::int64_t handle) {
    Slot* slot = find(handle);
    if (slot == nullptr) return fail(UnknownHandle{std::string(kind_), handle});
    return slot->value.get();
  }

  /// False when there was nothing to free: freeing twice is no error.
  bool free(std::int64_t handle) {
    Slot* slot = find(handle);
    if (slot == nullptr) return false;
    slot->value.reset();
    ++slot->generation;
    return true;
  }

  [[nodiscard]] std::size_t count() const {
    std::size_t used = 0;
    for (const Slot& slot : slots_) used += slot.value != nullptr ? 1 : 0;
    return used;
  }

 private:
  struct Slot {
    std::unique_ptr<T> value;
    std::int64_t generation = 1;
  };
  static constexpr std::int64_t kIndexRange = std::int64_t{1} << 20;

  Slot* find(std::int64_t handle) {
    if (handle < kIndexRange) return nullptr;
    const auto index = static_cast<std::size_t>(handle % kIndexRange);
    if (index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    return slot.value != nullptr && slot.generation == handle / kIndexRange ? &slot : nullptr;
  }

  std::string_view kind_;
  std::vector<Slot> slots_;
};

}  // namespace sandboxes::bindings

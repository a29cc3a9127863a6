#include "sandboxes/instance_types.hpp"

#include <string>

namespace sandboxes {

Result<InstanceType> parse_instance_type(std::string_view name) {
  for (const InstanceTypeRow& row : instance_types) {
    if (row.name == name) return row.type;
  }
  return fail(InvalidInstanceType{std::string(name)});
}

}  // namespace sandboxes

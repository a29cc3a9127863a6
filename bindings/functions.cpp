#include <vector>

#include "codec.hpp"

namespace sandboxes::bindings {

namespace {

std::vector<FunctionEntry> join_all() {
  std::vector<FunctionEntry> joined;
  for (const auto list : {deployment_functions(), identity_functions(), secret_functions()})
    joined.insert(joined.end(), list.begin(), list.end());
  return joined;
}

}  // namespace

std::span<const FunctionEntry> all_functions() {
  static const std::vector<FunctionEntry> functions = join_all();
  return functions;
}

}  // namespace sandboxes::bindings

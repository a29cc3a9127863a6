#include <vector>

#include "codec.hpp"

namespace sandboxes::bindings {

namespace {

std::vector<FunctionEntry> join_all() {
  std::vector<FunctionEntry> joined;
  for (const auto list : {
           catalogue_functions(),
           deployment_functions(),
           egress_functions(),
           environment_functions(),
           event_functions(),
           identity_functions(),
           openai_functions(),
           placeholder_functions(),
           lifecycle_functions(),
           projection_functions(),
           secret_functions(),
           snapshot_functions(),
           table_functions(),
       }) {
    joined.insert(joined.end(), list.begin(), list.end());
  }
  return joined;
}

}  // namespace

std::span<const FunctionEntry> all_functions() {
  static const std::vector<FunctionEntry> functions = join_all();
  return functions;
}

}  // namespace sandboxes::bindings

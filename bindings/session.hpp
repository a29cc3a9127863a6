#pragma once

#include <simdjson.h>

#include "sandboxes/egress_policy.hpp"
#include "sandboxes/projection.hpp"
#include "slots.hpp"

namespace sandboxes::bindings {

/// What lives from call to call in one instance of the core: values behind handles, and a parser for bodies.
/// A domain with handles adds its `SlotTable` here.
struct Session {
  /// For JSON in `CallInput::body`; the parser of the arguments is busy during a call.
  simdjson::dom::parser body_parser;
  SlotTable<ProjectionState> projections{"projection"};
  SlotTable<EgressPolicy> policies{"egress policy"};
};

}  // namespace sandboxes::bindings

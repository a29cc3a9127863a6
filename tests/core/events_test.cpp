#include "sandboxes/events.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "sandboxes/instance_types.hpp"

using namespace sandboxes;

TEST_CASE("every event type is described, and its example is valid") {
  std::set<std::string_view> types;
  simdjson::dom::parser parser;
  for (const EventRow& row : event_rows()) {
    INFO(row.type);
    CHECK(types.insert(row.type).second);
    CHECK_FALSE(row.description.empty());
    simdjson::dom::element example;
    REQUIRE(parser.parse(std::string(row.example)).get(example) == simdjson::SUCCESS);
    CHECK(validate_event(row.type, example, 100).has_value());
    CHECK(event_type_name(row.id) == row.type);
    CHECK(find_event(row.type) == &row);
  }
}

TEST_CASE("an event may have 128 KiB and no more") {
  simdjson::dom::parser parser;
  simdjson::dom::element payload;
  REQUIRE(parser.parse(std::string("{}")).get(payload) == simdjson::SUCCESS);
  const std::string_view type = event_type_name(EventType::started);
  CHECK(validate_event(type, payload, 128 * 1024).has_value());
  const auto refused = validate_event(type, payload, 128 * 1024 + 1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().get_if<EventTooLarge>() != nullptr);
}

TEST_CASE("the table of instance types adds up") {
  std::int64_t vcpu = 0;
  for (const InstanceTypeRow& row : instance_types) {
    CHECK(parse_instance_type(row.name).value_or(InstanceType::lite) == row.type);
    CHECK(row.vcpu_sixteenths > vcpu);
    vcpu = row.vcpu_sixteenths;
    for (const auto kind : {EnvironmentKind::dev, EnvironmentKind::preview, EnvironmentKind::prd}) {
      CHECK(max_instances(row, kind) > 0);
    }
  }
  CHECK(instance_type_row(default_instance_type).name == "basic");
}

// A stored snapshot handle: what is read once reads the same again.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::json;
  const std::string input(fuzz::text(data, size));
  fuzz::call("parseSnapshotHandle", "{\"handle\":" + input + "}");
  const Json text = Json{{"handle", input}};
  const Json answer =
      fuzz::call("parseSnapshotHandle", text.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!answer.contains("value")) return 0;
  const Json again = fuzz::call("parseSnapshotHandle", Json{{"handle", answer["value"]}}.dump());
  fuzz::require(again == answer, "a manifest that was read reads the same again");
  fuzz::call("snapshotState", Json{{"manifest", answer["value"]}, {"now", 1'800'000'000'000}}.dump());
  fuzz::call("backupOptions", Json{{"manifest", answer["value"]}}.dump());
  return 0;
}

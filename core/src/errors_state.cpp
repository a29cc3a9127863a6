#include "sandboxes/errors/state.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

std::string InvalidProjectId::message() const {
  return "The project id " + in_quotes(got) + " is refused: " + reason +
         ". A project id is 1 to 63 of a-z, 0-9, '_' and '-', and starts with a letter or a digit.";
}
Details InvalidProjectId::details() const {
  return {{"projectId", got}, {"reason", reason}};
}

std::string InvalidPath::message() const {
  std::string text = "The " + kind + " " + in_quotes(got) + " is refused: " + reason;
  if (position >= 0) text += " at position " + std::to_string(position);
  return text + ". Paths are taken as they are and never rewritten; use one like " +
         (kind == "secret path"    ? "\"/secrets/openai\""
          : kind == "sandbox path" ? "\"/sandboxes/main\""
                                   : "\"/egress\"") +
         ".";
}
Details InvalidPath::details() const {
  return {{"kind", kind}, {"path", got}, {"reason", reason}, {"position", position}};
}

std::string NameTooLong::message() const {
  const std::string where = what == "path" ? " in this project" : "";
  return "The " + what + " " + in_quotes(got) + " has " + std::to_string(got.size()) + " bytes; at most " +
         std::to_string(limit) + " are allowed" + where + ". Choose a shorter path.";
}
Details NameTooLong::details() const {
  return {{what == "path" ? "path" : "name", got},
          {"bytes", static_cast<std::int64_t>(got.size())},
          {"limit", limit}};
}

std::string InvalidName::message() const {
  return "The Durable Object name " + in_quotes(got) + " is refused: " + reason +
         ". Make names with durableObjectName({ projectId, path }).";
}
Details InvalidName::details() const {
  return {{"name", got}, {"reason", reason}};
}

std::string IdentityMismatch::message() const {
  return "This object is " + in_quotes(stored) + " and was addressed as " + in_quotes(given) +
         ". Identity is fixed at the first call; address objects by durableObjectName.";
}
Details IdentityMismatch::details() const {
  return {{"stored", stored}, {"given", given}};
}

std::string InvalidInstanceType::message() const {
  return "There is no instance type " + in_quotes(got) +
         "; choose one of lite, basic, standard-1, standard-2, standard-3, standard-4.";
}
Details InvalidInstanceType::details() const {
  return {{"instanceType", got}};
}

std::string UnknownEventType::message() const {
  return "There is no event type " + in_quotes(got) + ". eventCatalogue() lists them all.";
}
Details UnknownEventType::details() const {
  return {{"type", got}};
}

std::string InvalidEvent::message() const {
  return "The event " + in_quotes(type) +
         " is refused: " + (field.empty() ? "the payload" : in_quotes(field)) + " " + reason + ".";
}
Details InvalidEvent::details() const {
  return {{"type", type}, {"field", field}, {"reason", reason}};
}

std::string EventTooLarge::message() const {
  return "The event " + in_quotes(type) + " has " + std::to_string(bytes) + " bytes; the limit is " +
         std::to_string(limit) + ". Keep large values in /workspace or in a secret.";
}
Details EventTooLarge::details() const {
  return {{"type", type}, {"bytes", bytes}, {"limit", limit}};
}

std::string OutOfOrder::message() const {
  return "The batch holds the unseen event " + std::to_string(offset) + ", older than the state at offset " +
         std::to_string(state_offset) +
         ". Fold from the first event, or pass the events after the state's offset.";
}
Details OutOfOrder::details() const {
  return {{"offset", offset}, {"stateOffset", state_offset}};
}

std::string SandboxExists::message() const {
  return "There is a sandbox at " + in_quotes(path) + " already. Use it with get(), or choose another name.";
}
Details SandboxExists::details() const {
  return {{"path", path}};
}

std::string SandboxNotFound::message() const {
  return "There is no sandbox at " + in_quotes(path) + ". Create it first with create().";
}
Details SandboxNotFound::details() const {
  return {{"path", path}};
}

std::string SandboxDestroyed::message() const {
  return "The sandbox at " + in_quotes(path) + " was destroyed and its name is retired. Choose another name.";
}
Details SandboxDestroyed::details() const {
  return {{"path", path}};
}

std::string CreationInProgress::message() const {
  return "The sandbox at " + in_quotes(path) +
         " is being created by another call. Wait for that one, then use it.";
}
Details CreationInProgress::details() const {
  return {{"path", path}};
}

std::string CreationUnfinished::message() const {
  return "The creation of the sandbox at " + in_quotes(path) +
         " was interrupted. Call create() again with the same input to finish it.";
}
Details CreationUnfinished::details() const {
  return {{"path", path}};
}

std::string InstanceTypeMismatch::message() const {
  return "The sandbox at " + in_quotes(path) + " has the instance type " + in_quotes(existing) + ", not " +
         in_quotes(given) + ". A sandbox keeps its instance type; create another one for another type.";
}
Details InstanceTypeMismatch::details() const {
  return {{"path", path}, {"existing", existing}, {"given", given}};
}

}  // namespace sandboxes

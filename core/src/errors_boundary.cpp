#include "sandboxes/errors/boundary.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

std::string InvalidInput::message() const {
  return "\"" + field + "\" is " + got + "; it must be " + allowed + ".";
}
Details InvalidInput::details() const {
  return {{"field", field}, {"got", got}, {"allowed", allowed}};
}

std::string InvalidJson::message() const {
  return "The " + what + " is not JSON: " + reason + ".";
}
Details InvalidJson::details() const {
  return {{"what", what}, {"reason", reason}};
}

std::string InputTooLarge::message() const {
  return "The " + what + " has " + std::to_string(bytes) + " bytes; the limit is " + std::to_string(limit) +
         ". Send it in smaller pieces.";
}
Details InputTooLarge::details() const {
  return {{"what", what}, {"bytes", bytes}, {"limit", limit}};
}

std::string NestingTooDeep::message() const {
  return "The " + what + " is nested deeper than " + std::to_string(limit) + " levels. Flatten it.";
}
Details NestingTooDeep::details() const {
  return {{"what", what}, {"limit", limit}};
}

std::string UnknownFunction::message() const {
  return "The core has no function " + in_quotes(name) +
         ". The wasm and the JavaScript are from different builds.";
}
Details UnknownFunction::details() const {
  return {{"name", name}};
}

std::string UnknownHandle::message() const {
  return "This " + kind + " was freed, or never made (handle " + std::to_string(handle) +
         "). Make a new one.";
}
Details UnknownHandle::details() const {
  return {{"kind", kind}, {"handle", handle}};
}

std::string OutOfMemory::message() const {
  return "There is not enough memory for the " + what + ". Send it in smaller pieces.";
}
Details OutOfMemory::details() const {
  return {{"what", what}};
}

}  // namespace sandboxes

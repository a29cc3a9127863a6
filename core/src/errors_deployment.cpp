#include "sandboxes/error.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

std::string InvalidEnvironment::message() const {
  return "There is no environment " + in_quotes(got) + ". Allowed: dev, prd, and preview_1 to preview_999.";
}

Details InvalidEnvironment::details() const {
  return {{"got", got}};
}

std::string InvalidMigrations::message() const {
  return "The migration " + in_quotes(tag) + " cannot have been applied: " + reason +
         ". Restore the history that was deployed; tags are only ever appended.";
}

Details InvalidMigrations::details() const {
  return {{"tag", tag}, {"reason", reason}};
}

std::string WouldDeleteClass::message() const {
  return "This would delete " + classes +
         " with the storage of every object. Keep the instance type, or name each class that may go with "
         "--delete-class.";
}

Details WouldDeleteClass::details() const {
  return {{"classes", classes}};
}

}  // namespace sandboxes

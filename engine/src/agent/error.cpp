#include "sandboxd/agent/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

struct StatusRow {
  std::string_view code;
  int status;
};

constexpr std::array kStatuses = {
    StatusRow{"FILE_NOT_FOUND", 404},
    StatusRow{"COMMAND_NOT_FOUND", 404},
    StatusRow{"PROCESS_NOT_FOUND", 404},
    StatusRow{"PORT_NOT_EXPOSED", 404},
    StatusRow{"GIT_REPOSITORY_NOT_FOUND", 404},
    StatusRow{"GIT_BRANCH_NOT_FOUND", 404},
    StatusRow{"CONTEXT_NOT_FOUND", 404},
    StatusRow{"WATCH_NOT_FOUND", 404},
    StatusRow{"BACKUP_NOT_FOUND", 404},
    StatusRow{"IS_DIRECTORY", 400},
    StatusRow{"NOT_DIRECTORY", 400},
    StatusRow{"INVALID_COMMAND", 400},
    StatusRow{"INVALID_PORT_NUMBER", 400},
    StatusRow{"INVALID_PORT", 400},
    StatusRow{"INVALID_GIT_URL", 400},
    StatusRow{"INVALID_JSON_RESPONSE", 400},
    StatusRow{"NAME_TOO_LONG", 400},
    StatusRow{"VALIDATION_FAILED", 400},
    StatusRow{"INVALID_BACKUP_CONFIG", 400},
    StatusRow{"BACKUP_EXPIRED", 400},
    StatusRow{"GIT_AUTH_FAILED", 401},
    StatusRow{"PERMISSION_DENIED", 403},
    StatusRow{"COMMAND_PERMISSION_DENIED", 403},
    StatusRow{"PROCESS_PERMISSION_DENIED", 403},
    StatusRow{"READ_ONLY", 403},
    StatusRow{"FILE_EXISTS", 409},
    StatusRow{"PORT_IN_USE", 409},
    StatusRow{"RESOURCE_BUSY", 409},
    StatusRow{"SESSION_ALREADY_EXISTS", 409},
    StatusRow{"OPERATION_INTERRUPTED", 409},
    StatusRow{"SESSION_DESTROYED", 410},
    StatusRow{"SESSION_TERMINATED", 410},
    StatusRow{"FILE_TOO_LARGE", 413},
    StatusRow{"PYTHON_NOT_AVAILABLE", 501},
    StatusRow{"JAVASCRIPT_NOT_AVAILABLE", 501},
    StatusRow{"SERVICE_NOT_RESPONDING", 502},
    StatusRow{"GIT_NETWORK_ERROR", 502},
    StatusRow{"INTERPRETER_NOT_READY", 503},
    StatusRow{"PROCESS_READY_TIMEOUT", 408},
};

struct ErrnoRow {
  int number;
  std::string_view code;
};

constexpr std::array kFileCodes = {
    ErrnoRow{ENOENT, "FILE_NOT_FOUND"},
    ErrnoRow{EACCES, "PERMISSION_DENIED"},
    ErrnoRow{EPERM, "PERMISSION_DENIED"},
    ErrnoRow{EEXIST, "FILE_EXISTS"},
    ErrnoRow{ENOTEMPTY, "FILE_EXISTS"},
    ErrnoRow{EISDIR, "IS_DIRECTORY"},
    ErrnoRow{ENOTDIR, "NOT_DIRECTORY"},
    ErrnoRow{EFBIG, "FILE_TOO_LARGE"},
    ErrnoRow{ENOSPC, "NO_SPACE"},
    ErrnoRow{EDQUOT, "NO_SPACE"},
    ErrnoRow{EMFILE, "TOO_MANY_FILES"},
    ErrnoRow{ENFILE, "TOO_MANY_FILES"},
    ErrnoRow{EBUSY, "RESOURCE_BUSY"},
    ErrnoRow{EAGAIN, "RESOURCE_BUSY"},
    ErrnoRow{ETXTBSY, "RESOURCE_BUSY"},
    ErrnoRow{EROFS, "READ_ONLY"},
    ErrnoRow{ENAMETOOLONG, "NAME_TOO_LONG"},
    ErrnoRow{EMLINK, "TOO_MANY_LINKS"},
    ErrnoRow{ELOOP, "TOO_MANY_LINKS"},
};

struct SuggestionRow {
  std::string_view code;
  std::string_view text;
};

constexpr std::array kSuggestions = {
    SuggestionRow{"FILE_NOT_FOUND", "Ensure the file exists before attempting to access it"},
    SuggestionRow{"FILE_EXISTS", "Use a different path or delete the existing file first"},
    SuggestionRow{"FILE_TOO_LARGE", "Read it in pieces with readFileStream()"},
    SuggestionRow{"PROCESS_NOT_FOUND",
                  "Verify the process ID is correct; listProcesses() names those that exist"},
    SuggestionRow{"SESSION_ALREADY_EXISTS", "Use a different session ID or reuse the existing session"},
    SuggestionRow{"SESSION_DESTROYED", "Create a new session to continue executing commands"},
    SuggestionRow{
        "SESSION_TERMINATED",
        "The shell of the session has exited; its variables, functions and directory are lost. Retry the "
        "call to start a fresh session, or call createSession() with the same id"},
    SuggestionRow{"VALIDATION_FAILED",
                  "Check the request parameters and ensure they match the required format"},
    SuggestionRow{"CONTEXT_NOT_FOUND", "Create a context first using createContext()"},
    SuggestionRow{"NO_SPACE", "Not enough disk space available. Clean up or use a larger instance type"},
    SuggestionRow{"PERMISSION_DENIED", "Check file/directory permissions"},
    SuggestionRow{"RESOURCE_BUSY",
                  "End processes with killAllProcesses(), or put the sandbox to sleep or restart it, which "
                  "ends them all and keeps /workspace"},
    SuggestionRow{"GIT_AUTH_FAILED", "Check authentication credentials or use a public repository"},
    SuggestionRow{"GIT_REPOSITORY_NOT_FOUND", "Verify the repository URL is correct and accessible"},
    SuggestionRow{"BACKUP_CREATE_FAILED", "Check that the directory exists and there is enough disk space"},
    SuggestionRow{"BACKUP_RESTORE_FAILED", "The archive may be corrupted or the target directory in use"},
};

}  // namespace

int http_status(std::string_view code) {
  const auto* row = std::ranges::find(kStatuses, code, &StatusRow::code);
  return row == kStatuses.end() ? 500 : row->status;
}

std::string suggestion(const AgentError& error) {
  const auto* row = std::ranges::find(kSuggestions, error.code, &SuggestionRow::code);
  return row == kSuggestions.end() ? std::string() : std::string(row->text);
}

std::string error_body(const AgentError& error) {
  Json body = {{"code", error.code},
               {"message", error.message},
               {"context", error.context},
               {"httpStatus", http_status(error.code)},
               {"timestamp", iso_timestamp()}};
  if (!error.operation.empty()) body["operation"] = error.operation;
  if (auto text = suggestion(error); !text.empty()) body["suggestion"] = text;
  return body.dump(-1, ' ', true, Json::error_handler_t::replace);
}

AgentError file_error(int error_number, std::string_view what, std::string_view path,
                      std::string_view operation) {
  const auto* row = std::ranges::find(kFileCodes, error_number, &ErrnoRow::number);
  const char* name = ::strerrorname_np(error_number);
  std::string text = path.empty() ? std::string(what) : std::string(what) + " '" + std::string(path) + "'";
  AgentError error;
  error.code = row == kFileCodes.end() ? std::string_view("FILESYSTEM_ERROR") : row->code;
  error.message = text + ": " + ::strerrordesc_np(error_number);
  error.context = {{"path", path}, {"errno", error_number}, {"errnoName", name == nullptr ? "" : name}};
  error.context["stderr"] = error.message;
  error.operation = operation;
  return error;
}

AgentError invalid(std::string_view field, std::string message) {
  AgentError error;
  error.code = "VALIDATION_FAILED";
  error.message = std::move(message);
  error.context = {{"validationErrors", Json::array({{{"field", field}, {"message", error.message}}})}};
  return error;
}

}  // namespace sandboxd::agent

#pragma once

#include <string>
#include <string_view>

#include "sandboxd/agent/app.hpp"

namespace sandboxd::agent {

/// Lines for mksquashfs -wildcards -ef: a pattern of one segment matches at any depth, a path is anchored at
/// the root.
std::string exclude_lines(std::string_view pattern);
/// The line that leaves out exactly this path.
std::string literal_exclude(std::string_view path);

/// `POST /api/backup/upload-parts`: ranges of an archive to presigned URLs, a few at once.
Task<Result<Response>> upload_parts(App& app, Request& request);

}  // namespace sandboxd::agent

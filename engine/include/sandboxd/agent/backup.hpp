#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sandboxd/agent/app.hpp"

namespace sandboxd::agent {

/// Adds a pattern as mksquashfs -wildcards takes it: of one segment it matches at any depth, a path is
/// anchored at the root.
void add_exclude(std::vector<std::string>& out, std::string_view pattern);
/// The pattern that leaves out exactly this path.
std::string literal_exclude(std::string_view path);

/// `POST /api/backup/upload-parts`: ranges of an archive to presigned URLs, a few at once.
Task<Result<Response>> upload_parts(App& app, Request& request);

}  // namespace sandboxd::agent

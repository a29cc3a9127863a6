#pragma once

#include <span>
#include <string>
#include <vector>

namespace sandboxd::squash {

struct SquashOptions {
  std::string directory;
  std::string archive;
  std::vector<std::string> excludes;
  unsigned threads = 1;
};

/// Archives the directory as squashfs 4.0 with lz4, as mksquashfs does: every program that reads its archives
/// reads these. Its own time goes into handing each small file from thread to thread, which is most of what a
/// backup of a source tree takes.
/// Returns the exit code; what went wrong is on standard error.
int squash(const SquashOptions& options);

/// `squash DIRECTORY ARCHIVE EXCLUDES THREADS`: the excludes are a file of patterns, each ended by a NUL.
int squash(std::span<char*> arguments);

}  // namespace sandboxd::squash

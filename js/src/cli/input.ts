/** Files that a person named. */
import { readFile } from "node:fs/promises";
import { SandboxError } from "../core/error.ts";

/** The file's text. @throws SandboxError `file_unreadable` that names the file, what named it and why it cannot be read */
export async function readGiven(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const reason = REASONS[code] ?? (error instanceof Error ? error.message : String(error));
    throw new SandboxError({
      code: "file_unreadable",
      message: `${what}: ${JSON.stringify(path)} ${reason}; give a file that can be read`,
      details: { path, reason: code },
      status: 400,
      retryable: false,
    });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "is not there",
  EACCES: "may not be read by this user",
  EISDIR: "is a folder",
};

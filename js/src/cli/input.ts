/** What a person typed: numbers, and files that were named. */
import { readFile } from "node:fs/promises";
import { InvalidArgumentError } from "commander";
import { SandboxError } from "../core/error.ts";

/** For an option of commander's, which says what was got and by what option. */
export function wholeNumber(from: number, to?: number): (text: string) => number {
  const allowed = to === undefined ? `of at least ${from}` : `from ${from} to ${to}`;
  return (text) => {
    const value = Number(text);
    if (
      !/^\d+$/.test(text) ||
      !Number.isSafeInteger(value) ||
      value < from ||
      (to !== undefined && value > to)
    )
      throw new InvalidArgumentError(`It must be a whole number ${allowed}.`);
    return value;
  };
}

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

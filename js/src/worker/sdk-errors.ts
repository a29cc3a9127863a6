/**
 * What to do about the SDK's own refusals. Its codes and messages stay as they are; a message says what was got, and here it gets the
 * step after it.
 */
export const sdkNextSteps: Readonly<Record<string, string>> = {
  FILE_NOT_FOUND: "listFiles() shows what a folder holds; a relative path starts at /workspace.",
  FILE_EXISTS: "Choose another path, or delete what is there first.",
  FILE_TOO_LARGE: "Read it with readFileStream(), or write it from a ReadableStream.",
  IS_DIRECTORY: "Name a file in it, or use listFiles() for the folder.",
  NOT_DIRECTORY: "Name a folder; readFile() reads a file.",
  PERMISSION_DENIED: "Write under /workspace or /tmp, or change the permissions with exec().",
  READ_ONLY: "Write under /workspace or /tmp.",
  NO_SPACE: "Delete something, or create a sandbox of a larger instance type.",
  TOO_MANY_FILES: "Close files, or end processes that hold them.",
  NAME_TOO_LONG: "A name has at most 255 bytes and a path 4095.",
  FILESYSTEM_ERROR: "The message holds what the file system said; exec('ls -la …') shows more.",
  COMMAND_NOT_FOUND: "Install the program, or give its whole path.",
  COMMAND_PERMISSION_DENIED: "Make the file executable with chmod +x.",
  INVALID_COMMAND: "Give a shell command line that is not empty.",
  PROCESS_NOT_FOUND: "listProcesses() names those that there are.",
  PROCESS_READY_TIMEOUT: "getProcessLogs() shows what it printed so far; give it a longer timeout.",
  PROCESS_EXITED_BEFORE_READY: "getProcessLogs() shows why it ended.",
  SESSION_ALREADY_EXISTS: "Use it with getSession(), or choose another id.",
  SESSION_DESTROYED: "Create it again with createSession().",
  SESSION_TERMINATED: "Its shell has ended; the next call opens a new one.",
  PORT_NOT_EXPOSED: "Use tunnels.get(port).",
  INVALID_PORT_NUMBER: "Ports from 1024 to 65535 are allowed, 3000 is taken.",
  INVALID_PORT: "Ports from 1024 to 65535 are allowed, 3000 is taken.",
  SERVICE_NOT_RESPONDING: "Start what listens on the port, and wait for it with process.waitForPort().",
  GIT_REPOSITORY_NOT_FOUND: "Check the URL; a private repository needs a connection of the project.",
  GIT_BRANCH_NOT_FOUND: "git ls-remote shows the branches that there are.",
  GIT_AUTH_FAILED: "Add a connection to the project whose secret may read the repository.",
  GIT_NETWORK_ERROR: "The project's /egress stream tells whether the policy refused it.",
  INVALID_GIT_URL: "Give an https:// URL of a repository.",
  GIT_CLONE_FAILED: "The message holds what git said.",
  GIT_CHECKOUT_FAILED: "The message holds what git said.",
  BACKUP_NOT_FOUND: "A snapshot is kept for 90 days after it was made.",
  BACKUP_EXPIRED: "A snapshot is kept for 90 days after it was made.",
  INVALID_BACKUP_CONFIG: "Give { dir } with an absolute path, such as /workspace.",
  CONTEXT_NOT_FOUND: "listCodeContexts() names those that there are; createCodeContext() makes one.",
  PYTHON_NOT_AVAILABLE: "Install python3 in the sandbox, or run JavaScript.",
  JAVASCRIPT_NOT_AVAILABLE: "Install node in the sandbox, or run Python.",
  CONTAINER_UNAVAILABLE: "Try again in a moment.",
  OPERATION_INTERRUPTED: "The container was restarted meanwhile; what was running is gone. Call again.",
};

/** The SDK's message, and what to do next where there is something. */
export function withNextStep(code: string, message: string): string {
  const step = sdkNextSteps[code];
  if (step === undefined || message.includes(step)) return message;
  const said = message.trimEnd();
  return `${said}${/[.!?]$/.test(said) ? "" : "."} ${step}`;
}

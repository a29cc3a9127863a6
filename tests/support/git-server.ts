/** Git's own smart HTTP server (`git http-backend`) behind a listener, with a repository of one commit. */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface GitServer {
  listener: RequestListener;
  /** The Authorization header of every request, as the server got it. */
  authorizations: (string | undefined)[];
  close(): void;
}

const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.test"];

/** Serves `/<owner>/<repository>[.git]`; with `authorization`, only to requests that carry exactly that header. */
export function gitServer(repository: string, authorization?: string): GitServer {
  const root = mkdtempSync(join(tmpdir(), "git-server-"));
  const work = join(root, "work");
  const git = (...args: string[]) => execFileSync("git", [...identity, ...args], { stdio: "ignore" });
  git("init", "-q", "-b", "main", work);
  writeFileSync(join(work, "README.md"), "# A repository\n");
  git("-C", work, "add", ".");
  git("-C", work, "commit", "-qm", "First");
  git("clone", "-q", "--bare", work, join(root, repository));
  git("-C", join(root, repository), "config", "http.receivepack", "true");
  const authorizations: (string | undefined)[] = [];
  const listener: RequestListener = (request, response) => {
    // The word before the credentials has no case.
    const got = request.headers.authorization?.replace(/^basic /i, "Basic ");
    authorizations.push(got);
    if (authorization !== undefined && got !== authorization) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end("who are you?\n");
      return;
    }
    backend(root, request, response);
  };
  return { listener, authorizations, close: () => rmSync(root, { recursive: true, force: true }) };
}

/** One request as CGI. */
function backend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "https://git.test");
  const path = url.pathname.replace(/^(\/[^/]+\/[^/]+?)(\.git)?(\/(info|git-|HEAD|objects))/, "$1$3");
  const child = spawn("git", ["http-backend"], {
    env: {
      ...process.env,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: path,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? "GET",
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      REMOTE_USER: "test",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  child.stdin.on("error", () => {}); // git stops reading what it refuses
  request.pipe(child.stdin);
  let head = Buffer.alloc(0);
  let sent = false;
  child.stdout.on("data", (chunk: Buffer) => {
    if (sent) {
      response.write(chunk);
      return;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    sent = true;
    const headers = head
      .subarray(0, end)
      .toString("latin1")
      .split("\r\n")
      .map((line) => line.split(": ", 2));
    const status = headers.find(([name]) => name?.toLowerCase() === "status")?.[1];
    for (const [name, value] of headers)
      if (name !== undefined && value !== undefined && name.toLowerCase() !== "status")
        response.setHeader(name, value);
    response.writeHead(Number.parseInt(status ?? "200", 10));
    response.write(head.subarray(end + 4));
  });
  child.once("close", () => response.end());
}

/** A private repository over HTTPS with a connected account: it works, and the token is nowhere inside. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GitServer, gitServer } from "../support/git-server.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startTlsUpstream, type Upstream } from "../support/upstream.ts";

const token = "gho_Hc7PqLw3ZrT9xVb2";
const basic = `Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`;
let git: GitServer;
let upstream: Upstream;
let server: TestServer;

beforeAll(async () => {
  git = gitServer("acme/private", basic);
  upstream = await startTlsUpstream(["github.com"], git.listener);
  server = await startTestServer({
    upstreams: { "github.com": upstream.address },
    upstreamCa: upstream.caPem,
  });
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
  git?.close();
});

test("gitCheckout and push of a private repository, by a placeholder", async () => {
  const itx = await server.itx("prj_github");
  await itx.secrets
    .get("/secrets/github/acme")
    .set({ material: { accessToken: token }, origins: ["https://github.com"] });
  await itx.connections.set({ kind: "github", name: "acme", secretPath: "/secrets/github/acme" });
  const sandbox = await itx.sandboxes.get("/sandboxes/repo").create();
  await sandbox.gitCheckout("https://github.com/acme/private", { targetDir: "/workspace/repo" });
  expect(git.authorizations.at(-1)).toBe(basic);

  const push = await sandbox.exec(
    "cd /workspace/repo && echo more >> README.md && git commit -qam 'More' && git push -q origin main 2>&1",
  );
  expect(push.exitCode, push.stdout + push.stderr).toBe(0);
  const search = await sandbox.exec(
    `env; cat /root/.gitconfig; grep -rslE 'Hc7PqLw3ZrT9xVb2|${Buffer.from(`x-access-token:${token}`).toString("base64").slice(20, 40)}' /root /workspace /tmp /etc /proc/self/environ || true`,
  );
  expect(search.stdout).toContain("GH_TOKEN=getSecret(");
  expect(search.stdout).not.toContain("Hc7PqLw3ZrT9xVb2");
});

test("a value set by hand wins over the connection; unsetting it brings the connection back", async () => {
  const itx = await server.itx("prj_github");
  const sandbox = itx.sandboxes.get("/sandboxes/repo");
  await sandbox.setEnvVars({ GH_TOKEN: 'getSecret("/secrets/mine")' });
  expect((await sandbox.exec("echo $GH_TOKEN")).stdout).toContain("/secrets/mine");
  await sandbox.setEnvVars({ GH_TOKEN: null });
  await sandbox.restart();
  expect((await sandbox.exec("echo $GH_TOKEN")).stdout).toContain("/secrets/github/acme");
  await sandbox.destroy();
});

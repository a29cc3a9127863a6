/** env-e2: of a secret only the placeholder is ever inside; nor is it in the archive, the events and the logs. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startTestServer } from "../../support/server.ts";
import { startTlsUpstream } from "../../support/upstream.ts";

const marker = "MARKER-7d1f0c52e9";
const placeholder = 'getSecret("/secrets/openai")';
/** Joined where it is searched for, so that the search does not find itself. */
const halves = `${marker.slice(0, 9)}' '${marker.slice(9)}`;

/** Makes an authenticated request, keeps what it got, and writes all of its own memory to a file. */
const dumpAfterRequest = `import os, re, urllib.request
request = urllib.request.Request("https://api.test/", headers={"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
answer = urllib.request.urlopen(request).read()
memory = open("/proc/self/mem", "rb", 0)
with open("/tmp/core", "wb") as core:
    for line in open("/proc/self/maps"):
        first, last = (int(part, 16) for part in re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line).groups()) if " rw" in line else (0, 0)
        try:
            memory.seek(first)
            core.write(memory.read(last - first))
        except (OSError, ValueError, OverflowError): pass
print(answer.decode(), os.path.getsize("/tmp/core") > 1 << 20)`;

test("env-e2: no secret inside the box", async () => {
  let authorization: string | undefined;
  await using upstream = await startTlsUpstream(["api.test"], (request, response) => {
    authorization = request.headers.authorization;
    response.end("welcome");
  });
  await using server = await startTestServer({
    upstreams: { "api.test": upstream.address },
    upstreamCa: upstream.caPem,
  });
  const itx = await server.itx("prj_noleak");
  await itx.secrets.get("/secrets/openai").set({ material: marker, origins: ["https://api.test"] });
  const options = { instanceType: "standard-1", env: { OPENAI_API_KEY: placeholder } } as const;
  const sandbox = await itx.sandboxes.get("/sandboxes/noleak").create(options);

  const shown = await sandbox.exec(
    "env; tr '\\0' '\\n' < /proc/1/environ; cat /proc/*/environ | tr '\\0' '\\n'",
  );
  expect(shown.stdout).toContain(`OPENAI_API_KEY=${placeholder}`);
  expect(shown.stdout).not.toContain(marker);

  const dumped = await sandbox.exec(`python3 - <<'END'\n${dumpAfterRequest}\nEND`, { timeout: 60_000 });
  expect(dumped.stdout, dumped.stderr).toBe("welcome True\n");
  expect(authorization).toBe(`Bearer ${marker}`);

  // The dump has the placeholder, so the search would find what is there.
  const places = "/tmp /workspace /root /etc /var /run /home";
  const search = (words: string) =>
    `word=$(printf %s '${words}'); grep -rlaF -- "$word" ${places} 2>/dev/null; true`;
  expect((await sandbox.exec(search("/secrets' '/openai"))).stdout).toContain("/tmp/core");
  expect((await sandbox.exec(search(halves))).stdout).toBe("");

  await sandbox.exec("cp /tmp/core /workspace/core; env > /workspace/env");
  await sandbox.sleep();
  for (const path of ["/", "/egress", "/sandboxes", "/sandboxes/noleak", "/secrets/openai"])
    expect(JSON.stringify(await itx.streams.get(path).read({ limit: 1000 })), path).not.toContain(marker);
  expect(server.logs.join("\n")).not.toContain(marker);
  await server.server.close();
  let archives = 0;
  for (const name of readdirSync(server.stateDir, { recursive: true, encoding: "utf8" })) {
    const path = join(server.stateDir, name);
    if (!statSync(path).isFile()) continue;
    const bytes = readFileSync(path);
    expect(bytes.includes(marker), name).toBe(false);
    if (bytes.subarray(0, 4).toString("latin1") !== "hsqs") continue;
    archives++;
    const unpacked = execFileSync("unsquashfs", ["-cat", path, "core", "env"], { maxBuffer: 1 << 30 });
    expect(unpacked.includes(marker), `${name}, unpacked`).toBe(false);
    expect(unpacked.includes("/secrets/openai"), `${name}, unpacked`).toBe(true);
  }
  expect(archives).toBeGreaterThan(0);
});

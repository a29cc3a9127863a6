import { execFile } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { account, defaultRule, type R2Api, startR2Api, token } from "./r2-api.ts";

const script = new URL("../../wrangler/ensure-resources.ts", import.meta.url).pathname;
const bucket = "iterate-sandboxes-dev-sandboxes";
const secondsOf90Days = 7_776_000;

interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

let api: R2Api;
beforeEach(async () => {
  api = await startR2Api();
});
afterEach(() => api.close());

function run(args: string[], env: Record<string, string> = {}): Promise<Run> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [script, "--env", "dev", "--api-url", api.url, ...args],
      {
        env: {
          PATH: process.env.PATH,
          CLOUDFLARE_API_TOKEN: token,
          CLOUDFLARE_ACCOUNT_ID: account,
          ...env,
        },
      },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

const writes = () => api.requests.filter((request) => !request.startsWith("GET"));
const ourRule = () => api.buckets.get(bucket)?.find((rule) => rule.conditions?.prefix === "backups/");

describe("ensure-resources", () => {
  it("prints the plan and changes nothing with --dry-run", async () => {
    const result = await run(["--dry-run"]);
    expect(result).toMatchObject({ code: 0, stderr: "" });
    expect(result.stdout).toContain(`would create bucket ${bucket}`);
    expect(result.stdout).toContain("delete backups/ after 90 days");
    expect(writes()).toEqual([]);
    expect(api.buckets.size).toBe(0);
  });

  it("makes the bucket and the rule, and does nothing when run again", async () => {
    expect(await run([])).toMatchObject({ code: 0, stderr: "" });
    expect(api.buckets.get(bucket)).toContainEqual(defaultRule);
    expect(ourRule()).toMatchObject({
      enabled: true,
      deleteObjectsTransition: { condition: { type: "Age", maxAge: secondsOf90Days } },
    });

    const before = writes().length;
    const again = await run([]);
    expect(again.stdout).toContain("nothing to do");
    expect(writes()).toHaveLength(before);
  });

  it("corrects a rule that somebody changed and keeps the rules of others", async () => {
    await run([]);
    const others = { id: "logs", enabled: true, conditions: { prefix: "logs/" } };
    const ours = ourRule();
    api.buckets.set(bucket, [others, { ...ours, id: ours?.id ?? "", enabled: false }]);
    expect((await run([])).stdout).toContain("correct lifecycle rule");
    expect(ourRule()?.enabled).toBe(true);
    expect(api.buckets.get(bucket)).toContainEqual(others);
  });

  it("names the permission that the token lacks", async () => {
    api.permissions.delete("edit");
    const result = await run([]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain("permission_missing");
    expect(result.stderr).toContain("Workers R2 Storage > Edit");
    expect(result.stderr).toContain(`create the bucket ${bucket}`);
    expect(result.stderr).not.toContain(token);
  });

  it("says which setting is missing", async () => {
    expect((await run([], { CLOUDFLARE_API_TOKEN: "" })).stderr).toContain("CLOUDFLARE_API_TOKEN is missing");
    expect((await run([], { CLOUDFLARE_ACCOUNT_ID: "" })).stderr).toContain("--account-id");
    expect((await run(["--env", "staging"])).stderr).toContain("invalid_environment");
    expect(api.requests).toEqual([]);
  });
});

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ensureResources } from "../../wrangler/ensure-resources.ts";
import { account, defaultRule, type R2Api, startR2Api, token } from "./r2-api.ts";
import { collect, type Finished } from "./run.ts";

const bucket = "iterate-sandboxes-dev-sandboxes";
const secondsOf90Days = 7_776_000;

let api: R2Api;
beforeEach(async () => {
  api = await startR2Api();
});
afterEach(() => api.close());

const environment = { CLOUDFLARE_API_TOKEN: token, CLOUDFLARE_ACCOUNT_ID: account };

function run(args: string[], env: Record<string, string> = {}): Promise<Finished> {
  const argv = ["--env", "dev", "--api-url", api.url, ...args];
  return collect((say) => ensureResources(argv, { ...environment, ...env }, say));
}

const writes = () => api.requests.filter((request) => !request.startsWith("GET"));
const ourRule = () => api.buckets.get(bucket)?.find((rule) => rule.conditions?.prefix === "backups/");

describe("ensure-resources", () => {
  it("prints the plan and changes nothing with --dry-run", async () => {
    const result = await run(["--dry-run"]);
    expect(result).toMatchObject({ code: 0 });
    expect(result.output).toContain(`would create bucket ${bucket}`);
    expect(result.output).toContain("delete backups/ after 90 days");
    expect(writes()).toEqual([]);
    expect(api.buckets.size).toBe(0);
  });

  it("makes the bucket and the rule, and does nothing when run again", async () => {
    expect(await run([])).toMatchObject({ code: 0 });
    expect(api.buckets.get(bucket)).toContainEqual(defaultRule);
    expect(ourRule()).toMatchObject({
      enabled: true,
      deleteObjectsTransition: { condition: { type: "Age", maxAge: secondsOf90Days } },
    });

    const before = writes().length;
    const again = await run([]);
    expect(again.output).toContain("nothing to do");
    expect(writes()).toHaveLength(before);
  });

  it("corrects a rule that somebody changed and keeps the rules of others", async () => {
    await run([]);
    const others = { id: "logs", enabled: true, conditions: { prefix: "logs/" } };
    const ours = ourRule();
    api.buckets.set(bucket, [others, { ...ours, id: ours?.id ?? "", enabled: false }]);
    expect((await run([])).output).toContain("correct lifecycle rule");
    expect(ourRule()?.enabled).toBe(true);
    expect(api.buckets.get(bucket)).toContainEqual(others);
  });

  it("names the permission that the token lacks", async () => {
    api.permissions.delete("edit");
    const result = await run([]);
    expect(result.code).toBe(1);
    expect(result.output).toContain("permission_missing");
    expect(result.output).toContain("Workers R2 Storage > Edit");
    expect(result.output).toContain(`create the bucket ${bucket}`);
    expect(result.output).not.toContain(token);
  });

  it("says which setting is missing", async () => {
    expect((await run([], { CLOUDFLARE_API_TOKEN: "" })).output).toContain("CLOUDFLARE_API_TOKEN is missing");
    expect((await run([], { CLOUDFLARE_ACCOUNT_ID: "" })).output).toContain("--account-id");
    expect((await run(["--env", "staging"])).output).toContain("invalid_environment");
    expect(api.requests).toEqual([]);
  });
});

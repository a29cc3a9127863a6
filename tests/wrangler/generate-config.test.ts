import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { Ajv } from "ajv";
import { parse } from "jsonc-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadCore } from "../../js/src/core/index.ts";
import { dryRun, generate, root, types } from "./run.ts";

interface Migration {
  tag: string;
  new_sqlite_classes?: string[];
  deleted_classes?: string[];
}

/** What the tests read of a configuration. */
interface Config {
  name: string;
  main: string;
  vars: Record<string, string>;
  migrations: Migration[];
  containers: {
    class_name: string;
    image: string;
    instance_type: string;
    max_instances: number;
    ssh: { enabled: boolean };
    authorized_keys?: { name: string; public_key: string }[];
  }[];
  durable_objects: { bindings: { name: string; class_name: string }[] };
  r2_buckets: { binding: string; bucket_name: string; jurisdiction?: string }[];
}

const environments = ["dev", "preview_2", "prd"] as const;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wrangler-config-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string) => join(folder, `${name}.jsonc`);
const text = (name: string) => readFileSync(file(name), "utf8");
const read = (name: string) => parse(text(name), [], { allowTrailingComma: true }) as Config;
const write = (name: string, content: string) => writeFileSync(file(name), content);

async function expectWritten(name: string, ...args: string[]): Promise<void> {
  expect(await generate("--out", file(name), ...args)).toMatchObject({ code: 0 });
}

async function expectAccepted(name: string): Promise<void> {
  const { code, output } = await dryRun(file(name), join(folder, `home-${name}`));
  expect(output).toContain("--dry-run: exiting now.");
  expect(output).not.toMatch(/warning/i);
  expect(code).toBe(0);
}

describe("the configuration of", () => {
  it.concurrent.each(environments)(
    "%s fits wrangler's own schema, carries the core's table, and is accepted by wrangler",
    async (environment) => {
      await expectWritten(environment, "--env", environment);
      const schema = JSON.parse(
        readFileSync(`${root}node_modules/wrangler/config-schema.json`, "utf8"),
      ) as object;
      const validate = new Ajv({ strict: false, allowUnionTypes: true }).compile(schema);
      expect(validate(read(environment)), JSON.stringify(validate.errors)).toBe(true);

      const kind = environment === "preview_2" ? "preview" : environment;
      const config = read(environment);
      const types = (await loadCore()).instanceTypes();
      expect(config.containers).toMatchObject(
        types.map((type) => ({
          class_name: type.className,
          instance_type: type.name,
          max_instances: type.maxInstances[kind],
          image: relative(folder, `${root}wrangler/Dockerfile`),
        })),
      );
      for (const { binding, className } of types) {
        expect(config.durable_objects.bindings).toContainEqual({ name: binding, class_name: className });
      }
      const worker = `iterate-sandboxes-${environment.replace("_", "-")}`;
      expect(config.name).toBe(worker);
      expect(config.r2_buckets).toEqual([{ binding: "BACKUP_BUCKET", bucket_name: `${worker}-sandboxes` }]);
      expect(config.vars).toMatchObject({
        SANDBOX_TRANSPORT: "rpc",
        BACKUP_BUCKET_NAME: `${worker}-sandboxes`,
      });
      expect(config.migrations).toEqual([
        { tag: "v1", new_sqlite_classes: config.durable_objects.bindings.map((row) => row.class_name) },
      ]);
      await expectAccepted(environment);
    },
  );
});

describe("cfg-e1: a second run", () => {
  it("changes no byte, appends one tag for a new type, and deletes a class only when it is named", async () => {
    await expectWritten("steps", "--env", "dev", "--types", "lite,basic");
    const first = text("steps");
    await expectWritten("steps", "--env", "dev", "--types", "lite,basic");
    expect(text("steps")).toBe(first);
    const [applied] = read("steps").migrations;

    await expectWritten("steps", "--env", "dev", "--types", "lite,basic,standard-2");
    const added = { tag: "v2", new_sqlite_classes: ["SandboxStandard2DurableObject"] };
    expect(read("steps").migrations).toEqual([applied, added]);

    const before = text("steps");
    const refused = await generate("--out", file("steps"), "--env", "dev", "--types", "basic,standard-2");
    expect(refused.code).toBe(1);
    expect(refused.output).toContain("would_delete_class");
    expect(refused.output).toContain("SandboxLiteDurableObject");
    expect(text("steps")).toBe(before);

    await expectWritten(
      "steps",
      "--env",
      "dev",
      "--types",
      "basic,standard-2",
      "--delete-class",
      "SandboxLiteDurableObject",
    );
    expect(read("steps").migrations).toEqual([
      applied,
      added,
      { tag: "v3", deleted_classes: ["SandboxLiteDurableObject"] },
    ]);
    expect(read("steps").containers.map((row) => row.instance_type)).toEqual(["basic", "standard-2"]);
    await expectAccepted("steps");
  });

  it("keeps the comments, members, bindings and variables that are not ours", async () => {
    write(
      "foreign",
      `{
  // who to ask
  "name": "old", // ours
  /* hourly */
  "triggers": { "crons": ["0 * * * *"] }, // cleans up
  "vars": { "LOG_LEVEL": "debug", "SANDBOX_TRANSPORT": "http" },
  "migrations": [{ "tag": "first", "new_sqlite_classes": ["Room"] }],
  "durable_objects": { "bindings": [{ "name": "ROOM", "class_name": "Room" }] },
  "kv_namespaces": [
    { "binding": "CACHE", "id": "abc" }, // the cache
  ],
  // the end
}
`,
    );
    await expectWritten("foreign", "--env", "dev");
    const once = text("foreign");
    for (const kept of ["/* hourly */", "// cleans up", "// the cache", "// the end"])
      expect(once).toContain(kept);
    expect(once).not.toContain("// ours");
    const config = read("foreign");
    expect(config).toMatchObject({
      name: "iterate-sandboxes-dev",
      triggers: { crons: ["0 * * * *"] },
      kv_namespaces: [{ binding: "CACHE", id: "abc" }],
      vars: { LOG_LEVEL: "debug", SANDBOX_TRANSPORT: "rpc" },
    });
    expect(config.durable_objects.bindings).toContainEqual({ name: "ROOM", class_name: "Room" });
    expect(config.migrations[0]).toEqual({ tag: "first", new_sqlite_classes: ["Room"] });
    expect(config.migrations).toHaveLength(2);
    expect(config.migrations[1]?.new_sqlite_classes).not.toContain("Room");
    await expectWritten("foreign", "--env", "dev");
    expect(text("foreign")).toBe(once);
  });

  it("does not write over what it cannot read", async () => {
    write("broken", "{ not json");
    const refused = await generate("--env", "dev", "--out", file("broken"));
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.output).toContain("invalid_json");
    expect(text("broken")).toBe("{ not json");
  });
});

it("cfg-e1: wrangler types knows every binding of a generated configuration", async () => {
  await expectWritten("typed", "--env", "dev", "--types", "lite,basic");
  await expectAccepted("typed");
  const declared = join(folder, "worker-configuration.d.ts");
  const { code, output } = await types(file("typed"), join(folder, "home-types"), declared);
  expect(code, output).toBe(0);
  expect(output).not.toMatch(/warning/i);
  const config = read("typed");
  const bindings = [
    ...config.durable_objects.bindings.map(({ name }) => name),
    "BACKUP_BUCKET",
    "SANDBOX_TRANSPORT",
  ];
  for (const name of bindings) expect(readFileSync(declared, "utf8")).toMatch(new RegExp(`\\b${name}: `));
});

describe("what it refuses and explains", () => {
  it("environments that together are over the account's quota", async () => {
    const args = ["--env", "preview_2", "--environments", "dev,prd,preview_1", "--out", file("over")];
    const refused = await generate(...args);
    expect(refused.code).toBe(1);
    expect(refused.output).toContain("memory: 424.25 GiB wanted, the account has 400");
    expect(refused.output).toContain("(prd 302.5, dev 46.25, preview_2 37.75, preview_1 37.75)");
    expect(refused.output).not.toContain("disk: ");
    expect(await generate(...args, "--quota-memory-gib", "500")).toMatchObject({ code: 0 });
  });

  it.each([
    [["--env", "staging"], "invalid_environment"],
    [["--env", "dev", "--types", "huge"], "invalid_instance_type"],
    [["--env", "dev", "--name", "Shop"], 'The name "Shop"'],
    [["--env", "dev", "--name", "n".repeat(60)], "at most 63 characters"],
  ])("%j", async (args, expected) => {
    const refused = await generate(...args, "--out", file("refused"));
    expect(refused.code).toBe(1);
    expect(refused.output).toContain(expected);
  });

  it("SSH keys that Cloudflare does not take", async () => {
    const keys = join(folder, "authorized_keys");
    const body = Buffer.alloc(51, "k").toString("base64");
    writeFileSync(keys, `# team\nssh-ed25519 ${body} ada@laptop\nssh-ed25519 ${body}\n`);
    await expectWritten("ssh", "--env", "dev", "--types", "lite", "--authorized-keys", keys);
    expect(read("ssh").containers).toMatchObject([
      {
        ssh: { enabled: true },
        authorized_keys: [
          { name: "ada@laptop", public_key: `ssh-ed25519 ${body}` },
          { name: "key-2", public_key: `ssh-ed25519 ${body}` },
        ],
      },
    ]);
    writeFileSync(keys, "ssh-rsa AAAA ada@laptop\n");
    const refused = await generate("--env", "dev", "--authorized-keys", keys, "--out", file("rsa"));
    expect(refused.output).toContain("authorized_keys:1 is no ED25519 public key");
  });
});

it("the bucket's jurisdiction decides binding and endpoint", async () => {
  const args = ["--env", "dev", "--types", "lite", "--account-id", "abc", "--jurisdiction", "eu"];
  await expectWritten("eu", ...args);
  expect(read("eu").r2_buckets).toMatchObject([{ jurisdiction: "eu" }]);
  expect(read("eu").vars).toMatchObject({
    CLOUDFLARE_R2_ACCOUNT_ID: "abc",
    BACKUP_BUCKET_ENDPOINT: "https://abc.eu.r2.cloudflarestorage.com",
  });
});

it("the wrangler.jsonc of this tree is what the generator writes", async () => {
  expect(await generate("--env", "dev", "--check")).toMatchObject({ code: 0 });
});

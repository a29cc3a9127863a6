/** Builds a wrangler.jsonc from the core's instance table. Pure: what it reads comes in, the text goes out. */

import { SandboxError } from "../js/src/core/error.ts";
import type { Core, Migration, QuotaCheck } from "../js/src/core/index.ts";
import { compatibilityDate, compatibilityFlags } from "../js/src/node/compatibility.ts";
import type { ExistingConfig, ForeignMember } from "./existing.ts";
import { type Json, type JsoncValue, type Member, members, plain, renderMember } from "./jsonc.ts";
import { deploymentNames } from "./names.ts";

/** The objects that hold no container. The sandbox classes come from the core's table. */
const fixedObjects = [
  { name: "STREAM", class_name: "StreamDurableObject" },
  { name: "CATALOGUE", class_name: "CatalogueDurableObject" },
  { name: "PROJECT", class_name: "ProjectDurableObject" },
  { name: "SECRET", class_name: "SecretDurableObject" },
];

/** Seconds that a container which is in use keeps during a rollout: enough for its parting snapshot. */
const rolloutGraceSeconds = 300;

export interface AuthorizedKey {
  name: string;
  public_key: string;
}

export interface ConfigOptions {
  environment: string;
  baseName?: string;
  /** The command that writes this file, for its first comment. */
  command: string;
  /** Paths as they are read from the folder of the file. */
  paths: { schema: string; main: string; dockerfile: string };
  instanceTypes?: string[];
  deletableClasses?: string[];
  authorizedKeys?: AuthorizedKey[];
  transport?: string;
  accountId?: string;
  jurisdiction?: string;
  existing?: ExistingConfig;
}

type Row = { [key: string]: Json };

/** The text of the configuration of one environment. The same input gives the same bytes. */
export function renderConfig(core: Core, options: ConfigOptions, quota: QuotaCheck): string {
  const own = ownMembers(core, options, quota);
  const keys = new Set(own.map((member) => member.key));
  const kept = (options.existing?.members ?? []).filter((member) => !keys.has(member.key));
  const rendered = [...own.map((member) => renderMember(member, "  ")), ...kept.map(renderForeign)];
  const tail = (options.existing?.tail ?? []).map((line) => `  ${line}\n`).join("");
  return (
    `// Written by \`${options.command}\`.\n` +
    "// Run it again instead of editing: it keeps the members, bindings and variables that it does not know.\n" +
    `{\n${rendered.join(",\n")}\n${tail}}\n`
  );
}

function renderForeign(member: ForeignMember): string {
  return [...member.comments, member.text].map((line) => `  ${line}`).join("\n");
}

function ownMembers(core: Core, options: ConfigOptions, quota: QuotaCheck): Member[] {
  const { workerName, bucketName } = deploymentNames(options.environment, options.baseName);
  const existing = options.existing?.values ?? {};
  const bindings = durableObjects(core, options, existing);
  return [
    { key: "$schema", value: plain(options.paths.schema) },
    { key: "name", value: plain(workerName) },
    ...(options.accountId === undefined ? [] : [{ key: "account_id", value: plain(options.accountId) }]),
    { key: "main", value: plain(options.paths.main) },
    { key: "compatibility_date", value: plain(compatibilityDate) },
    {
      key: "compatibility_flags",
      value: plain(union(compatibilityFlags, existing.compatibility_flags)),
    },
    { key: "observability", value: plain({ enabled: true, logs: { enabled: true, invocation_logs: true } }) },
    {
      key: "durable_objects",
      comment: [
        "Cloudflare fixes the instance type per class, so each type is a class and a namespace of its own.",
      ],
      value: { members: [{ key: "bindings", value: { items: bindings.map(plain) } }] },
    },
    {
      key: "migrations",
      comment: [
        "History: a Worker skips the tags it has applied, so tags are only ever appended. Deleting a class deletes the",
        "storage of all its objects and has to be asked for by name.",
      ],
      value: {
        items: planMigrations(core, options, bindings, existing).map((step) => plain(migrationRow(step))),
      },
    },
    containers(core, options, quota, workerName, existing),
    {
      key: "r2_buckets",
      comment: [
        "Snapshots of /workspace. The SDK asks for this binding by this name; `npm run ensure-resources` makes it.",
      ],
      value: {
        items: mergeRows(
          [
            {
              binding: "BACKUP_BUCKET",
              bucket_name: bucketName,
              ...(options.jurisdiction === undefined ? {} : { jurisdiction: options.jurisdiction }),
            },
          ],
          existing.r2_buckets,
          "binding",
          ["BACKUP_BUCKET"],
        ).map(plain),
      },
    },
    { key: "ai", comment: ["AI Gateway, for requests to api.openai.com."], value: plain({ binding: "AI" }) },
    variables(options, bucketName, existing),
    secrets(existing),
  ];
}

function durableObjects(core: Core, options: ConfigOptions, existing: Row): Row[] {
  const sandboxes = core
    .instanceTypes()
    .map((row) => ({ name: row.binding, class_name: row.className, type: row.name }));
  const wanted = sandboxes.filter((row) => options.instanceTypes?.includes(row.type) ?? true);
  const rows = [...fixedObjects, ...wanted.map(({ name, class_name }) => ({ name, class_name }))];
  const owned = [...fixedObjects, ...sandboxes].map((row) => row.name);
  return mergeRows(rows, asRow(existing.durable_objects).bindings, "name", owned);
}

function planMigrations(core: Core, options: ConfigOptions, bindings: Row[], existing: Row): Migration[] {
  // A binding with a script_name is another Worker's class: its history is not in this file.
  const classes = bindings
    .filter((row) => row.script_name === undefined)
    .map((row) => String(row.class_name));
  return core.planMigrations({
    applied: asRows(existing.migrations).map(readMigration),
    classes,
    deletable: options.deletableClasses ?? [],
  }).migrations;
}

function readMigration(row: Row): Migration {
  const names = (key: string) => asArray(row[key]).map(String);
  return {
    tag: String(row.tag),
    newClasses: names("new_classes"),
    newSqliteClasses: names("new_sqlite_classes"),
    renamedClasses: asRows(row.renamed_classes).map((one) => ({
      from: String(one.from),
      to: String(one.to),
    })),
    deletedClasses: names("deleted_classes"),
  };
}

function migrationRow(step: Migration): Row {
  const given = (key: string, list: Json[] = []): Row => (list.length === 0 ? {} : { [key]: list });
  return {
    tag: step.tag,
    ...given("new_classes", step.newClasses),
    ...given("new_sqlite_classes", step.newSqliteClasses),
    ...given(
      "renamed_classes",
      step.renamedClasses?.map(({ from, to }) => ({ from, to })),
    ),
    ...given("deleted_classes", step.deletedClasses),
  };
}

function containers(
  core: Core,
  options: ConfigOptions,
  quota: QuotaCheck,
  workerName: string,
  existing: Row,
): Member {
  const share = quota.environments.find((one) => one.name === options.environment);
  const keys = options.authorizedKeys ?? [];
  const rows: JsoncValue[] = [];
  for (const cap of share?.caps ?? []) {
    const type = core.instanceTypes().find((row) => row.name === cap.instanceType);
    if (type === undefined) continue;
    rows.push(
      members({
        name: `${workerName}-${type.name}`,
        class_name: type.className,
        image: options.paths.dockerfile,
        instance_type: type.name,
        max_instances: cap.maxInstances,
        rollout_active_grace_period: rolloutGraceSeconds,
        ssh: { enabled: keys.length > 0 },
        authorized_keys:
          keys.length > 0 ? keys.map(({ name, public_key }) => ({ name, public_key })) : undefined,
      }),
    );
  }
  const owned = core.instanceTypes().map((row) => row.className);
  const foreign = mergeRows([], existing.containers, "class_name", owned);
  return {
    key: "containers",
    comment: [
      "One image for all classes; the caps of all environments together have to fit the account's quota, which Cloudflare",
      "checks at deploy. Labels have no place here: the classes set them when they start a container.",
      ...(keys.length > 0
        ? []
        : ["SSH is off: give ED25519 public keys with --authorized-keys to turn it on."]),
    ],
    value: { items: [...rows, ...foreign.map(plain)] },
  };
}

function variables(options: ConfigOptions, bucketName: string, existing: Row): Member {
  const own: Row = {
    SANDBOX_TRANSPORT: options.transport ?? "rpc",
    BACKUP_BUCKET_NAME: bucketName,
    ...(options.accountId === undefined ? {} : { CLOUDFLARE_R2_ACCOUNT_ID: options.accountId }),
    ...(options.accountId === undefined || options.jurisdiction === undefined
      ? {}
      : {
          BACKUP_BUCKET_ENDPOINT: `https://${options.accountId}.${options.jurisdiction}.r2.cloudflarestorage.com`,
        }),
  };
  const others = Object.fromEntries(Object.entries(asRow(existing.vars)).filter(([key]) => !(key in own)));
  return {
    key: "vars",
    comment: [
      "Optional here: GIT_USER_NAME and GIT_USER_EMAIL, the git identity inside sandboxes, and CLOUDFLARE_R2_ACCOUNT_ID, which",
      "presigned snapshot transfers need (--account-id).",
    ],
    value: members({ ...own, ...others }),
  };
}

function secrets(existing: Row): Member {
  const required = union(["TOKEN_KEYS", "SECRETS_KEYS"], asRow(existing.secrets).required);
  return {
    key: "secrets",
    comment: [
      "A first deploy takes them from a file (`wrangler deploy --secrets-file`), later ones with `wrangler secret put`.",
      "TOKEN_KEYS sign project tokens: [{ id, secret }], the first one signs.",
      "SECRETS_KEYS seal secrets: [{ id, key }], 32 bytes in base64, the first one seals.",
      "Optional: OPENAI_API_KEY and PLATFORM_SECRETS (JSON) for egress; R2_ACCESS_KEY_ID and R2_SECRET_ACCESS_KEY make",
      "snapshots travel by presigned URLs, and without them they go through the binding. `wrangler dev` reads only those",
      "that stand in this list.",
    ],
    value: { members: [{ key: "required", value: plain(required) }] },
  };
}

/** Ours first, then the rows of the file whose key is not one that we own. */
function mergeRows(own: Row[], existing: Json | undefined, key: string, owned: string[]): Row[] {
  return [...own, ...asRows(existing).filter((row) => !owned.includes(String(row[key])))];
}

function union(own: string[], existing: Json | undefined): string[] {
  return [...new Set([...own, ...asArray(existing).map(String)])];
}

const asArray = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
const asRow = (value: Json | undefined): Row =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
const asRows = (value: Json | undefined): Row[] => asArray(value).map(asRow);

/** Lines of an authorized_keys file. Cloudflare takes ED25519 keys only. */
export function parseAuthorizedKeys(text: string, file: string): AuthorizedKey[] {
  const keys: AuthorizedKey[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const [type, body, ...comment] = trimmed.split(/\s+/);
    if (type !== "ssh-ed25519" || body === undefined || !/^[A-Za-z0-9+/]{68}$/.test(body)) {
      throw new SandboxError({
        code: "invalid_input",
        message: `${file}:${index + 1} is no ED25519 public key. Cloudflare takes "ssh-ed25519 <base64> <name>" only: make one with ssh-keygen -t ed25519.`,
        details: { file, line: index + 1 },
        status: 400,
        retryable: false,
      });
    }
    keys.push({ name: comment.join(" ") || `key-${keys.length + 1}`, public_key: `${type} ${body}` });
  }
  return keys;
}

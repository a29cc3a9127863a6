/** What a deployment needs of an account beside the Worker: made when absent, never removed, and never emptied. */

import type Cloudflare from "cloudflare";
import { APIError } from "cloudflare";
import type { LifecycleGetResponse } from "cloudflare/resources/r2/buckets/lifecycle";
import { SandboxError } from "../js/src/core/error.ts";

type Rule = LifecycleGetResponse.Rule;

export interface ResourceRequest {
  accountId: string;
  bucketName: string;
  jurisdiction?: "eu" | "fedramp";
  /** The core's rule: where snapshots lie and how long they live. */
  lifecycleRule: Rule;
}

/** One thing to do, in words and as an action. */
export interface Step {
  description: string;
  run: () => Promise<void>;
}

export interface Plan {
  /** What is as it should be already. */
  present: string[];
  steps: Step[];
}

/** Cloudflare's code for a bucket that is not there, and for one that somebody made between our two calls. */
const noSuchBucket = 10006;
const bucketExists = 10004;

/** Reads the account and says what is missing. Writes nothing. */
export async function planResources(client: Cloudflare, request: ResourceRequest): Promise<Plan> {
  const { bucketName, lifecycleRule } = request;
  const plan: Plan = { present: [], steps: [] };
  const exists = await bucketIsThere(client, request);
  if (exists) plan.present.push(`bucket ${bucketName}`);
  else
    plan.steps.push({ description: `create bucket ${bucketName}`, run: () => createBucket(client, request) });

  const rules = exists ? await readRules(client, request) : [];
  const rule = `lifecycle rule "${lifecycleRule.id}" (${describeRule(lifecycleRule)})`;
  const current = rules.find(({ id }) => id === lifecycleRule.id);
  if (current !== undefined && sameRule(current, lifecycleRule)) {
    plan.present.push(rule);
  } else {
    const verb = current === undefined ? "add" : "correct";
    plan.steps.push({
      description: `${verb} ${rule} on ${bucketName}`,
      run: () => writeRule(client, request),
    });
  }
  return plan;
}

async function bucketIsThere(client: Cloudflare, request: ResourceRequest): Promise<boolean> {
  try {
    await client.r2.buckets.get(request.bucketName, parameters(request));
    return true;
  } catch (error) {
    if (hasCode(error, noSuchBucket) || (error instanceof APIError && error.status === 404)) return false;
    throw explain(error, request, `read the bucket ${request.bucketName}`);
  }
}

async function createBucket(client: Cloudflare, request: ResourceRequest): Promise<void> {
  try {
    await client.r2.buckets.create({ ...parameters(request), name: request.bucketName });
  } catch (error) {
    if (hasCode(error, bucketExists)) return;
    throw explain(error, request, `create the bucket ${request.bucketName}`);
  }
}

async function readRules(client: Cloudflare, request: ResourceRequest): Promise<Rule[]> {
  try {
    const answer = await client.r2.buckets.lifecycle.get(request.bucketName, parameters(request));
    return answer.rules ?? [];
  } catch (error) {
    throw explain(error, request, `read the lifecycle rules of ${request.bucketName}`);
  }
}

/** The API replaces all rules at once: the ones that are not ours, R2's own default among them, go back as they were read. */
async function writeRule(client: Cloudflare, request: ResourceRequest): Promise<void> {
  const others = (await readRules(client, request)).filter(({ id }) => id !== request.lifecycleRule.id);
  try {
    await client.r2.buckets.lifecycle.update(request.bucketName, {
      ...parameters(request),
      rules: [...others, request.lifecycleRule],
    });
  } catch (error) {
    throw explain(error, request, `set the lifecycle rules of ${request.bucketName}`);
  }
}

function parameters({ accountId, jurisdiction }: ResourceRequest) {
  return {
    account_id: accountId,
    ...(jurisdiction === undefined ? {} : { "cf-r2-jurisdiction": jurisdiction }),
  };
}

function hasCode(error: unknown, code: number): boolean {
  return error instanceof APIError && error.errors.some((one) => one.code === code);
}

/** A refused request names the permission that the token lacks: the API itself only says "Authentication error". */
function explain(error: unknown, request: ResourceRequest, action: string): unknown {
  if (!(error instanceof APIError)) return error;
  const reasons = error.errors.map((one) => `${one.message} [${one.code}]`).join("; ") || error.message;
  if (error.status === 401 || error.status === 403) {
    return new SandboxError({
      code: "permission_missing",
      message:
        `The API token may not ${action} in account ${request.accountId}: ${reasons}. ` +
        "It needs the permission Account > Workers R2 Storage > Edit for this account, and R2 has to be enabled there.",
      details: { permission: "Workers R2 Storage: Edit", account: request.accountId },
      status: error.status,
      retryable: false,
    });
  }
  return new SandboxError({
    code: "cloudflare_api_error",
    message: `Cloudflare did not ${action}: ${reasons}. Run the command again: it continues where it stopped.`,
    details: { status: error.status ?? 0 },
    status: 502,
    retryable: true,
  });
}

/** Members that the API adds (an empty list of transitions, say) make no difference. */
function sameRule(left: Rule, right: Rule): boolean {
  const said = ({ enabled, conditions, deleteObjectsTransition, abortMultipartUploadsTransition }: Rule) => [
    enabled,
    conditions.prefix,
    sortedJson(deleteObjectsTransition?.condition),
    sortedJson(abortMultipartUploadsTransition?.condition),
  ];
  return JSON.stringify(said(left)) === JSON.stringify(said(right));
}

const sortedJson = (value: object | undefined) => JSON.stringify(Object.entries(value ?? {}).sort());

function describeRule(rule: Rule): string {
  const condition = rule.deleteObjectsTransition?.condition;
  const when =
    condition?.type === "Age" ? `after ${condition.maxAge / 86_400} days` : `on ${condition?.date}`;
  return `delete ${rule.conditions.prefix} ${when}`;
}

/** Says in words what the core found about the account's quota. */

import type { QuotaCheck, Resources } from "../js/src/core/index.ts";

interface Resource {
  id: QuotaCheck["exceeded"][number];
  title: string;
  amount: (resources: Resources) => number;
  unit: string;
}

const resources: Resource[] = [
  { id: "memory", title: "memory", amount: ({ memoryMib }) => memoryMib / 1024, unit: "GiB" },
  { id: "vcpu", title: "vCPU", amount: ({ vcpuSixteenths }) => vcpuSixteenths / 16, unit: "vCPU" },
  { id: "disk", title: "disk", amount: ({ diskMb }) => diskMb / 1000, unit: "GB" },
];

const number = (value: number) => String(Math.round(value * 100) / 100);

/** One line a resource: what every class at its cap takes, of the quota. */
export function describeTotals(check: QuotaCheck): string[] {
  return resources.map(
    ({ title, amount, unit }) =>
      `${title}: ${number(amount(check.total))} of ${number(amount(check.quota))} ${unit}`,
  );
}

/** Why a deploy would be refused, which environment takes how much, and what can be done. Empty when all fits. */
export function describeExcess(check: QuotaCheck): string[] {
  const over = resources.filter(({ id }) => check.exceeded.includes(id));
  if (over.length === 0) return [];
  const lines = over.map(({ title, amount, unit }) => {
    const shares = check.environments
      .map((share) => ({ name: share.name, taken: amount(share.resources) }))
      .sort((left, right) => right.taken - left.taken)
      .map(({ name, taken }) => `${name} ${number(taken)}`);
    return `${title}: ${number(amount(check.total))} ${unit} wanted, the account has ${number(amount(check.quota))} (${shares.join(", ")})`;
  });
  return [
    "The containers of these environments at their caps are over the account's quota, which Cloudflare checks at deploy:",
    ...lines.map((line) => `  ${line}`),
    "Take an environment down and leave it out of --environments, deploy fewer instance types with --types, or give the",
    "account's real quota with --quota-memory-gib, --quota-vcpu or --quota-disk-gb.",
  ];
}

/** Counters of this isolate in Prometheus' text format. They start at nought with it; a scraper sums over isolates. */

const HELP = {
  events_appended: "Events written to streams.",
  rpc_sessions: "RPC sessions that were opened.",
  rpc_batches: "RPC batches over HTTP.",
  requests_refused: "Requests without a valid token.",
  egress_decisions: "Requests that a project's door decided.",
  egress_denied: "Requests that a project's door refused.",
  secret_uses: "Requests that left with a secret's material.",
  gateway_requests: "OpenAI requests sent through AI Gateway.",
  errors_internal: "Calls that failed for a fault of the system.",
} as const;

export type Metric = keyof typeof HELP;

const counters = new Map<Metric, number>();

export function count(metric: Metric, by = 1): void {
  counters.set(metric, (counters.get(metric) ?? 0) + by);
}

export function renderMetrics(): string {
  const lines = metricNames().flatMap((name) => [
    `# HELP sandboxes_${name}_total ${HELP[name]}`,
    `# TYPE sandboxes_${name}_total counter`,
    `sandboxes_${name}_total ${counters.get(name) ?? 0}`,
  ]);
  return `${lines.join("\n")}\n`;
}

function metricNames(): Metric[] {
  return Object.keys(HELP).filter((name): name is Metric => name in HELP);
}

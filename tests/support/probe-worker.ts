/** A Worker whose one object uses `ctx.container` bare, without the libraries that usually stand in between. */
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import { type EngineEnv, installContainer } from "../../js/src/engine/container.ts";
import { engineEntry } from "../../js/src/engine/entry.ts";

interface ProbeEnv extends EngineEnv {
  PROBE: DurableObjectNamespace<Probe>;
}

interface Step {
  op: string;
  port?: number;
  url?: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: number;
  reason?: string;
}

/** Answers intercepted requests with what it was given. */
export class Catcher extends WorkerEntrypoint<ProbeEnv> {
  override fetch(request: Request): Response {
    return Response.json({ url: request.url, method: request.method, props: this.ctx.props });
  }
}

interface Exports {
  Catcher(options: { props: Record<string, unknown> }): Fetcher;
}

function catcherOf(exports: unknown): (props: Record<string, unknown>) => Fetcher {
  return (props) => (exports as Exports).Catcher({ props });
}

export class Probe extends DurableObject<ProbeEnv> {
  readonly #monitors: string[] = [];
  #alarms = 0;

  constructor(ctx: DurableObjectState<Record<never, never>>, env: ProbeEnv) {
    installContainer(ctx, env, { className: "Probe", instanceType: "basic" });
    super(ctx, env);
    if (this.#container.running) this.#watch();
  }

  get #container(): NonNullable<DurableObjectState["container"]> {
    const { container } = this.ctx;
    if (container === undefined) throw new Error("there is no ctx.container");
    return container;
  }

  async run(step: Step): Promise<unknown> {
    const container = this.#container;
    switch (step.op) {
      case "running":
        return container.running;
      case "monitors":
        return this.#monitors;
      case "start":
        container.start({ enableInternet: false, env: { GREETING: "hello" } });
        this.#watch();
        return container.running;
      case "monitor":
        return container.monitor();
      case "destroy":
        await container.destroy(step.reason);
        return container.running;
      case "signal":
        return container.signal(step.signal ?? 15);
      case "intercept":
        return this.#intercept();
      case "abort":
        return this.ctx.abort("asked to");
      case "alarms":
        return this.#alarms;
      default:
        return this.#fetch(step);
    }
  }

  override alarm(): void {
    this.#alarms += 1;
  }

  async #intercept(): Promise<void> {
    const make = catcherOf(this.ctx.exports);
    await this.#container.interceptOutboundHttp("first.test", make({ name: "first" }));
    await this.#container.interceptOutboundHttps("*", make({ name: "tls" }));
    await this.#container.interceptAllOutboundHttp(make({ name: "all" }));
  }

  async #fetch({
    port = 3000,
    url = "http://ping/",
    method = "GET",
    headers = {},
    body,
  }: Step): Promise<unknown> {
    const response = await this.#container
      .getTcpPort(port)
      .fetch(url, { method, headers, body: body ?? null });
    return { status: response.status, text: await response.text(), webSocket: response.webSocket };
  }

  #watch(): void {
    this.#container.monitor().then(
      () => this.#monitors.push("exit 0"),
      (error: Error & { exitCode?: number }) => this.#monitors.push(`${error.message} [${error.exitCode}]`),
    );
  }
}

const worker: ExportedHandler<ProbeEnv> = {
  async fetch(request, env, ctx) {
    const engine = engineEntry(request, env, ctx);
    if (engine !== null) return engine;
    const stub = env.PROBE.getByName(new URL(request.url).pathname);
    if (request.headers.get("upgrade") === "websocket") return stub.fetch(request);
    try {
      const value: unknown = await stub.run(await request.json());
      return Response.json({ value: value ?? null });
    } catch (error) {
      return Response.json({
        error: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      });
    }
  },
};

export default worker;

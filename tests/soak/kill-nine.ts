/**
 * Kill -9 of an agent, of what starts containers, of workerd, of the host or of everything, at random moments of create, exec, sleep,
 * restart and destroy. After each: what was acknowledged is there, no process or mount is left over, and the next command works.
 *
 * `npm run soak` goes on for its minutes; KILLS=n stops after n kills. SEED=n replays.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { connect, type ItxConnection } from "../../js/src/node/client.ts";
import type { SandboxHandle } from "../../js/src/node/itx.ts";
import { seededRandom } from "../support/random.ts";
import { sized } from "../support/size.ts";
import { alive, descendants, mountsUnder } from "./processes.ts";

export interface Limits {
  kills: number;
  minutes: number;
  seed: number;
}

export interface Outcome {
  kills: number;
  losses: string[];
  byTarget: Record<string, number>;
}

const targets = ["agent", "spawner", "workerd", "host", "everything"] as const;
type Target = (typeof targets)[number];
const verbs = ["create", "exec", "sleep", "restart", "destroy"] as const;

/** What a client was told of one sandbox, and what may also be true since a call was cut off. */
interface Known {
  name: string;
  /** True once create was acknowledged. */
  created: boolean;
  destroyed: "no" | "maybe" | "yes";
  /** The contents that the file may have after a crash: the last snapshot's, or those of a snapshot whose answer was lost. */
  kept: Set<string>;
  /** The content now, if the container lives on. */
  live: string;
}

class Soak {
  readonly #stateDir = mkdtempSync(join(tmpdir(), "soak-"));
  readonly #random: () => number;
  readonly outcome: Outcome = { kills: 0, losses: [], byTarget: {} };
  #server: ChildProcess | undefined;
  #connection: ItxConnection | undefined;
  #address = { url: "", token: "" };
  #sandbox: Known | undefined;
  #count = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  #pick<T>(values: readonly T[]): T {
    const value = values[Math.floor(this.#random() * values.length)];
    if (value === undefined) throw new RangeError("nothing to choose from");
    return value;
  }

  async run({ kills, minutes }: Limits): Promise<Outcome> {
    const deadline = Date.now() + minutes * 60_000;
    try {
      while (this.outcome.kills < kills && Date.now() < deadline) await this.#round();
    } finally {
      await this.#end();
    }
    return this.outcome;
  }

  async #round(): Promise<void> {
    await this.#ensureServer();
    const known = await this.#ensureSandbox();
    const verb = this.#pick(verbs);
    const target = this.#pick(targets);
    const before = this.#processes();
    const call = this.#perform(known, verb);
    await new Promise((resolve) => setTimeout(resolve, this.#random() * 250));
    this.#kill(target);
    this.outcome.kills++;
    this.outcome.byTarget[target] = (this.outcome.byTarget[target] ?? 0) + 1;
    await call;
    if (target === "workerd") await this.#reconnect();
    else if (target === "host" || target === "everything") await this.#serverGone(before);
    await this.#ensureServer();
    await this.#check(known, `kill ${this.outcome.kills}: ${target} during ${verb} of ${known.name}`);
  }

  async #ensureServer(): Promise<void> {
    if (this.#server?.exitCode === null && this.#server.signalCode === null && this.#connection !== undefined)
      return;
    const script = new URL("server-process.ts", import.meta.url).pathname;
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", script, this.#stateDir], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#server = child;
    for await (const line of createInterface(child.stdout)) {
      if (!line.startsWith("{")) continue;
      const { url, operatorToken } = JSON.parse(line);
      if (typeof url !== "string") continue;
      this.#address = { url, token: operatorToken };
      await this.#reconnect();
      return;
    }
    throw new Error("the server did not start");
  }

  #handle(known: Known): SandboxHandle {
    assert(this.#connection);
    return this.#connection.itx.sandboxes.get(`/sandboxes/${known.name}`);
  }

  async #ensureSandbox(): Promise<Known> {
    if (this.#sandbox?.created === true && this.#sandbox.destroyed === "no") return this.#sandbox;
    const known: Known = {
      name: `s${++this.#count}`,
      created: false,
      destroyed: "no",
      kept: new Set([""]),
      live: "",
    };
    this.#sandbox = known;
    await this.#handle(known).create({ instanceType: "lite" });
    known.created = true;
    return known;
  }

  /** One verb; a call that is cut off leaves both answers possible. */
  async #perform(known: Known, verb: (typeof verbs)[number]): Promise<void> {
    const sandbox = this.#handle(known);
    const content = `${known.name}-${this.outcome.kills}`;
    try {
      if (verb === "create") {
        const other = `s${++this.#count}`;
        const created = await settled(
          this.#handle({ ...known, name: other }).create({ instanceType: "lite" }),
        );
        if (created) this.#others.push(other);
        return;
      }
      if (verb === "destroy") {
        known.destroyed = "maybe";
        await sandbox.destroy();
        known.destroyed = "yes";
        return;
      }
      // A crash may be on the stream as soon as the file is written.
      const { head } = await sandbox.events({ limit: 1 });
      await sandbox.writeFile("/workspace/file", content);
      known.live = content;
      if (verb === "exec") {
        await sandbox.exec("sleep 0.2");
        return;
      }
      known.kept.add(content);
      await (verb === "sleep" ? sandbox.sleep() : sandbox.restart());
      const { events } = await sandbox.events({ after: head, limit: 1_000 });
      const told = events.map(({ type }) => type.split("/").at(-1));
      // A crash that was on the stream before anybody asked leaves nothing to keep; every other answer is a promise.
      const crashedBefore =
        told.indexOf("stopped") >= 0 && told.indexOf("stopped") < told.indexOf(`${verb}-requested`);
      if (crashedBefore && !told.includes("backup-created")) return;
      known.kept = new Set([content]);
    } catch {
      // Cut off by the kill: what may be true is noted above.
    }
  }
  readonly #others: string[] = [];

  #processes(): number[] {
    return this.#server?.pid === undefined ? [] : descendants(this.#server.pid).map(({ pid }) => pid);
  }

  #kill(target: Target): void {
    const host = this.#server?.pid;
    if (host === undefined) return;
    const children = descendants(host);
    const named = (name: string) =>
      children.filter((child) => child.name.startsWith(name)).map(({ pid }) => pid);
    const pids =
      target === "host"
        ? [host]
        : target === "workerd"
          ? named("workerd")
          : target === "agent"
            ? named("sandboxd").slice(-1)
            : target === "spawner"
              ? named("sandboxd-spawn")
              : [host, ...children.map(({ pid }) => pid)];
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it has just ended by itself
      }
    }
  }

  /** The server starts its runtime again under the same address; a client connects anew. */
  async #reconnect(): Promise<void> {
    const deadline = Date.now() + 30_000;
    for (;;) {
      try {
        this.#connection = await connect({ ...this.#address, project: "prj_soak" });
        return;
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  /** When the host is killed, nothing of it may be left. */
  async #serverGone(before: readonly number[]): Promise<void> {
    const server = this.#server;
    if (server !== undefined && server.exitCode === null && server.signalCode === null)
      await new Promise((resolve) => server.once("exit", resolve));
    this.#connection = undefined;
    const deadline = Date.now() + 10_000;
    // The kernel ends orphans in its own time; nothing reports it.
    while (alive(before).length > 0 && Date.now() < deadline) await new Promise((r) => setTimeout(r, 20));
    if (alive(before).length > 0)
      this.outcome.losses.push(`processes outlived their server: ${alive(before)}`);
    const mounts = mountsUnder(this.#stateDir);
    if (mounts.length > 0) this.outcome.losses.push(`mounts outlived their server: ${mounts}`);
  }

  async #check(known: Known, at: string): Promise<void> {
    for (const other of this.#others.splice(0)) {
      const twice = await refusal(this.#handle({ ...known, name: other }).create({ instanceType: "lite" }));
      if (twice !== "sandbox_exists") this.outcome.losses.push(`${at}: ${other} was created, now ${twice}`);
      await this.#handle({ ...known, name: other }).destroy();
    }
    const sandbox = this.#handle(known);
    const cat = "cat /workspace/file 2>/dev/null || true";
    let cutOff = "";
    let read = await sandbox.exec(cat).catch((error: unknown) => {
      cutOff = codeOf(error);
      return undefined;
    });
    // A signal is not a death: what reaches a container as it dies is cut off too, and is told to call again.
    if (/(agent|spawner) during/.test(at) && cutOff === "OPERATION_INTERRUPTED")
      read = await settled(sandbox.exec(cat));
    if (known.destroyed === "yes") {
      if (read !== undefined) this.outcome.losses.push(`${at}: destroyed, yet it answers`);
      return;
    }
    if (read === undefined) {
      if (known.destroyed === "maybe" && (await refusal(sandbox.exec("true"))) === "sandbox_destroyed") {
        known.destroyed = "yes";
        return;
      }
      const again = await refusal(sandbox.exec("true"));
      this.outcome.losses.push(
        `${at}: the next command fails with ${cutOff}, the one after it with ${again}`,
      );
      return;
    }
    known.destroyed = "no";
    if (!known.kept.has(read.stdout) && read.stdout !== known.live)
      this.outcome.losses.push(
        `${at}: the file is ${JSON.stringify(read.stdout)}, expected one of ${[...known.kept]}`,
      );
  }

  async #end(): Promise<void> {
    await this.#connection?.close();
    const server = this.#server;
    if (server !== undefined && server.exitCode === null && server.signalCode === null) {
      const exited = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGTERM");
      await exited;
    }
    rmSync(this.#stateDir, { recursive: true, force: true });
  }
}

const settled = <T>(call: Promise<T>): Promise<T | undefined> => call.catch(() => undefined);
const refusal = (call: Promise<unknown>): Promise<string> => call.then(() => "no refusal", codeOf);
const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : String(error);

export const killNine = (limits: Limits): Promise<Outcome> => new Soak(limits.seed).run(limits);

if (import.meta.main) {
  const limits: Limits = {
    kills: Number(process.env.KILLS ?? sized(Number.POSITIVE_INFINITY, 1)),
    minutes: Number(process.env.MINUTES ?? 10),
    seed: Number(process.env.SEED ?? Date.now() % 1_000_000),
  };
  console.log(`size: ${limits.kills} kills, at most ${limits.minutes} minutes, seed ${limits.seed}`);
  const outcome = await killNine(limits);
  for (const loss of outcome.losses) console.log(loss);
  console.log(`${outcome.kills} kills ${JSON.stringify(outcome.byTarget)}, ${outcome.losses.length} losses`);
  process.exit(outcome.losses.length === 0 ? 0 : 1);
}

/** How a container's end is heard of, and why it came. */
import { reasonOfEnd } from "../../engine/lives.ts";
import { messageOf } from "./effects.ts";

/** What is known of the newest container's end. The engine knows it better than what reaches the SDK's library. */
export class ContainerEnd {
  readonly #id: string;
  readonly #onEngine: boolean;
  #told: string | undefined;

  constructor(id: string, onEngine: boolean) {
    this.#id = id;
    this.#onEngine = onEngine;
  }

  started(): void {
    this.#told = undefined;
  }

  stopped(end: { reason: string; exitCode: number } | undefined): void {
    if (end === undefined) return;
    this.#told = end.reason === "exit" ? `exited with status ${end.exitCode}` : "ended by the platform";
  }

  failed(error: unknown): void {
    this.#told = messageOf(error);
  }

  /** For the core, which puts it on the stream where nobody had asked for the end. */
  context(running: boolean): { containerRunning: boolean; containerEnd?: string } {
    if (running) return { containerRunning: true };
    const reason = this.#onEngine ? reasonOfEnd(this.#id) : this.#told;
    return { containerRunning: false, ...(reason !== undefined && { containerEnd: reason }) };
  }
}

/** The library notes an exit some turns after it; how often and how long to look. */
const NOTICE_MS = 2;
const NOTICE_TRIES = 250;

export async function exitNoticed(noticed: () => boolean): Promise<void> {
  for (let tries = 0; !noticed() && tries < NOTICE_TRIES; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, NOTICE_MS));
  }
}

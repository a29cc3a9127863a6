/**
 * Blots out what a secret's value looks like in a response, as it streams. Each occurrence becomes as many asterisks, so lengths and
 * offsets stay true. Held back is only what may be the beginning of an occurrence, so that events of a stream are not delayed.
 */
import { Buffer } from "node:buffer";

const BLOT = "*".charCodeAt(0);

interface Span {
  start: number;
  end: number;
}

export class Scrubber {
  readonly #patterns: readonly Buffer[];

  constructor(patterns: readonly string[]) {
    this.#patterns = patterns.map((pattern) => Buffer.from(pattern, "utf8"));
  }

  text(value: string): string {
    const bytes = Buffer.from(value, "utf8");
    const found = this.#find(bytes);
    return found.length === 0 ? value : blot(bytes, found).toString("utf8");
  }

  headers(source: Headers): Headers {
    const headers = new Headers();
    for (const [name, value] of source) headers.append(name, this.text(value));
    return headers;
  }

  /** The same bytes as they come, with every occurrence blotted out, also one that two chunks share. */
  body(source: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    if (this.#patterns.length === 0) return source;
    // Held back as it came, since it may yet become an occurrence; its first bytes may already belong to one.
    let held: Buffer = Buffer.alloc(0);
    let covered = 0;
    const stage = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        const bytes = Buffer.concat([held, chunk]);
        const found = [{ start: 0, end: covered }, ...this.#find(bytes)];
        const open = this.#openEnd(bytes);
        held = Buffer.from(bytes.subarray(open));
        covered = Math.max(0, ...found.filter(({ start }) => start < open).map(({ end }) => end - open));
        if (open > 0) controller.enqueue(blot(bytes, found).subarray(0, open));
      },
      flush: (controller) => {
        if (held.length > 0)
          controller.enqueue(blot(held, [{ start: 0, end: covered }, ...this.#find(held)]));
      },
    });
    return source.pipeThrough(stage);
  }

  #find(bytes: Buffer): Span[] {
    const found: Span[] = [];
    for (const pattern of this.#patterns) {
      for (let start = bytes.indexOf(pattern); start !== -1; start = bytes.indexOf(pattern, start + 1)) {
        found.push({ start, end: start + pattern.length });
      }
    }
    return found;
  }

  /** The first position from which the rest of the bytes is the beginning of a pattern. */
  #openEnd(bytes: Buffer): number {
    let open = bytes.length;
    for (const pattern of this.#patterns) {
      const [first] = pattern;
      if (first === undefined) continue;
      const from = Math.max(0, bytes.length - pattern.length + 1);
      for (let at = bytes.indexOf(first, from); at !== -1 && at < open; at = bytes.indexOf(first, at + 1)) {
        if (bytes.subarray(at).equals(pattern.subarray(0, bytes.length - at))) open = at;
      }
    }
    return open;
  }
}

function blot(bytes: Buffer, spans: readonly Span[]): Buffer {
  for (const { start, end } of spans) bytes.fill(BLOT, start, end);
  return bytes;
}

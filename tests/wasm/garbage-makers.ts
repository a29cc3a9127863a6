/** What no caller should send, made from what they do. */

import type { random } from "./random.ts";
import type { Vector } from "./vectors.ts";

type Dice = ReturnType<typeof random>;

/** A call as the boundary takes it: its arguments as text, and perhaps a body. */
export interface RawCall {
  name: string;
  text: string;
  body: string | Uint8Array | undefined;
}

const encoder = new TextEncoder();
const DEEP = "[".repeat(200) + "]".repeat(200);
const HUGE = "x".repeat(100_000_000);
const HUGE_BYTES = new Uint8Array(100_000_000);
const NOISE = [
  '"',
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "\\",
  "\\ud800",
  "\u0000",
  "null",
  "1e999",
  "-",
  "\u{10ffff}",
  "ä",
];
const WRONG = [null, true, -1, 0.5, 1e300, "", "x", "\u0000", [], [[]], {}, { length: 1 }, "__proto__"];
const NOT_UTF8 = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]];

/** Text that is nearly right: cut, doubled, with characters changed. */
function spoil(text: string, { integer, pick }: Dice): string {
  const at = integer(text.length + 1);
  switch (integer(4)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + pick(NOISE) + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(at + 1 + integer(8));
    default:
      return text.slice(0, at) + text.slice(integer(text.length + 1));
  }
}

/** The arguments with one of them, at any depth, of another type. */
function mistype(input: unknown, dice: Dice): unknown {
  if (typeof input !== "object" || input === null || dice.integer(4) === 0) return dice.pick(WRONG);
  if (Array.isArray(input)) {
    const at = dice.integer(input.length + 1);
    return input.map((item, index) => (index === at ? mistype(item, dice) : item));
  }
  const entries = Object.entries(input);
  const at = dice.integer(entries.length + 1);
  return Object.fromEntries(
    entries.map(([key, value], index) => [key, index === at ? mistype(value, dice) : value]),
  );
}

function notUtf8(text: string, dice: Dice): Uint8Array {
  const bytes = encoder.encode(text);
  const at = dice.integer(bytes.length + 1);
  return Uint8Array.from([...bytes.subarray(0, at), ...dice.pick(NOT_UTF8), ...bytes.subarray(at)]);
}

/** The first key once more, with another value before it. */
const doubled = (text: string) =>
  text.replace(/^\{("(?:[^"\\]|\\.)*":)/, (_, key: string) => `{${key}${DEEP.length},${key}`);

const half = (text: string, dice: Dice) => {
  const at = dice.integer(text.length + 1);
  return `${text.slice(0, at)}\ud800${text.slice(at)}`;
};

export function garbage(good: RawCall, vector: Vector, dice: Dice): RawCall {
  const { text } = good;
  const body = typeof good.body === "string" ? good.body : "{}";
  switch (dice.integer(16)) {
    case 0:
      return { ...good, text: half(text, dice) };
    case 1:
      return { ...good, body: half(body, dice) };
    case 2:
      return { ...good, body: notUtf8(body, dice) };
    case 3:
      return { ...good, text: text.replace(/:[^,}]*/, `:${DEEP}`) };
    case 4:
      return { ...good, body: DEEP };
    case 5:
      return { ...good, text: doubled(text) };
    case 6:
      return dice.integer(2) === 0 ? { ...good, text: HUGE } : { ...good, body: HUGE_BYTES };
    case 7:
    case 8:
    case 9:
    case 10:
      return { ...good, text: JSON.stringify(mistype(vector.input ?? {}, dice)) };
    case 11:
      return { ...good, body: spoil(body, dice) };
    default:
      return { ...good, text: spoil(text, dice) };
  }
}

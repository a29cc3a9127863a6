/** Numbers that are the same in every run, so that a failure can be run again. */
export function random(seed: number): {
  /** From 0 up to, not with, `below`. */
  integer(below: number): number;
  pick<T>(values: readonly T[]): T;
  shuffle<T>(values: readonly T[]): T[];
} {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const integer = (below: number): number => next() % below;
  const pick = <T>(values: readonly T[]): T => {
    const value = values[integer(values.length)];
    if (value === undefined && values.length === 0) throw new RangeError("nothing to pick from");
    return value as T;
  };
  const shuffle = <T>(values: readonly T[]): T[] => {
    const left = [...values];
    return Array.from({ length: left.length }, () => left.splice(integer(left.length), 1)).flat() as T[];
  };
  return { integer, pick, shuffle };
}

/**
 * SIZE=smoke is the smallest size of the benchmarks and long checks: seconds, to see that a command works. Its numbers mean nothing.
 */
const { SIZE } = process.env;
if (SIZE !== undefined && SIZE !== "" && SIZE !== "smoke")
  throw new Error(`SIZE is ${JSON.stringify(SIZE)}; it must be smoke, or not set for the usual size`);

export const smoke = SIZE === "smoke";

/** The usual count, or the smallest that still does something. */
export const sized = (usual: number, small: number): number => (smoke ? small : usual);

/** Named moments between two durable steps, where a test may end the object. In production nobody listens, and they cost nothing. */

/** Says whether the object is to end here. */
export type FaultHook = (point: string, objectId: string) => boolean;

let hook: FaultHook | null = null;

/** For a Worker that a test builds; the product never calls it. */
export function onCheckpoint(listener: FaultHook | null): void {
  hook = listener;
}

/** Placed after every write to storage, and after every await of create, sleep, restore and destroy. */
export async function checkpoint(
  ctx: Pick<DurableObjectState, "abort" | "id">,
  point: string,
): Promise<void> {
  if (hook?.(point, ctx.id.toString()) !== true) return;
  ctx.abort(`ended at ${point}`);
  await new Promise(() => undefined);
}

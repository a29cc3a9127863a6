/** The name of the SDK's step before it connects over rpc: starts the container, waits until it answers, and tells all who wait for that. */
const step = "startContainerForRPC";

/**
 * The container has just been started and has answered: the SDK's next connection over rpc does not go through all of that again. The
 * step is shadowed on the object itself, where no client of it can reach. `life` gives something else for each life of the container.
 */
export function connectAtOnce(sandbox: object, life: () => unknown): void {
  const ask: unknown = Reflect.get(Object.getPrototypeOf(sandbox), step);
  if (typeof ask !== "function") throw new TypeError(`the SDK has no method ${step}`);
  const begun = life();
  const skip = async (): Promise<void> => {
    Reflect.deleteProperty(sandbox, step);
    if (begun !== undefined && life() === begun) return;
    await Reflect.apply(ask, sandbox, []);
  };
  Object.defineProperty(sandbox, step, { value: skip, configurable: true });
}

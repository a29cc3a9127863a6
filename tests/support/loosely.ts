/** Gets what a method gives, called by its name with any arguments, as a client in JavaScript may: no types stop it. */
export function getLoosely(target: object, method: string, ...args: unknown[]): object {
  return Reflect.apply(Reflect.get(target, method), target, args);
}

/** As {@link getLoosely}; what it throws is a rejection. */
export async function callLoosely(target: object, method: string, ...args: unknown[]): Promise<unknown> {
  return getLoosely(target, method, ...args);
}

const KEY = "toldNames";

/** Which variables the running container may hold, kept in the object's storage; written only when it changes. */
export interface ToldNames {
  get(): string[];
  set(names: string[]): void;
}

export function storedNames(storage: DurableObjectStorage): ToldNames {
  let known: string[] | null = null;
  const get = () => (known ??= storage.kv.get<string[]>(KEY) ?? []);
  const set = (names: string[]) => {
    if (names.length === get().length && names.every((name) => get().includes(name))) return;
    known = names;
    storage.kv.put(KEY, names);
  };
  return { get, set };
}

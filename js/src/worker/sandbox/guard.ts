/**
 * The guard on everything that the SDK's classes offer. Their methods are walked, so that one added by a newer SDK is guarded before
 * anybody has heard of it; what is exempt is listed here by name. Calls that an admitted call makes to the same object pass.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** How our class lets calls in. Symbols, so that no RPC client can name them. */
export const enter = Symbol("enter");
export const check = Symbol("check");

export interface Guarded {
  /** Runs a call once the workspace is there. */
  [enter]<T>(method: string, call: () => Promise<T>): Promise<T>;
  /** Throws for a sandbox that was never created; `live` also for one that is unfinished or gone. */
  [check](level: "born" | "live"): void;
}

/** The object whose admitted call the running code belongs to. */
const admitted = new AsyncLocalStorage<object>();

export function isInside(target: object): boolean {
  return admitted.getStore() === target;
}

export function inside<T>(target: object, call: () => T): T {
  return admitted.run(target, call);
}

/** Called by the platform and by the container library's alarm, outside any call of a client. */
const internalMethods: ReadonlySet<string> = new Set([
  "alarm",
  "callOnStop",
  "getSchedule",
  "scheduleNextAlarm",
  "syncPendingStoppedEvents",
]);

/** Answered from the object's own storage: they need a sandbox, but no container. */
const storageMethods: ReadonlySet<string> = new Set([
  "getContainerPlacementId",
  "getState",
  "isPortExposed",
  "listSchedules",
  "setContainerTimeouts",
  "setLabels",
  "validatePortToken",
]);

export type GuardKind = "provisioned" | "live" | "born";

type Method = (this: Guarded, ...args: unknown[]) => unknown;

/** What the guard asks for before a method of the SDK runs. */
export function guardKind(name: string, isAsync: boolean): GuardKind {
  if (internalMethods.has(name) || !isAsync) return "born";
  return storageMethods.has(name) ? "live" : "provisioned";
}

/**
 * Puts a guarded method on `target` for each of the bases' methods that it does not define itself. Synchronous ones and getters
 * cannot wait for a container; they are the SDK's helpers, and only need a sandbox that exists.
 */
export function installGuard(target: object, bases: readonly object[]): void {
  for (const base of bases) {
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(base))) {
      if (name === "constructor" || Object.hasOwn(target, name)) continue;
      const guardedDescriptor = guardProperty(name, descriptor);
      if (guardedDescriptor !== null) Object.defineProperty(target, name, guardedDescriptor);
    }
  }
}

function guardProperty(name: string, descriptor: PropertyDescriptor): PropertyDescriptor | null {
  const { get, value } = descriptor;
  if (get !== undefined) {
    const guardedGet = function (this: Guarded): unknown {
      if (!isInside(this)) this[check]("born");
      return Reflect.apply(get, this, []);
    };
    return { ...descriptor, get: guardedGet };
  }
  return isMethod(value) ? { ...descriptor, value: guardMethod(name, value) } : null;
}

function guardMethod(name: string, method: Method): Method {
  const kind = guardKind(name, method.constructor.name === "AsyncFunction");
  if (kind === "born") {
    return function (...args) {
      if (!isInside(this)) this[check]("born");
      return Reflect.apply(method, this, args);
    };
  }
  return async function (...args) {
    if (isInside(this)) return Reflect.apply(method, this, args);
    if (kind === "provisioned") return this[enter](name, async () => Reflect.apply(method, this, args));
    this[check]("live");
    return inside(this, () => Reflect.apply(method, this, args));
  };
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}

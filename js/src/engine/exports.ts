/**
 * A stub of `ctx.exports.ContainerProxy({ props })` works only inside the object that made it, so what is kept is the recipe:
 * the entrypoint's name and its props. The Worker's stateless entry makes the stub anew for each intercepted request, which
 * also keeps intercepted requests out of an object that is inside `blockConcurrencyWhile`.
 */
import type { InterceptTarget } from "./lives.ts";

const recipes = new WeakMap<object, InterceptTarget>();

/** `ctx.exports` as it was, but stubs made from it are remembered. */
export function recordingExports<T extends object>(exports: T): T {
  return new Proxy(exports, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof name !== "string" || typeof value !== "function") return value;
      return new Proxy(value, {
        apply(make, _self, args: unknown[]) {
          const stub: unknown = Reflect.apply(make, undefined, args);
          if (isObject(stub)) recipes.set(stub, { entrypoint: name, props: propsOf(args[0]) });
          return stub;
        },
      });
    },
  });
}

/** How the stub was made; null for a Fetcher that did not come from `ctx.exports`. */
export function recipeOf(stub: unknown): InterceptTarget | null {
  return isObject(stub) ? (recipes.get(stub) ?? null) : null;
}

function propsOf(options: unknown): Record<string, unknown> | undefined {
  if (!isObject(options) || !("props" in options) || !isRecord(options.props)) return undefined;
  return options.props;
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

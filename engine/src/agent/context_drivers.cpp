#include "sandboxd/agent/context.hpp"

namespace sandboxd::agent {

namespace {

constexpr std::string_view kPython = R"PY(
import ast, base64, inspect, io, json, os, sys, traceback
for _fd in (3, 4):
    os.set_inheritable(_fd, False)
_requests = os.fdopen(3, "r", encoding="utf-8", newline="\n")
_events = os.fdopen(4, "w", encoding="utf-8")
sys.stdout.reconfigure(errors="replace", line_buffering=True)
sys.stderr.reconfigure(errors="replace", line_buffering=True)
_space = {"__name__": "__main__", "__builtins__": __builtins__}
_main = type(sys)("__main__")
_main.__dict__.update(_space)
_space = _main.__dict__
sys.modules["__main__"] = _main
sys.argv = [""]

def _emit(event):
    sys.stdout.flush()
    sys.stderr.flush()
    _events.write(json.dumps(event, default=str) + "\n")
    _events.flush()

_METHODS = (
    ("_repr_html_", "text/html", "html"), ("_repr_svg_", "image/svg+xml", "svg"),
    ("_repr_png_", "image/png", "png"), ("_repr_jpeg_", "image/jpeg", "jpeg"),
    ("_repr_latex_", "text/latex", "latex"), ("_repr_markdown_", "text/markdown", "markdown"),
    ("_repr_javascript_", "application/javascript", "javascript"), ("_repr_json_", "application/json", "json"),
)

def _put(event, kind, key, value):
    if isinstance(value, tuple):
        value = value[0]
    if value is None:
        return
    if isinstance(value, (bytes, bytearray)):
        value = base64.b64encode(bytes(value)).decode()
    event[key] = value
    event["data"][kind] = value

def _rich(value):
    event = {"type": "result", "data": {}}
    if not isinstance(value, type):
        bundle = getattr(value, "_repr_mimebundle_", None)
        if callable(bundle):
            try:
                found = bundle()
                found = found[0] if isinstance(found, tuple) else found
                for _, kind, key in _METHODS:
                    if kind in found:
                        _put(event, kind, key, found[kind])
            except Exception:
                pass
        for method, kind, key in _METHODS:
            if key in event:
                continue
            function = getattr(value, method, None)
            if callable(function):
                try:
                    _put(event, kind, key, function())
                except Exception:
                    pass
    if isinstance(value, (dict, list)) and "json" not in event:
        try:
            json.dumps(value, allow_nan=False)
            _put(event, "application/json", "json", value)
        except Exception:
            pass
    _put(event, "text/plain", "text", repr(value))
    return event

def display(*values):
    for value in values:
        _emit(_rich(value))

def _figures():
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png", bbox_inches="tight")
        event = {"type": "result", "data": {}}
        _put(event, "image/png", "png", picture.getvalue())
        _put(event, "text/plain", "text", "<Figure %d>" % number)
        _emit(event)
    pyplot.close("all")

def _run(source):
    tree = ast.parse(source, "<cell>", "exec")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    def evaluate(node, mode):
        code = compile(node, "<cell>", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = eval(code, _space)
        if inspect.iscoroutine(value) and code.co_flags & inspect.CO_COROUTINE:
            import asyncio
            value = asyncio.get_event_loop_policy().get_event_loop().run_until_complete(value)
        return value
    if tree.body:
        evaluate(tree, "exec")
    if last is not None:
        value = evaluate(ast.Expression(last.value), "eval")
        if value is not None:
            _space["_"] = value
            _emit(_rich(value))
    _figures()

def _loop():
    import asyncio
    try:
        asyncio.set_event_loop(asyncio.new_event_loop())
    except Exception:
        pass
    for line in _requests:
        request = json.loads(line)
        try:
            _run(request["code"])
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            kept = [frame for frame in frames if frame.filename != "<string>"]
            lines = ["Traceback (most recent call last):\n"] + traceback.format_list(kept) if kept else []
            lines += traceback.format_exception_only(type(error), error)
            _emit({"type": "error", "ename": type(error).__name__, "evalue": str(error),
                   "traceback": "".join(lines).rstrip("\n").split("\n")})
        _emit({"type": "execution_complete"})

_space["display"] = display
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
while True:
    try:
        _loop()
        break
    except KeyboardInterrupt:
        continue
)PY";

constexpr std::string_view kJavascript = R"JS(
"use strict";
const fs = require("node:fs");
const vm = require("node:vm");
const util = require("node:util");
const nodeModule = require("node:module");
const path = require("node:path");
globalThis.require = nodeModule.createRequire(path.join(process.cwd(), "cell.js"));
globalThis.module = { exports: {} };
globalThis.exports = globalThis.module.exports;
// A pipe that is full makes its writer wait: what was printed is in it before an event is told.
for (const stream of [process.stdout, process.stderr]) stream._handle?.setBlocking?.(true);
const emit = (event) => fs.writeSync(4, JSON.stringify(event) + "\n");
const loader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
const options = { filename: "cell.js", importModuleDynamically: loader };
const kinds = { html: "text/html", svg: "image/svg+xml", png: "image/png", jpeg: "image/jpeg", latex: "text/latex",
  markdown: "text/markdown", javascript: "application/javascript", json: "application/json", text: "text/plain" };

const rich = (value) => {
  const event = { type: "result", data: {} };
  const put = (key, content) => {
    if (content === undefined || content === null) return;
    event[key] = content;
    event.data[kinds[key]] = content;
  };
  const isObject = typeof value === "object" && value !== null;
  if (isObject || typeof value === "function") {
    for (const key of Object.keys(kinds)) {
      const method = value[`_repr_${key}_`];
      if (typeof method === "function") {
        try { put(key, method.call(value)); } catch {}
      }
    }
  }
  if (isObject && event.json === undefined) {
    const prototype = Object.getPrototypeOf(value);
    if (Array.isArray(value) || prototype === null || prototype === Object.prototype) {
      try { put("json", JSON.parse(JSON.stringify(value))); } catch {}
    }
  }
  put("text", typeof value === "string" ? util.inspect(value) : util.inspect(value, { depth: 4 }));
  return event;
};
globalThis.display = (...values) => { for (const value of values) emit(rich(value)); };

// Declarations of the outermost level become properties of the global object: they can be declared again, and they
// outlive the function that awaits need.
const loosen = (source) => source
  .replace(/^(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=(?!=)/gm, "globalThis.$1 =")
  .replace(/^(?:const|let|var)\s+(\{[^=]*\}|\[[^=]*\])\s*=(?!=)/gm, "globalThis.__d = undefined; var $1 =")
  .replace(/^(?:async\s+)?function\s*(\*?)\s*([A-Za-z_$][\w$]*)/gm, (text, star, name) => `globalThis.${name} = ${text}`)
  .replace(/^class\s+([A-Za-z_$][\w$]*)/gm, "globalThis.$1 = class $1");

const compile = (source) => new vm.Script(source, options);
const tryCompile = (source) => { try { return compile(source); } catch { return null; } };
const awaiting = (source) => {
  const body = loosen(source).trimEnd().replace(/;$/, "");
  for (let cut = body.length; cut >= 0; cut = body.lastIndexOf("\n", cut - 1)) {
    const at = body.lastIndexOf("\n", cut - 1) + 1;
    const script = tryCompile(`(async () => { ${body.slice(0, at)}\nreturn (${body.slice(at)}\n); })()`);
    if (script) return script;
    if (at === 0) break;
  }
  return compile(`(async () => { ${body}\n })()`);
};
const prepare = (source) => {
  try {
    return compile(source);
  } catch (error) {
    if (/\bawait\b/.test(source)) return awaiting(source);
    throw error;
  }
};
const execute = (source) => {
  try {
    return prepare(source).runInThisContext();
  } catch (error) {
    if (error instanceof SyntaxError && /has already been declared/.test(error.message)) {
      return compile(loosen(source)).runInThisContext();
    }
    throw error;
  }
};
const strip = (source) => {
  if (typeof nodeModule.stripTypeScriptTypes !== "function") {
    throw new Error("TypeScript needs Node 22.13 or newer in the sandbox");
  }
  return nodeModule.stripTypeScriptTypes(source, { mode: "strip" });
};
const failure = (error) => {
  const real = error instanceof Error || (typeof error === "object" && error !== null && "stack" in error);
  const stack = real ? String(error.stack).split("\n").filter((line) => !/\[eval\]|node:/.test(line)) : [String(error)];
  emit({ type: "error", ename: real ? error.name : "Error", evalue: real ? error.message : String(error), traceback: stack });
};
const run = async (request) => {
  try {
    const value = await execute(request.typescript ? strip(request.code) : request.code);
    if (value !== undefined) emit(rich(value));
  } catch (error) {
    failure(error);
  }
  emit({ type: "execution_complete" });
};
process.on("uncaughtException", failure);
process.on("unhandledRejection", failure);
let rest = "";
let queue = Promise.resolve();
const decoder = new util.TextDecoder();
const input = fs.createReadStream(null, { fd: 3 });
input.on("data", (chunk) => {
  rest += decoder.decode(chunk, { stream: true });
  for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n")) {
    const request = JSON.parse(rest.slice(0, at));
    rest = rest.slice(at + 1);
    queue = queue.then(() => run(request));
  }
});
input.on("end", () => process.exit(0));
)JS";

}  // namespace

std::string_view python_driver() {
  return kPython;
}

std::string_view javascript_driver() {
  return kJavascript;
}

}  // namespace sandboxd::agent

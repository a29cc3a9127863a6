/** The public methods that the SDK's types declare, read from its declarations with the compiler. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

export interface Declared {
  /** `Sandbox.exec`, `ExecutionSession.exec`, `Process.kill`, `TunnelsHandler.get` and so on. */
  public: Set<string>;
  /** The names that the classes keep for themselves. */
  private: Set<string>;
}

const modules = new URL("../../../node_modules/", import.meta.url).pathname;

function declarations(folder: string, file: RegExp): string[] {
  return readdirSync(join(modules, folder))
    .filter((name) => file.test(name))
    .map((name) => join(modules, folder, name));
}

/** What an application holds: the object, whose base's methods are its own, and what its methods hand out. */
const holders: Record<string, string> = {
  Container: "Sandbox",
  Sandbox: "Sandbox",
  ISandbox: "Sandbox",
  ExecutionSession: "ExecutionSession",
  Process: "Process",
  TunnelsHandler: "TunnelsHandler",
};

export function declaredMethods(): Declared {
  const files = [
    ...declarations("@cloudflare/sandbox/dist", /^sandbox-.*\.d\.ts$/),
    ...declarations("@cloudflare/containers/dist/lib", /^container\.d\.ts$/),
  ];
  const program = ts.createProgram(files, { noResolve: true, noLib: true });
  const declared: Declared = { public: new Set(), private: new Set() };
  for (const file of files) {
    const source = program.getSourceFile(file);
    if (source !== undefined) ts.forEachChild(source, (node) => readHolder(node, declared));
  }
  for (const name of declared.public) declared.private.delete(name.replace(/^\w+\./, ""));
  return declared;
}

function readHolder(node: ts.Node, declared: Declared): void {
  if (!ts.isClassDeclaration(node) && !ts.isInterfaceDeclaration(node)) return;
  const holder = holders[node.name?.text ?? ""];
  if (holder === undefined) return;
  for (const member of node.members) {
    if (member.name === undefined || !ts.isIdentifier(member.name)) continue;
    const name = member.name.text;
    const modifiers = ts.canHaveModifiers(member) ? (ts.getModifiers(member) ?? []) : [];
    const has = (kind: ts.SyntaxKind) => modifiers.some((modifier) => modifier.kind === kind);
    if (has(ts.SyntaxKind.PrivateKeyword) || has(ts.SyntaxKind.ProtectedKeyword)) declared.private.add(name);
    else if (!has(ts.SyntaxKind.StaticKeyword) && isCallable(member))
      declared.public.add(`${holder}.${name}`);
  }
}

/** A method, or a getter: the SDK's only one hands out an object with methods. */
function isCallable(member: ts.Node): boolean {
  return (
    ts.isMethodDeclaration(member) || ts.isMethodSignature(member) || ts.isGetAccessorDeclaration(member)
  );
}

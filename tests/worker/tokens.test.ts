import { SignJWT } from "jose";
import { expect, test } from "vitest";
import { mintToken, parseTokenKeys, sameSecret, verifyToken } from "../../js/src/worker/tokens.ts";

const oldKey = { id: "old", secret: "o".repeat(40) };
const newKey = { id: "new", secret: "n".repeat(40) };
const refused = { code: "unauthorized", status: 401 };

test("a token acts for the project it was made for, or for an operator", async () => {
  const project = await verifyToken([newKey], await mintToken([newKey], { projectId: "prj_a" }));
  expect(project.principal).toEqual({ kind: "project", projectId: "prj_a" });
  expect(project.expiresAt).toBeGreaterThan(Date.now());
  const operator = await verifyToken([newKey], await mintToken(JSON.stringify([newKey]), { operator: true }));
  expect(operator.principal).toEqual({ kind: "operator" });
});

test("rotation keeps old tokens until their key is taken out", async () => {
  const token = await mintToken([oldKey], { projectId: "prj_a" });
  await expect(verifyToken([newKey, oldKey], token)).resolves.toBeDefined();
  await expect(verifyToken([newKey], token)).rejects.toMatchObject(refused);
});

test("every other token is refused with the same words", async () => {
  const secret = new TextEncoder().encode(newKey.secret);
  const signed = (claims: Record<string, unknown>, header: { alg: string; kid?: string }, expires: number) =>
    new SignJWT(claims)
      .setProtectedHeader(header)
      .setIssuer("iterate-sandboxes")
      .setAudience("itx")
      .setExpirationTime(expires)
      .sign(secret);
  const later = Math.floor(Date.now() / 1000) + 60;
  const right = { alg: "HS256", kid: "new" };
  const [header, payload] = (await mintToken([newKey], { projectId: "prj_a" })).split(".");
  const unsigned = `${btoa(JSON.stringify({ alg: "none", kid: "new" })).replaceAll("=", "")}.${payload}.`;
  const tokens = [
    "",
    "nonsense",
    unsigned,
    `${header}.${payload}.AAAA`,
    await signed({ role: "project", project: "prj_a" }, right, Math.floor(Date.now() / 1000) - 1),
    await signed({ role: "project" }, right, later),
    await signed({ role: "root", project: "prj_a" }, right, later),
    await signed({ role: "project", project: "prj_a" }, { alg: "HS256" }, later),
    await signed({ role: "project", project: "prj_a" }, { alg: "HS512", kid: "new" }, later),
  ];
  const messages = new Set<string>();
  for (const token of tokens) {
    const error = await verifyToken([newKey], token).then(
      () => new Error(`accepted ${token}`),
      (reason: Error) => reason,
    );
    expect(error).toMatchObject(refused);
    messages.add(error.message);
  }
  expect(messages.size).toBe(1);
});

test("keys that are missing or short are named without being shown", () => {
  for (const text of [undefined, "", "[]", "{", '[{"id":"a","secret":"too-short"}]']) {
    expect(() => parseTokenKeys(text)).toThrow(/TOKEN_KEYS/);
    expect(() => parseTokenKeys(text)).not.toThrow(/too-short/);
  }
});

test("secrets are compared as a whole", async () => {
  expect(await sameSecret("abc", "abc")).toBe(true);
  expect(await sameSecret("abc", "abd")).toBe(false);
  expect(await sameSecret("abc", "abcd")).toBe(false);
  expect(await sameSecret("", "abc")).toBe(false);
});

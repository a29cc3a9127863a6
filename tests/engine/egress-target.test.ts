import { expect, test } from "vitest";
import { describeTarget, type EgressConnection, parseRelayLine } from "../../js/src/engine/egress-target.ts";

const plain: EgressConnection = { scheme: "http", target: "example.com", port: 80, sni: null };
const secure: EgressConnection = { scheme: "https", target: "example.com", port: 443, sni: "example.com" };

function describe(connection: EgressConnection, url: string, ...headers: string[]) {
  const result = describeTarget({ url, method: "GET", rawHeaders: headers }, connection);
  return "url" in result ? result.url : result.status;
}

test("the URL keeps path and query as they were sent", () => {
  expect(describe(plain, "/a%2Fb/../c?q=%zz#", "Host", "example.com")).toBe(
    "http://example.com/a%2Fb/../c?q=%zz#",
  );
  expect(describe(secure, "/", "Host", "EXAMPLE.com.")).toBe("https://example.com/");
});

test("a literal address is a target of its own", () => {
  const v6: EgressConnection = { scheme: "http", target: "2001:db8::1", port: 80, sni: null };
  expect(describe(v6, "/", "Host", "[2001:DB8:0::1]")).toBe("http://[2001:db8::1]/");
  const v4: EgressConnection = { scheme: "https", target: "93.184.216.34", port: 8443, sni: null };
  expect(describe(v4, "/", "Host", "93.184.216.34:8443")).toBe("https://93.184.216.34:8443/");
  expect(describe(v4, "/", "Host", "example.com:8443")).toBe(421);
});

test.each([
  ["another Host", plain, "/", ["Host", "other.com"]],
  ["another port", plain, "/", ["Host", "example.com:8080"]],
  ["another name in TLS", { ...secure, sni: "other.com" }, "/", ["Host", "example.com"]],
  ["an absolute form of another host", plain, "http://other.com/", ["Host", "example.com"]],
  ["an absolute form of another scheme", plain, "https://example.com/", ["Host", "example.com"]],
  ["an absolute form with userinfo", plain, "http://example.com@other.com/", ["Host", "example.com"]],
  ["an authority form", plain, "example.com:80", ["Host", "example.com"]],
])("misdirected: %s", (_what, connection, url, headers) => {
  expect(describe(connection, url, ...headers)).toBe(421);
});

test.each([
  ["no Host", []],
  ["two Hosts", ["Host", "example.com", "host", "example.com"]],
  ["an empty Host", ["Host", ""]],
  ["userinfo", ["Host", "user@example.com"]],
  ["a path", ["Host", "example.com/x"]],
  ["a space", ["Host", "example.com evil"]],
  ["an IPv6 zone", ["Host", "[fe80::1%25eth0]"]],
  ["length and encoding", ["Host", "example.com", "Content-Length", "1", "Transfer-Encoding", "chunked"]],
  ["two encodings", ["Host", "example.com", "Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked"]],
  ["a strange encoding", ["Host", "example.com", "Transfer-Encoding", "gzip, chunked"]],
])("refused: %s", (_what, headers) => {
  expect(describe(plain, "/", ...headers)).toBe(400);
});

test("an absolute form of the same origin is its path", () => {
  expect(describe(plain, "http://EXAMPLE.com:80?q", "Host", "example.com")).toBe("http://example.com/?q");
});

test("the relay's line", () => {
  expect(parseRelayLine('{"kind":"tcp","destination":"198.18.0.1","port":443,"host":"a.example"}')).toEqual({
    target: "a.example",
    port: 443,
    sni: null,
  });
  expect(parseRelayLine('{"kind":"tcp","destination":"::1","port":80}')?.target).toBe("::1");
  for (const line of [
    "",
    "{}",
    '{"destination":"a.example","port":80}',
    '{"destination":"1.2.3.4","port":"80"}',
  ]) {
    expect(parseRelayLine(line)).toBeNull();
  }
});

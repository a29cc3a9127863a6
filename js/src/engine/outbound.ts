/**
 * The last step out: a name is resolved once, its address classified, and that very address connected to. What the Worker
 * fetches comes here as requests in absolute form; `upstreams`, from the host's configuration alone, serves names locally.
 */
import { lookup } from "node:dns/promises";
import {
  type Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import { type Agent as SecureAgent, request as secureRequest } from "node:https";
import { createConnection, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  checkServerIdentity,
  createSecureContext,
  type PeerCertificate,
  rootCertificates,
  type SecureContext,
} from "node:tls";
import { SandboxError } from "../core/error.ts";
import { maxHeaderBytes, sendError } from "./egress.ts";
import { answerOn, forward, forwardUpgrade, hasBody, requestHeaders } from "./http-forward.ts";
import { connectionHeader, engineHeader, engineHeaderPrefix } from "./protocol.ts";
import { ReusingAgent, SecureReusingAgent } from "./reused-buffers.ts";

export interface OutboundOptions {
  /** `name` or `name:port` to `address:port`, or to `http://address:port` where TLS must not be spoken. */
  upstreams: Record<string, string>;
  /** PEM certificates trusted on connections to upstreams, besides the public ones. */
  upstreamCa?: string;
  /** The core's classification of an address; only "public" ones may be reached. */
  classify: (address: string) => string;
  /** What the door adds where a rule names a non-public address literally. */
  secret: string;
}

interface Upstream {
  address: string;
  port: number;
  /** Said so, whatever was asked for. */
  plain: boolean;
}

interface Destination {
  address: string;
  port: number;
  tls: boolean;
  upstream: boolean;
}

class AddressDenied extends Error {
  readonly code = "address_denied";
}

/** Long enough for the requests of one page or one clone, short enough that a moved name is followed. */
const resolutionMs = 5_000;
const connectMs = 20_000;
const idleMs = 15_000;

export class Outbound {
  readonly #options: OutboundOptions;
  readonly #upstreams: ReadonlyMap<string, Upstream>;
  readonly #agents: { plain: Agent; secure: SecureAgent; upstream: SecureAgent };
  readonly #upstreamTrust: SecureContext;
  readonly #resolved = new Map<string, { addresses: Promise<string[]>; until: number }>();
  #server: Server | null = null;

  /** @throws SandboxError `invalid_argument` for an upstream that is none */
  constructor(options: OutboundOptions) {
    this.#options = options;
    this.#upstreams = new Map(
      Object.entries(options.upstreams).map(([name, text]) => [name, parseUpstream(name, text)]),
    );
    const agent = { keepAlive: true, timeout: idleMs, scheduling: "lifo" as const };
    this.#agents = {
      plain: new ReusingAgent(agent),
      secure: new SecureReusingAgent(agent),
      upstream: new SecureReusingAgent(agent),
    };
    // Made once: reading every root certificate takes longer than a handshake.
    this.#upstreamTrust = createSecureContext({
      ca: [...rootCertificates, ...certificatesIn(options.upstreamCa ?? "")],
    });
  }

  /** Serves the Worker's outgoing requests on a Unix socket. */
  listen(path: string): Promise<void> {
    const server = createServer({
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: 0,
      keepAliveTimeout: 60_000,
      // What a Worker fetches comes in absolute form, and has a Host of its own only where the Worker set one.
      requireHostHeader: false,
    });
    server.on("request", (incoming, response) =>
      this.serve(incoming, response, incoming.url ?? "", this.#mayNameAddress(incoming)),
    );
    server.on("upgrade", (incoming, socket, head) =>
      this.serveUpgrade(incoming, socket, head, incoming.url ?? "", this.#mayNameAddress(incoming)),
    );
    this.#server = server;
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
  }

  close(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  serve(incoming: IncomingMessage, response: ServerResponse, url: string, literal: boolean): void {
    this.#request(incoming, url, literal).then(
      (outgoing) => {
        if (response.destroyed) outgoing.destroy();
        else
          forward(incoming, response, outgoing, {
            drop: isInternal,
            refuse: (error) => {
              if (mayRepeat(incoming, outgoing)) this.serve(incoming, response, url, literal);
              else refuse(response, url, error);
            },
          });
      },
      (error: Error) => refuse(response, url, error),
    );
  }

  serveUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, url: string, literal: boolean): void {
    socket.on("error", () => socket.destroy());
    this.#request(incoming, url, literal).then(
      (outgoing) =>
        forwardUpgrade(incoming, socket, head, outgoing, {
          drop: isInternal,
          refuse: (error, response) => refuse(response, url, error),
        }),
      (error: Error) => refuse(answerOn(incoming, socket), url, error),
    );
  }

  /** A connection for bytes that are not looked into: TLS of a container without interceptors. */
  async connect(host: string, port: number): Promise<Socket> {
    const { address, port: actual } = await this.#destination("https", host, port, false);
    return new Promise((resolve, reject) => {
      const socket = createConnection({ host: address, port: actual, timeout: connectMs });
      socket.once("connect", () => {
        socket.setTimeout(0);
        socket.off("error", reject);
        resolve(socket);
      });
      socket.once("error", reject);
      socket.once("timeout", () =>
        socket.destroy(new Error(`no answer from ${host} within ${connectMs / 1000} s`)),
      );
    });
  }

  #mayNameAddress(incoming: IncomingMessage): boolean {
    return incoming.headers[engineHeader.allowAddress] === this.#options.secret;
  }

  async #request(incoming: IncomingMessage, url: string, literal: boolean): Promise<ClientRequest> {
    const parts = /^(https?):\/\/([^/?#]+)(.*)$/i.exec(url);
    const origin = parts === null ? null : new URL(`${parts[1]}://${parts[2]}`);
    if (parts === null || origin === null) throw new Error("the request names no absolute URL");
    const scheme = origin.protocol === "https:" ? "https" : "http";
    const host = origin.hostname.replace(/^\[|\]$/g, "");
    const port = origin.port === "" ? (scheme === "https" ? 443 : 80) : Number(origin.port);
    const destination = await this.#destination(scheme, host, port, literal);
    const path = parts[3] ?? "";
    const options = {
      host: destination.address,
      port: destination.port,
      method: incoming.method,
      path: path.startsWith("/") ? path : `/${path}`,
      headers: [
        ...(incoming.headers.host === undefined ? ["host", origin.host] : []),
        ...requestHeaders(incoming, isInternal).flat(),
      ],
      timeout: 0,
      setHost: false,
    };
    // A server that refuses an upgrade closes the connection, and one that agrees takes it: neither can be kept.
    const upgrade = incoming.headers.upgrade !== undefined;
    if (!destination.tls)
      return bounded(request({ ...options, agent: upgrade ? false : this.#agents.plain }), host);
    const named = isIP(host) === 0;
    return bounded(
      secureRequest({
        ...options,
        ...(destination.upstream ? { secureContext: this.#upstreamTrust } : {}),
        // Kept connections are told apart by the name of the server; a literal address has none.
        agent: named && !upgrade && (destination.upstream ? this.#agents.upstream : this.#agents.secure),
        // A connection is kept only for requests with the very same check; for a name it is Node's own, by the server's name.
        ...(named
          ? { servername: host }
          : {
              servername: "",
              checkServerIdentity: (_address: string, certificate: PeerCertificate) =>
                checkServerIdentity(host, certificate),
            }),
      }),
      host,
    );
  }

  async #destination(
    scheme: "http" | "https",
    host: string,
    port: number,
    literal: boolean,
  ): Promise<Destination> {
    const name = host.toLowerCase().replace(/\.$/, "");
    const upstream = this.#upstreams.get(`${name}:${port}`) ?? this.#upstreams.get(name);
    if (upstream !== undefined) {
      const { address, port: actual, plain } = upstream;
      return { address, port: actual, tls: scheme === "https" && !plain, upstream: true };
    }
    const isAddress = isIP(name) !== 0;
    const addresses = isAddress ? [name] : await this.#resolve(name);
    const allowed = addresses.find((address) => this.#options.classify(address) === "public");
    if (allowed !== undefined) return { address: allowed, port, tls: scheme === "https", upstream: false };
    if (isAddress && literal) return { address: name, port, tls: scheme === "https", upstream: false };
    const classes = [...new Set(addresses.map((address) => this.#options.classify(address)))].join(", ");
    throw new AddressDenied(
      `${host} is at ${addresses.join(", ")} (${classes}); only public addresses may be reached, unless a rule of the project's policy names the address literally`,
    );
  }

  #resolve(name: string): Promise<string[]> {
    const now = Date.now();
    const known = this.#resolved.get(name);
    if (known !== undefined && known.until > now) return known.addresses;
    for (const [old, { until }] of this.#resolved) if (until <= now) this.#resolved.delete(old);
    const addresses = lookup(name, { all: true, order: "ipv4first" }).then((found) =>
      found.map(({ address }) => address),
    );
    this.#resolved.set(name, { addresses, until: now + resolutionMs });
    addresses.catch(() => this.#resolved.delete(name));
    return addresses;
  }
}

/** Gives up on a connection that is not made in time; an exchange may then take as long as it takes. */
function bounded(outgoing: ClientRequest, host: string): ClientRequest {
  outgoing.once("socket", (socket) => {
    if (!socket.connecting) return;
    const seconds = connectMs / 1000;
    const timer = setTimeout(
      () => outgoing.destroy(new Error(`no answer from ${host} in ${seconds} s`)),
      connectMs,
    );
    for (const event of ["connect", "close"]) socket.once(event, () => clearTimeout(timer));
  });
  return outgoing;
}

/** Each by itself: PEM blocks that stand on one line are not found by OpenSSL. */
function certificatesIn(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

function parseUpstream(name: string, upstream: string): Upstream {
  const parts = /^(http:\/\/)?(?:\[([^\]]+)\]|([^:/]+)):(\d+)$/.exec(upstream);
  const address = parts?.[2] ?? parts?.[3];
  const port = Number(parts?.[4]);
  if (address === undefined || port < 1 || port > 65535) {
    throw new SandboxError({
      code: "invalid_argument",
      message: `the upstream of ${name} is ${JSON.stringify(upstream)}; it must be address:port, such as 127.0.0.1:9000, or http://address:port to speak no TLS to it`,
      details: { argument: `upstreams.${name}`, got: upstream },
      status: 400,
      retryable: false,
    });
  }
  return { address, port, plain: parts?.[1] !== undefined };
}

const certificateTroubles =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+)$/;

/** What a person can do about a failure of TLS; OpenSSL's own words name its source files. */
function reasonOf(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  if (code === "EPROTO") {
    return "what answers there speaks no TLS; an upstream that speaks plain HTTP is named as http://address:port";
  }
  if (certificateTroubles.test(code)) {
    return `its certificate is not trusted (${code}); public authorities are, and for an upstream those of --upstream-ca or upstreamCa`;
  }
  return error.message;
}

/** The origin closed a kept connection as it was taken up again; a request without effect or body goes on another one. */
function mayRepeat(incoming: IncomingMessage, outgoing: ClientRequest): boolean {
  const { method = "" } = incoming;
  return outgoing.reusedSocket && ["GET", "HEAD", "OPTIONS"].includes(method) && !hasBody(incoming);
}

function isInternal(name: string): boolean {
  if (name === connectionHeader) return true;
  return name.startsWith(engineHeaderPrefix);
}

function refuse(response: ServerResponse, url: string, error: Error): void {
  if (response.destroyed || response.headersSent) {
    response.destroy();
    return;
  }
  const where = /^[a-z]+:\/\/[^/?#]*/i.exec(url)?.[0] ?? "the origin";
  if (error instanceof AddressDenied) sendError(response, 403, "egress_denied", error.message);
  else sendError(response, 502, "origin_unreachable", `${where} cannot be reached: ${reasonOf(error)}`);
}

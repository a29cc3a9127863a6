/** What the host asks of the Worker about one container. */
import { type Agent, request } from "node:http";
import { engineHeader } from "./protocol.ts";

/** The Worker's own address, once it listens. */
export interface WorkerAddress {
  hostname: string;
  port: number;
}

/** Where the Worker listens, and how the host proves itself. */
export interface WorkerCalls extends WorkerAddress {
  secret: string;
  agent: Agent;
}

/** Posts a message about a container, and resolves with the answer's status when the Worker has done what it says. */
export function postAbout(
  worker: WorkerCalls,
  path: string,
  container: { id: string; incarnation: string },
  message: unknown,
): Promise<number> {
  const { hostname, port, secret, agent } = worker;
  return new Promise((resolve, reject) => {
    const outgoing = request({
      ...{ hostname, port, agent, path },
      method: "POST",
      headers: {
        "content-type": "application/json",
        [engineHeader.secret]: secret,
        [engineHeader.container]: container.id,
        [engineHeader.incarnation]: container.incarnation,
      },
    });
    outgoing.on("response", (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode ?? 0));
      answer.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(message));
  });
}

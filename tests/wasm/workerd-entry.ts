// The Worker of workerd.test.ts: answers with what is wrong.
import { loadCore } from "#core";
import { failuresOf, type Vector } from "./vectors.ts";

const core = await loadCore();

export default {
  async fetch(request: Request): Promise<Response> {
    const vectors: Vector[] = await request.json();
    return Response.json({ answered: vectors.length, failures: failuresOf(core, vectors) });
  },
};

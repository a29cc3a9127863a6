/** Opens a project in a folder, keeps a file in a sandbox while it sleeps, and closes. */
import { open } from "iterate-sandboxes/node";

const project = await open({ dir: ".itx", project: "prj_example" });
try {
  const sandbox = await project.sandboxes
    .get(`/sandboxes/${crypto.randomUUID()}`)
    .create({ instanceType: "lite" });
  await sandbox.writeFile("/workspace/note.txt", "kept while asleep");
  await sandbox.sleep();
  const { stdout, exitCode } = await sandbox.exec("cat note.txt"); // wakes it
  console.log(JSON.stringify({ stdout, exitCode }));

  const { sandboxes } = await project.sandboxes.list();
  for (const { path, status } of sandboxes) console.log(`${path} ${status}`);
  await sandbox.destroy();
} finally {
  await project.close();
}

/** Steps with a progress line and timings, and a plain table: what the demo prints with. */
import color from "picocolors";

export function table(head: string[], rows: string[][]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)));
  const line = (row: string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [color.dim(line(head)), ...rows.map(line)].join("\n");
}

/** Half a second is when a person starts to wonder whether anything happens. */
const PROGRESS_AFTER_MS = 500;

export class Steps {
  readonly #timings: { title: string; ms: number }[] = [];

  /** Runs one step; its string result, if any, is printed under the title. */
  async run<T>(title: string, action: () => Promise<T>): Promise<T> {
    const started = performance.now();
    const progress = this.#progress(title, started);
    try {
      const result = await action();
      const ms = performance.now() - started;
      this.#timings.push({ title, ms });
      progress();
      console.log(`${color.green("✓")} ${title} ${color.dim(`${ms.toFixed(0)} ms`)}`);
      if (typeof result === "string") console.log(result.replace(/^/gm, "    "));
      return result;
    } catch (error) {
      progress();
      console.log(`${color.red("✗")} ${title}`);
      throw error;
    }
  }

  /** A person gets a line that is rewritten; a pipe gets one plain line, once. */
  #progress(title: string, started: number): () => void {
    const terminal = process.stdout.isTTY === true;
    const show = () => {
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      if (terminal) process.stdout.write(`\r\x1b[2K… ${title} ${seconds} s`);
      else console.log(`… ${title}`);
    };
    let repeat: NodeJS.Timeout | undefined;
    const first = setTimeout(() => {
      show();
      if (terminal) repeat = setInterval(show, 100);
    }, PROGRESS_AFTER_MS);
    return () => {
      clearTimeout(first);
      clearInterval(repeat);
      if (terminal) process.stdout.write("\r\x1b[2K");
    };
  }

  printTimings(): void {
    console.log("\nTimings");
    console.log(
      table(
        ["step", "ms"],
        this.#timings.map(({ title, ms }) => [title, ms.toFixed(1)]),
      ),
    );
  }
}

/** Wakes everybody who waits for the next append of this object. */
export class Wakeup {
  #waiting = new Set<() => void>();

  notify(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }

  /** Resolves at the next `notify`, or after `milliseconds`. */
  wait(milliseconds: number): Promise<"woken" | "timeout"> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(wake);
        resolve("timeout");
      }, milliseconds);
      const wake = () => {
        clearTimeout(timer);
        resolve("woken");
      };
      this.#waiting.add(wake);
    });
  }
}

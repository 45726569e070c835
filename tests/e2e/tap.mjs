// Test results as TAP, one line each; reasons go on comment lines below a failure.
export class Tap {
  #count = 0;
  #failed = 0;
  #print;

  constructor(print = console.log) {
    this.#print = print;
  }

  get failed() {
    return this.#failed;
  }

  ok(good, name, why) {
    this.#count += 1;
    this.#print(`${good ? 'ok' : 'not ok'} ${this.#count} - ${name.replaceAll('#', '\\#')}`);
    if (!good) {
      this.#failed += 1;
      const reasons = String(why ?? '').trimEnd().split('\n').slice(0, 20);
      for (const line of reasons) this.#print(`# ${line}`);
    }
    return good;
  }

  skip(name, reason) {
    this.#count += 1;
    this.#print(`ok ${this.#count} - ${name.replaceAll('#', '\\#')} # SKIP ${reason}`);
  }

  // The same list of problems for a pass and a fail: empty means it holds.
  none(problems, name) {
    return this.ok(problems.length === 0, name, problems.join('\n'));
  }

  done() {
    this.#print(`1..${this.#count}`);
    process.exitCode = this.#failed ? 1 : 0;
  }
}

export function skipAll(reason) {
  console.log(`1..0 # SKIP ${reason}`);
  process.exit(0);
}

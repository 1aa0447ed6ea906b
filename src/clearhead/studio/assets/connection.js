// The line to the server: requests with a number go out, answers come back; it is mended when it breaks.

const LONGEST_PAUSE = 5000; // milliseconds between two attempts to connect again
const LONGEST_MESSAGE = 5e6; // bytes that the server takes; after a longer one it would hang up
const NOT_THERE = 404; // of an address whose token is that of a studio which has ended

class Connection {
  constructor({ opened, lost }) {
    Object.assign(this, { opened, lost, number: 0, attempts: 0 });
    this.waiting = new Map(); // number → what is called with each answer
    this.connect();
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => document.hidden || this.retry());
  }

  connect() {
    const address = new URL("live", location.href.split("#")[0]);
    address.protocol = "ws:";
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.attempts = 0;
      this.opened();
    };
    this.socket.onmessage = (event) => this.receive(event.data);
    this.socket.onclose = () => this.broken();
  }

  // Whoever waits for an answer is told that there is none.
  broken() {
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    const pause = Math.min(LONGEST_PAUSE, 250 * 2 ** this.attempts++);
    this.lost(pause, null);
    for (const answer of waiting) answer({ kind: "lost" }, null);
    this.timer = setTimeout(() => this.connect(), pause);
    if (this.attempts > 2) this.find(pause);
  }

  // Is there no server, or another one, or one that is full?
  async find(pause) {
    try {
      const { status } = await fetch("studio.css", { method: "HEAD", cache: "no-store" });
      if (!this.open) this.lost(pause, status);
    } catch {
      return; // no server: what was said is true
    }
  }

  // The machine woke up, or somebody looks at the page again: there is no use in waiting on.
  retry() {
    if (this.socket.readyState <= WebSocket.OPEN) return;
    clearTimeout(this.timer);
    this.connect();
  }

  get open() {
    return this.socket.readyState === WebSocket.OPEN;
  }

  // Sends a request; `answer` is called with each message about it, and with the bytes that it has.
  ask(asked, fields, answer = () => {}) {
    const id = ++this.number;
    const message = JSON.stringify({ id, do: asked, ...fields });
    const refused = this.open ? tooLong(message) : { kind: "lost" };
    if (refused) {
      queueMicrotask(() => answer(refused, null));
      return id;
    }
    if (this.waiting.size > 400) this.waiting.delete(this.waiting.keys().next().value);
    this.waiting.set(id, answer);
    this.socket.send(message);
    return id;
  }

  forget(id) {
    this.waiting.delete(id);
  }

  receive(data) {
    let message;
    let bytes = null;
    if (typeof data === "string") message = JSON.parse(data);
    else {
      const size = new DataView(data).getUint32(0, true);
      message = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size)));
      bytes = new Uint8Array(data, 4 + size);
    }
    this.waiting.get(message.id)?.(message, bytes);
  }
}

function tooLong(message) {
  if (3 * message.length <= LONGEST_MESSAGE || new Blob([message]).size <= LONGEST_MESSAGE) return null;
  return { kind: "error", text: "This text is too long to be sent.", hint: null };
}

// The blocks of a look that came with it, and those that are asked for.
class SentBlocks extends Blocks {
  constructor(parts, fetch) {
    super(null);
    this.parts = parts;
    this.fetch = fetch;
  }
  bytes(name) {
    const part = this.parts.get(name);
    return part ? Promise.resolve(part) : this.fetch(name);
  }
}

function partsOf(sizes, bytes) {
  const parts = new Map();
  let at = 0;
  for (const [name, size] of sizes) {
    parts.set(name, bytes.subarray(at, at + size));
    at += size;
  }
  return parts;
}

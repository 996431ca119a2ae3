// What the server tells: answers to questions, and a stream of what is new.

export async function ask(path, parameters = {}) {
  const words = new URLSearchParams(parameters).toString();
  const response = await fetch(words ? `${path}?${words}` : path);
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return response.headers.get("content-type").startsWith("application/json") ? response.json() : response.text();
}

/// Calls handlers[name](data) for each event about these runs; `state` is told "live" or "lost".
export function follow(runs, handlers, state) {
  const source = new EventSource(`/events?runs=${runs.join(",")}`);
  let lost = false;
  source.addEventListener("hello", () => {
    state("live");
    if (lost) handlers.again({ run: null }); // whatever came meanwhile
    lost = false;
  });
  source.onerror = () => { lost = true; state("lost"); };
  for (const [name, handler] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  }
  return source;
}

/// "section.key" → value of a deck.
export function deckKeys(text) {
  const keys = new Map();
  let section = "";
  for (const line of text.split("\n").map((each) => each.trim())) {
    const head = line.match(/^\[(.+)\]$/), pair = line.match(/^([^#;=]+?)\s*=\s*(.*)$/);
    if (head) section = head[1];
    else if (pair) keys.set(`${section}.${pair[1]}`, pair[2]);
  }
  return keys;
}

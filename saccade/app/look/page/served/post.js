// Requests to the server that this page came from, and why it may refuse them.

export class Refusal extends Error {
  constructor(message, { field = null, wait = null } = {}) {
    super(message);
    Object.assign(this, { field, wait });
  }
}

export async function checked(response) {
  if (response.ok) return response;
  let told = null;
  try {
    told = (await response.json()).error;
  } catch {
    // Not every failure comes from our own server with words of ours.
  }
  const wait = Number(response.headers.get("Retry-After")) || null;
  throw new Refusal(
    told?.message ?? `The server answered ${response.status}.`, { field: told?.field, wait }
  );
}

// An image goes as a form, with its file as it is; all else as JSON.
export async function post(path, body, signal) {
  if (body.image instanceof Blob) {
    const form = new FormData();
    for (const [name, value] of Object.entries(body)) {
      form.append(name, value instanceof Blob || typeof value !== "object" ? value
        : JSON.stringify(value));
    }
    return checked(await fetch(path, { method: "POST", body: form, signal }));
  }
  const headers = { "Content-Type": "application/json" };
  return checked(
    await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal })
  );
}

// Server-sent events of one answer, each parsed.
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    held += value;
    const parts = held.split(/\r?\n\r?\n/);
    held = parts.pop();
    for (const part of parts) {
      const data = part.split(/\r?\n/).filter(
        (line) => line.startsWith("data:")
      ).map((line) => line.slice(5).trim()).join("\n");
      if (data) yield JSON.parse(data);
    }
  }
}

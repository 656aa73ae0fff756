import type { Client, ConnectOptions } from "./types.js"

/** Connects to a server, `ws://localhost:8080` for example; returns at once, and goes on trying until `close()`. */
export function connect(url: string | URL, options: ConnectOptions = {}): Client {
    throw new Error("not yet")
}

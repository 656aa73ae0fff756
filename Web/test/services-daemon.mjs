// The services of `trebuchet serve`, and their clients, for one test.
import { test } from "node:test"
import { services } from "../dist/trebuchet-services.js"
import { Daemon, tool, until } from "./daemon.mjs"
import { WebSocket } from "./sockets.mjs"

export const limits = { skip: tool ? false : "TREBUCHET_TOOL is not set", timeout: 60_000 }

/** A daemon for one test, and clients that are closed with it. */
export function withDaemon(name, body, args) {
    test(name, limits, async () => {
        const daemon = await Daemon.start(args)
        const made = []
        const make = (options) => {
            const each = services(daemon.url, { WebSocket, initialDelay: 5, maximumDelay: 100, pending: null, ...options })
            made.push(each)
            return each
        }
        try {
            await body(make, daemon)
        } finally {
            for (const each of made) each.close()
            await daemon.end()
        }
    })
}

export const live = (client) => until(client.client.status, ({ phase }) => phase === "live")

// A server with an inspector and a browser, for programs that are run manually: both end with the program.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { join } from "node:path"
import { connect } from "../../dist/trebuchet.js"
import { WebSocket } from "../sockets.mjs"
import { Chromium } from "./chromium.mjs"

export const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
export const isLive = `document.querySelector("#status").dataset.is === "live"`

/** - options: of serve. Returns the browser, the link to the inspector, and a function that creates a client of the server. */
export async function inspected(...options) {
    const server = spawn(
        join(process.env.TREBUCHET_PROGRAMS, "trebuchet"), ["serve", "--port", "0", "--examples", "--inspector", ...options],
        { stdio: ["ignore", "pipe", "ignore"] })
    const chromium = await Chromium.start(process.env.TREBUCHET_BROWSER)
    for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(1))
    process.once("exit", () => {
        server.kill("SIGKILL")
        chromium.kill()
    })
    let url
    let link
    for await (const line of createInterface(server.stdout)) {
        url ??= /ws:\/\/\S+/.exec(line)?.[0]
        link ??= /^inspector: (\S+)/.exec(line)?.[1]
        if (line.startsWith("try: ")) break
    }
    return { chromium, link, client: () => connect(url, { WebSocket }) }
}

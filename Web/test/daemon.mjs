// `trebuchet serve` in a separate process.
import { spawn } from "node:child_process"
import { connect } from "../dist/trebuchet.js"
import { WebSocket } from "./sockets.mjs"

export const tool = process.env.TREBUCHET_TOOL

export class Daemon {
    output = ""

    /** Starts the server, on a free port or on the given one. */
    static async start(args = [], port = 0) {
        const daemon = new Daemon()
        daemon.process = spawn(tool, ["serve", "--examples", "--port", String(port), ...args], { stdio: ["ignore", "pipe", "pipe"] })
        daemon.ended = new Promise((resolve) => daemon.process.once("exit", resolve))
        daemon.process.stderr.on("data", (text) => (daemon.output += text))
        daemon.url = await new Promise((resolve, reject) => {
            daemon.process.stdout.on("data", (text) => {
                daemon.output += text
                const url = /wss?:\/\/\S+/.exec(daemon.output)
                if (url) resolve(url[0])
            })
            daemon.ended.then(() => reject(new Error("trebuchet serve ended: " + daemon.output)))
        })
        daemon.port = Number(new URL(daemon.url).port)
        return daemon
    }

    connect(options) {
        return connect(this.url, { WebSocket, initialDelay: 5, maximumDelay: 100, ...options })
    }

    async end(signal = "SIGKILL") {
        this.process.kill(signal)
        await this.ended
    }
}

/** Waits until the value of a store meets the condition. */
export function until(store, condition) {
    return new Promise((resolve) => {
        let end = () => {}
        const check = () => {
            if (!condition(store.getSnapshot())) return
            end()
            resolve(store.getSnapshot())
        }
        end = store.subscribe(check)
        check()
    })
}

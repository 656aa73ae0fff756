// A server for a browser: `trebuchet serve`, or that of an example.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

export class Server {
    constructor(program, args, folder) {
        Object.assign(this, { program, args, folder })
    }

    /** Starts the server; `args` returns its arguments for a port. A restarted server has the same port. */
    async start() {
        this.process = spawn(this.program, this.args(this.port ?? 0), { cwd: this.folder, stdio: ["ignore", "pipe", "inherit"] })
        this.ended = new Promise((resolve) => this.process.once("exit", resolve))
        this.port = await new Promise((resolve, reject) => {
            createInterface(this.process.stdout).on("line", (line) => {
                const found = /(?:http|ws):\/\/[^:\s]+:(\d+)/.exec(line)
                if (found) resolve(Number(found[1]))
            })
            this.process.once("error", reject)
            this.ended.then(() => reject(new Error(`${this.program} ended`)))
        })
        this.url = `http://127.0.0.1:${this.port}`
        return this
    }

    async kill() {
        this.process.kill("SIGKILL")
        await this.ended
    }
}
